"""The languages of pages: which one a reader gets, its catalogue, and numbers and dates as it writes them.

English is in the templates and the code. Every other language has a catalogue in `locale/`, which is read when the
first page in that language is shown. Babel is loaded only then: English numbers and dates need no more than Python.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime, tzinfo
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

ENGLISH = "en"
# As each calls itself, with the tag for HTML and the locale for numbers and dates.
NAMES = {"en": "English", "de": "Deutsch", "zh": "简体中文"}
_TAGS = {"en": "en", "de": "de", "zh": "zh-Hans"}
LOCALES = {"de": "de_DE", "zh": "zh_Hans_CN"}
_DAYS = {"de": "EEEE, d. MMMM", "zh": "M月d日EEEE"}  # a date without its year
CATALOGUES = Path(__file__).parent / "locale"
SCRIPT_WORDS = "script"  # marks the messages that scripts say
_MOST_WISHES = 20

_current: ContextVar[str] = ContextVar("language", default=ENGLISH)


class Language(NamedTuple):
    """A language of pages. `words` is what scripts say in it, as JSON; empty for English."""

    code: str
    tag: str
    words: str

    @property
    def is_english(self) -> bool:
        return self.code == ENGLISH


def preferred(wishes: str | None) -> str:
    """Returns the language that a browser likes best (Accept-Language) of those that there are. Pure."""
    best, weight = ENGLISH, 0.0
    for wish in (wishes or "").split(",")[:_MOST_WISHES]:
        tag, _, quality = wish.partition(";")
        code = tag.strip().lower().partition("-")[0]
        try:
            liked = float(quality.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
        if code in NAMES and weight < liked <= 1:
            best, weight = code, liked
    return best


@contextmanager
def speaking(code: str) -> Iterator[Language]:
    """Has everything within the block said in this language."""
    token = _current.set(code)
    try:
        yield Language(code, _TAGS[code], _script_words(code))
    finally:
        _current.reset(token)


def gettext(message: str) -> str:
    return _translations(_current.get()).gettext(message) if message else ""  # nothing would be the catalogue's header


def ngettext(one: str, several: str, count: int) -> str:
    return _translations(_current.get()).ngettext(one, several, count)


def noted(message: str) -> str:
    """Marks a message that is translated where it is shown."""
    return message


@cache
def _translations(code: str) -> NullTranslations:
    if code == ENGLISH:
        return NullTranslations()
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    compiled = BytesIO()
    with (CATALOGUES / f"{code}.po").open("rb") as file:
        write_mo(compiled, read_po(file, locale=LOCALES[code]))
    compiled.seek(0)
    return GNUTranslations(compiled)


@cache
def _script_words(code: str) -> str:
    if code == ENGLISH:
        return ""
    from babel.messages.pofile import read_po

    with (CATALOGUES / f"{code}.po").open("rb") as file:
        found = read_po(file, locale=LOCALES[code])
    return json.dumps({one.id: one.string for one in found if SCRIPT_WORDS in one.auto_comments}, ensure_ascii=False)


def number(value: float, places: int = 0) -> str:
    code = _current.get()
    if code == ENGLISH:
        return f"{value:,.{places}f}"
    from babel.numbers import format_decimal

    return format_decimal(round(value, places), "#,##0" + ("." + "0" * places if places else ""), LOCALES[code])


def short_date(day: date, *, with_year: bool) -> str:
    """Writes a date such as 3 Oct."""
    code = _current.get()
    if code == ENGLISH:
        return f"{day.day} {day:%b %Y}" if with_year else f"{day.day} {day:%b}"
    from babel.dates import format_skeleton

    return format_skeleton("yMMMd" if with_year else "MMMd", day, locale=LOCALES[code])


def long_date(day: date, *, with_year: bool) -> str:
    """Writes a date such as Saturday, 3 October."""
    code = _current.get()
    if code == ENGLISH:
        return f"{day:%A}, {day.day} {day:%B}" + (f" {day.year}" if with_year else "")
    from babel.dates import format_date

    return format_date(day, "full" if with_year else _DAYS[code], locale=LOCALES[code])


def moment(then: datetime, zone: tzinfo) -> str:
    """Writes a moment with its time zone."""
    local = then.astimezone(zone)
    if _current.get() == ENGLISH:
        return f"{local:%A}, {local.day} {local:%B %Y, %H:%M %Z}"
    return f"{long_date(local.date(), with_year=True)}, {local:%H:%M %Z}"
