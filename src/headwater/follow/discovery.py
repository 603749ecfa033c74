"""Finds the feed of a site: by rules for well-known addresses, by the links of the page, by common paths.

`try_address` and `try_file` show what Headwater would read, without following it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from headwater import urls
from headwater.errors import BadAddress, BadInput, Blocked, NotAFeed, SourceFailure, StatusRefused
from headwater.fetch.statuses import judge
from headwater.follow.add import chosen
from headwater.model import Item, Page, Request, Response, Source, SourceState
from headwater.parse.pool import Parsers
from headwater.sources import DEFAULT, KINDS, discovery

Fetch = Callable[[Request], Awaitable[Response]]

MOST_TRIES = 10
_NOT_HERE = (403, 404, 405, 406)


class Search(NamedTuple):
    """What a search needs; `gap` is the seconds to wait before each request."""

    fetch: Fetch
    parsers: Parsers
    gap: float


def choices() -> list[tuple[str, str]]:
    """Returns what a person may want a site to be read as, where its address does not say it: (kind, name)."""
    return [(kind.name, f"a {kind.label}") for kind in KINDS.values() if kind.recognise]


def worth_a_search(reason: SourceFailure) -> bool:
    """Whether a feed could be elsewhere. A host that is down, slow or asks for a pause is left alone instead."""
    if isinstance(reason, StatusRefused):
        return reason.facts.get("http_status") in _NOT_HERE
    return isinstance(reason, NotAFeed | Blocked)


async def find_feed(
    source: Source, page: Response | None, reason: SourceFailure, search: Search
) -> tuple[Response, Page]:
    """Returns the first candidate that is a feed. Raises `reason`, with advice, if there is none.

    `page` is the answer of the source's own address, if there was one.
    """
    tried = {source.address}
    async for candidate in _candidates(source, page, search):
        if candidate in tried:
            continue
        tried.add(candidate)
        found = await _try(source._replace(address=candidate), search)
        if found:
            return found
        if len(tried) > MOST_TRIES:
            break
    if isinstance(reason, NotAFeed):
        raise NotAFeed("This page is not a feed and links to none. Look for a link to RSS or Atom on it.") from reason
    raise reason


async def _candidates(source: Source, page: Response | None, search: Search) -> AsyncIterator[str]:
    for address in discovery.address_rules(source.address):
        yield address
    if page is not None:
        for address in await _linked_from(page, source, search):
            yield address
    for address in discovery.common_paths(source.address):
        yield address


async def _linked_from(page: Response, source: Source, search: Search) -> list[str]:
    try:
        return await search.parsers.links(source, page)
    except SourceFailure:
        return []


async def _try(source: Source, search: Search) -> tuple[Response, Page] | None:
    state = SourceState()
    await asyncio.sleep(search.gap)
    try:
        response = await search.fetch(KINDS[source.kind].first(source, state))
        if response.status != 200:
            return None
        return response, await search.parsers.read(source, state, response)
    except (SourceFailure, BadAddress):
        return None


class Tried(NamedTuple):
    """What is at an address. Where that is a list, `item` is one of its items, with its page or why it has none."""

    kind: str
    address: str
    page: Page
    item: Item | None = None
    item_page: Page | None = None
    error: str | None = None

    @property
    def is_list(self) -> bool:
        return KINDS[self.kind].is_list


async def try_file(
    parsers: Parsers, name: str, content: bytes, now: datetime, kind: str | None, settings: Mapping[str, Any]
) -> Tried:
    """Parses a file as if it had been fetched."""
    source = Source(0, kind or DEFAULT.name, "", settings=settings)
    page = await parsers.read(source, SourceState(), Response("", 200, {}, content, now))
    return Tried(source.kind, name, page)


async def try_address(
    fetch: Fetch, parsers: Parsers, address: str, kind: str | None, settings: Mapping[str, Any], *, gap: float
) -> Tried:
    """Fetches what is at an address, looks for a feed if it is a site, and parses it. `gap` is seconds to a host."""
    if "://" not in address and urls.with_scheme(address) == address:
        raise BadInput(f"{address} is neither a file nor an address.")
    kind, canonical = chosen(address, kind, settings)
    return await _try_source(Source(0, kind, canonical, settings=settings), fetch, parsers, gap)


async def _try_source(source: Source, fetch: Fetch, parsers: Parsers, gap: float) -> Tried:
    answer = await fetch(KINDS[source.kind].first(source, SourceState()))
    judge(answer)
    if KINDS[source.kind].is_list:
        return await _try_list(source, answer, fetch, parsers)
    try:
        return Tried(source.kind, answer.url, await parsers.read(source, SourceState(), answer))
    except NotAFeed as reason:
        try:
            found, page = await find_feed(source, answer, reason, Search(fetch, parsers, gap))
            return Tried(source.kind, found.url, page)
        except NotAFeed:
            becomes = await parsers.recognise(source, answer)
            if becomes is None:
                raise
    return await _try_source(source._replace(kind=becomes.kind, settings=becomes.settings), fetch, parsers, gap)


async def _try_list(source: Source, answer: Response, fetch: Fetch, parsers: Parsers) -> Tried:
    """Parses a list, and the first of its items that is not pinned above it."""
    page = await parsers.read(source, SourceState(), answer)
    tried = Tried(source.kind, answer.url, page)
    item = next((one for one in page.items if not one.pinned), None)
    if item is None:
        return tried
    try:
        found = await fetch(Request(item.url))
        judge(found)
        return tried._replace(item=item, item_page=await parsers.read_item(source, item, found))
    except SourceFailure as error:
        return tried._replace(item=item, error=error.detail)
