"""Dates as feeds and forums write them, in every form seen in the wild, to aware times in UTC.

`parse_date` reads dates that say which day they mean. `parse_forum_date` also reads relative ones: "Yesterday, 12:30",
"5 minutes ago", "半小时前".
"""

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
    rf"(?:[t,\s-]+(?:at\s+)?{_TIME})?\s*{_ZONE}{_REST}",
)
_YEAR_ONLY = re.compile(r"(?P<year>\d{4})")
_FORMS = (_DAY_FIRST, _YEAR_FIRST, _MONTH_FIRST, _ASCTIME, _COMPACT, _ORDINAL, _NUMBERS, _YEAR_ONLY)

_OFFSET = re.compile(r"([+-])\s*(\d{1,2}):?(\d\d)?")
_EPOCH = re.compile(r"\d{9,10}(?:\.\d+)?|\d{13}|\d{16}", re.ASCII)
_AFTERNOON = frozenset({"pm", "p.m.", "오후", "下午", "午後"})
_MORNING = frozenset({"am", "a.m.", "오전", "上午", "午前"})


_MONTH = rf"(?:{'|'.join(sorted((re.escape(name) for name in _MONTHS if len(name) > 2), key=len, reverse=True))})"
_NAMED_DAY_IN_TEXT = re.compile(
    rf"\b{_MONTH}\.?\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+(?:19|20)\d\d\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th|\.|er)?[\s-]+(?:de\s+)?{_MONTH}\.?,?[\s-]+(?:de\s+)?(?:19|20)\d\d\b"
    r"|\b(?:19|20)\d\d\s?[-/.年년]\s?\d{1,2}\s?[-/.月월]\s?\d{1,2}(?!\d)"
    r"|\b\d{1,2}([/.])\d{1,2}\1(?:19|20)\d\d\b"
)


def named_day(text: str) -> datetime | None:
    """Returns the first whole date, with day and year, that is written in a text; None if there is none."""
    found = _NAMED_DAY_IN_TEXT.search(text.lower().translate(_UNACCENTED))
    return parse_date(found[0]) if found else None


def plausible(moment: datetime | None, received_at: datetime) -> datetime | None:
    """Returns the moment, unless it cannot be true: it is before the Web, or too far ahead of the time of receipt."""
    return moment if moment and EARLIEST <= moment <= received_at + TOO_FAR_AHEAD else None


def parse_date(text: str) -> datetime | None:
    """Returns the moment that a date means; None if it means none. No zone means UTC."""
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
    """Returns the time that is so many seconds, milliseconds or microseconds after 1970. The size says which."""
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
    """Returns year, month and day; month 0 if a word is not the name of a month."""
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


_UNITS = {
    "seconds": 1,
    "minutes": 60,
    "hours": 3_600,
    "days": 86_400,
    "weeks": 604_800,
    "months": 2_592_000,
    "years": 31_536_000,
}
_UNIT_WORDS = {
    "seconds": "seconds second secs sec s 秒 秒钟 секунд секунды секунду sekunden sekunde secondes seconde segundos",
    "minutes": "minutes minute mins min m 分钟 分 分鐘 минут минуты минуту minuten minutos minuto minuti",
    "hours": "hours hour hrs hr h 小时 小時 钟头 час часа часов stunden stunde heures heure horas hora ore ora uur",
    "days": "days day d 天 日 день дня дней tagen tage tag jours jour días dias día dia giorni giorno dagen dag",
    "weeks": "weeks week wk w 周 星期 週 неделю недели недель wochen woche semaines semaine semanas semana",
    "months": "months month mo 个月 個月 月 месяц месяца месяцев monaten monate monat mois meses mes mesi mese",
    "years": "years year yrs yr y 年 год года лет jahren jahre jahr ans an años año anni anno",
}
_SECONDS = {word: _UNITS[unit] for unit, words in _UNIT_WORDS.items() for word in words.split()}
_ANY_UNIT = "|".join(sorted(map(re.escape, _SECONDS), key=len, reverse=True))
_AMOUNT = re.compile(
    rf"(?:(?P<number>\d{{1,5}})|(?P<half>半)(?:个|個)?|\b(?P<one>an?|one|une?|eine[rm]?|una?)\b)\s*(?P<unit>{_ANY_UNIT})(?![a-z])"
)
_AGO = re.compile(r"\bago\b|前|назад|\bvor\b|\bil y a\b|\bhace\b|\bfa\b|\bgeleden\b|\bhá\b")
_SHORT_AGE = re.compile(r"\d{1,3}\s?(?:secs?|mins?|hrs?|mo|yrs?|[smhdwy])")  # "3y"; a large M would be millions
_NOW = re.compile(r"just now|a moment ago|moments ago|刚刚|剛剛|刚才|только что|gerade eben|à l'instant")
_DAYS_BACK = {
    0: "today|今天|今日|heute|aujourd'hui|hoy|oggi|сегодня|vandaag|hoje",
    1: "yesterday|昨天|昨日|gestern|hier|ayer|ieri|вчера|gisteren|ontem",
    2: "前天|vorgestern|avant-hier|anteayer|позавчера",
}
_NAMED_DAY = re.compile("|".join(rf"(?P<back{back}>\b(?:{words})|(?:{words}))" for back, words in _DAYS_BACK.items()))
_NAMED_WEEKDAY = re.compile(r"\b(mon|tues|wednes|thurs|fri|satur|sun)day\b(?:\s+at)?\s+(?=\d)")
_WEEKDAYS = ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun")
_CLOCK = re.compile(
    r"(?P<east>上午|下午|晚上)?\s*(?P<hour>\d{1,2})[:.](?P<minute>\d\d)(?::(?P<second>\d\d))?\s*(?P<half>[ap]\.?m)?"
)
_ABSOLUTE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}t[\d:.]+(?:z|[+-]\d\d:?\d\d)?"
    r"|\d{4}\s*[-/.年]\s*\d{1,2}\s*[-/.月]\s*\d{1,2}日?(?:[\s,]+(?:上午|下午)?\s*\d{1,2}:\d\d(?::\d\d)?)?(?:\s*[ap]m)?(?:\s*[+-]\d\d:?\d\d)?"
    r"|(?:[^\W\d_]{3,9}\.?,?\s+)?[^\W\d_]{3,9}\.?\s+\d{1,2}(?:st|nd|rd|th)?,?\s+\d{4}(?:[\s,@-]+(?:at\s+)?\d{1,2}:\d\d(?::\d\d)?(?:\s*[ap]\.?m)?)?"
    r"|\d{1,2}(?:st|nd|rd|th|\.)?[\s-]+(?:de\s+)?[^\W\d_]{3,12}\.?,?[\s-]+(?:de\s+)?\d{4}(?:[\s,@-]+(?:at\s+|um\s+)?\d{1,2}[:.]\d\d(?::\d\d)?(?:\s*[ap]\.?m)?)?"
    r"|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}(?:[\s,-]+(?:at\s+)?\d{1,2}:\d\d(?::\d\d)?(?:\s*[ap]m)?)?"
)
_TWO_NUMBERS = re.compile(r"(?<![\d-])(\d{1,2})-(\d{1,2})(?:\s+(?=\d{1,2}:))?(?![\d-])")
_HAS_ZONE = re.compile(r"(?:z|gmt|utc|[+-]\d\d:?\d\d)\s*$|\b[ecmp][sd]t\b|^\d{9,}$", re.IGNORECASE)


def parse_forum_date(text: str, received_at: datetime, zone: int = 0) -> datetime | None:
    """Returns the moment that a forum's date means; None if it means none, or one that cannot be true.

    `zone` is the offset from UTC, in minutes, for dates that do not give theirs.
    """
    text = text.strip()[:300]
    if not text:
        return None
    if _SHORT_AGE.fullmatch(text):
        text += " ago"
    moment = _absolute(text, zone) or _relative(text.lower(), received_at, zone)
    return plausible(moment, received_at)


def _absolute(text: str, zone: int) -> datetime | None:
    moment = parse_date(text)
    if moment is None:
        found = _ABSOLUTE.search(text.lower())
        if not found:
            return None
        text = found[0].replace("@", " ")
        moment = parse_date(text)
    if moment is None:
        return None
    return moment if _HAS_ZONE.search(text) else _moved(moment, zone)


def _moved(moment: datetime, zone: int) -> datetime:
    try:
        return moment - timedelta(minutes=zone)
    except OverflowError:
        return moment


def _relative(text: str, received_at: datetime, zone: int) -> datetime | None:
    if _NOW.search(text):
        return received_at
    if _AGO.search(text):
        seconds = sum(_seconds(amount) for amount in _AMOUNT.finditer(text))
        if seconds:
            return received_at - timedelta(seconds=min(seconds, 100 * 31_536_000))
    local = received_at.astimezone(timezone(timedelta(minutes=zone)))
    day = _named_day(text, local)
    return _at_clock(text, day).astimezone(UTC) if day else None


def _seconds(amount: re.Match[str]) -> int:
    unit = _SECONDS[amount["unit"]]
    if amount["half"]:
        return unit // 2
    return unit * (int(amount["number"]) if amount["number"] else 1)


def _named_day(text: str, local: datetime) -> datetime | None:
    """Returns the day that a text names without its year: relative to today, by weekday, or by month and day."""
    found = _NAMED_DAY.search(text)
    if found:
        back = next(back for back in _DAYS_BACK if found[f"back{back}"])
        return local - timedelta(days=back)
    weekday = _NAMED_WEEKDAY.search(text)
    if weekday:
        return local - timedelta(days=(local.weekday() - _WEEKDAYS.index(weekday[1])) % 7 or 7)
    numbers = _TWO_NUMBERS.search(text)
    if not numbers:
        return None
    try:
        day = local.replace(month=int(numbers[1]), day=int(numbers[2]))
        return day if day <= local + timedelta(days=1) else day.replace(year=day.year - 1)
    except ValueError:
        return None


def _at_clock(text: str, day: datetime) -> datetime:
    """Returns the time of day that the text gives, on that day; midnight if it gives none."""
    midnight = day.replace(hour=0, minute=0, second=0, microsecond=0)
    clock = _CLOCK.search(text)
    if not clock:
        return midnight
    hour, minute, second = int(clock["hour"]), int(clock["minute"]), int(clock["second"] or 0)
    afternoon = (clock["half"] or "").startswith("p") or clock["east"] in ("下午", "晚上")
    if afternoon and hour < 12:
        hour += 12
    elif hour == 12 and (clock["half"] or "").startswith("a"):
        hour = 0
    return midnight + timedelta(hours=min(hour, 24), minutes=min(minute, 59), seconds=min(second, 59))
