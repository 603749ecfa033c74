"""Visits of accounts and searches of X in simulated time."""

from __future__ import annotations

from headwater import wire
from headwater.model import SavedVisit
from headwater.sim.x_world import SimX
from headwater.store.tables import posts
from headwater.wire import Parts
from support import living
from support.living import rows


class Living(living.Living):
    def __init__(self, parts: Parts, x: SimX) -> None:
        self.x = x
        client = wire.open_client(parts)
        super().__init__(parts, x, client, {"x": wire.x_access(parts, client)})

    async def visit(self, source_id: int) -> SavedVisit:
        """Visits it now, even if X asked for a pause."""
        self.tools.paused_until.clear()
        return await self.visit_one(source_id)

    @property
    def paths(self) -> list[str]:
        """The requests that X got."""
        return [asked.path for asked in self.x.asked]


def stored_ids(parts: Parts) -> list[int]:
    return sorted(int(row.source_post_id) for row in rows(parts, posts))


def listed_ids(x: SimX, handle: str) -> list[int]:
    return sorted(post.id for post in x.posts[handle] if post.is_listed(x.clock.now()))
