"""Puts a paged crawl under fire: its process is killed at random moments, and what it promises is counted (B10).

Any paged source will do: whoever has a server that remembers what was asked for, and a way to start a crawling process.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from subprocess import Popen

from sqlalchemy import func, select, update

from headwater.store.tables import checkpoints, event_outbox, items, posts, sources
from headwater.wire import Parts
from support.processes import kill
from support.web import Web

MOST_PAGES_BETWEEN = 4
LONGEST_LIFE = 10.0


def crawl_under_fire(
    parts: Parts, world: Web, start: Callable[[], Popen[str]], *, kills: int = 20, seconds: float = 120
) -> int:
    """Kill the crawl `kills` times, then let it come to its end; returns how many kills fell into the crawl."""
    hits = 0
    for _ in range(kills):
        process = start()
        _live_for(world, random.randint(0, MOST_PAGES_BETWEEN))
        kill(process)
        hits += not is_complete(parts)
        assert_stored_once(parts)
        let_leases_run_out(parts)
    process = start()
    deadline = time.monotonic() + seconds
    while not is_complete(parts):
        assert time.monotonic() < deadline, "the crawl did not come to its end"
        time.sleep(0.05)
    kill(process)
    assert_stored_once(parts)
    return hits


def _live_for(world: Web, pages: int) -> None:
    """Until so many more pages were asked for, and then a moment that falls before, into or after the next one."""
    enough, deadline = len(world.asked) + pages, time.monotonic() + LONGEST_LIFE
    while len(world.asked) < enough and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(random.uniform(0, 0.03))


def let_leases_run_out(parts: Parts) -> None:
    """What three minutes would do."""
    now = parts.now()
    unfinished = select(checkpoints.c.source_id).where(checkpoints.c.status == "completed")
    release = update(sources).where(sources.c.id.not_in(unfinished)).values(lease_until=now, next_check_at=now)
    parts.db.write_now(lambda conn: conn.execute(release))


def is_complete(parts: Parts) -> bool:
    query = select(checkpoints.c.status)
    found = parts.db.read_now(lambda conn: conn.execute(query).scalars().all())
    return bool(found) and all(status == "completed" for status in found)


def assert_stored_once(parts: Parts) -> None:
    """No post twice, each with its one event."""
    count = select(func.count(), func.count(func.distinct(posts.c.source_post_id)))
    events = select(func.count()).where(event_outbox.c.kind == "post.stored")
    stored, different = parts.db.read_now(lambda conn: conn.execute(count).one())
    assert stored == different == parts.db.read_now(lambda conn: conn.execute(events).scalar_one())


def stored_ids(parts: Parts) -> set[str]:
    return set(parts.db.read_now(lambda conn: conn.execute(select(posts.c.source_post_id)).scalars().all()))


def states(parts: Parts) -> Counter[str]:
    return Counter(parts.db.read_now(lambda conn: conn.execute(select(items.c.state)).scalars().all()))


def fetched_again(world: Web) -> int:
    """How many requests were for something that had been asked for before."""
    return sum(count - 1 for count in Counter(world.paths()).values())
