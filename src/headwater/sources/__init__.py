"""The kinds of source: for each, which request comes next and what an answer says. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from headwater.model import Item, Page, Request, Response, Source, SourceState
from headwater.sources import forum, news, reddit, rss, x


class Kind(NamedTuple):
    """A kind of source: `first` makes the request a visit begins with, `read` says what an answer means.

    `at_address` says that the source's address is what is fetched: it can move, and a page there can name the source.

    A `paged` kind is crawled page by page, and what a page gave is stored before the next one is asked for. There
    `read` says what a list names, and `read_item` what is on the page of one of its items; its `next` is the item's
    next page. `recognise` says with which settings the kind can read the page at an address, None: not at all.
    `check` raises BadInput for settings that the kind does not understand. Where `tells_watermark`, the pages say up to
    where all is known (`Facts.watermark`), and a list ends there.
    """

    name: str
    first: Callable[[Source, SourceState], Request]
    read: Callable[[Source, SourceState, Response], Page]
    at_address: bool = True
    paged: bool = False
    read_item: Callable[[Source, Item, Response], Page] | None = None
    recognise: Callable[[Source, Response], Mapping[str, Any] | None] | None = None
    check: Callable[[Mapping[str, Any]], None] | None = None
    tells_watermark: bool = False


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "rss": Kind("rss", rss.first, rss.read),
        "reddit": Kind("reddit", reddit.first, reddit.read, at_address=False),
        "forum": Kind(
            "forum",
            forum.first,
            forum.read,
            paged=True,
            read_item=forum.read_item,
            recognise=forum.recognise,
            check=forum.check,
        ),
        "news": Kind(
            "news",
            news.first,
            news.read,
            paged=True,
            read_item=news.read_item,
            recognise=news.recognise,
            check=news.check,
        ),
        "x": Kind("x", x.first, x.read, at_address=False, paged=True, check=x.check, tells_watermark=True),
    }
)
