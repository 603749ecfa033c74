"""Kills the process of a paged crawl at random moments, and checks what it promises (B10).

Any paged source will do: whoever serves it through a `Gate` can see which process asked for what.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any

import structlog
from sqlalchemy import func, select, update

from headwater import wire
from headwater.settings import load
from headwater.store.tables import checkpoints, event_outbox, items, posts, sources
from headwater.wire import Parts
from headwater.work import crawl_loop
from support.gate import Gate

MOST_PAGES_OF_A_LIFE = 3
LONGEST_LIFE = 60.0
PATIENCE = 300.0
MOMENT = 0.03  # in which a page that came is read and stored

# As `wire.crawling`
Crawling = Callable[..., Any]


def crawl_until_killed(environ: dict[str, str], crawling: Crawling) -> None:
    """Runs the crawl loop of the product: all that the process does."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    os.environ.update(environ)
    parts = wire.open_parts(load())

    async def crawl() -> None:
        async with crawling(parts, lambda saved: None) as crawler:
            await crawl_loop.run(
                parts.db, crawler, wire.pace(parts.settings), parts.now, asyncio.Event(), asyncio.Event()
            )

    asyncio.run(crawl())


class Fire:
    """A crawl that is killed again and again. Each process has its own user agent, so servers can tell them apart."""

    def __init__(self, parts: Parts, gate: Gate, environ: dict[str, str], crawling: Crawling = wire.crawling) -> None:
        self.parts, self.gate, self.environ, self.crawling = parts, gate, environ, crawling
        # A fork server that has done the slow imports, and has no threads, starts a process within milliseconds.
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["headwater.wire", "headwater.work.crawl_loop", "psycopg"])
        self._lives = 0

    def crawl(self, kills: int) -> None:
        """Kills the crawl so many times, always in the middle; then lets it finish."""
        for _ in range(kills):
            with self._life() as process:
                self._live(process)
            assert not is_complete(self.parts), "the kill did not fall into the crawl"
            assert_stored_once(self.parts)
            let_leases_run_out(self.parts)
        with self._life() as process:
            _wait_for(lambda: is_complete(self.parts), process, PATIENCE)
        assert_stored_once(self.parts)

    @contextmanager
    def _life(self) -> Iterator[BaseProcess]:
        self._lives += 1
        environ = {**self.environ, "HEADWATER_USER_AGENT": f"Headwater/{self._lives}"}
        process = self._context.Process(target=crawl_until_killed, args=(environ, self.crawling), daemon=True)
        process.start()
        try:
            yield process
        finally:
            process.kill()
            process.join()

    def _live(self, process: BaseProcess) -> None:
        """Waits for so many more requests, or for their responses and a moment more."""
        pages, gate = random.randint(1, MOST_PAGES_OF_A_LIFE), self.gate
        if random.random() < 0.4:
            enough = len(gate.asked) + pages
            return _wait_for(lambda: len(gate.asked) >= enough, process, LONGEST_LIFE)
        enough = gate.answered + pages
        _wait_for(lambda: gate.answered >= enough, process, LONGEST_LIFE)
        return time.sleep(random.uniform(0, MOMENT))

    def assert_only_pages_in_flight_were_fetched_again(self, at_once: int = 1) -> None:
        """No life asks for anything twice, nor for what one before it had asked for, but for the last one's last page;
        where more are under way at once, for at most so many."""
        before: list[str] = []
        for life in range(1, self._lives + 1):
            mine = [asked.path for asked in self.gate.asked if asked.agent == f"Headwater/{life}"]
            assert len(mine) == len(set(mine)), f"life {life} asked twice"
            again = set(mine) & set(before)
            assert len(again) <= at_once, f"life {life} asked again for {again}"
            if at_once == 1:
                assert again <= set(before[-1:]), f"life {life} asked again for {again}"
            before += mine


def _wait_for(condition: Callable[[], object], process: BaseProcess, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.is_alive(), "the crawl ended by itself"
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.001)


def let_leases_run_out(parts: Parts) -> None:
    """Does what three minutes of waiting would do."""
    now = parts.now()
    release = update(sources).values(lease_until=now, next_check_at=now)
    parts.db.write_now(lambda conn: conn.execute(release))


def is_complete(parts: Parts) -> bool:
    query = select(checkpoints.c.status)
    found = parts.db.read_now(lambda conn: conn.execute(query).scalars().all())
    return bool(found) and all(status == "completed" for status in found)


def assert_stored_once(parts: Parts) -> None:
    """Asserts that no post is stored twice and that each has one event."""
    events = select(func.count()).where(event_outbox.c.kind == "post.stored").scalar_subquery()
    # One statement, because the server may still commit what a dead process had sent.
    query = select(func.count(posts.c.id), func.count(func.distinct(posts.c.source_post_id)), events)
    stored, different, told = parts.db.read_now(lambda conn: conn.execute(query).one())
    assert stored == different == told


def stored_ids(parts: Parts) -> set[str]:
    return set(parts.db.read_now(lambda conn: conn.execute(select(posts.c.source_post_id)).scalars().all()))


def states(parts: Parts) -> Counter[str]:
    return Counter(parts.db.read_now(lambda conn: conn.execute(select(items.c.state)).scalars().all()))
