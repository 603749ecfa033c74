"""A board on loopback, and the smallest kind of source that reads it: lists that name threads, threads with pages.

The kind is no part of Headwater: it shows the engine for paged sources, which knows of lists and items alone. Its
answers are read in the test's own process.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qs, urlsplit

from headwater import urls, wire
from headwater.access.budget import Access
from headwater.access.robots import Robots
from headwater.crawl.crawler import Crawler
from headwater.crawl.record import report
from headwater.crawl.visit.steps import VisitTools
from headwater.errors import NotAFeed, ReadFailed
from headwater.model import Becoming, Facts, Image, Item, Page, Post, Reader, Request, Response, Source, SourceState
from headwater.parse.pool import _BY_CODE
from headwater.parse.process import Parsed, ParseTask, RobotsVerdict, perform
from headwater.sources import KINDS, Kind
from headwater.store import sources
from headwater.wire import Parts
from support.posts import claim
from support.web import Answer, Asked, Web

MAX_BYTES = 1_000_000
Fetch = Callable[[Request], Awaitable[Response]]


@dataclass
class Thread:
    """Its posts are on pages of `Board.posts_a_page`. If `error` is set, all of them answer with it."""

    id: str
    posts: int = 1
    pinned: bool = False
    error: Answer | None = None
    delay: float = 0.0


@dataclass
class Board:
    """A list of threads: pinned ones first, then by newest post. With `tells` the list contains the posts."""

    world: Web
    path: str = "/board"
    page_size: int = 5
    posts_a_page: int = 3
    threads: list[Thread] = field(default_factory=list)
    tells: bool = False
    delay: float = 0.0
    on_list: Callable[[int], Answer | None] = lambda page: None
    title: str = "The Board"

    def __post_init__(self) -> None:
        self.world.fallback = self.answer

    @property
    def address(self) -> str:
        return urls.canonical(self.world.url(self.path))

    def add(self, *ids: str, posts: int = 1) -> None:
        for id in ids:
            self.threads.insert(0, Thread(id, posts))

    def reply(self, id: str) -> None:
        """A thread with a new reply moves to the top."""
        thread = next(one for one in self.threads if one.id == id)
        thread.posts += 1
        self.threads.remove(thread)
        self.threads.insert(0, thread)

    def all_posts(self) -> set[str]:
        return {f"{thread.id}/{number}" for thread in self.threads for number in range(1, thread.posts + 1)}

    def answer(self, asked: Asked) -> Answer:
        parts = urlsplit(asked.path)
        page = int(parse_qs(parts.query).get("page", ["1"])[0])
        if parts.path == self.path:
            answer = self.on_list(page) or self._list(page)
        elif parts.path.startswith("/t/"):
            answer = self._thread(parts.path.removeprefix("/t/"), page)
        else:
            answer = Answer("nothing here", 404)
        return answer._replace(delay=max(answer.delay, self.delay))

    def _list(self, page: int) -> Answer:
        pinned = [thread for thread in self.threads if thread.pinned]
        ordered = [thread for thread in self.threads if not thread.pinned]
        start = (page - 1) * self.page_size
        shown = pinned * (page == 1) + ordered[start : start + self.page_size]
        more = len(ordered) > start + self.page_size
        document: dict[str, object] = {"title": self.title, "next": f"{self.path}?page={page + 1}" if more else None}
        if self.tells:
            document["posts"] = [{"id": f"{thread.id}/1", "text": thread.id} for thread in shown]
        else:
            document["items"] = [
                {"id": thread.id, "url": f"/t/{thread.id}", "mark": str(thread.posts), "pinned": thread.pinned}
                for thread in shown
            ]
        return Answer(json.dumps(document))

    def _thread(self, id: str, page: int) -> Answer:
        thread = next((one for one in self.threads if one.id == id), None)
        if thread is None:
            return Answer("gone", 404)
        if thread.error:
            return thread.error
        first = (page - 1) * self.posts_a_page + 1
        last = min(thread.posts, first + self.posts_a_page - 1)
        if first > thread.posts:
            return Answer("no such page", 404)
        more = f"/t/{id}?page={page + 1}" if last < thread.posts else None
        posts = [{"id": f"{id}/{number}", "text": f"post {number} of {id}"} for number in range(first, last + 1)]
        return Answer(json.dumps({"posts": posts, "next": more}), delay=thread.delay)


def _first(source: Source, state: SourceState) -> Request:
    return Request(source.address, (("Accept", "application/json"),))


def _read(source: Source, state: SourceState, response: Response) -> Page:
    document = _document(response)
    if "items" not in document and "posts" not in document:
        raise NotAFeed("This is not a board.")
    listed = tuple(
        Item(one["id"], urls.safe_link(one["url"], response.url) or "", one["id"], one["mark"], pinned=one["pinned"])
        for one in document.get("items", [])
    )
    facts = Facts("board", document["title"], link=response.url)
    return Page(_posts(document, response), _next(document, response), facts, listed)


def _read_item(source: Source, item: Item, response: Response) -> Page:
    document = _document(response)
    return Page(_posts(document, response), _next(document, response), Facts("board"))


def _document(response: Response) -> dict[str, object]:
    try:
        document = json.loads(response.body)
    except ValueError as error:
        raise ReadFailed("This is not a page of the board.") from error
    return document


def _posts(document: Mapping[str, object], response: Response) -> list[Post]:
    return [
        Post(
            source_post_id=one["id"],
            url=response.url,
            title=one["id"].partition("/")[0],
            content=one["text"],
            author=None,
            created_at=response.received_at,
            text_hash=blake2b(one["text"].encode(), digest_size=16).digest(),
            dated=False,
            images=(Image(urls.safe_link(f"/{one['id']}.png", response.url) or ""),),
        )
        for one in document.get("posts", [])  # type: ignore[attr-defined]
    ]


def _next(document: Mapping[str, object], response: Response) -> Request | None:
    link = urls.safe_link(document.get("next"), response.url)  # type: ignore[arg-type]
    return Request(link, (("Accept", "application/json"),)) if link else None


def _recognise(source: Source, response: Response) -> Mapping[str, object] | None:
    return {"max_pages": 3} if b"this is a board" in response.body else None


BOARD = Kind("board", "board", "boards", _first, _read, shape="list", read_item=_read_item, recognise=_recognise)
BOARD_KINDS = {**KINDS, "board": BOARD}


class ParsersHere:
    """Does what `Parsers` does, but in this process, which knows the kinds that tests define."""

    async def read(self, source: Source, state: SourceState, response: Response) -> Page:
        return self._perform(ParseTask("read", source, state, response, MAX_BYTES)).page  # type: ignore[return-value]

    async def read_item(self, source: Source, item: Item, response: Response) -> Page:
        return self._perform(ParseTask("item", source, SourceState(), response, MAX_BYTES, item)).page  # type: ignore[return-value]

    async def recognise(self, source: Source, response: Response) -> Becoming | None:
        return self._perform(ParseTask("recognise", source, SourceState(), response, MAX_BYTES)).becomes

    async def verdict(self, rules: Response, url: str, agent: str) -> RobotsVerdict:
        task = ParseTask("robots", Source(0, "", ""), SourceState(), rules._replace(url=url), MAX_BYTES, agent=agent)
        return self._perform(task).verdict  # type: ignore[return-value]

    async def links(self, source: Source, response: Response) -> list[str]:
        return self._perform(ParseTask("links", source, SourceState(), response, MAX_BYTES)).links

    def _perform(self, task: ParseTask) -> Parsed:
        reading = perform(task, BOARD_KINDS)
        if reading.error_code:
            raise _BY_CODE[reading.error_code](reading.error)
        return reading


@asynccontextmanager
async def crawling_boards(
    parts: Parts,
    on_saved: Callable[..., None],
    *,
    way: Callable[[Fetch], Access] | None = None,
    browser: Callable[[Fetch], Fetch] | None = None,
) -> AsyncIterator[Crawler]:
    """Like `wire.crawling`, with the kind of this module."""
    client, parsers = wire.open_client(parts), ParsersHere()
    settings = parts.settings
    tools = VisitTools(
        fetch=client.fetch,
        parsers=parsers,  # type: ignore[arg-type]
        now=parts.now,
        chance=lambda: 0.0,
        interval=timedelta(seconds=settings.check_interval_seconds),
        visit_seconds=settings.visit_seconds,
        gap=settings.host_gap_seconds,
        paused_until={},
        unseal=lambda sealed: parts.vault.open(sealed),
        access={"board": way(client.fetch)} if way else {},
        browser=browser(client.fetch) if browser else None,
        kinds=BOARD_KINDS,
        robots=Robots(parts.db, client.fetch, parsers, settings.user_agent, parts.now),  # type: ignore[arg-type]
    )
    crawler = Crawler(parts.db, tools, on_saved)
    try:
        yield crawler
    finally:
        await crawler.stop(timedelta(seconds=settings.shutdown_seconds))
        await client.close()


def follow_board(parts: Parts, owner: Reader, address: str, **settings: object) -> int:
    """Follows a board; returns the id of the source."""
    host = urls.host_of(urls.split(address))

    def add(conn: object) -> int:
        added = sources.add(
            conn,
            owner,
            kind="board",
            address=address,
            host=host,
            now=parts.now(),
            settings=settings,  # type: ignore[arg-type]
        )
        return added.source_id

    return parts.db.write_now(add)


async def visit_board(parts: Parts, source_id: int, **given: Any) -> dict[str, object]:
    """Visits the board once; returns the report. `way` and `browser` make the access and the browser."""
    reports = []
    async with crawling_boards(parts, lambda saved: reports.append(report(saved)), **given) as crawler:
        granted = await claim(parts, source_id, timedelta(seconds=parts.settings.host_gap_seconds))
        assert granted, "the source was not free"
        crawler.start(granted)
        await crawler.settle()
    return reports[0]
