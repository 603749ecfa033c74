"""Sitemaps as lists of articles: plain ones, those for news, and their indexes; compressed or not."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from lxml import etree

from headwater.errors import AnswerBroken, AnswerTooLarge, ReadFailed, TooDeep
from headwater.sources.feeds.dates import parse_date
from headwater.sources.feeds.doctype import without_doctype
from headwater.text import plain
from headwater.urls import safe_link

MAX_UNPACKED = 50_000_000
MAX_ENTRIES = 10_000
MAX_TITLE = 300


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
    """What the sitemap at `url` names. It may only name addresses on its own host."""
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
        plain(values.get("title", ""))[:MAX_TITLE],
        parse_date(published[:100]) if published else None,
        values.get("lastmod", "")[:40],
    )


def _local(node: etree._Element) -> str:
    return str(node.tag).rpartition("}")[2]
