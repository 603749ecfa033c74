"""Which tier a source belongs to, whatever its average does (A7)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.follow.pool import BY_NAME, STAYS_ABOVE, TIERS, tier_for

NAMES = [tier.name for tier in TIERS]
averages = st.floats(min_value=0, max_value=1000)
names = st.sampled_from(NAMES)
maybe_a_name = st.none() | names


def rank(average: float, current: str | None = None) -> int:
    tier = tier_for(average, current)
    assert tier is not None
    return NAMES.index(tier.name)


@pytest.mark.parametrize(
    ("average", "name", "hours", "listing"),
    [
        (1000, "high", 2, ("new", "week", 50)),
        (20, "high", 2, ("new", "week", 50)),
        (19.99, "medium", 6, ("top", "week", 80)),
        (10, "medium", 6, ("top", "week", 80)),
        (9.99, "low", 24, ("top", "month", 100)),
        (0, "low", 24, ("top", "month", 100)),
    ],
)
def test_a_newcomers_tier_is_that_of_its_average(
    average: float, name: str, hours: int, listing: tuple[str, str, int]
) -> None:  # A7
    tier = tier_for(average)
    assert tier is not None
    assert (tier.name, tier.every) == (name, timedelta(hours=hours))
    assert (tier.sort, tier.time_filter, tier.limit) == listing


@given(averages, averages, maybe_a_name)
def test_who_publishes_more_is_never_visited_less(one: float, other: float, current: str | None) -> None:  # A7
    fewer, more = sorted((one, other))
    assert rank(more, current) <= rank(fewer, current)


@given(averages, maybe_a_name)
def test_a_tier_that_was_given_is_kept_while_the_average_stays(average: float, current: str | None) -> None:  # A7
    tier = tier_for(average, current)
    assert tier is not None
    assert tier_for(average, tier.name) == tier


@given(st.sampled_from([10.0, 20.0]), st.lists(st.floats(min_value=0, max_value=1), min_size=1), maybe_a_name)
def test_a_source_at_a_border_does_not_change_back_and_forth(
    border: float, places: list[float], start: str | None
) -> None:  # A7
    """Its average may wander from the foot of the band to as far above the border: its tier never goes down again."""
    ranks, current = [], start
    for place in places:
        ranks.append(rank(border * (STAYS_ABOVE + place * (1 - STAYS_ABOVE) * 2), current))
        current = NAMES[ranks[-1]]
    assert ranks == sorted(ranks, reverse=True)
    assert len(set(ranks)) <= 2


@given(averages | st.none(), maybe_a_name, names)
def test_a_pinned_tier_wins(average: float | None, current: str | None, pinned: str) -> None:  # A7
    assert tier_for(average, current, pinned) == BY_NAME[pinned]


@given(maybe_a_name)
def test_a_source_that_was_never_visited_keeps_what_it_has(current: str | None) -> None:
    assert tier_for(None, current) == (BY_NAME[current] if current else None)


def test_a_tier_is_left_only_well_below_its_border() -> None:
    assert rank(18.1, "high") == 0
    assert rank(17.9, "high") == 1
    assert rank(9.1, "medium") == 1
    assert rank(8.9, "medium") == 2
    assert rank(19.9, "medium") == 1
