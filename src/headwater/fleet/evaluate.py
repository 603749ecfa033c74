"""How good the forecast would have been: it is made again for each past day, with what was known then, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from math import log
from typing import NamedTuple

from headwater.fleet.chain import Epoch, day_nearest, finished_epochs, progress_on
from headwater.fleet.difficulty import BLOCKS_PER_EPOCH, change_by_pace, change_expected, growth_of
from headwater.fleet.forecast import price_ranges
from headwater.model import MarketDay

HORIZONS = (1, 7, 30)
SHARES = (0.1, 0.25, 0.5, 0.9)
FEWEST_ORIGINS = 500
COVERAGE_GOAL = (0.77, 0.83)
# The error relative to that of the pace so far, at each point of an epoch.
DIFFICULTY_GOALS = {0.1: 1.0, 0.25: 0.87, 0.5: 1.0, 0.9: 1.0}
WARM_UP_EPOCHS = 12
WARM_UP_DAYS = 365


class PriceResult(NamedTuple):
    """How often the 80 % range held, and how wide it was (the median of the upper end, relative to the price)."""

    days_ahead: int
    origins: int
    coverage: float
    median_width: float

    @property
    def is_reached(self) -> bool:
        low, high = COVERAGE_GOAL
        return self.origins >= FEWEST_ORIGINS and low <= self.coverage <= high


class DifficultyResult(NamedTuple):
    """Mean absolute errors in percentage points: ours, by the pace so far, and of expecting no change."""

    share: float
    epochs: int
    error: float
    error_by_pace: float
    error_of_no_change: float

    @property
    def ratio(self) -> float:
        return self.error / self.error_by_pace

    @property
    def goal(self) -> float:
        return DIFFICULTY_GOALS[self.share]

    @property
    def is_reached(self) -> bool:
        return self.ratio <= self.goal


def evaluate_price(days: Sequence[MarketDay], since: date) -> list[PriceResult]:
    """Judges the ranges that were made on or after `since`."""
    priced = [(day.day, day.price_usd) for day in days if day.price_usd is not None]
    prices = [price for _, price in priced]
    first = max(sum(day < since for day, _ in priced), WARM_UP_DAYS)
    results = []
    for ahead in HORIZONS:
        halves = price_ranges(prices, ahead).halves
        judged = [
            (half, abs(log(prices[origin + ahead] / prices[origin])) <= half)
            for origin in range(first, len(prices) - ahead)
            if (half := halves[origin]) is not None
        ]
        if judged:
            widths = sorted(half for half, _ in judged)
            held = sum(inside for _, inside in judged)
            results.append(PriceResult(ahead, len(judged), held / len(judged), widths[len(widths) // 2]))
    return results


def evaluate_difficulty(days: Sequence[MarketDay], since: date) -> list[DifficultyResult]:
    """Judges the estimates made in epochs that began on or after `since`."""
    epochs = finished_epochs(days)
    results = []
    for share in SHARES:
        errors = [
            _errors(days, epochs, place, share)
            for place, epoch in enumerate(epochs)
            if place >= WARM_UP_EPOCHS and days[int(epoch.began)].day >= since
        ]
        known = [one for one in errors if one is not None]
        if known:
            means = [100 * sum(column) / len(known) for column in zip(*known, strict=True)]
            results.append(DifficultyResult(share, len(known), *means))
    return results


def _errors(
    days: Sequence[MarketDay], epochs: Sequence[Epoch], place: int, share: float
) -> tuple[float, float, float] | None:
    epoch = epochs[place]
    progress = progress_on(days, day_nearest(days, epoch, share), epoch.number)
    if not 0 < progress.blocks < BLOCKS_PER_EPOCH:
        return None
    growth = growth_of([past.change for past in epochs[:place]])
    expected = change_expected(progress, growth)
    return abs(expected - epoch.change), abs(change_by_pace(progress) - epoch.change), abs(epoch.change)
