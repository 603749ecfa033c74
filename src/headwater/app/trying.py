"""Trying a source: what Headwater reads from a file or an address, without following it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from headwater import urls
from headwater.errors import BadInput, NotAFeed, SourceFailure
from headwater.fetch.statuses import judge
from headwater.follow import discovery
from headwater.follow.add import chosen
from headwater.model import Item, Page, Request, Response, Source, SourceState
from headwater.parse.pool import Parsers
from headwater.sources import DEFAULT, KINDS

Fetch = Callable[[Request], Awaitable[Response]]


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
    return await _try(Source(0, kind, canonical, settings=settings), fetch, parsers, gap)


async def _try(source: Source, fetch: Fetch, parsers: Parsers, gap: float) -> Tried:
    answer = await fetch(KINDS[source.kind].first(source, SourceState()))
    judge(answer)
    if KINDS[source.kind].is_list:
        return await _try_list(source, answer, fetch, parsers)
    try:
        return Tried(source.kind, answer.url, await parsers.read(source, SourceState(), answer))
    except NotAFeed as reason:
        try:
            found, page = await discovery.find_feed(source, answer, reason, discovery.Search(fetch, parsers, gap))
            return Tried(source.kind, found.url, page)
        except NotAFeed:
            becomes = await parsers.recognise(source, answer)
            if becomes is None:
                raise
    return await _try(source._replace(kind=becomes.kind, settings=becomes.settings), fetch, parsers, gap)


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
