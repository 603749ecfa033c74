"""Visits of communities in simulated time."""

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
from headwater.sim.reddit_world import SimReddit
from headwater.store.sources import leases
from headwater.store.tables import crawls, posts, sources
from headwater.wire import Parts

LEASE = timedelta(hours=3)  # waiting takes no time here, but the clock moves


class Living:
    """A Headwater that is stepped through simulated time: whoever has to wait moves the clock."""

    def __init__(self, parts: Parts, reddit: SimReddit) -> None:
        self.parts, self.reddit = parts, reddit
        self.saved: list[SavedVisit] = []
        self.client, self.parsers = wire.open_reddit_client(parts), wire.open_parsers(parts)
        tools = VisitTools(
            fetch=self.client.fetch,
            parsers=self.parsers,
            now=parts.now,
            chance=random.Random(reddit.seed).random,
            interval=timedelta(seconds=parts.settings.check_interval_seconds),
            visit_seconds=100.0,
            gap=0.0,
            paused_until={},
            unseal=lambda sealed: "",
            access={"reddit": wire.reddit_access(parts, self.client, self.rest)},
        )
        self.crawler = Crawler(parts.db, tools, self.saved.append)

    async def __aenter__(self) -> Living:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.crawler.stop(timedelta(0))
        await self.client.close()
        await self.parsers.close()

    async def rest(self, seconds: float) -> None:
        self.reddit.clock.advance(timedelta(seconds=seconds))

    async def follow(self, *names: str, **settings: Any) -> list[int]:
        owner = wire.prepare_store(self.parts)
        added = [(await self.parts.db.write(follow, owner, f"r/{name}", self.parts.now())).source_id for name in names]
        if settings:
            change = sources.update().where(sources.c.id.in_(added)).values(settings=settings)
            await self.parts.db.write(lambda conn: conn.execute(change))
        return added

    async def visit(self, *source_ids: int) -> list[SavedVisit]:
        """Visit these now, one after the other."""
        done = []
        for source_id in source_ids:
            [due] = await self.parts.db.write(
                leases.claim_named, [source_id], now=self.parts.now(), lease=uuid7(), lease_for=LEASE, gap=timedelta(0)
            )
            self.crawler.start([due])
            await self.crawler.settle()
            done.append(self.saved[-1])
        return done

    async def visit_due(self, limit: int = 100) -> list[SavedVisit]:
        before = len(self.saved)
        granted = await self.parts.db.write(
            leases.claim_due, now=self.parts.now(), lease=uuid7(), lease_for=LEASE, gap=timedelta(0), limit=limit
        )
        for due in granted:
            self.crawler.start([due])
            await self.crawler.settle()
        return self.saved[before:]

    async def visit_due_at_once(self, limit: int = 100) -> None:
        granted = await self.parts.db.write(
            leases.claim_due, now=self.parts.now(), lease=uuid7(), lease_for=LEASE, gap=timedelta(0), limit=limit
        )
        self.crawler.start(granted)
        await self.crawler.settle()


def rows(parts: Parts, table: Any) -> Sequence[Any]:
    def work(conn: Connection) -> Sequence[Any]:
        return conn.execute(select(table)).all()

    return parts.db.read_now(work)


def stored_ids(parts: Parts) -> list[str]:
    return sorted(row.source_post_id for row in rows(parts, posts))


def last_crawl(parts: Parts) -> Any:
    return rows(parts, crawls)[-1]
