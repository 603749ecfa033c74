"""What was forecast, and when. Nothing is overwritten: what was said on a day can be compared with what came."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import ForecastDay
from headwater.store.fleet.market import midnight
from headwater.store.sql import insert_into, moment, portable

# The columns of the fields of ForecastDay, in their order.
_FIGURES = (
    *("forecast_date", "predicted_btc_price", "price_low", "price_high"),
    *("predicted_difficulty", "difficulty_low", "difficulty_high"),
    *("predicted_hashprice", "hashprice_low", "hashprice_high", "confidence_score", "difficulty_skill"),
)
_COLUMNS = ("made_on", "version", *_FIGURES, "model", "created_at")


class Made(NamedTuple):
    """When a forecast was made: the last day that it knows, its version, how, and at what time."""

    made_on: datetime
    version: int
    model: str
    created_at: datetime


class Outcome(NamedTuple):
    """What was forecast for a day as it was first said, and the price that came."""

    made_on: datetime
    forecast_date: datetime
    predicted_btc_price: float
    price_low: float
    price_high: float
    price_usd: float


_newest = portable(
    "SELECT made_on, version, model, created_at FROM forecast_daily ORDER BY made_on DESC, version DESC LIMIT 1",
    row=Made,
)
_newest_of = portable(
    "SELECT made_on, version, model, created_at FROM forecast_daily WHERE made_on = ? ORDER BY version DESC LIMIT 1",
    row=Made,
)
_days = portable(
    f"SELECT {', '.join(_FIGURES)} FROM forecast_daily WHERE made_on = ? AND version = ? ORDER BY forecast_date"
)
_insert = portable(insert_into("forecast_daily", _COLUMNS))
_outcomes = portable(
    """SELECT f.made_on, f.forecast_date, f.predicted_btc_price, f.price_low, f.price_high, m.price_usd
    FROM forecast_daily f JOIN market_daily m
        ON m.day = f.forecast_date AND m.superseded_at IS NULL AND m.price_usd IS NOT NULL
    WHERE f.version = 1 AND f.forecast_date >= ? ORDER BY f.forecast_date, f.made_on""",
    row=Outcome,
)


def newest(conn: Connection) -> Made | None:
    """Returns which forecast holds now, or None if there is none yet."""
    return _newest.first(conn)


def days_of(conn: Connection, made: Made) -> list[ForecastDay]:
    """Returns what a forecast says, the nearest day first."""
    return _forecast_days(conn, made.made_on, made.version)


def _forecast_days(conn: Connection, made_on: datetime, version: int) -> list[ForecastDay]:
    rows = [_dated(row) for row in _days.all(conn, made_on, version)]
    return [ForecastDay(*row) for row in rows]


def _dated(row: Sequence[Any]) -> tuple[Any, ...]:
    return (moment(row[0]).date(), *row[1:])


def save(conn: Connection, made_on: date, days: Sequence[ForecastDay], model: str, now: datetime) -> int | None:
    """Stores a forecast. Returns its version, or None if the same was said before."""
    origin = midnight(made_on)
    before = _newest_of.first(conn, origin)
    if before and before.model == model and _forecast_days(conn, origin, before.version) == list(days):
        return None
    version = before.version + 1 if before else 1
    _insert.many(
        conn,
        [dict(zip(_COLUMNS, (origin, version, midnight(day.day), *day[1:], model, now), strict=True)) for day in days],
    )
    return version


def outcomes(conn: Connection, since: date) -> list[Outcome]:
    """Returns every forecast of a day since then whose price has come."""
    return _outcomes.all(conn, midnight(since))
