"""Daily figures of the market and the chain, and what can be forecast from them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import date, timedelta
from math import isfinite
from typing import NamedTuple

from headwater.errors import BadDocument
from headwater.fleet.chain import MarketDay
from headwater.fleet.evaluate import DifficultyResult, PriceResult, evaluate_difficulty, evaluate_price
from headwater.fleet.forecast import ForecastDay, forecast

COLUMNS = ("date", "price_usd", "difficulty", "height_eod", "blocks", "fees_btc")
MAX_DAYS = 50_000
FEWEST_DAYS = 60


class Evaluation(NamedTuple):
    price: list[PriceResult]
    difficulty: list[DifficultyResult]

    @property
    def is_reached(self) -> bool:
        return all(one.is_reached for one in self.price) and all(one.is_reached for one in self.difficulty)


def read_days(body: bytes) -> list[MarketDay]:
    """Reads a CSV file with one line a day, oldest first. Raises BadDocument, which names the line."""
    try:
        rows = csv.DictReader(io.StringIO(body.decode("utf-8-sig")), strict=True)
        missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
        if missing:
            raise BadDocument(
                f"The first line has to name the columns {', '.join(COLUMNS)}. It lacks {', '.join(missing)}."
            )
        days = list(_checked(rows))
    except UnicodeDecodeError as error:
        raise BadDocument("The file is not UTF-8 text.") from error
    except csv.Error as error:
        raise BadDocument(f"The file is not CSV: {error}.") from error
    if sum(day.price_usd is not None for day in days) < FEWEST_DAYS or days[-1].price_usd is None:
        raise BadDocument(f"At least {FEWEST_DAYS} days with a price are needed, the last day among them.")
    return days


def _checked(rows: csv.DictReader[str]) -> Iterator[MarketDay]:
    before: MarketDay | None = None
    for row in rows:
        try:
            day = _day(row)
        except (ValueError, TypeError) as error:
            raise BadDocument(f"Line {rows.line_num} cannot be read: {error}.") from error
        if before and day.day != before.day + timedelta(days=1):
            raise BadDocument(f"Line {rows.line_num}: {day.day} does not follow {before.day}. Every day needs a line.")
        if before and day.height < before.height:
            raise BadDocument(f"Line {rows.line_num}: the height falls from {before.height} to {day.height}.")
        if rows.line_num > MAX_DAYS:
            raise BadDocument(f"The file has more than {MAX_DAYS:,} lines.")
        yield day
        before = day


def _day(row: dict[str, str]) -> MarketDay:
    return MarketDay(
        day=date.fromisoformat(row["date"]),
        price_usd=_positive(row["price_usd"], "price_usd"),
        difficulty=_positive(row["difficulty"], "difficulty"),
        height=int(row["height_eod"]),
        blocks=int(_number(row["blocks"], "blocks")),
        fees_btc=_number(row["fees_btc"], "fees_btc"),
    )


def _positive(given: str, name: str) -> float | None:
    """Reads a number above zero. An empty field is unknown."""
    if not given:
        return None
    number = _number(given, name)
    if not number:
        raise ValueError(f"{name} is 0")
    return number


def _number(given: str, name: str) -> float:
    number = float(given or 0)
    if not isfinite(number) or number < 0:
        raise ValueError(f"{name} is {given}")
    return number


def forecast_days(days: list[MarketDay], horizon: int) -> list[ForecastDay]:
    return forecast(days, horizon)


def evaluate(days: list[MarketDay], since: date | None) -> Evaluation:
    """Makes the forecast again for every day since then, and compares it with what came."""
    first = since or days[0].day
    return Evaluation(evaluate_price(days, first), evaluate_difficulty(days, first))
