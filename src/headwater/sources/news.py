"""News sites: their lists of articles, and the articles.

A list is a page with links, a JSON endpoint or a sitemap. The source's settings say which it is and how it is addressed
(`sites.settings`). Without settings, articles are found by what their links have in common, and the next page by the
link to it (`sites.links`). `sites.article` finds the text of an article on its page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.model import Item, Page, Request, Response, Source, SourceState
from headwater.sources.kind import Kind
from headwater.sources.sites.settings import first_address, list_request, settings_of
from headwater.urls import identity

# What reads pages is loaded by the functions that read: only parser processes need it.


def first(source: Source, state: SourceState) -> Request:
    settings = settings_of(source.settings)
    return list_request(first_address(settings, source.address, state.last_seen_post_id))


def check(settings: Mapping[str, Any]) -> None:
    settings_of(settings)


def read(source: Source, state: SourceState, response: Response) -> Page:
    """Returns the articles on a page of the list."""
    from headwater.sources.sites.lists import read_list

    is_first = identity(response.url) == identity(first(source, state).url)
    return read_list(settings_of(source.settings), response, is_first=is_first)


def read_item(source: Source, item: Item, response: Response) -> Page:
    """Returns the article of an item."""
    from headwater.sources.sites.article import read_article

    return read_article(item, response)


def recognise(source: Source, response: Response) -> Mapping[str, Any] | None:
    """Returns the settings with which the page can be followed as a list; None if it is not a list."""
    from headwater.sources.sites.lists import recognised

    return recognised(response)


KIND = Kind(
    "news",
    "news site",
    "news sites",
    first,
    read,
    shape="list",
    items="articles",
    read_item=read_item,
    recognise=recognise,
    check=check,
)
