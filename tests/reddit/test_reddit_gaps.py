"""When a listing by time leaves a gap: it ends before the watermark, or is cut off where late posts would be (A2)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

import pytest

from headwater.model import Page, Response, Source, SourceState
from headwater.sources import reddit
from support.posts import NOON

COMMUNITY = Source(1, "reddit", "https://www.reddit.com/r/python")
HOUR = timedelta(hours=1)


def read(hours: Sequence[float], *, shown: int = 0, after: str | None = None) -> Page:
    """A page with posts that are so many hours older than the watermark (negative: newer), after `shown` others."""
    times = [(NOON - hour * HOUR).timestamp() for hour in hours]
    children = [{"kind": "t3", "data": {"name": f"t3_{n}", "created_utc": at}} for n, at in enumerate(times)]
    body = json.dumps({"kind": "Listing", "data": {"after": after, "children": children}}).encode()
    url = f"{reddit.API}/r/python/new?limit=100" + (f"&after=t3_x&count={shown}" if shown else "")
    state = SourceState(last_seen_created_at=NOON)
    return reddit.read(COMMUNITY, state, Response(url, 200, {}, body, NOON + 10 * HOUR))


@pytest.mark.parametrize(
    ("hours", "shown", "gap"),
    [
        ([-3, -1], 0, True),  # it ends before the watermark
        ([-3, -1], 900, True),
        ([-1, 0.5], 0, False),  # the community has no more than that
        ([-1, 0.5], 200, False),
        ([-1, 0.5], 900, True),  # Reddit shows no more than that: who was held back for an hour is not on it
        ([-1, 2.5], 900, False),
        ([], 0, False),
    ],
)
def test_a_listing_that_ends_leaves_a_gap_or_not(hours: list[float], shown: int, gap: bool) -> None:
    assert read(hours, shown=shown).facts.gap is gap


def test_the_next_page_is_told_how_much_was_shown() -> None:
    following = read([-3, -1], shown=300, after="t3_y").next
    assert following is not None
    assert following.url.endswith("&after=t3_y&count=302")


@pytest.mark.parametrize("count", ["-5", "many", "1e9", "²"])
def test_a_count_that_is_none_counts_nothing(count: str) -> None:
    assert reddit._shown_before(f"{reddit.API}/r/python/new?count={count}") == 0
