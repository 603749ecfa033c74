"""Dates as forums write them, relative ones included: "Yesterday, 12:30", "5 minutes ago", "半小时前"."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from headwater.sources.feeds.dates import parse_date, plausible

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
_NOW = re.compile(r"just now|a moment ago|moments ago|刚刚|剛剛|刚才|только что|gerade eben|à l'instant")
_DAYS_BACK = {
    0: "today|今天|今日|heute|aujourd'hui|hoy|oggi|сегодня|vandaag|hoje",
    1: "yesterday|昨天|昨日|gestern|hier|ayer|ieri|вчера|gisteren|ontem",
    2: "前天|vorgestern|avant-hier|anteayer|позавчера",
}
_NAMED_DAY = re.compile("|".join(rf"(?P<back{back}>\b(?:{words})|(?:{words}))" for back, words in _DAYS_BACK.items()))
_WEEKDAY = re.compile(r"\b(mon|tues|wednes|thurs|fri|satur|sun)day\b(?:\s+at)?\s+(?=\d)")
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
    """The moment that a forum's date means; None if it means none, or one that cannot be true.

    `zone` is the offset from UTC, in minutes, for dates that do not give theirs.
    """
    text = text.strip()[:300]
    if not text:
        return None
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
    """The day that a text names without its year: relative to today, by weekday, or by month and day."""
    found = _NAMED_DAY.search(text)
    if found:
        back = next(back for back in _DAYS_BACK if found[f"back{back}"])
        return local - timedelta(days=back)
    weekday = _WEEKDAY.search(text)
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
    """The time of day that the text gives, on that day; midnight if it gives none."""
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
