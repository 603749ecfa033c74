"""The reading processes: limited, replaced, and worth no more than their one document."""

from __future__ import annotations

import asyncio

import pytest

from headwater.errors import NotAFeed, ParserStopped
from headwater.model import Page, Response, Source, SourceState
from headwater.parse import pool as parser_pool
from headwater.parse.pool import Parsers
from support.posts import NOON
from support.web import rss

SOURCE = Source(1, "rss", "https://news.example/feed")


def answer(body: str) -> Response:
    return Response(SOURCE.address, 200, {}, body.encode(), NOON)


async def titles(parsers: Parsers, body: str) -> list[str]:
    page: Page = await parsers.read(SOURCE, SourceState(), answer(body))
    return [post.title for post in page.posts]


def processes(parsers: Parsers) -> set[int]:
    return {process.pid for process in parsers._running}


async def test_many_documents_at_once_are_read_by_a_few_processes() -> None:
    parsers = Parsers(2, cpu_seconds=10, memory_mb=512, max_bytes=1_000_000)
    found = await asyncio.gather(*(titles(parsers, rss(f"post {number}")) for number in range(50)))
    assert found == [[f"post {number}"] for number in range(50)]
    assert len(processes(parsers)) <= 2
    await parsers.close()


async def test_a_process_is_replaced_after_many_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser_pool, "MOST_DOCUMENTS", 3)
    parsers = Parsers(1, cpu_seconds=10, memory_mb=512, max_bytes=1_000_000)
    seen = set()
    for number in range(6):
        assert await titles(parsers, rss(f"post {number}")) == [f"post {number}"]
        seen |= processes(parsers)
    assert len(seen) == 2
    await parsers.close()


async def test_a_process_that_has_nothing_to_do_ends_and_the_next_document_gets_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parser_pool, "IDLE_SECONDS", 0.1)
    parsers = Parsers(1, cpu_seconds=10, memory_mb=512, max_bytes=1_000_000)
    await titles(parsers, rss("first"))
    [process] = parsers._running
    assert await asyncio.wait_for(process.wait(), 20) != 0
    assert processes(parsers) == set()
    assert await titles(parsers, rss("second")) == ["second"]
    assert processes(parsers) - {process.pid} == processes(parsers)
    await parsers.close()


async def test_an_error_crosses_the_border_with_its_kind_and_words() -> None:
    parsers = Parsers(1, cpu_seconds=10, memory_mb=512, max_bytes=1_000_000)
    with pytest.raises(NotAFeed):
        await titles(parsers, "<html><body>no feed</body></html>")
    assert await titles(parsers, rss("after")) == ["after"]
    await parsers.close()


async def test_a_process_that_is_killed_costs_its_document_and_the_next_one_is_read() -> None:
    parsers = Parsers(1, cpu_seconds=10, memory_mb=512, max_bytes=1_000_000)
    await titles(parsers, rss("first"))
    [process] = parsers._running
    process.kill()
    with pytest.raises(ParserStopped):
        await titles(parsers, rss("lost"))
    assert await titles(parsers, rss("read")) == ["read"]
    await parsers.close()


async def test_a_document_that_needs_too_much_memory_is_stopped() -> None:
    parsers = Parsers(1, cpu_seconds=30, memory_mb=160, max_bytes=200_000_000)
    with pytest.raises(ParserStopped):
        await titles(parsers, rss(*["x" * 20_000] * 4_000))
    assert await titles(parsers, rss("small")) == ["small"]
    await parsers.close()


async def test_a_hub_is_reported_only_for_a_kind_that_can_be_pushed() -> None:
    body = rss("post").replace(
        "<channel>", '<channel><link xmlns="http://www.w3.org/2005/Atom" rel="hub" href="/hub"/>'
    )
    parsers = Parsers(1, cpu_seconds=10, memory_mb=512, max_bytes=1_000_000)
    feed = await parsers.read(SOURCE, SourceState(), answer(body))
    community = await parsers.read(SOURCE._replace(kind="reddit"), SourceState(), answer(body))
    assert (feed.facts.hub, community.facts.hub) == ("https://news.example/hub", None)
    assert len(community.posts) == len(feed.posts) == 1
    await parsers.close()
