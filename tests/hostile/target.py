"""A whole Headwater under attack: it visits what a test puts in its way, and is asked about it as a user asks."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from api.running import Client, Running, running
from fetch.raw_server import RawServer, Speaker, answer
from headwater import wire
from headwater.crawl.crawler import Crawler
from headwater.follow.add import follow
from headwater.ids import uuid7
from headwater.store.sources import leases
from support.web import ALLOW_LOOPBACK, rss

LEASE = timedelta(seconds=180)
QUICK = {"HEADWATER_HOST_GAP_SECONDS": "0", "HEADWATER_PARSER_PROCESSES": "1"}

Source = dict[str, Any]
Post = dict[str, Any]


@dataclass
class Target:
    headwater: Running
    portal: BlockingPortal
    crawler: Crawler
    program: Client
    person: Client

    def visit(self, *addresses: str) -> list[Source]:
        """Follow these, visit them once, all at the same time, and ask the API how they are doing."""
        return self.visit_again(*(self.follow(address) for address in addresses))

    def visit_again(self, *ids: int) -> list[Source]:
        self.portal.call(self._visit, ids)
        return [self.program.get(f"/api/sources/{id}").json() for id in ids]

    async def _visit(self, ids: tuple[int, ...]) -> None:
        parts = self.headwater.parts
        terms: dict[str, Any] = {"now": parts.now(), "lease": uuid7(), "lease_for": LEASE, "gap": timedelta(0)}
        granted = await parts.db.write(leases.claim_named, ids, **terms)
        assert {due.source.id for due in granted} == set(ids)
        self.crawler.start(granted)
        await self.crawler.settle()

    def follow(self, address: str, **how: Any) -> int:
        """As `headwater add` does it."""
        parts = self.headwater.parts
        terms = {"now": parts.now(), "seal": parts.vault.credential, **how}
        return parts.db.write_now(lambda conn: follow(conn, self.headwater.owner, address, **terms).source_id)

    def posts(self, source: Source) -> list[Post]:
        """The posts of a source as the API gives them out, newest first."""
        items: list[Post] = self.program.get(f"/api/posts?source_id={source['id']}&limit=200").json()["items"]
        return items

    def page(self, path: str) -> str:
        """What a person's browser is given."""
        shown = self.person.get(path)
        assert shown.status == 200, shown.text
        return shown.text

    @contextmanager
    def server(self, speak: Speaker | bytes, **how: Any) -> Iterator[RawServer]:
        """A server that says exactly this. It runs beside the crawler."""
        server = RawServer(speak)
        self.portal.call(lambda: server.start(**how))
        try:
            yield server
        finally:
            self.portal.call(server.stop)


@contextmanager
def attacked(folder: Path, store_url: str = "", **environ: str) -> Iterator[Target]:
    """A Headwater that keeps everything in this folder, unless its store is said to be elsewhere."""
    store_url = store_url or f"sqlite:///{folder / 'headwater.db'}"
    settings = {**ALLOW_LOOPBACK, **QUICK, "HEADWATER_DATA_DIR": str(folder), **environ}
    with ExitStack() as stack:
        headwater = stack.enter_context(running(store_url, **settings))
        portal = stack.enter_context(start_blocking_portal())
        crawling = portal.wrap_async_context_manager(wire.crawling(headwater.parts, lambda saved: None))
        crawler = stack.enter_context(crawling)
        yield Target(headwater, portal, crawler, headwater.program(), headwater.browser())


@contextmanager
def trap() -> Iterator[int]:
    """A port on every address of this machine to which nobody may ever connect."""
    # The kernel completes a connection by itself: one that was made would be waiting to be accepted.
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listening:
        listening.setblocking(False)
        yield listening.getsockname()[1]
        with pytest.raises(BlockingIOError):
            listening.accept()


def feed(*titles: str, **headers: str) -> bytes:
    """A good answer with a good feed."""
    return answer(body=rss(*titles).encode(), **headers)
