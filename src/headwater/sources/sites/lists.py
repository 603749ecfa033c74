"""Lists that a news site keeps for programs: JSON, with articles at the paths that the settings give, and sitemaps.

Sitemaps are plain ones, those for news, and their indexes; compressed or not.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from datetime import datetime
from html import escape
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson
from lxml import etree

from headwater.errors import AnswerBroken, AnswerTooLarge, ReadFailed, TooDeep
from headwater.sources.dates import parse_date
from headwater.sources.feeds.repair import without_doctype
from headwater.sources.sites.settings import NewsSettings, found_at, text_at
from headwater.text import clean_html, looks_like_html, plain, text_as_html
from headwater.urls import safe_link

MAX_ITEMS = 1_000
MAX_TITLE = 1_000
MAX_UNPACKED = 50_000_000
MAX_ENTRIES = 10_000
MAX_SITEMAP_TITLE = 300


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
