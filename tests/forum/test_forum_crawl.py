"""A simulated forum crawled by the whole path: real server, real client, reading processes, a real store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from headwater import wire
from headwater.crawl.record import report
from headwater.follow.add import follow
from headwater.model import SavedVisit
from headwater.sim.forum import serving
from headwater.sim.forum_world import ForumHabits, SimForum, simulated
from headwater.store.tables import event_outbox, posts, sources
from headwater.wire import Parts
from support.posts import claim

WAYS = {"discuz": "/bbs/forum-1-1.html", "discourse": "/talk/c/mining/1"}


@pytest.fixture
def sim() -> Iterator[SimForum]:
    world = simulated({"mining": ForumHabits(threads_per_day=20)}, seed=5, lasts=timedelta(days=3), threads_a_page=8)
    world.clock.advance(timedelta(days=1))
    with serving(world) as served:
        yield served


async def visited(parts: Parts, source_id: int) -> dict[str, Any]:
    """Visit the source until its crawl has come to an end; returns the last report."""
    saved: list[SavedVisit] = []
    for _ in range(20):
        async with wire.crawling(parts, saved.append) as crawler:
            crawler.start(await claim(parts, source_id))
            await crawler.settle()
        last = report(saved[-1])
        if not last["unfinished"]:
            return last
    raise AssertionError("the crawl did not come to an end")


def stored(parts: Parts) -> dict[str, str]:
    rows = parts.db.read_now(lambda conn: conn.execute(select(posts.c.source_post_id, posts.c.content)).all())
    return {row[0]: row[1] for row in rows}


def there(sim: SimForum, by_number: bool) -> set[str]:
    """The ids of all posts that can be seen now: Discourse numbers them within their thread."""
    now = sim.clock.now()
    return {
        f"{thread.id}/{thread.place_of(post.id) if by_number else post.id}"
        for thread in sim.threads.values()
        for post in thread.posts_at(now)
    }


@pytest.mark.parametrize("software", WAYS)
async def test_a_board_is_followed_by_its_address_and_kept_up_with(parts: Parts, sim: SimForum, software: str) -> None:
    owner, address = wire.prepare_store(parts), sim.url + WAYS[software]  # B5
    source_id = parts.db.write_now(lambda conn: follow(conn, owner, address, parts.now()).source_id)

    await visited(parts, source_id)  # finds out that it is a forum
    row = parts.db.read_now(lambda conn: conn.execute(select(sources.c.kind, sources.c.settings)).one())
    assert (row.kind, row.settings) == ("forum", {"profile": software})

    await visited(parts, source_id)
    before = there(sim, software == "discourse")
    assert set(stored(parts)) == before

    first = len(sim.asked)
    assert (await visited(parts, source_id))["outcome"] == "unchanged"
    assert len(sim.asked) - first == 1

    sim.clock.advance(timedelta(hours=3))
    first = len(sim.asked)
    report = await visited(parts, source_id)
    now = there(sim, software == "discourse")
    assert set(stored(parts)) == before | now
    assert report["new"] == len(now - before) > 0
    asked = [one.path for one in sim.asked[first:]]
    assert len(asked) < len(sim.listed(None, sim.clock.now()))  # only threads that changed

    kinds = parts.db.read_now(lambda conn: conn.execute(select(event_outbox.c.kind)).scalars().all())
    assert kinds.count("post.stored") == len(before | now)
