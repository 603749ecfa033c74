"""Who told a story first, and by how much. Pure.

A post says when it was published, and may lie. The claim is believed unless its source was visited after that time
without showing the post, or it is older than all the rest of the story by far. Where it is not believed, the time
counts at which the post was first seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import NamedTuple

FAR = timedelta(hours=24)  # a claim that is older than the next one by more is not believed
SLACK = timedelta(minutes=10)  # clocks differ, and servers show a new post late


class Appearance(NamedTuple):
    """When a post claims to have been published, if it does; when it was first seen; and when its source was visited
    before that and did not show it, if it was."""

    post_id: int
    source_id: int
    claimed_at: datetime | None
    seen_at: datetime
    missed_at: datetime | None


class DatedTelling(NamedTuple):
    """When a post told a story. `is_claimed`: by its own claim; otherwise, when it was first seen."""

    post_id: int
    source_id: int
    at: datetime
    is_claimed: bool


class First(NamedTuple):
    """The first telling, and how long before the next source it was; None if no other source told it."""

    telling: DatedTelling
    lead: timedelta | None


class Lead(NamedTuple):
    """How a source does over many stories: how many it told with others, in how many it was first, and by how much."""

    source_id: int
    stories: int
    first: int
    median_lead: timedelta | None


def told(appearances: Sequence[Appearance]) -> list[DatedTelling]:
    """Returns when each post told the story, the first one first."""
    tellings = [_telling(one) for one in appearances]
    seen = {one.post_id: one.seen_at for one in appearances}
    tellings.sort(key=lambda one: (one.at, one.post_id))
    while len(tellings) > 1 and tellings[0].is_claimed and tellings[1].at - tellings[0].at > FAR:
        post_id, source_id, *_ = tellings[0]
        tellings[0] = DatedTelling(post_id, source_id, seen[post_id], False)
        tellings.sort(key=lambda one: (one.at, one.post_id))
    return tellings


def first(appearances: Sequence[Appearance]) -> First | None:
    """Returns who told the story first."""
    tellings = told(appearances)
    if not tellings:
        return None
    winner = tellings[0]
    rest = (one.at for one in tellings if one.source_id != winner.source_id)
    following = next(rest, None)
    return First(winner, following - winner.at if following is not None else None)


def leads(stories: Iterable[Sequence[Appearance]]) -> list[Lead]:
    """Returns how sources do over these stories, those that were first most often first. A story of one source counts
    for nobody."""
    told_by: dict[int, int] = {}
    ahead: dict[int, list[timedelta]] = {}
    for story in stories:
        found = first(story)
        if found is None or found.lead is None:
            continue
        for source_id in {one.source_id for one in story}:
            told_by[source_id] = told_by.get(source_id, 0) + 1
        ahead.setdefault(found.telling.source_id, []).append(found.lead)
    rows = [
        Lead(source_id, count, len(won := ahead.get(source_id, [])), _median(won))
        for source_id, count in told_by.items()
    ]
    return sorted(rows, key=lambda row: (-row.first, row.stories, row.source_id))


def _median(spans: Sequence[timedelta]) -> timedelta | None:
    return timedelta(seconds=median(span.total_seconds() for span in spans)) if spans else None


def _telling(one: Appearance) -> DatedTelling:
    claim = one.claimed_at
    is_believed = (
        claim is not None and claim <= one.seen_at + SLACK and (one.missed_at is None or claim >= one.missed_at - SLACK)
    )
    if claim is None or not is_believed:
        return DatedTelling(one.post_id, one.source_id, one.seen_at, False)
    return DatedTelling(one.post_id, one.source_id, claim, True)
