"""Settings and lists that are made to hurt, where they are read: in the reading processes."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime

import pytest

from headwater.errors import AnswerTooLarge, ParserStopped, ReadFailed
from headwater.model import Response, Source, SourceState
from headwater.parse.pool import Parsers
from headwater.sources import news

NOW = datetime(2026, 11, 16, tzinfo=UTC)
URL = "https://paper.example/news"


def answer(body: bytes) -> Response:
    return Response(URL, 200, {}, body, NOW)


def read(body: bytes, **settings: object) -> list[str]:
    page = news.read(Source(1, "news", URL, settings=settings), SourceState(), answer(body))
    return [item.url for item in page.items]


async def test_a_pattern_that_never_ends_costs_one_page() -> None:
    # H53
    links = "".join(f'<a href="/{"a" * 60}-{place}">x</a>' for place in range(5))
    source = Source(1, "news", URL, settings={"items": "a", "id_pattern": "((?:a+)+)$"})
    parsers = Parsers(1, cpu_seconds=0.5, memory_mb=512, max_bytes=1_000_000)
    try:
        with pytest.raises(ParserStopped):
            await parsers.read(source, SourceState(), answer(links.encode()))
    finally:
        await parsers.close()


def test_ten_thousand_links_are_cut_off_and_said() -> None:
    # H43
    links = "".join(
        f'<h2><a href="/2026/11/02/a-long-story-{n}">A long story with number {n}</a></h2>' for n in range(11_000)
    )
    page = news.read(Source(1, "news", URL), SourceState(), answer(links.encode()))
    assert page.facts.truncated
    assert len(page.items) == 1_000


@pytest.mark.parametrize(
    "href", ["javascript:alert(1)", "JAVA\tSCRIPT:x", "data:text/html,x", "http://[::1", "//", "\x00"]
)
def test_links_that_are_none_are_no_articles(href: str) -> None:
    # H48
    assert read(f'<a href="{href}">x</a><a href="/a">y</a>'.encode(), items="a") == ["https://paper.example/a"]


def test_links_to_other_sites_are_no_articles() -> None:
    assert read(b'<a href="https://evil.example/a">x</a><a href="/b">y</a>', items="a") == ["https://paper.example/b"]


def test_a_packed_bomb_of_a_sitemap_is_refused() -> None:
    # H24
    with pytest.raises(AnswerTooLarge):
        read(gzip.compress(b"<urlset>" + b" " * 60_000_000))


def test_a_sitemap_expands_no_entities() -> None:
    # H38 H40
    laughs = b'<!DOCTYPE urlset [<!ENTITY a "aaaaaaaaaa"><!ENTITY f SYSTEM "file:///etc/passwd">]><urlset><url><loc>'
    with pytest.raises(ReadFailed, match="Entity 'f' not defined"):
        read(laughs + b"https://paper.example/&f;&a;</loc></url></urlset>", form="sitemap")


@pytest.mark.parametrize("body", [b"[" * 100_000, b"{", b"<html>"])
def test_json_that_is_none_ends_in_words(body: bytes) -> None:
    # H49
    with pytest.raises(ReadFailed, match="not JSON"):
        read(body, form="json", items="items[*]")


@pytest.mark.parametrize("body", [b'{"a": 1e999}', b'{"items": "x"}', b'{"items": [1, null, {"url": []}]}', b"NaN"])
def test_json_without_articles_has_none(body: bytes) -> None:
    # H49
    assert read(body, form="json", items="items[*]") == []
