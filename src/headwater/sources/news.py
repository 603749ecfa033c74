"""News sites: their lists of articles, and the articles.

A list is a page with links, a JSON endpoint or a sitemap. The source's settings say which it is and how it is addressed
(`sites.settings`). Without settings, articles are found by what their links have in common, and the next page by the
link to it (`sites.links`). `sites.article` finds the text of an article on its page.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from headwater.errors import EmptyAnswer, NotAFeed, ReadFailed
from headwater.model import Facts, Item, Page, Post, Request, Response, Source, SourceState
from headwater.sources.dates import plausible
from headwater.sources.kind import Kind
from headwater.sources.sites.article import article_in
from headwater.sources.sites.links import discovered, linked_next_page, selected
from headwater.sources.sites.lists import ListedArticle, looks_like_sitemap, read_endpoint, read_sitemap
from headwater.sources.sites.metadata import metadata_of
from headwater.sources.sites.page_kind import is_list
from headwater.sources.sites.settings import NewsSettings, first_address, next_address, pattern, settings_of
from headwater.sources.web_page import blocked, news_page
from headwater.text import text_hash
from headwater.urls import identity, safe_link

ACCEPT = "text/html, application/xhtml+xml;q=0.9, application/json;q=0.8, application/xml;q=0.8, */*;q=0.1"
FORMAT = "news"
MAX_ID = 500
SHORTEST = 60  # letters; less is a caption or a notice, not an article
FEWEST_TO_FOLLOW = 4


def first(source: Source, state: SourceState) -> Request:
    settings = settings_of(source.settings)
    return _request(first_address(settings, source.address, state.last_seen_post_id))


def check(settings: Mapping[str, Any]) -> None:
    settings_of(settings)


def read(source: Source, state: SourceState, response: Response) -> Page:
    """Returns the articles on a page of the list. Those that the list contains in full are posts right away."""
    settings = settings_of(source.settings)
    if not response.body.strip(b" \t\r\n\0"):
        raise EmptyAnswer("The server sent an empty answer.")
    form = settings.form if settings.form != "auto" else _form_of(response)
    if form == "sitemap":
        return _read_sitemap(settings, response)
    if form == "json":
        return _read_endpoint(settings, response)
    is_first = identity(response.url) == identity(first(source, state).url)
    return _read_links(settings, response, is_first)


def read_item(source: Source, item: Item, response: Response) -> Page:
    """Returns the article of an item. Its id is the item's; the page only decides its address."""
    page = news_page(response)
    metadata = metadata_of(page, response.received_at)
    article = article_in(page, metadata)
    if len(article.text) < SHORTEST:
        raise blocked(page.source, "the article") or ReadFailed("No article text was found on the page.")
    title = metadata.title or item.title
    published = metadata.published or plausible(item.created_at, response.received_at)
    post = Post(
        source_post_id=item.id,
        url=metadata.url,
        title=title,
        content=article.html,
        author=metadata.author,
        created_at=published or response.received_at,
        text_hash=text_hash(title, article.html),
        dated=published is not None,
        updated_at=metadata.modified,
        lang=metadata.language,
        images=article.images,
    )
    return Page([post], None, Facts(format=FORMAT))


def recognise(source: Source, response: Response) -> Mapping[str, Any] | None:
    """Returns the settings with which the page can be followed as a list; None if it is not a list."""
    if looks_like_sitemap(response.body):
        return {"form": "sitemap"}
    try:
        page = news_page(response)
    except ReadFailed:
        return None
    found = discovered(page)
    return {} if len(found.links) >= FEWEST_TO_FOLLOW and is_list(page, found.links) else None


def _read_links(settings: NewsSettings, response: Response, is_first: bool) -> Page:
    page = news_page(response)
    # A few links are not a list, but they can be the end of one.
    fewest = FEWEST_TO_FOLLOW if is_first else 1
    found = selected(page, settings.items) if settings.items else discovered(page, fewest)
    items = [Item(_id(settings, link.url), link.url, link.text) for link in found.links]
    items = _within(settings, items)
    if not found.links and (failure := blocked(page.source, "the list")):
        raise failure
    if not found.links and is_first:
        raise NotAFeed(_nothing_found(settings))
    if "{" in settings.list:
        ids = [int(item.id) for item in items if item.id.isascii() and item.id.isdigit()]
        url = next_address(settings, response.url, ids, len(found.links), "")
        by = "its number"
    else:
        following = linked_next_page(page)
        url, by = (following.url, following.by) if following else (None, "")
    metadata = metadata_of(page, response.received_at)
    note = f"{len(items)} articles found by {found.by}" + (f", next page by {by}." if url else ".")
    facts = Facts(FORMAT, metadata.title, response.url, metadata.language, truncated=found.truncated, note=note)
    return Page([], _request(url) if url else None, facts, _in_order(settings, items))


def _read_sitemap(settings: NewsSettings, response: Response) -> Page:
    found = read_sitemap(response.body, response.url)
    if found.maps:
        note = f"The newest of {len(found.maps)} sitemaps is read."
        return Page([], _request(found.maps[0]), Facts(FORMAT, whole=False, note=note))
    items = [
        Item(
            _id(settings, entry.url),
            entry.url,
            entry.title,
            entry.changed,
            plausible(entry.published, response.received_at),
        )
        for entry in found.entries
    ]
    note = f"{len(items)} articles named by the sitemap."
    return Page(
        [], None, Facts(FORMAT, truncated=found.truncated, note=note), _in_order(settings, _within(settings, items))
    )


def _read_endpoint(settings: NewsSettings, response: Response) -> Page:
    listed = read_endpoint(response.body, settings, response.url)
    posts, items = [], []
    for article in listed.articles:
        id = article.id or _id(settings, article.url)
        if article.content:
            posts.append(_listed_post(article, id, response))
        else:
            published = plausible(article.published, response.received_at)
            items.append(Item(id, article.url, article.title, article.mark, published))
    ids = [int(one.id) for one in listed.articles if one.id.isascii() and one.id.isdigit()]
    url = _next_of_endpoint(settings, response.url, ids, len(listed.articles), listed.cursor)
    note = f"{len(listed.articles)} articles listed as JSON" + (", and more on the next page." if url else ".")
    facts = Facts(FORMAT, truncated=listed.truncated, note=note)
    return Page(posts, _request(url) if url else None, facts, _in_order(settings, _within(settings, items)))


def _next_of_endpoint(settings: NewsSettings, url: str, ids: list[int], count: int, cursor: str) -> str | None:
    if "{" in settings.list:
        return next_address(settings, url, ids, count, cursor)
    # Without a template, what the answer names is the next address itself.
    return safe_link(cursor, url) if cursor and count and safe_link(cursor, url) != url else None


def _listed_post(article: ListedArticle, id: str, response: Response) -> Post:
    published = plausible(article.published, response.received_at)
    return Post(
        source_post_id=id[:MAX_ID],
        url=article.url,
        title=article.title,
        content=article.content,
        author=article.author or None,
        created_at=published or response.received_at,
        text_hash=text_hash(article.title, article.content),
        dated=published is not None,
    )


def _form_of(response: Response) -> str:
    body = response.body.lstrip()
    if looks_like_sitemap(body):
        return "sitemap"
    return "json" if body[:1] in (b"{", b"[") else "html"


def _id(settings: NewsSettings, url: str) -> str:
    """Returns the id in the address, if a pattern says where it is; else the normalised address."""
    if settings.id_pattern and (found := pattern(settings.id_pattern).search(url)) and found[1]:
        return found[1][:MAX_ID]
    id = identity(url)
    return id if len(id) <= MAX_ID else f"{id[:200]}#{blake2b(id.encode(), digest_size=12).hexdigest()}"


def _within(settings: NewsSettings, items: list[Item]) -> list[Item]:
    """Returns the items within `min_id` and `max_id`, and those whose ids are not numbers."""
    low, high = settings.min_id, settings.max_id
    if low is None and high is None:
        return items
    return [item for item in items if not _has_number(item) or (low or 0) <= int(item.id) <= (high or int(item.id))]


def _has_number(item: Item) -> bool:
    return item.id.isascii() and item.id.isdigit() and len(item.id) < 19


def _in_order(settings: NewsSettings, items: list[Item]) -> tuple[Item, ...]:
    """Returns the items in reading order.

    Ascending lists start at the lowest id, so that the watermark never skips one.
    """
    if settings.order == "ascending" and all(map(_has_number, items)):
        return tuple(sorted(items, key=lambda item: int(item.id)))
    return tuple(items)


def _nothing_found(settings: NewsSettings) -> str:
    if settings.items:
        return f"No link on the page matches the selector {settings.items}."
    return "No list of articles was found on the page. If a script makes the list, set `render`; else set `items`."


def _request(url: str) -> Request:
    return Request(url, (("Accept", ACCEPT),))


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
