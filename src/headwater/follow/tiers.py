"""Which tier a source belongs to. How much it publishes decides how often it is visited. Pure.

A source enters a tier when its average reaches the border, and leaves it only when the average has fallen well below.
So a source whose average hovers around a border does not change its tier with every visit.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from headwater.sources import KINDS
from headwater.store.sources.pool import SourceRank, TierChange

STAYS_ABOVE = 0.9  # of the border: below this a source leaves its tier


class Tier(NamedTuple):
    """A tier: the lowest average of valid posts, how often it is visited, and which listing of a community is read."""

    name: str
    from_average: float
    every: timedelta
    sort: str
    time_filter: str
    limit: int

    @property
    def interval_seconds(self) -> int:
        return int(self.every.total_seconds())


TIERS = (
    Tier("high", 20.0, timedelta(hours=2), "new", "week", 50),
    Tier("medium", 10.0, timedelta(hours=6), "top", "week", 80),
    Tier("low", 0.0, timedelta(hours=24), "top", "month", 100),
)
BY_NAME = {tier.name: tier for tier in TIERS}
_RANK = {tier.name: place for place, tier in enumerate(TIERS)}


class Assignment(NamedTuple):
    """The tier that a source should have; None if nothing is known about it yet."""

    standing: SourceRank
    tier: Tier | None

    @property
    def changes(self) -> bool:
        if self.tier is None:
            return False
        now = self.standing
        return (now.tier, now.interval_seconds) != (self.tier.name, self.tier.interval_seconds)


def tier_for(average: float | None, current: str | None = None, pinned: str | None = None) -> Tier | None:
    """Returns the tier of a source. A pin overrides the average; without an average, the current tier stays."""
    if pinned is not None:
        return BY_NAME[pinned]
    if average is None:
        return BY_NAME[current] if current is not None else None
    return next((tier for tier in TIERS if average >= _border(tier, current)), TIERS[-1])


def _border(tier: Tier, current: str | None) -> float:
    had = current is not None and _RANK[tier.name] >= _RANK[current]
    return tier.from_average * STAYS_ABOVE if had else tier.from_average


def assignments(standings: Iterable[SourceRank]) -> list[Assignment]:
    return [Assignment(one, tier_for(one.average, one.tier, one.pinned)) for one in standings]


def place_in(tier: Tier, standing: SourceRank) -> TierChange:
    """What the tier means for this source. Only some kinds have listings to choose from."""
    listing = {"sort": tier.sort, "time_filter": tier.time_filter, "limit": tier.limit}
    settings = listing if KINDS[standing.kind].has_listings else {}
    return TierChange(standing.source_id, tier.name, tier.interval_seconds, settings)
