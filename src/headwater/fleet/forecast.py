"""What is known about the days to come, and how often such knowledge was right.

No method that we tried beats "as today" for the price of the coin by more than a fraction of a per cent. So the price
is as today, with a range that held in four of five past cases. The next difficulty can be estimated better (see
`difficulty`). The hashprice follows from the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise
from math import exp, hypot, log, log1p, sqrt
from typing import NamedTuple

from headwater.fleet.chain import Epoch, current_progress, finished_epochs, misses_at
from headwater.fleet.difficulty import BLOCKS_PER_EPOCH, estimate, growth_of, quantile
from headwater.fleet.economics import HASHES_PER_DIFFICULTY, HASHES_PER_PH_DAY, subsidy_btc
from headwater.model import ForecastDay, MarketDay

MODEL = "as-today-1"
HORIZON_DAYS = 30
COVERAGE = 0.8
# A range is as wide as the price moved recently: four parts of the last weeks, one part of the last months.
FAST, SLOW = 0.94, 0.99
FAST_SHARE = 0.8
STEP = 0.005  # by how much the ranges of a horizon widen or narrow after each outcome
FIRST_DAYS = 30  # before that nothing is known about how much the price moves
FIRST_FACTOR = 1.28  # what a normal distribution would need for four of five
JUDGED = 500  # the latest outcomes by which a range is judged
PAST_EPOCHS = 52
FEE_DAYS = 30


class Ranges(NamedTuple):
    """For each day, how far the price may move in the days ahead, in logarithms, by what was known on that day."""

    halves: list[float | None]
    held: list[bool]  # the outcomes that are known, oldest first

    @property
    def coverage(self) -> float | None:
        judged = self.held[-JUDGED:]
        return sum(judged) / len(judged) if judged else None


def price_ranges(prices: Sequence[float], days_ahead: int) -> Ranges:
    """Goes through the past day by day. Each outcome makes the ranges a little wider (it was outside) or narrower.

    So in the long run four of five hold, whatever the distribution of prices is.
    """
    logs = [log(price) for price in prices]
    moves = _movement(logs)
    factor = log(FIRST_FACTOR)
    halves: list[float | None] = []
    held: list[bool] = []
    for today, moved in enumerate(moves):
        origin = today - days_ahead
        known = halves[origin] if origin >= 0 else None
        if known is not None:
            held.append(abs(logs[today] - logs[origin]) <= known)
            factor += STEP * (COVERAGE - 1 if held[-1] else COVERAGE)
        halves.append(exp(factor) * moved * sqrt(days_ahead) if moved is not None else None)
    return Ranges(halves, held)


def _movement(logs: Sequence[float]) -> list[float | None]:
    """Returns how much the price moves in a day, for each day. None as long as too little is known."""
    steps = [later - earlier for earlier, later in pairwise(logs)]
    if len(steps) < FIRST_DAYS:
        return [None] * len(logs)
    fast = slow = sum(step**2 for step in steps[:FIRST_DAYS]) / FIRST_DAYS
    moves: list[float | None] = [None] * FIRST_DAYS
    for step in steps[FIRST_DAYS - 1 :]:
        fast = FAST * fast + (1 - FAST) * step**2
        slow = SLOW * slow + (1 - SLOW) * step**2
        moves.append(sqrt(FAST_SHARE * fast + (1 - FAST_SHARE) * slow))
    return moves


def forecast(days: Sequence[MarketDay], horizon: int = HORIZON_DAYS) -> list[ForecastDay]:
    """Forecasts the days after the last one. Returns nothing if less than 60 days with a price are known."""
    prices = [day.price_usd for day in days if day.price_usd is not None]
    if len(prices) < 2 * FIRST_DAYS or days[-1].price_usd is None:
        return []
    path, skill = _difficulty_path(days, horizon)
    return [
        _one_day(days, prices, ahead, path[ahead - 1])._replace(difficulty_skill=skill)
        for ahead in range(1, horizon + 1)
    ]


class _Difficulty(NamedTuple):
    """The expected difficulty of a day, and how far off it may be, in logarithms."""

    height: int
    difficulty: float
    half: float


def _one_day(days: Sequence[MarketDay], prices: Sequence[float], ahead: int, expected: _Difficulty) -> ForecastDay:
    ranges = price_ranges(prices, ahead)
    half = ranges.halves[-1] or 0.0
    price = prices[-1]
    hashprice = _hashprice(price, expected, _fees_per_block(days))
    either = hypot(half, expected.half)
    return ForecastDay(
        days[-1].day + timedelta(days=ahead),
        price, price * exp(-half), price * exp(half),
        expected.difficulty, expected.difficulty * exp(-expected.half), expected.difficulty * exp(expected.half),
        hashprice, hashprice * exp(-either), hashprice * exp(either),
        ranges.coverage,
    )  # fmt: skip


def _hashprice(price: float, expected: _Difficulty, fees: float) -> float:
    blocks = float(HASHES_PER_PH_DAY) / (expected.difficulty * HASHES_PER_DIFFICULTY)
    return blocks * (float(subsidy_btc(expected.height)) + fees) * price


def _fees_per_block(days: Sequence[MarketDay]) -> float:
    """Returns the median of late, because a single day of high fees says little about the next."""
    return quantile([day.fees_btc / day.blocks for day in days[-FEE_DAYS:] if day.blocks], 0.5)


def _skill(misses: Sequence[float], epochs: Sequence[Epoch]) -> float | None:
    """Returns how much smaller the errors were than those of expecting no change."""
    changes = sum(abs(epoch.change) for epoch in epochs[-len(misses) :]) if misses else 0.0
    return 1 - sum(map(abs, misses)) / changes if changes else None


def _difficulty_path(days: Sequence[MarketDay], horizon: int) -> tuple[list[_Difficulty], float | None]:
    """Returns the expected difficulty of each day, which changes where an epoch is expected to end, and the skill."""
    epochs = finished_epochs(days)[-PAST_EPOCHS:]
    progress, now = current_progress(days), days[-1].difficulty or 1.0
    growth = growth_of([epoch.change for epoch in epochs])
    misses = misses_at(days, epochs, progress.share)
    first = estimate(progress, growth, misses)
    later = quantile([abs(epoch.change - growth) for epoch in epochs], COVERAGE)
    height, found = days[-1].height, progress.blocks
    step = _Difficulty(height, now, 0.0)
    path = []
    pace = BLOCKS_PER_EPOCH / 14 * (1 + first.change)
    for _ in range(horizon):
        height, found = height + round(pace), found + round(pace)
        if found >= BLOCKS_PER_EPOCH:
            found -= BLOCKS_PER_EPOCH
            is_first = step.half == 0
            change = first.change if is_first else growth
            half = log1p(max(first.high - first.change, 0.0)) if is_first else hypot(step.half, log1p(later))
            step = step._replace(difficulty=step.difficulty * (1 + change), half=half)
            pace = BLOCKS_PER_EPOCH / 14 * (1 + growth)
        path.append(step._replace(height=height))
    return path, _skill(misses, epochs)


class PastRange(NamedTuple):
    """A range as it would have been made on an earlier day, with what was known then, and the price that came."""

    made_on: date
    day: date
    low: float
    high: float
    price_usd: float

    @property
    def held(self) -> bool:
        return self.low <= self.price_usd <= self.high


def past_ranges(days: Sequence[MarketDay], days_ahead: int, last: int) -> list[PastRange]:
    """Returns the latest ranges whose outcome is known, oldest first."""
    priced = [(day.day, day.price_usd) for day in days if day.price_usd is not None]
    halves = price_ranges([price for _, price in priced], days_ahead).halves
    found = []
    for origin in range(max(0, len(priced) - days_ahead - last), len(priced) - days_ahead):
        (made_on, then), (day, price), half = priced[origin], priced[origin + days_ahead], halves[origin]
        if half is not None:
            found.append(PastRange(made_on, day, then * exp(-half), then * exp(half), price))
    return found
