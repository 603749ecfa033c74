"""Visits of communities in simulated time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headwater import wire
from headwater.model import SavedVisit
from headwater.sim.reddit_world import SimReddit
from headwater.store.tables import crawls, posts
from headwater.wire import Parts
from support import living
from support.living import rows


class Living(living.Living):
    """Whoever has to wait for Reddit moves the clock."""

    def __init__(self, parts: Parts, reddit: SimReddit) -> None:
        self.reddit = reddit
        client = wire.open_reddit_client(parts)
        super().__init__(parts, reddit, client, {"reddit": wire.reddit_access(parts, client, self.rest)})

    async def rest(self, seconds: float) -> None:
        self.reddit.clock.advance(timedelta(seconds=seconds))

    async def follow(self, *names: str, **settings: Any) -> list[int]:
        return await super().follow(*(f"r/{name}" for name in names), **settings)

    async def visit(self, *source_ids: int) -> list[SavedVisit]:
        """Visits these now, one after the other."""
        return [await self.visit_one(source_id) for source_id in source_ids]


def stored_ids(parts: Parts) -> list[str]:
    return sorted(row.source_post_id for row in rows(parts, posts))


def last_crawl(parts: Parts) -> Any:
    return rows(parts, crawls)[-1]
