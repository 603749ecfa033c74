"""kill -9 at random moments of a crawl of 200 feeds, then again: every post once, nothing lost (D6, H79)."""

from __future__ import annotations

import random
import re

from sqlalchemy import Connection, func, select, update

from headwater import wire
from headwater.follow.add import follow
from headwater.settings import load
from headwater.store.tables import event_outbox, hot_posts, posts, sources
from headwater.wire import Parts
from support.processes import kill, start, wait_until
from support.web import Answer, Web, rss

FEEDS = 200
KILLS = 20
FEW_AT_ONCE = {"HEADWATER_MAX_CONCURRENCY": "8"}


def publish(world: Web, posts_each: int) -> None:
    for number in range(FEEDS):
        names = [f"{number}-{post}" for post in range(posts_each)]
        undated = re.sub("<pubDate>.*?</pubDate>", "", rss(*names, title=f"Feed {number}"))  # so they are of today
        world.pages[f"/{number}"] = Answer(undated, delay=random.uniform(0, 0.01))


def let_leases_run_out(parts: Parts) -> None:
    """What three minutes would do; and every feed is due again."""
    now = parts.now()
    everything = update(sources).values(lease_until=now, next_check_at=now)
    parts.db.write_now(lambda conn: conn.execute(everything))


def counts(parts: Parts) -> tuple[int, int, int]:
    """Posts, different posts, events of posts."""

    def work(conn: object) -> tuple[int, int, int]:
        one = conn.execute(select(func.count(), func.count(func.distinct(posts.c.source_post_id)))).one()  # type: ignore[attr-defined]
        events = conn.execute(select(func.count()).where(event_outbox.c.kind == "post.stored")).scalar_one()  # type: ignore[attr-defined]
        return one[0], one[1], events

    return parts.db.read_now(work)


def assert_hot_says_what_cold_says(parts: Parts) -> None:  # A4
    def work(conn: Connection) -> None:
        queries = (select(kept.c.id, kept.c.title).order_by(kept.c.id) for kept in (hot_posts, posts))
        hot, cold = (conn.execute(query).all() for query in queries)
        assert hot == cold

    parts.db.read_now(work)


def assert_every_source_is_due_or_leased(parts: Parts) -> None:
    rows = parts.db.read_now(lambda conn: conn.execute(select(sources)).all())
    latest = parts.now().timestamp() + 2 * parts.settings.check_interval_seconds
    assert len(rows) == FEEDS
    assert all(row.active and row.next_check_at.timestamp() <= latest for row in rows)
    assert all(row.lease_owner is None or row.next_check_at == row.lease_until for row in rows)


def test_a_crawl_killed_at_random_moments_loses_nothing_and_repeats_nothing(
    environ: dict[str, str], world: Web
) -> None:
    environ |= FEW_AT_ONCE
    parts = wire.open_parts(load(environ))
    owner = wire.prepare_store(parts)
    parts.db.write_now(
        lambda conn: [follow(conn, owner, world.url(f"/{number}"), parts.now()) for number in range(FEEDS)]
    )
    seen = set()
    for round in range(1, KILLS + 1):
        publish(world, posts_each=round)
        requests = len(world.asked) + random.randint(0, FEEDS // 2)
        process = start(environ)
        wait_until(lambda enough=requests: len(world.asked) >= enough)  # type: ignore[misc]
        kill(process)
        stored, different, events = counts(parts)
        assert stored == different == events
        assert_every_source_is_due_or_leased(parts)
        assert_hot_says_what_cold_says(parts)
        seen.add(stored)
        let_leases_run_out(parts)
    assert len(seen) > 3, "the kills did not fall into the crawl"
    process = start(environ)
    wait_until(lambda: counts(parts)[0] >= FEEDS * KILLS, 120)
    kill(process)
    assert counts(parts) == (FEEDS * KILLS,) * 3
    assert_hot_says_what_cold_says(parts)
    parts.close()
