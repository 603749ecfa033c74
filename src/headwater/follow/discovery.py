"""Finds the feed of a site: by rules for well-known addresses, by the links of the page, by common paths."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from headwater.errors import BadAddress, Blocked, NotAFeed, SourceFailure, StatusRefused
from headwater.model import Page, Request, Response, Source, SourceState
from headwater.parse.pool import Parsers
from headwater.sources import KINDS, discovery

MOST_TRIES = 10
_NOT_HERE = (403, 404, 405, 406)


class Search(NamedTuple):
    """What a search needs; `gap` is the seconds to wait before each request."""

    fetch: Callable[[Request], Awaitable[Response]]
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
