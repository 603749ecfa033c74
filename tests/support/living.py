"""A Headwater under a test's own clock: stepped through simulated time, or running its loops by a clock that jumps."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Self, TypeVar
from urllib.parse import parse_qsl, urlsplit

import pytest
from sqlalchemy import Connection, select

from headwater import wire
from headwater.crawl.crawler import Crawler
from headwater.crawl.visit.steps import VisitTools
from headwater.fetch.client import Client
from headwater.follow.add import follow
from headwater.ids import uuid7
from headwater.model import Page, Reader, Request, Response, SavedVisit, Source, SourceState
from headwater.settings import load
from headwater.sim.serving import Answered, Ask, Clock, Sim, SimSite
from headwater.sources import KINDS
from headwater.store.sources import leases
from headwater.store.tables import sources
from headwater.wire import Parts
from support.posts import a_source
from support.web import ALLOW_LOOPBACK

LEASE = timedelta(hours=3)  # waiting takes no time here, but the clock moves


def open_simulated(stack: ExitStack, environ: Mapping[str, str], clock: Clock, **given: str) -> Parts:
    """Opens a Headwater that lives by a simulated clock, until the stack closes. `given` are more settings."""
    more = {f"HEADWATER_{name}": value for name, value in given.items()}
    parts = wire.open_parts(load({**environ, "HEADWATER_PARSER_PROCESSES": "1", **more}))
    stack.callback(parts.close)
    parts.now = clock.now
    wire.prepare_store(parts)
    return parts


def serve_fixture(serving: Callable[[Any], AbstractContextManager[Any]]) -> Any:
    """A fixture that serves a simulated site for as long as the test runs, its clock moved on by `after`."""

    @pytest.fixture
    def serve(until_the_end: ExitStack) -> Callable[..., Any]:
        def serve_one(site: SimSite, after: timedelta = timedelta(0)) -> SimSite:
            site.clock.advance(after)
            return until_the_end.enter_context(serving(site))  # type: ignore[no-any-return]

        return serve_one

    return serve


class Living:
    """A Headwater that a test steps through simulated time, visit by visit."""

    def __init__(self, parts: Parts, site: SimSite, client: Client, access: Mapping[str, Any]) -> None:
        self.parts, self.client, self.parsers = parts, client, wire.open_parsers(parts)
        self.saved: list[SavedVisit] = []
        self.tools = VisitTools(
            fetch=client.fetch,
            parsers=self.parsers,
            now=parts.now,
            chance=random.Random(site.seed).random,
            interval=timedelta(seconds=parts.settings.check_interval_seconds),
            visit_seconds=100.0,
            gap=0.0,
            paused_until={},
            unseal=lambda sealed: "",
            access=access,
        )
        self.crawler = Crawler(parts.db, self.tools, self.saved.append)

    async def __aenter__(self) -> Self:
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

    async def visited(self, typed: str, **settings: Any) -> int:
        """Follows a source and visits it once; returns its id."""
        [source_id] = await self.follow(typed, **settings)
        await self.visit_one(source_id)
        return source_id

    async def visit_one(self, source_id: int) -> SavedVisit:
        """Visits a source now, due or not."""
        [due] = await self.parts.db.write(leases.claim_named, [source_id], **self._terms())
        self.crawler.start([due])
        await self.crawler.settle()
        return self.saved[-1]

    async def visit_due(self, limit: int = 100) -> list[SavedVisit]:
        """Visits what is due, one source after the other."""
        before = len(self.saved)
        for due in await self.parts.db.write(leases.claim_due, limit=limit, **self._terms()):
            self.crawler.start([due])
            await self.crawler.settle()
        return self.saved[before:]

    async def visit_due_at_once(self, limit: int = 100) -> None:
        """Visits what is due, all sources side by side."""
        self.crawler.start(await self.parts.db.write(leases.claim_due, limit=limit, **self._terms()))
        await self.crawler.settle()

    def _terms(self) -> dict[str, Any]:
        return {"now": self.parts.now(), "lease": uuid7(), "lease_for": LEASE, "gap": timedelta(0)}


class AtOnce:
    """Access to a simulated site without a network in between, and reading without processes."""

    def __init__(self, site: Sim, answer: Callable[[Sim, Ask], Answered], authorization: str) -> None:
        self.concurrency = asyncio.Semaphore(1)
        self.clock = site.clock
        self._answer = partial(answer, site)
        self._authorization = authorization

    async def try_acquire(self) -> datetime | None:
        return None

    async def acquire(self) -> None: ...

    async def fetch(self, request: Request) -> Response:
        parts = urlsplit(request.url)
        said = self._answer(Ask("GET", parts.path, dict(parse_qsl(parts.query)), self._authorization))
        return Response(request.url, said.status, {}, said.body, self.clock.now())

    async def read(self, source: Source, state: SourceState, response: Response) -> Page:
        return KINDS[source.kind].read(source, state, response)

    def tools(self, kind: str) -> VisitTools:
        parsers: Any = self
        hour = timedelta(hours=1)
        return VisitTools(
            self.fetch, parsers, self.clock.now, lambda: 0.0, hour, 60.0, 0.0, {}, lambda _: "", {kind: self}
        )


def rows(parts: Parts, table: Any) -> Sequence[Any]:
    def work(conn: Connection) -> Sequence[Any]:
        return conn.execute(select(table)).all()

    return parts.db.read_now(work)


@dataclass
class Ahead:
    """A Headwater with one source, whose clock a test can turn forward."""

    parts: Parts
    owner: Reader
    source_id: int = 0
    ahead: timedelta = timedelta(0)

    def turn_clock(self, **by: float) -> None:
        self.ahead += timedelta(**by)
        self.parts.new_events.send()

    async def until(self, condition: Callable[[], object], seconds: float = 120) -> None:
        async with asyncio.timeout(seconds):
            while not await asyncio.to_thread(condition):
                await asyncio.sleep(0.02)


A = TypeVar("A", bound=Ahead)


@contextmanager
def opened_ahead(kind: type[A], environ: Mapping[str, str], address: str) -> Iterator[A]:
    """Opens a Headwater that follows this address."""
    parts = wire.open_parts(load({**ALLOW_LOOPBACK, **environ}))
    made = kind(parts, wire.prepare_store(parts))
    parts.now = lambda: wire.utc_now() + made.ahead
    made.source_id = parts.db.write_now(a_source, made.owner, address, parts.now())
    yield made
    parts.close()


@asynccontextmanager
async def running_loops(*loops: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Runs these until the block ends."""
    stop = asyncio.Event()
    tasks = [asyncio.create_task(loop(stop)) for loop in loops]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)
