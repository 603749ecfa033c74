"""A Headwater process in simulated time: its own connections, client, token and parser, on a shared store."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from headwater import wire
from headwater.access.budget import RateLimiter
from headwater.access.reddit import RedditApi, RedditApp
from headwater.crawl.crawler import Crawler
from headwater.crawl.visit.steps import VisitTools
from headwater.errors import StoreUnavailable
from headwater.ids import uuid7
from headwater.model import Request, Response, SavedVisit
from headwater.settings import load
from headwater.sim.reddit_world import SimReddit
from headwater.sim.serving import Clock
from headwater.store.db import Database, Threads
from headwater.store.sources import leases
from headwater.wire import Parts
from headwater.work import crawl_loop

T = TypeVar("T")
BLINK = 0.001


class Time:
    """Lets waiting take no time, but never moves the clock while a request is in flight.

    Otherwise a request that has its place in the budget would reach the simulator minutes late, as on no real network.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.under_way: Counter[Life] = Counter()
        self._alarms: list[datetime] = []

    async def rest(self, seconds: float) -> None:
        alarm = self.clock.now() + timedelta(seconds=seconds)
        self._alarms.append(alarm)
        try:
            while self.clock.now() < alarm:
                if alarm == min(self._alarms) and not self.under_way.total():
                    self.clock.advance_to(alarm)
                else:
                    await asyncio.sleep(BLINK)
        finally:
            self._alarms.remove(alarm)


class Life:
    """One process, from its start until it stops or crashes."""

    def __init__(self, reddit: SimReddit, time: Time, environ: dict[str, str]) -> None:
        self.parts = _parts(reddit, environ)
        self._store = _Mortal(self.parts.settings.store_url())
        self.parts.db.close()
        self.parts.db = self._store
        self.saved: list[SavedVisit] = []
        self._time = time
        settings = self.parts.settings
        self._client, self._parsers = wire.open_reddit_client(self.parts), wire.open_parsers(self.parts)
        turns = _Turns(self, time)
        app = RedditApp(*reddit.client, site=reddit.url, api=reddit.url)
        tools = VisitTools(
            fetch=self._client.fetch,
            parsers=self._parsers,
            now=self.parts.now,
            chance=reddit.chance.random,
            interval=timedelta(seconds=settings.check_interval_seconds),
            visit_seconds=settings.visit_seconds,
            gap=0.0,
            paused_until={},
            unseal=lambda sealed: "",
            access={"reddit": RedditApi(app, self._fetch, turns, self.parts.now, settings.reddit_max_concurrency)},
        )
        self.crawler = Crawler(self.parts.db, tools, self.saved.append)

    async def round(self) -> None:
        """Visits what is due."""
        await crawl_loop.step(self.parts.db, self.crawler, wire.pace(self.parts.settings), self.parts.now)
        await self.crawler.settle()

    async def visit(self, source_ids: list[int]) -> list[int]:
        """Visits these, due or not. Returns those that were deferred."""
        before, lease_for = len(self.saved), wire.pace(self.parts.settings).lease_for
        granted = await self.parts.db.write(
            leases.claim_named,
            source_ids,
            now=self.parts.now(),
            lease=uuid7(),
            lease_for=lease_for,
            gap=timedelta(0),
        )
        self.crawler.start(granted)
        await self.crawler.settle()
        done = {saved.visit.source_id for saved in self.saved[before:] if saved.visit.outcome in ("ok", "unchanged")}
        return [source_id for source_id in source_ids if source_id not in done]

    async def stop(self) -> None:
        """Stops in order: visits in progress give back their leases."""
        await self.crawler.stop(timedelta(0))
        del self._time.under_way[self]
        await self._client.close()
        await self._parsers.close()
        self.parts.close()

    async def crash(self) -> None:
        """Ends like a killed process: nothing reaches the store any more."""
        self._store.is_cut_off = True
        await self.stop()

    async def _fetch(self, request: Request) -> Response:
        try:
            return await self._client.fetch(request)
        finally:
            self._time.under_way[self] -= 1


class _Mortal(Database):
    """A store that can be cut off. A write that has begun still ends, like a commit that is on its way."""

    is_cut_off = False

    async def _in(self, threads: Threads, what: str, work: Callable[[], T]) -> T:
        if self.is_cut_off:
            raise StoreUnavailable("This process has ended.")
        return await super()._in(threads, what, work)


class _Turns(RateLimiter):
    """A rate limiter after which a request is in flight."""

    def __init__(self, life: Life, time: Time) -> None:
        parts = life.parts
        super().__init__(parts.db, wire.reddit_budget(parts.settings), parts.now, time.rest)
        self._life, self._time = life, time

    async def try_acquire(self) -> datetime | None:
        self._time.under_way[self._life] += 1
        at = await super().try_acquire()
        if at is not None:
            self._time.under_way[self._life] -= 1
        return at


def _parts(reddit: SimReddit, environ: dict[str, str]) -> Parts:
    key = {"HEADWATER_REDDIT_CLIENT_ID": reddit.client[0], "HEADWATER_REDDIT_CLIENT_SECRET": reddit.client[1]}
    parts = wire.open_parts(load({**environ, **key}))
    parts.now = reddit.clock.now
    return parts
