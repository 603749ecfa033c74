from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headwater import urls, wire
from headwater.crawl.record import report
from headwater.ids import uuid7
from headwater.model import Reader
from headwater.settings import load
from headwater.sim.news import serving
from headwater.sim.news_world import SimNews
from headwater.store import sources
from headwater.store.sources import leases
from headwater.wire import Parts
from support.web import ALLOW_LOOPBACK

Visit = Callable[[int], Awaitable[dict[str, Any]]]
Follow = Callable[..., int]


@pytest.fixture
def serve() -> Iterator[Callable[[SimNews], SimNews]]:
    with ExitStack() as stack:
        yield lambda site: stack.enter_context(serving(site))


@pytest.fixture
def parts(store_url: str, tmp_path: Path) -> Iterator[Parts]:
    environ = {
        **ALLOW_LOOPBACK,
        "HEADWATER_DATABASE_URL": store_url,
        "HEADWATER_DATA_DIR": str(tmp_path / "data"),
        "HEADWATER_HOST_GAP_SECONDS": "0",
        "HEADWATER_READER_PROCESSES": "1",
    }
    opened = wire.open_parts(load(environ))
    wire.prepare_store(opened)
    yield opened
    opened.close()


@pytest.fixture
def follow(parts: Parts) -> Follow:
    """Follow a list with these settings; returns the source's id."""
    owner: Reader = wire.prepare_store(parts)

    def add(address: str, **settings: object) -> int:
        host = urls.host_of(urls.split(address))
        asked = {"kind": "news", "address": address, "host": host, "now": parts.now(), "settings": settings}
        return parts.db.write_now(lambda conn: sources.add(conn, owner, **asked)).source_id

    return add


@pytest.fixture
def visit(parts: Parts) -> Visit:
    """One visit; its report."""

    async def once(source_id: int) -> dict[str, Any]:
        reports: list[dict[str, Any]] = []
        async with wire.crawling(parts, lambda saved: reports.append(report(saved))) as crawler:
            granted = await parts.db.write(
                leases.claim_named,
                [source_id],
                now=parts.now(),
                lease=uuid7(),
                lease_for=timedelta(seconds=parts.settings.lease_seconds),
                gap=timedelta(0),
            )
            crawler.start(granted)
            await crawler.settle()
        return reports[0]

    return once
