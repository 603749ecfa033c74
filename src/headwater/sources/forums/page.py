"""A forum's page, parsed: from bytes to a tree that can be asked, with what all of its parts need to know."""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from headwater.errors import BadAddress, Blocked, EmptyAnswer, ReadFailed, TooDeep
from headwater.model import Response
from headwater.sources.feeds.encoding import as_utf8, repaired_utf8
from headwater.sources.feeds.markup import joined
from headwater.sources.feeds.walls import checks_for_robots, has_login
from headwater.text import nests_deeply, plain
from headwater.urls import safe_link, same_server

MAX_TITLE = 1_000
_META_CHARSET = re.compile(rb"<meta[^<>]{1,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,3}")
_ZONE = re.compile(
    r"(?:all times are|time zone|timezone|时区)[^<>]{0,20}?(?:gmt|utc)|\bgmt\s?(?=[+-]\d)", re.IGNORECASE
)
_OFFSET = re.compile(r"\s*([+-−])\s*(\d{1,2})(?::?(\d\d)|\.(\d))?")
# A tag with a thousand attributes: the parser compares each with all that came before.
_ENDLESS_TAG = re.compile(
    r"<[a-zA-Z][^\s<>\"'=]*+(?:\s++[^\s<>\"'=]++(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s<>\"']++))?){1000}"
)
# What says how a reader got to a page, or who reads it, and nothing about what is there.
_PASSING = re.compile(r"(?<=[?&])(?:sid|s|PHPSESSID|extra|highlight|fromuid|_fromuid)=[^&#]*(?:&|(?=#)|$)")


class HtmlPage(NamedTuple):
    root: LexborNode
    url: str
    base: str
    received_at: datetime
    html: str


def parsed(response: Response) -> HtmlPage:
    html = _decoded(response.body, response.headers.get("content-type"))
    if not html.strip(" \t\r\n\0\ufeff"):
        raise EmptyAnswer("The server answered, but with nothing.")
    if nests_deeply(html) or _ENDLESS_TAG.search(html):
        raise TooDeep("The page is nested beyond what a forum can need.")
    root = LexborHTMLParser(html).root
    if root is None:
        raise EmptyAnswer("The server answered with a page that has nothing on it.")
    first = root.css_first("base[href]")
    base = joined(response.url, first.attributes.get("href") if first else None) or response.url
    return HtmlPage(root, response.url, base, response.received_at, html)


def _decoded(body: bytes, content_type: str | None) -> str:
    """The page's text. What the header does not say about its charset, the page itself does."""
    declared = _META_CHARSET.search(body, 0, 4_096)
    if declared and "charset" not in (content_type or "").lower():
        content_type = f"text/html; charset={declared[1].decode('ascii')}"
    return repaired_utf8(as_utf8(body, content_type)).decode("utf-8", "replace")


def link(page: HtmlPage, href: str | None) -> str | None:
    """An address on the same server, without what only says who follows it; None for any other."""
    address = safe_link(href, page.base)
    if not address or not address.startswith(("http://", "https://")):
        return None
    address = _PASSING.sub("", address.partition("#")[0]).rstrip("?&")
    try:
        return address if same_server(page.url, address) or same_server(address, page.url) else None
    except BadAddress:
        return None


def steady(text: str) -> str:
    """An attribute or address without what differs from one visit to the next."""
    return _PASSING.sub("", text)


def title_of(page: HtmlPage) -> str:
    found = page.root.css_first("title")
    return plain(found.text() if found else "")[:MAX_TITLE]


def language_of(page: HtmlPage) -> str | None:
    html = page.root if page.root.tag == "html" else page.root.css_first("html")
    said = ((html.attributes.get("lang") if html else None) or "").strip().replace("_", "-")
    return said if _LANGUAGE.fullmatch(said) else None


def zone_of(page: HtmlPage) -> int | None:
    """The offset from UTC, in minutes, that the page says its times have; None where it does not say."""
    said = _ZONE.search(page.html)
    if not said:
        return None
    offset = _OFFSET.match(page.html, said.end())
    if not offset:
        return 0
    minutes = int(offset[2]) * 60 + int(offset[3] or 0) + int(offset[4] or 0) * 6
    return (minutes if offset[1] == "+" else -minutes) if minutes <= 15 * 60 else None


def instead_of(page: HtmlPage, words: str) -> ReadFailed:
    """Why there was nothing to read: a page that keeps programs out, or what `words` say."""
    html = page.html.encode("utf-8", "replace")
    if checks_for_robots(html):
        return Blocked("The server answered with a page that checks for robots instead of the forum.")
    if has_login(html):
        return Blocked(f"{words} The page has a login form: it may be for members alone.")
    return ReadFailed(words)
