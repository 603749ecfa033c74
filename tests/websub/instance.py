"""A Headwater that hubs can reach: API and crawl in one event loop, as in `headwater up`, with a clock to turn."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import select

from headwater import wire
from headwater.crawl.crawler import Crawler
from headwater.follow.add import follow
from headwater.ids import uuid7
from headwater.model import DueSource, Reader, SavedVisit
from headwater.server import create_app, web_server
from headwater.settings import load
from headwater.store.posts import stream
from headwater.store.sources import leases
from headwater.store.tables import event_outbox, hub_subscriptions, posts, sources
from headwater.wire import Parts
from support.hub import Answered, Hub, offering
from support.web import ALLOW_LOOPBACK, Answer, Web

LEASE = timedelta(seconds=180)


@dataclass
class Instance:
    parts: Parts
    owner: Reader
    crawler: Crawler
    hub: Hub
    world: Web
    url: str
    saved: list[SavedVisit] = field(default_factory=list)
    ahead: timedelta = timedelta(0)

    @property
    def feed(self) -> str:
        return self.world.url("/feed")

    def publish(self, *names: str, hub: str | None = None) -> str:
        """Put a feed with these posts on the web; returns the document."""
        document = offering(hub or self.hub.url, self.feed, *names)
        self.world.pages["/feed"] = Answer(document)
        return document

    async def follow(self, address: str | None = None) -> int:
        return (await self.parts.db.write(follow, self.owner, address or self.feed, self.parts.now())).source_id

    async def claim(self, source_id: int) -> DueSource:
        now = self.parts.now()
        terms: dict[str, Any] = {"now": now, "lease": uuid7(), "lease_for": LEASE, "gap": timedelta(0)}
        [due] = await self.parts.db.write(leases.claim_named, [source_id], **terms)
        return due

    async def visit(self, source_id: int) -> SavedVisit:
        self.crawler.start([await self.claim(source_id)])
        await self.crawler.settle()
        return self.saved[-1]

    async def ask_hubs(self) -> int:
        """What the periodic chore does; then wait for the hub's answer to it."""
        asked = await wire.ask_hubs(self.parts)
        await asyncio.to_thread(self.hub.settle)
        return asked

    async def subscribed(self, *names: str) -> int:
        """Follow a feed that offers the hub, visit it, and have the hub confirm."""
        self.publish(*names)
        source_id = await self.follow()
        await self.visit(source_id)
        await self.ask_hubs()
        assert (await self.subscription()).state == "active"
        return source_id

    async def push(self, body: bytes | str, **how: Any) -> Answered:
        return await asyncio.to_thread(self.hub.push, body, **how)

    async def said(self, callback: str, **said: str) -> Answered:
        """The hub calls back with these words."""
        return await asyncio.to_thread(self.hub.call, callback, {f"hub.{name}": word for name, word in said.items()})

    async def subscription(self) -> Any:
        """The one row there is, or None."""
        return await self.parts.db.read(lambda conn: conn.execute(select(hub_subscriptions)).one_or_none())

    async def source(self) -> Any:
        return await self.parts.db.read(lambda conn: conn.execute(select(sources)).one())

    async def titles(self) -> list[str]:
        return sorted(story.members[0].title for story in await self.parts.db.read(stream.page, self.owner))

    async def stored(self) -> tuple[int, int]:
        """How many posts there are, and how many events tell of them."""
        kinds = await self.parts.db.read(lambda conn: conn.execute(select(event_outbox.c.kind)).scalars().all())
        ids = await self.parts.db.read(lambda conn: conn.execute(select(posts.c.id)).scalars().all())
        return len(ids), sum(kind.startswith("post.") for kind in kinds)


@asynccontextmanager
async def instance(store_url: str, hub: Hub, world: Web, **environ: str) -> AsyncIterator[Instance]:
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    given = {"HEADWATER_DATABASE_URL": store_url, "HEADWATER_PUBLIC_URL": url, "HEADWATER_HOST_GAP_SECONDS": "0"}
    parts = wire.open_parts(load({**ALLOW_LOOPBACK, **given, **environ}))
    parts.now = lambda: wire.utc_now() + made.ahead if made else wire.utc_now()
    made: Instance | None = None
    owner = wire.prepare_store(parts)
    server = web_server(create_app(parts), parts)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    saved: list[SavedVisit] = []
    async with wire.crawling(parts, saved.append) as crawler:
        made = Instance(parts, owner, crawler, hub, world, url, saved)
        yield made
    server.should_exit = True
    await serving
    parts.close()
