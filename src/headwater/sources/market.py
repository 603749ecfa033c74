"""Daily figures of the coin's market and chain, as CSV or JSON at an address or in a file.

CSV names its columns in the first line. JSON is a list of objects, or an object whose `days` is one. Both have the
fields of COLUMNS; `hashrate_th` may be missing. A document with one bad day is refused as a whole, and the message
names the line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from math import isfinite
from typing import Any

from headwater.errors import ReadFailed
from headwater.model import Facts, MarketDay, Page, Request, Response, Source, SourceState
from headwater.sources.json_values import document_in
from headwater.sources.kind import Kind

COLUMNS = ("date", "price_usd", "difficulty", "height_eod", "blocks", "fees_btc")
ACCEPT = "text/csv, application/json;q=0.9, */*;q=0.1"
MAX_DAYS = 50_000
FIRST_DAY = date(2009, 1, 3)  # of the chain
MOST_HEIGHT = 2**31 - 1
MOST_BLOCKS = 100_000  # in a day; usual are 144

_Row = tuple[str, Mapping[str, Any]]  # where it is, and its values by name


class BadFigures(ValueError):
    """What is wrong with a document, and in which line."""


def first(source: Source, state: SourceState) -> Request:
    return Request(source.address, (("Accept", ACCEPT),))


def read(source: Source, state: SourceState, response: Response) -> Page:
    try:
        days = read_days(response.body, response.received_at.date())
    except BadFigures as error:
        raise ReadFailed(str(error)) from error
    return Page([], None, Facts(format="market", title="Bitcoin, day by day", note=_note(days)), days=days)


def _note(days: list[MarketDay]) -> str:
    return f"Daily figures from {days[0].day} to {days[-1].day}." if days else ""


def read_days(body: bytes, today: date) -> list[MarketDay]:
    """Reads a document, oldest day first. Raises BadFigures, which names the line."""
    is_json = body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"[", b"{")
    try:
        return list(_checked(_json_rows(body) if is_json else _csv_rows(body), today))
    except UnicodeDecodeError as error:
        raise BadFigures("The document is not UTF-8 text.") from error
    except csv.Error as error:
        raise BadFigures(f"The document is not CSV: {error}.") from error


def _csv_rows(body: bytes) -> Iterator[_Row]:
    rows = csv.DictReader(io.StringIO(body.decode("utf-8-sig"), newline=""), strict=True)
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise BadFigures(f"The first line has to name the columns {', '.join(COLUMNS)}. It lacks {', '.join(missing)}.")
    for row in rows:
        yield f"Line {rows.line_num}", row


def _json_rows(body: bytes) -> Iterator[_Row]:
    try:
        document = document_in(body.removeprefix(b"\xef\xbb\xbf"), "the server")
    except ReadFailed as error:
        raise BadFigures(error.detail) from error
    days = document.get("days") if isinstance(document, dict) else document
    if not isinstance(days, list):
        raise BadFigures("The document has to be a list of days, or an object whose `days` is one.")
    for number, row in enumerate(days, 1):
        if not isinstance(row, dict):
            raise BadFigures(f"Entry {number} is not an object.")
        yield f"Entry {number}", row


def _checked(rows: Iterable[_Row], today: date) -> Iterator[MarketDay]:
    before: MarketDay | None = None
    for number, (where, row) in enumerate(rows, 1):
        try:
            day = _day(row, today)
        except ValueError as error:
            raise BadFigures(f"{where} cannot be read: {error}.") from error
        if before and day.day <= before.day:
            raise BadFigures(f"{where}: {day.day} does not come after {before.day}. Write the oldest day first.")
        if before and day.height < before.height:
            raise BadFigures(f"{where}: the height falls from {before.height} to {day.height}.")
        if number > MAX_DAYS:
            raise BadFigures(f"The document has more than {MAX_DAYS:,} days.")
        yield day
        before = day


def _day(row: Mapping[str, Any], today: date) -> MarketDay:
    return MarketDay(
        day=_date(row.get("date"), today),
        price_usd=_positive(row, "price_usd"),
        difficulty=_positive(row, "difficulty"),
        height=_whole(row, "height_eod", MOST_HEIGHT),
        blocks=_whole(row, "blocks", MOST_BLOCKS),
        fees_btc=_number(row, "fees_btc") or 0.0,
        hashrate_th=_positive(row, "hashrate_th"),
    )


def _date(given: object, today: date) -> date:
    try:
        day = date.fromisoformat(given if isinstance(given, str) else "")
    except ValueError:
        raise ValueError(f"{_shown(given)} is not a date such as 2026-05-18") from None
    if day > today:
        raise ValueError(f"{day} is in the future")
    if day < FIRST_DAY:
        raise ValueError(f"{day} is before the first block")
    return day


def _positive(row: Mapping[str, Any], name: str) -> float | None:
    """Returns a number above zero. An empty field is unknown."""
    number = _number(row, name)
    if number == 0:
        raise ValueError(f"{name} is 0; leave it empty if it is unknown")
    return number


def _number(row: Mapping[str, Any], name: str) -> float | None:
    given = row.get(name)
    if given is None or given == "":
        return None
    try:
        number = float(given) if isinstance(given, str | int | float) and not isinstance(given, bool) else None
    except (ValueError, OverflowError):
        number = None
    if number is None or not isfinite(number) or number < 0:
        raise ValueError(f"{name} is {_shown(given)}, which is not a number from 0 up")
    return number


def _whole(row: Mapping[str, Any], name: str, most: int) -> int:
    number = _number(row, name)
    if number is None or number != int(number) or number > most:
        raise ValueError(f"{name} is {_shown(row.get(name))}, which is not a whole number from 0 to {most}")
    return int(number)


def _shown(given: object) -> str:
    return repr(given)[:50] if given not in (None, "") else "empty"


KIND = Kind("market", "market", "markets", first, read, for_operators=True)
