"""Epochs of the chain, read off daily figures: when each began, how long it took, and how well it could be foreseen."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple

from headwater.fleet.difficulty import BLOCKS_PER_EPOCH, Progress, change_expected, growth_of
from headwater.model import MarketDay

DAY_SECONDS = 86_400
FEWEST_BLOCKS = 20  # a pace of fewer blocks is noise


class Epoch(NamedTuple):
    """A finished epoch. `began` and `ended` are days, with fractions, since the first day that is known."""

    number: int
    began: float
    ended: float
    difficulty: float
    change: float  # of the difficulty at its end


def finished_epochs(days: Sequence[MarketDay]) -> list[Epoch]:
    """Returns the epochs that lie within these days as a whole, oldest first, up to the last whose result is known."""
    if not days:
        return []
    heights = [day.height for day in days]
    first = -(-(heights[0] + 1) // BLOCKS_PER_EPOCH)
    spans = [(number, *_span(heights, number)) for number in range(first, (heights[-1] + 1) // BLOCKS_PER_EPOCH)]
    spans.append((spans[-1][0] + 1 if spans else first, spans[-1][2] if spans else 0.0, float(len(days))))
    known = [(*span, _difficulty_within(days, span[1], span[2])) for span in spans]
    return [
        Epoch(number, began, ended, difficulty, after / difficulty - 1)
        for (number, began, ended, difficulty), (*_, after) in pairwise(known)
        if difficulty and after
    ]


def _span(heights: Sequence[int], number: int) -> tuple[float, float]:
    return moment_of(heights, number * BLOCKS_PER_EPOCH), moment_of(heights, (number + 1) * BLOCKS_PER_EPOCH)


def moment_of(heights: Sequence[int], height: int) -> float:
    """Returns when a block was found, in days since the first, as if the blocks of a day were evenly spaced."""
    day = bisect_left(heights, height)
    before = heights[day - 1] if day else heights[0]
    found = heights[day] - before if day < len(heights) else 0
    return day + ((height - before) / found if found else 0.0)


def _difficulty_within(days: Sequence[MarketDay], began: float, ended: float) -> float | None:
    """Returns the difficulty on a day that lies wholly within an epoch."""
    inside = [day.difficulty for day in days[int(began) + 1 : int(ended)] if day.difficulty]
    return inside[len(inside) // 2] if inside else None


def current_progress(days: Sequence[MarketDay]) -> Progress:
    """Returns how far the present epoch is at the end of the last day."""
    return progress_on(days, len(days) - 1, days[-1].height // BLOCKS_PER_EPOCH)


def progress_on(days: Sequence[MarketDay], index: int, number: int) -> Progress:
    """Returns how far an epoch was at the end of a day."""
    heights = [day.height for day in days[: index + 1]]
    blocks = days[index].height - number * BLOCKS_PER_EPOCH
    seconds = (index + 1 - moment_of(heights, number * BLOCKS_PER_EPOCH)) * DAY_SECONDS
    return Progress(max(blocks, 1), max(seconds, 1.0))


def day_nearest(days: Sequence[MarketDay], epoch: Epoch, share: float) -> int:
    """Returns the day at whose end an epoch was nearest to this share of its blocks."""
    wanted = (epoch.number + share) * BLOCKS_PER_EPOCH
    return min(range(int(epoch.began), int(epoch.ended) + 1), key=lambda index: abs(days[index].height - wanted))


def misses_at(days: Sequence[MarketDay], epochs: Sequence[Epoch], share: float) -> list[float]:
    """Returns by how much the estimates of these epochs were wrong, at the same point of each."""
    misses = []
    for place, epoch in enumerate(epochs):
        progress = progress_on(days, day_nearest(days, epoch, share), epoch.number)
        if FEWEST_BLOCKS <= progress.blocks < BLOCKS_PER_EPOCH:
            growth = growth_of([past.change for past in epochs[:place]])
            misses.append(change_expected(progress, growth) - epoch.change)
    return misses


def latest_run(days: Sequence[MarketDay]) -> list[MarketDay]:
    """Returns the days up to the last one with price and difficulty, back to the first gap."""
    end = len(days)
    while end and (days[end - 1].price_usd is None or days[end - 1].difficulty is None):
        end -= 1
    start = end - 1
    while start > 0 and days[start].day - days[start - 1].day == timedelta(days=1):
        start -= 1
    return list(days[max(start, 0) : end])
