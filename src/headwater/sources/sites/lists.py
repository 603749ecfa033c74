"""Lists of articles: web pages with links, and what a site keeps for programs, JSON and sitemaps.

In JSON, articles are at the paths that the settings give. Sitemaps are plain ones, those for news, and their indexes;
compressed or not. `read_list` is the way in.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import blake2b
from html import escape
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson
from lxml import etree

from headwater.errors import AnswerBroken, AnswerTooLarge, EmptyAnswer, NotAFeed, ReadFailed, TooDeep
from headwater.model import Facts, Item, Page, Post, Response
from headwater.sources.dates import parse_date, plausible
from headwater.sources.feeds.repair import without_doctype
from headwater.sources.sites.links import discovered, linked_next_page, selected
from headwater.sources.sites.metadata import metadata_of
from headwater.sources.sites.page_kind import is_list
from headwater.sources.sites.settings import (
    FORMAT,
    NewsSettings,
    found_at,
    list_request,
    next_address,
    pattern,
    text_at,
)
from headwater.sources.web_page import blocked, news_page
from headwater.text import clean_html, looks_like_html, plain, text_as_html, text_hash
from headwater.urls import identity, safe_link

MAX_ITEMS = 1_000
MAX_TITLE = 1_000
MAX_UNPACKED = 50_000_000
MAX_ENTRIES = 10_000
MAX_SITEMAP_TITLE = 300
MAX_ID = 500
FEWEST_TO_FOLLOW = 4


class ListedArticle(NamedTuple):
    """An article as the list shows it. `content` is empty if the list does not contain its text."""

    id: str
    url: str
    title: str
    published: datetime | None
    mark: str
    content: str
    author: str


class ArticleList(NamedTuple):
    articles: list[ListedArticle]
    cursor: str
    truncated: bool


def read_endpoint(body: bytes, settings: NewsSettings, base: str) -> ArticleList:
    document = _parsed(body)
    found = [item for item in found_at(document, settings.items) if isinstance(item, dict | str)]
    articles = {one.url: one for item in found[:MAX_ITEMS] if (one := _article(item, settings, base))}
    cursor = text_at(document, settings.next)
    return ArticleList(list(articles.values()), cursor, len(found) > MAX_ITEMS)


def _article(item: dict[str, Any] | str, settings: NewsSettings, base: str) -> ListedArticle | None:
    if isinstance(item, str):
        url = safe_link(item, base)
        return ListedArticle("", url, "", None, "", "", "") if url and url.startswith("http") else None
    id = text_at(item, settings.id or "id")[:200]
    written = settings.url or "url"
    address = written.replace("{id}", id) if "{" in written else text_at(item, written)
    url = safe_link(address, base)
    if not url or not url.startswith(("http://", "https://")):
        return None
    published = text_at(item, settings.date or "date")
    text = text_at(item, settings.text)
    return ListedArticle(
        id=id,
        url=url,
        title=_line(text_at(item, settings.title or "title")),
        published=parse_date(published[:100]) if published else None,
        mark=text_at(item, settings.mark)[:100],
        content=clean_html(text, url) if looks_like_html(text) else text_as_html(text),
        author=_line(text_at(item, settings.author)),
    )


def _line(text: str) -> str:
    return plain(text if looks_like_html(text) else escape(text, quote=False))[:MAX_TITLE]


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as strict:
        try:
            return json.loads(body.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            raise ReadFailed(f"The list is not JSON: {strict}.") from strict


class SitemapEntry(NamedTuple):
    url: str
    title: str = ""
    published: datetime | None = None
    changed: str = ""


class Sitemap(NamedTuple):
    """`entries` are articles. An index has `maps` instead: the sitemaps that it names, the newest first."""

    entries: list[SitemapEntry]
    maps: list[str]
    truncated: bool = False


def looks_like_sitemap(body: bytes) -> bool:
    start = body[:4_000].lower()
    return body[:2] == b"\x1f\x8b" or b"<urlset" in start or b"<sitemapindex" in start


def read_sitemap(body: bytes, url: str) -> Sitemap:
    """Returns what the sitemap at `url` names. It may only name addresses on its own host."""
    root = _root(_unpacked(body))
    name = _local(root)
    if name not in ("urlset", "sitemapindex"):
        raise ReadFailed("The document is XML, but not a sitemap.")
    found = [entry for node in _children(root) if (entry := _entry(node, url))]
    if name == "sitemapindex":
        newest = sorted(found, key=lambda entry: entry.changed, reverse=True)
        return Sitemap([], [entry.url for entry in newest])
    # A sitemap need not be in order, and a visit wants the newest articles.
    found.sort(key=lambda entry: entry.published.isoformat() if entry.published else entry.changed, reverse=True)
    return Sitemap(found[:MAX_ENTRIES], [], len(found) > MAX_ENTRIES)


def _unpacked(body: bytes) -> bytes:
    if body[:2] != b"\x1f\x8b":
        return body
    stream = zlib.decompressobj(31)
    try:
        unpacked = stream.decompress(body, MAX_UNPACKED + 1)
    except zlib.error as error:
        raise AnswerBroken(f"The compressed sitemap is damaged: {error}.") from error
    if len(unpacked) > MAX_UNPACKED:
        raise AnswerTooLarge(f"The sitemap is larger than {MAX_UNPACKED:,} bytes, the limit.")
    if not stream.eof:
        raise AnswerBroken("The compressed sitemap ends early: part of it did not arrive.")
    return unpacked


def _root(body: bytes) -> etree._Element:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(without_doctype(body.lstrip()), parser)
    except etree.XMLSyntaxError as error:
        if "depth" in str(error.msg) or "huge" in str(error.msg).lower():
            raise TooDeep(f"The sitemap is nested more deeply than one needs: {error.msg}.") from error
        raise ReadFailed(f"The sitemap is not well-formed: {error.msg}.") from error


def _children(root: etree._Element) -> Iterator[etree._Element]:
    for position, node in enumerate(root):
        if position > MAX_ENTRIES * 5:
            return
        if isinstance(node.tag, str):
            yield node


def _entry(node: etree._Element, url: str) -> SitemapEntry | None:
    values = {
        _local(inner): (inner.text or "").strip() for inner in node.iterdescendants() if isinstance(inner.tag, str)
    }
    address = safe_link(values.get("loc"), url)
    if (
        not address
        or not address.startswith(("http://", "https://"))
        or urlsplit(address).netloc != urlsplit(url).netloc
    ):
        return None
    published = values.get("publication_date", "")
    return SitemapEntry(
        address,
        plain(values.get("title", ""))[:MAX_SITEMAP_TITLE],
        parse_date(published[:100]) if published else None,
        values.get("lastmod", "")[:40],
    )


def _local(node: etree._Element) -> str:
    return str(node.tag).rpartition("}")[2]


def read_list(settings: NewsSettings, response: Response, *, is_first: bool) -> Page:
    """Returns the articles on a page of the list. Those that the list contains in full are posts right away."""
    if not response.body.strip(b" \t\r\n\0"):
        raise EmptyAnswer("The server sent an empty answer.")
    form = settings.form if settings.form != "auto" else _form_of(response)
    if form == "sitemap":
        return _read_sitemap(settings, response)
    if form == "json":
        return _read_endpoint(settings, response)
    return _read_links(settings, response, is_first)


def recognised(response: Response) -> Mapping[str, Any] | None:
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
    return Page([], list_request(url) if url else None, facts, _in_order(settings, items))


def _read_sitemap(settings: NewsSettings, response: Response) -> Page:
    found = read_sitemap(response.body, response.url)
    if found.maps:
        note = f"The newest of {len(found.maps)} sitemaps is read."
        return Page([], list_request(found.maps[0]), Facts(FORMAT, whole=False, note=note))
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
    return Page(posts, list_request(url) if url else None, facts, _in_order(settings, _within(settings, items)))


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
