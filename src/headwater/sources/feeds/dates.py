"""Dates as feeds write them, in every form seen in the wild, to aware times in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

# Nothing was published on the Web before it existed. Zero, blank and default dates are earlier.
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
TOO_FAR_AHEAD = timedelta(days=2)

_ZONES = {
    name: hours * 60 + minutes
    for hours, minutes, names in [
        (0, 0, "z ut utc gmt wet"),
        (1, 0, "bst cet met west wat"),
        (2, 0, "cest mest mesz eet sast"),
        (3, 0, "eest msk"),
        (4, 0, "msd gst"),
        (5, 0, "pkt"),
        (5, 30, "ist"),
        (7, 0, "ict wib"),
        (8, 0, "awst hkt sgt"),
        (9, 0, "jst kst"),
        (9, 30, "acst"),
        (10, 0, "aest"),
        (10, 30, "acdt"),
        (11, 0, "aedt"),
        (12, 0, "nzst"),
        (13, 0, "nzdt"),
        (-3, -30, "nst"),
        (-2, -30, "ndt"),
        (-3, 0, "adt art brt"),
        (-4, 0, "ast edt at clt"),
        (-5, 0, "est cdt et cot pet"),
        (-6, 0, "cst mdt ct"),
        (-7, 0, "mst pdt mt"),
        (-8, 0, "pst akdt pt"),
        (-9, 0, "akst"),
        (-10, 0, "hst"),
    ]
    for name in names.split()
}

# January first, in the languages of most feeds, in lower case and without accents. If one word means two months, as
# listopad does in Polish and in Croatian, the language with more feeds wins.
_MONTH_NAMES = (
    (
        "january jan janvier janv januar janner enero ene gennaio gen janeiro januari styczen stycznia sty январь"
        " января янв січень січня січ ocak oca ianuarie ian tammikuu tammikuuta ιανουαριος ιανουαριου ιαν"
    ),
    (
        "february feb fevrier fevr fev februar febrero febbraio fevereiro februari luty lutego lut февраль февраля"
        " фев лютий лютого лют subat sub februarie helmikuu helmikuuta φεβρουαριος φεβρουαριου φεβ"
    ),
    (
        "march mar mars marz mrz marzo marco maart mrt marzec marca март марта мар березень березня бер mart"
        " martie marts maaliskuu maaliskuuta μαρτιος μαρτιου μαρ μαρτ marcius marc"
    ),
    (
        "april apr avril avr abril abr aprile kwiecien kwietnia kwi апрель апреля апр квітень квітня кві nisan nis"
        " aprilie huhtikuu huhtikuuta απριλιος απριλιου απρ aprilis"
    ),
    (
        "may mai mayo maggio mag maio mei maj maja май мая травень травня тра mayis toukokuu toukokuuta μαιος"
        " μαιου μαι μαυ majus"
    ),
    (
        "june jun juin juni junio giugno giu junho czerwiec czerwca cze июнь июня июн червень червня чер haziran"
        " haz iunie iun kesakuu kesakuuta ιουνιος ιουνιου ιουν junius"
    ),
    (
        "july jul juillet juil juli julio luglio lug julho lipiec lipca lip июль июля июл липень липня лип temmuz"
        " tem iulie iul heinakuu heinakuuta ιουλιος ιουλιου ιουλ julius"
    ),
    (
        "august aug aout agosto ago augustus sierpien sierpnia sie август августа авг серпень серпня сер agustos"
        " agu elokuu elokuuta αυγουστος αυγουστου αυγ augusztus"
    ),
    (
        "september sep sept septembre septiembre setiembre settembre set setembro wrzesien wrzesnia wrz сентябрь"
        " сентября сен сент вересень вересня вер eylul eyl septembrie syyskuu syyskuuta σεπτεμβριος σεπτεμβριου"
        " σεπ σεπτ szeptember"
    ),
    (
        "october oct octobre oktober okt octubre ottobre ott outubro out pazdziernik pazdziernika paz октябрь"
        " октября окт жовтень жовтня жов ekim eki octombrie lokakuu lokakuuta οκτωβριος οκτωβριου οκτ"
    ),
    (
        "november nov novembre noviembre novembro ноябрь ноября ноя нояб листопад листопада лис kasim kas"
        " noiembrie noi marraskuu marraskuuta νοεμβριος νοεμβριου νοε"
    ),
    (
        "december dec decembre dezember dez diciembre dic dicembre dezembro grudzien grudnia gru декабрь декабря"
        " дек грудень грудня гру aralik ara decembrie des joulukuu joulukuuta δεκεμβριος δεκεμβριου δεκ"
    ),
)

_MONTHS = {name: number for number, names in reversed([*enumerate(_MONTH_NAMES, 1)]) for name in names.split()}
_UNACCENTED = str.maketrans(
    "àáâãäåçèéêëìíîïñòóôõöøùúûüýÿąćęłńśźżěščřžůğışőűάέήίόύώϊΐϋΰς",
    "aaaaaaceeeeiiiinoooooouuuuyyacelnszzescrzugisouαεηιουωιιυυσ",
)

_TIME = (
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{1,2})(?:[:.](?P<second>\d{1,2})(?:[.,]\d*)?)?"
    r"\s*(?P<half>am|pm|a\.m\.|p\.m\.)?"
)
_ZONE = r"(?P<zone>[a-z]{0,7}\s*[+-]\s*\d{1,2}:?\d{0,2}(?::\d\d)?|[a-z]{1,7})?"
_REST = r"(?:\s*\(.*\)|\s+[a-z/_]+)?"
_WEEKDAY = r"(?:[^\W\d_]+(?:\.,?\s*|,\s*|\s+))?"

# What nine feeds in ten write, exactly as in RFC 822.
_USUAL = re.compile(
    r"(?:[A-Z][a-z]{2}, )?(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) (?:GMT|UTC|UT|Z|([+-])(\d\d)(\d\d))"
)
_DAY_FIRST = re.compile(
    rf"{_WEEKDAY}(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.|er|º)?[\s,/-]*(?:de\s+)?(?P<month>[^\W\d_]{{3,}})\.?[\s,/-]*"
    rf"(?:de\s+)?(?P<year>\d{{4}}|\d{{2}})(?!\d)(?:[t,\s-]+(?:(?:at|um|a|a las)\s+)?{_TIME})?\s*{_ZONE}{_REST}",
)
_MONTH_FIRST = re.compile(
    rf"{_WEEKDAY}(?P<month>[^\W\d_]{{3,}})\.?\s*(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[\s,]+(?P<year>\d{{4}})(?!\d)"
    rf"(?:[\s,-]+(?:at\s+)?{_TIME})?\s*{_ZONE}{_REST}",
)
_ASCTIME = re.compile(
    rf"{_WEEKDAY}(?P<month>[^\W\d_]{{3,}})\s+(?P<day>\d{{1,2}})\s+{_TIME}\s+(?:{_ZONE}\s+)?(?P<year>\d{{4}})"
    r"(?:\s+(?P<late>[+-]\d{4}))?",
)
_YEAR_FIRST = re.compile(
    rf"{_WEEKDAY}(?P<year>\d{{4}})\s*[-/.年년]\s*(?:(?P<month>\d{{1,2}})(?!\d)|(?P<name>[^\W\d_]{{3,}}))"
    rf"(?:\s*[-/.月월]\s*(?P<day>\d{{1,2}})(?!\d)\s*[日일.]?)?\s*[月월]?"
    rf"(?:[t,\s]*(?P<east>오전|오후|上午|下午|午前|午後)?\s*{_TIME})?\s*{_ZONE}{_REST}",
)
_COMPACT = re.compile(
    r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)"
    rf"(?:[t\s]?(?P<hour>\d\d):?(?P<minute>\d\d):?(?P<second>\d\d)?(?:[.,]\d*)?)?\s*{_ZONE}",
)
_ORDINAL = re.compile(rf"(?P<year>\d{{4}})-?(?P<ordinal>\d{{3}})(?:[t\s]{_TIME})?\s*{_ZONE}")
_NUMBERS = re.compile(
    rf"{_WEEKDAY}(?P<one>\d{{1,2}})\s*(?P<mark>[/.-])\s*(?P<two>\d{{1,2}})\s*[/.-]\s*(?P<year>\d{{4}}|\d\d)(?!\d)\.?"
    rf"(?:[t,\s-]+{_TIME})?\s*{_ZONE}{_REST}",
)
_YEAR_ONLY = re.compile(r"(?P<year>\d{4})")
_FORMS = (_DAY_FIRST, _YEAR_FIRST, _MONTH_FIRST, _ASCTIME, _COMPACT, _ORDINAL, _NUMBERS, _YEAR_ONLY)

_OFFSET = re.compile(r"([+-])\s*(\d{1,2}):?(\d\d)?")
_EPOCH = re.compile(r"\d{9,10}(?:\.\d+)?|\d{13}|\d{16}", re.ASCII)
_AFTERNOON = frozenset({"pm", "p.m.", "오후", "下午", "午後"})
_MORNING = frozenset({"am", "a.m.", "오전", "上午", "午前"})


def plausible(moment: datetime | None, received_at: datetime) -> datetime | None:
    """The moment, unless it cannot be true: it is before the Web, or too far ahead of the time of receipt."""
    return moment if moment and EARLIEST <= moment <= received_at + TOO_FAR_AHEAD else None


def parse_date(text: str) -> datetime | None:
    """The moment that a date means; None if it means none. No zone means UTC."""
    text = text.strip()
    if not 4 <= len(text) <= 100:
        return None
    try:
        usual = _USUAL.fullmatch(text)
        if usual:
            return _from_usual(*usual.groups())
        if text[4:5] == "-" and text[:4].isdigit():
            try:
                return _in_utc(datetime.fromisoformat(text))
            except ValueError:
                pass
        return _from_any_form(text)
    except (ValueError, OverflowError):
        return None


def _from_usual(
    day: str, month: str, year: str, hour: str, minute: str, second: str, sign: str | None, hours: str, minutes: str
) -> datetime | None:
    number = _MONTHS.get(month.lower())
    if number is None:
        return None
    start = datetime(int(year), number, int(day), tzinfo=UTC)
    seconds = _hour(hour) * 3_600 + int(minute) * 60 + min(int(second), 59)
    if sign:
        offset = int(hours) * 3_600 + int(minutes) * 60
        if offset <= 15 * 3_600:
            seconds += offset if sign == "-" else -offset
    return start + timedelta(seconds=seconds)


def _hour(text: str) -> int:
    """24:00 is midnight at the end of the day."""
    hour = int(text)
    if hour > 24:
        raise ValueError(text)
    return hour


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _from_any_form(text: str) -> datetime | None:
    if _EPOCH.fullmatch(text):
        return _from_epoch(text)
    text = text.lower().translate(_UNACCENTED).replace("−", "-").replace("+-", "-")
    for form in _FORMS:
        found = form.fullmatch(text)
        moment = _from_parts(found.groupdict()) if found else None
        if moment:
            return moment
    return None


def _from_epoch(text: str) -> datetime:
    """Seconds, milliseconds or microseconds since 1970, told apart by their size."""
    number = float(text)
    if number >= 1e14:
        number /= 1e6
    elif number >= 1e11:
        number /= 1e3
    return datetime.fromtimestamp(number, UTC)


def _from_parts(parts: dict[str, str | None]) -> datetime | None:
    year, month, day = _day_of(parts)
    if not month:
        return None
    hour, minute, second = _hour(parts.get("hour") or "0"), int(parts.get("minute") or 0), int(parts.get("second") or 0)
    half = parts.get("half") or parts.get("east")
    if half in _AFTERNOON and hour < 12:
        hour += 12
    elif half in _MORNING and hour == 12:
        hour = 0
    if minute > 59 or second > 61:
        return None
    start = datetime(year, month, day, tzinfo=timezone(timedelta(minutes=_offset_of(parts))))
    if parts.get("ordinal"):
        start += timedelta(days=int(parts["ordinal"] or 1) - 1)
    # A leap second has no place in a datetime.
    return (start + timedelta(hours=hour, minutes=minute, seconds=min(second, 59))).astimezone(UTC)


def _day_of(parts: dict[str, str | None]) -> tuple[int, int, int]:
    """Year, month and day; month 0 if a word is not the name of a month."""
    written = parts["year"] or ""
    year = int(written)
    if len(written) == 2:
        year += 2000 if year < 90 else 1900
    if parts.get("one"):
        return _ambiguous_day(year, int(parts["one"] or 0), int(parts["two"] or 0), parts["mark"] or "/")
    name = parts.get("name") or parts.get("month")
    if name is None:
        month = 1
    elif name.isdigit():
        month = int(name)
    else:
        month = _MONTHS.get(name) or _MONTHS.get(name[:3], 0)
    return year, month, int(parts.get("day") or 1)


def _ambiguous_day(year: int, one: int, two: int, mark: str) -> tuple[int, int, int]:
    # 31.12.2003 is day first everywhere. With slashes the American order is more common, unless it is impossible.
    return (year, two, one) if one > 12 or mark == "." else (year, one, two)


def _offset_of(parts: dict[str, str | None]) -> int:
    zone = (parts.get("zone") or parts.get("late") or "").strip()
    if not zone:
        return 0
    offset = _OFFSET.search(zone)
    if not offset:
        return _ZONES.get(zone, 0)
    minutes = int(offset[2]) * 60 + int(offset[3] or 0)
    if minutes > 15 * 60:
        return 0
    return -minutes if offset[1] == "-" else minutes
