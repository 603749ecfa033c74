"""Visits of accounts and searches of X in simulated time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, select

from headwater import wire
from headwater.crawl.crawler import Crawler
from headwater.crawl.visit.shared import VisitTools
from headwater.follow.add import follow
from headwater.ids import uuid7
from headwater.model import SavedVisit
from headwater.sim.x_world import SimX
from headwater.store.sources import leases
from headwater.store.tables import posts, sources
from headwater.wire import Parts

LEASE = timedelta(hours=3)


class Living:
    """A Headwater that is stepped through simulated time."""

    def __init__(self, parts: Parts, x: SimX) -> None:
        self.parts, self.x = parts, x
        self.saved: list[SavedVisit] = []
        self.client, self.parsers = wire.open_client(parts), wire.open_parsers(parts)
        tools = VisitTools(
            fetch=self.client.fetch,
            parsers=self.parsers,
            now=parts.now,
            chance=random.Random(x.seed).random,
            interval=timedelta(seconds=parts.settings.check_interval_seconds),
            visit_seconds=100.0,
            gap=0.0,
            paused_until={},
            unseal=lambda sealed: "",
            access={"x": wire.x_access(parts, self.client)},
        )
        self.tools = tools
        self.crawler = Crawler(parts.db, tools, self.saved.append)

    async def __aenter__(self) -> Living:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.crawler.stop(timedelta(0))
        await self.client.close()
        await self.parsers.close()

    async def follow(self, *typed: str, **settings: Any) -> list[int]:
        owner = wire.prepare_store(self.parts)
        added = [(await self.parts.db.write(follow, owner, one, self.parts.now())).source_id for one in typed]
        if settings:
            change = sources.update().where(sources.c.id.in_(added)).values(settings=settings)
            await self.parts.db.write(lambda conn: conn.execute(change))
        return added

    async def visit(self, source_id: int) -> SavedVisit:
        """Visit it now, whatever was asked for."""
        self.tools.paused_until.clear()
        [due] = await self.parts.db.write(
            leases.claim_named, [source_id], now=self.parts.now(), lease=uuid7(), lease_for=LEASE, gap=timedelta(0)
        )
        self.crawler.start([due])
        await self.crawler.settle()
        return self.saved[-1]

    async def visit_due(self) -> list[SavedVisit]:
        before = len(self.saved)
        granted = await self.parts.db.write(
            leases.claim_due, now=self.parts.now(), lease=uuid7(), lease_for=LEASE, gap=timedelta(0), limit=100
        )
        for due in granted:
            self.crawler.start([due])
            await self.crawler.settle()
        return self.saved[before:]

    @property
    def paths(self) -> list[str]:
        """What was asked of X."""
        return [asked.path for asked in self.x.asked]


def rows(parts: Parts, table: Any) -> Sequence[Any]:
    def work(conn: Connection) -> Sequence[Any]:
        return conn.execute(select(table)).all()

    return parts.db.read_now(work)


def stored_ids(parts: Parts) -> list[int]:
    return sorted(int(row.source_post_id) for row in rows(parts, posts))


def listed_ids(x: SimX, handle: str) -> list[int]:
    return sorted(post.id for post in x.posts[handle] if post.is_listed(x.clock.now()))
