"""Daily figures of the market and the chain, and what can be forecast from them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Annotated, NamedTuple

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app.shapes import Example, Time
from headwater.coordination.cache import Cache, Cached, CachedKind
from headwater.crawl.record import record_days
from headwater.errors import BadDocument, NotFound
from headwater.fleet.chain import latest_run
from headwater.fleet.evaluate import DifficultyResult, PriceResult, evaluate_difficulty, evaluate_price
from headwater.fleet.forecast import HORIZON_DAYS as HORIZON_DAYS
from headwater.fleet.forecast import PastRange, forecast, past_ranges
from headwater.follow.add import Seal, follow
from headwater.model import ForecastDay, MarketDay, Reader
from headwater.sources import market as figures
from headwater.store.db import Database
from headwater.store.fleet import forecasts, market
from headwater.store.people import audit

FEWEST_DAYS = 60
LOOKS_BACK = timedelta(days=2500)
PAST_AHEAD = 7  # the forecasts whose outcomes are shown are those made a week before
PAST_DAYS = 60
_NO_FORECAST = (
    f"There is no forecast yet. It needs the figures of {FEWEST_DAYS} days without a gap: `headwater market import "
    "FILE` reads a file, HEADWATER_MARKET_URL names an address."
)


class Evaluation(NamedTuple):
    price: list[PriceResult]
    difficulty: list[DifficultyResult]

    @property
    def is_reached(self) -> bool:
        return all(one.is_reached for one in self.price) and all(one.is_reached for one in self.difficulty)


class StoredForecast(NamedTuple):
    """A forecast, the last day it knows, and the ranges of earlier days whose outcome is known."""

    made_on: date
    version: int
    model: str
    created_at: datetime
    days_old: int
    days: list[ForecastDay]
    past: list[PastRange]


FORECAST: CachedKind[StoredForecast] = CachedKind("forecast", StoredForecast, fresh_for=1800, stale_for=1800)


class ImportedDays(NamedTuple):
    """What an import did. `changed` counts days that are new or were corrected."""

    days: int
    changed: int
    first_day: date | None
    last_day: date | None


def read_days(body: bytes, now: datetime) -> list[MarketDay]:
    """Reads CSV or JSON with one entry a day, oldest first. Raises BadDocument, which names the line."""
    try:
        return figures.read_days(body, now.date())
    except figures.BadFigures as error:
        raise BadDocument(str(error)) from error


def import_days(conn: Connection, days: list[MarketDay], origin: str, now: datetime) -> ImportedDays:
    """Stores days and publishes what changed. Doing it twice changes nothing."""
    changed = record_days(conn, days, origin, now)
    audit.record(conn, None, "market.import", detail=f"{len(changed)} days")
    return ImportedDays(len(days), len(changed), days[0].day if days else None, days[-1].day if days else None)


def known_days(conn: Connection, last: int) -> list[MarketDay]:
    """Returns the latest days that are known."""
    newest = market.latest(conn)
    return market.days_since(conn, newest.day - timedelta(days=last - 1)) if newest else []


def watch(conn: Connection, reader: Reader, address: str, now: datetime, seal: Seal) -> None:
    """Follows the market data at this address. Doing it again changes nothing."""
    follow(conn, reader, address, now, kind=figures.KIND.name, seal=seal)


def without_gaps(days: list[MarketDay]) -> list[MarketDay]:
    """Returns the days. Raises BadDocument unless they are enough for a forecast, and every one is there."""
    for before, day in pairwise(days):
        if day.day != before.day + timedelta(days=1):
            raise BadDocument(f"{day.day} does not follow {before.day}. Every day needs a line.")
    if sum(day.price_usd is not None for day in days) < FEWEST_DAYS or days[-1].price_usd is None:
        raise BadDocument(f"At least {FEWEST_DAYS} days need a price, including the last day.")
    return days


def current_forecast(conn: Connection, now: datetime) -> StoredForecast:
    """Returns the forecast that holds now, with how earlier ones turned out. Raises NotFound if there is none yet."""
    made = forecasts.newest(conn)
    if made is None:
        raise NotFound(_NO_FORECAST)
    made_on = made.made_on.date()
    known = latest_run(market.days_since(conn, made_on - LOOKS_BACK))
    return StoredForecast(
        made_on=made_on,
        version=made.version,
        model=made.model,
        created_at=made.created_at,
        days_old=(now.date() - made_on).days,
        days=forecasts.days_of(conn, made),
        past=past_ranges(known, PAST_AHEAD, PAST_DAYS),
    )


async def cached_forecast(db: Database, cache: Cache, now: datetime) -> Cached[StoredForecast]:
    """Returns the forecast that holds now, from the cache as long as neither it nor a day of the market has changed."""
    version = await db.read(_forecast_version)
    found = await cache.get(FORECAST, FORECAST.name, lambda: db.read(current_forecast, now), version=version)
    return Cached(found.value._replace(days_old=(now.date() - found.value.made_on).days), found.is_hit)


def _forecast_version(conn: Connection) -> str:
    """Names what the forecast and its past are made of. Raises NotFound if there is no forecast yet."""
    made = forecasts.newest(conn)
    if made is None:
        raise NotFound(_NO_FORECAST)
    return f"{made.made_on.date()}:{made.version}:{market.version(conn)}"


def forecast_days(days: list[MarketDay], horizon: int) -> list[ForecastDay]:
    return forecast(days, horizon)


def evaluate(days: list[MarketDay], since: date | None) -> Evaluation:
    """Makes the forecast again for every day since then, and compares it with what came."""
    first = since or days[0].day
    return Evaluation(evaluate_price(days, first), evaluate_difficulty(days, first))


class ForecastDayJson(TypedDict):
    """What is expected of a day. Four of five prices should lie between low and high."""

    forecast_date: Annotated[str, Example("2026-01-08", of=lambda one: str(one.day))]
    predicted_btc_price: Annotated[float, Example(91250.5, "USD; as on the last known day", of="price_usd")]
    price_low: Annotated[float, Example(88410.2)]
    price_high: Annotated[float, Example(94181.9)]
    predicted_difficulty: Annotated[float, Example(148.2e12, of="difficulty")]
    difficulty_low: Annotated[float, Example(146.9e12)]
    difficulty_high: Annotated[float, Example(149.5e12)]
    predicted_hashprice: Annotated[float, Example(38.1, "USD that 1 PH/s earns in a day", of="hashprice_usd_per_ph")]
    hashprice_low: Annotated[float, Example(36.2)]
    hashprice_high: Annotated[float, Example(40.3)]
    confidence_score: Annotated[
        float | None,
        Example(0.806, "the share of the latest 500 such ranges of the price that held, or null", of="confidence"),
    ]
    difficulty_skill: Annotated[
        float | None, Example(0.41, "how much smaller the error of the next difficulty was than that of no change")
    ]


class PastRangeJson(TypedDict):
    """A range as it was made seven days before, with what was known then, and what came."""

    made_on: Annotated[str, Example("2026-01-01", of=lambda one: str(one.made_on))]
    day: Annotated[str, Example("2026-01-08", of=lambda one: str(one.day))]
    low: Annotated[float, Example(84020.0)]
    high: Annotated[float, Example(98030.0)]
    price_usd: Annotated[float, Example(91250.5)]
    held: Annotated[bool, Example(True)]


class ForecastJson(TypedDict):
    """The forecast that holds now."""

    made_on: Annotated[str, Example("2026-01-07", "the last day that it knows", of=lambda one: str(one.made_on))]
    version: Annotated[int, Example(1, "one more for each time the figures before were corrected")]
    model: Annotated[str, Example("as-today-1")]
    created_at: Annotated[Time, Example("2026-01-08T00:10:00Z")]
    days_old: Annotated[int, Example(1, "how many days ago that last day was")]
    cache_hit: Annotated[bool, Example(True, "whether the cache had it")]
    days: list[ForecastDayJson]
    past: list[PastRangeJson]
