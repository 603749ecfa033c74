from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headwater import urls, wire
from headwater.crawl.record import report
from headwater.model import Reader
from headwater.sim.news import serving
from headwater.store import sources
from headwater.wire import Parts
from support.living import serve_fixture
from support.posts import claim

Visit = Callable[[int], Awaitable[dict[str, Any]]]
Follow = Callable[..., int]


serve = serve_fixture(serving)


@pytest.fixture
def environ(environ: dict[str, str]) -> dict[str, str]:
    return {**environ, "HEADWATER_PARSER_PROCESSES": "1"}


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
            crawler.start(await claim(parts, source_id))
            await crawler.settle()
        return reports[0]

    return once
