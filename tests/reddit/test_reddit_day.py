"""A simulated day with faults: at its end the store is what was there to be seen, within the limits (A2, A3, A10)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from headwater.sim.reddit_world import CommunityHabits, RedditLimits, RedditVersion, SimReddit, SimRedditPost, simulated
from headwater.sim.serving import BEGINS, Faults
from headwater.store.sources import leases
from headwater.store.tables import post_versions, posts, sources
from headwater.text import plain
from headwater.wire import Parts
from reddit.living import Living
from support.living import rows

DAY = timedelta(days=1)
COMMUNITIES = {
    "lively": CommunityHabits(posts_per_day=900),
    "middling": CommunityHabits(posts_per_day=80, edited=0.4, removed=0.2),
    "quiet": CommunityHabits(posts_per_day=12, deleted=0.3),
}
OFTEN = Faults(busy=0.03, broken=0.08, unavailable=0.04, slow=0.05, cut=0.06, slow_seconds=0.005)
REQUESTS, WINDOW = 3, timedelta(seconds=60)  # so few that visits have to wait for one another


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_after_a_day_with_faults_the_store_holds_what_was_shown_and_nothing_twice(
    seed: int, serve: Callable[[SimReddit], SimReddit], open_parts: Callable[..., Parts]
) -> None:
    reddit = serve(simulated(COMMUNITIES, seed=seed, faults=OFTEN, limits=RedditLimits(token_life=timedelta(hours=3))))
    parts = open_parts(reddit, REDDIT_RATE_LIMIT=str(REQUESTS), CHECK_INTERVAL_SECONDS="3600")
    async with Living(parts, reddit) as living:
        await living.follow(*COMMUNITIES)
        await pass_time(living, BEGINS + DAY)
        reddit.faults = Faults()
        await pass_time(living, reddit.clock.now() + DAY)  # the longest back-off ends, and all is seen once more
    assert sum(visit.visit.outcome == "failed" for visit in living.saved) > 5, "the faults did not fall into visits"
    assert_store_is_what_was_shown(parts, reddit)
    assert_nothing_was_overlooked(parts, reddit, living)
    assert_within_budget([asked.at for asked in reddit.asked])


async def pass_time(living: Living, end: datetime) -> None:
    clock = living.reddit.clock
    while clock.now() < end:
        await living.visit_due()
        due_at = await living.parts.db.read(leases.next_due)
        assert due_at is not None
        clock.advance(max(timedelta(seconds=1), due_at - clock.now()))


def assert_store_is_what_was_shown(parts: Parts, reddit: SimReddit) -> None:
    """Every post that was on a page is there once, with every version that was on one, in order (A3)."""
    everything = {post.id: post for community in reddit.posts.values() for post in community}
    said: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for row in sorted(rows(parts, post_versions), key=lambda row: row.version):
        said[row.post_id].append((row.title, plain(row.content)))
    stored = rows(parts, posts)
    assert sorted(row.source_post_id for row in stored) == sorted(reddit.shown)
    for row in stored:
        versions = [*said[row.id], (row.title, plain(row.content))]
        assert versions == [words(everything[row.source_post_id], one) for one in reddit.shown[row.source_post_id]]


def words(post: SimRedditPost, version: RedditVersion) -> tuple[str, str]:
    text = "" if version.text == "[removed]" else version.text or post.link or ""
    return version.title, " ".join(text.split())


def assert_nothing_was_overlooked(parts: Parts, reddit: SimReddit, living: Living) -> None:
    """A post that stood in its community during a good visit is stored, late ones too, from the first visit on (A2)."""
    stored = {row.source_post_id for row in rows(parts, posts)}
    for source in rows(parts, sources):
        good = [one.visit.started_at for one in living.saved if is_good(one.visit.outcome, one.visit.source_id, source)]
        for post in reddit.posts[source.title.removeprefix("r/")]:
            if any(post.is_listed(at) for at in good) and post.created_at > good[0]:
                assert post.id in stored


def is_good(outcome: str, source_id: int, source: object) -> bool:
    return outcome in ("ok", "unchanged") and source_id == getattr(source, "id", None)


def assert_within_budget(times: list[datetime]) -> None:
    for begin, end in zip(times, times[REQUESTS:], strict=False):
        assert end - begin >= WINDOW
