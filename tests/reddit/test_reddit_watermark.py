"""The watermark's rule as a property: whatever a community does, nothing newer than it is lost or stored twice (A2)."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from headwater.crawl.record import record
from headwater.crawl.visit.document import visit
from headwater.follow.add import follow
from headwater.ids import uuid7
from headwater.model import Reader, SavedVisit
from headwater.sim.reddit import answer
from headwater.sim.reddit_world import CommunityHabits, RedditLimits, SimRedditPost, simulated
from headwater.sim.serving import Faults
from headwater.sources.reddit import LOOK_BACK
from headwater.store.db import Database
from headwater.store.sources import leases
from headwater.store.tables import posts, sources
from support.living import AtOnce


class Step(NamedTuple):
    """Time passes, and the community is visited in some order of listing; perhaps a page fails."""

    minutes: int
    sort: str
    time_filter: str
    limit: int
    failing: float


STEPS = st.lists(
    st.builds(
        Step,
        st.integers(0, 600),
        st.sampled_from(["new", "new", "top", "hot", "rising"]),
        st.sampled_from(["hour", "day", "week", "all"]),
        st.sampled_from([5, 25, 100]),
        st.sampled_from([0.0, 0.0, 0.4]),
    ),
    min_size=2,
    max_size=8,
)
HABITS = st.builds(
    CommunityHabits,
    posts_per_day=st.sampled_from([5.0, 60.0, 500.0, 1500.0]),
    late=st.sampled_from([0.0, 0.3]),
    edited=st.sampled_from([0.0, 0.5]),
    deleted=st.sampled_from([0.0, 0.3, 0.95]),
    removed=st.sampled_from([0.0, 0.3]),
    bursts=st.sampled_from([0.0, 0.6]),
)


@settings(
    max_examples=settings().max_examples // 5,  # each takes a second; a search has as many more as elsewhere
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 10**6), habits=HABITS, steps=STEPS, listing=st.sampled_from([150, 1000]))
def test_a_post_newer_than_the_watermark_is_stored_once_and_the_watermark_passes_none_that_is_not(
    db: Database, owner: Reader, seed: int, habits: CommunityHabits, steps: list[Step], listing: int
) -> None:
    limits = RedditLimits(requests=0, listing=listing, token_life=timedelta(days=999))
    reddit = simulated({"c": habits}, seed=seed, lasts=timedelta(days=2), limits=limits)
    source_id = db.write_now(follow, owner, f"r/c_{uuid7()[:8]}{uuid7()[-8:]}", reddit.clock.now()).source_id
    reddit.posts = {community_of(db, source_id): reddit.posts["c"]}
    way = AtOnce(reddit, answer, f"Bearer {reddit.new_token()}")
    for step in steps:
        reddit.clock.advance(timedelta(minutes=step.minutes))
        reddit.faults = Faults(broken=step.failing)
        before, had = mark_of(db, source_id), stored(db, source_id)
        saved = take(db, way, source_id, step)
        check(db, saved, before, had, [post for posts in reddit.posts.values() for post in posts])


def take(db: Database, way: AtOnce, source_id: int, step: Step) -> SavedVisit:
    now = way.clock.now
    listing = {"sort": step.sort, "time_filter": step.time_filter, "limit": step.limit}
    db.write_now(lambda conn: conn.execute(sources.update().where(sources.c.id == source_id).values(settings=listing)))
    lease = uuid7()
    hour = timedelta(hours=1)
    [due] = db.write_now(leases.claim_named, [source_id], now=now(), lease=lease, lease_for=hour, gap=timedelta(0))
    return db.write_now(record, [asyncio.run(visit(due, way.tools("reddit")))], now())[0]


def check(db: Database, saved: SavedVisit, before: datetime | None, had: set[str], truth: list[SimRedditPost]) -> None:
    now, after, have = saved.visit.started_at, mark_of(db, saved.visit.source_id), stored(db, saved.visit.source_id)
    assert had <= have
    there = [post for post in truth if post.is_listed(now)]
    assert after == before if not saved.watermark_updated else after is not None
    if before is None or after is None:
        return
    assert after >= before
    passed = [post.id for post in there if before < post.created_at <= after]
    has_gap = saved.visit.facts is not None and saved.visit.facts.gap
    assert set(passed) <= have or has_gap
    if has_gap:
        shown = {post.source_post_id for post in saved.visit.posts}
        assert shown <= have
        assert min(post.created_at for post in there if post.id in shown) >= before - LOOK_BACK


def stored(db: Database, source_id: int) -> set[str]:
    def work(conn: Connection) -> Counter[str]:
        return Counter(conn.execute(select(posts.c.source_post_id).where(posts.c.source_id == source_id)).scalars())

    found = db.read_now(work)
    assert all(count == 1 for count in found.values())
    return set(found)


def mark_of(db: Database, source_id: int) -> datetime | None:
    query = select(sources.c.last_seen_created_at).where(sources.c.id == source_id)
    found: datetime | None = db.read_now(lambda conn: conn.execute(query).scalar_one())
    return found


def community_of(db: Database, source_id: int) -> str:
    query = select(sources.c.address).where(sources.c.id == source_id)
    return str(db.read_now(lambda conn: conn.execute(query).scalar_one())).rpartition("/")[2]
