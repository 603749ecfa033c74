"""The reading processes: limited, replaced, and worth no more than their one document."""

from __future__ import annotations

import asyncio

import pytest

from headwater.errors import NotAFeed, ParserStopped
from headwater.model import Page, Response, Source, SourceState
from headwater.parse import pool as readers_module
from headwater.parse.pool import Parsers
from support.posts import NOON
from support.web import rss

SOURCE = Source(1, "rss", "https://news.example/feed")


def answer(body: str) -> Response:
    return Response(SOURCE.address, 200, {}, body.encode(), NOON)


async def titles(readers: Parsers, body: str) -> list[str]:
    page: Page = await readers.read(SOURCE, SourceState(), answer(body))
    return [post.title for post in page.posts]


def processes(readers: Parsers) -> set[int]:
    return {process.pid for process in readers._running}


async def test_many_documents_at_once_are_read_by_a_few_processes() -> None:
    readers = Parsers(2, cpu_seconds=10, memory_mb=512, max_bytes=1_000_000)
    found = await asyncio.gather(*(titles(readers, rss(f"post {number}")) for number in range(50)))
    assert found == [[f"post {number}"] for number in range(50)]
    assert len(processes(readers)) <= 2
    await readers.close()


async def test_a_process_is_replaced_after_many_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers_module, "MOST_DOCUMENTS", 3)
    readers = Parsers(1, cpu_seconds=10, memory_mb=512, max_bytes=1_000_000)
    seen = set()
    for number in range(6):
        assert await titles(readers, rss(f"post {number}")) == [f"post {number}"]
        seen |= processes(readers)
    assert len(seen) == 2
    await readers.close()


async def test_an_error_crosses_the_border_with_its_kind_and_words() -> None:
    readers = Parsers(1, cpu_seconds=10, memory_mb=512, max_bytes=1_000_000)
    with pytest.raises(NotAFeed):
        await titles(readers, "<html><body>no feed</body></html>")
    assert await titles(readers, rss("after")) == ["after"]
    await readers.close()


async def test_a_process_that_is_killed_costs_its_document_and_the_next_one_is_read() -> None:
    readers = Parsers(1, cpu_seconds=10, memory_mb=512, max_bytes=1_000_000)
    await titles(readers, rss("first"))
    [process] = readers._running
    process.kill()
    with pytest.raises(ParserStopped):
        await titles(readers, rss("lost"))
    assert await titles(readers, rss("read")) == ["read"]
    await readers.close()


async def test_a_document_that_needs_too_much_memory_is_stopped() -> None:
    readers = Parsers(1, cpu_seconds=30, memory_mb=160, max_bytes=200_000_000)
    with pytest.raises(ParserStopped):
        await titles(readers, rss(*["x" * 20_000] * 4_000))
    assert await titles(readers, rss("small")) == ["small"]
    await readers.close()
