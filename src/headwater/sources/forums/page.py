"""A forum's answer, parsed: a page as a tree that can be searched, or a JSON document."""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from headwater.errors import BadAddress, Blocked, EmptyAnswer, NotAFeed, ReadFailed, TooDeep
from headwater.model import Response
from headwater.sources.feeds.encoding import as_utf8, repaired_utf8
from headwater.sources.feeds.json import parsed_json
from headwater.sources.feeds.markup import joined
from headwater.sources.interstitials import has_login_form, is_bot_check
from headwater.sources.json_values import Json
from headwater.text import nests_deeply, plain
from headwater.urls import safe_link, same_server

MAX_TITLE = 1_000
_META_CHARSET = re.compile(rb"<meta[^<>]{1,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,3}")
_ZONE = re.compile(
    r"(?:all times are|time zone|timezone|时区)[^<>]{0,20}?(?:gmt|utc)|\bgmt\s?(?=[+-]\d)", re.IGNORECASE
)
_OFFSET = re.compile(r"\s*([+-−])\s*(\d{1,2})(?::?(\d\d)|\.(\d))?")
# A tag with a thousand attributes: the parser compares each one with all before it.
_ENDLESS_TAG = re.compile(
    r"<[a-zA-Z][^\s<>\"'=]*+(?:\s++[^\s<>\"'=]++(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s<>\"']++))?){1000}"
)
# Parameters that say who reads a page, or how they got there, but nothing about what is on it.
_SESSION = re.compile(r"(?<=[?&])(?:sid|s|PHPSESSID|extra|highlight|fromuid|_fromuid)=[^&#]*(?:&|(?=#)|$)")


class ForumPage(NamedTuple):
    """`base` is where relative links start."""

    root: LexborNode
    url: str
    base: str
    received_at: datetime
    html: str


def forum_page(response: Response) -> ForumPage:
    """Parses a page. Raises a ReadFailed if there is nothing on it, or if it would keep the parser busy."""
    html = _decoded(response.body, response.headers.get("content-type"))
    if not html.strip(" \t\r\n\0\ufeff"):
        raise EmptyAnswer("The server sent an empty answer.")
    if nests_deeply(html) or _ENDLESS_TAG.search(html):
        raise TooDeep("The page is nested more deeply than a forum needs.")
    root = LexborHTMLParser(html).root
    if root is None:
        raise EmptyAnswer("The server sent a page with nothing on it.")
    first = root.css_first("base[href]")
    base = joined(response.url, first.attributes.get("href") if first else None) or response.url
    return ForumPage(root, response.url, base, response.received_at, html)


def is_json(response: Response) -> bool:
    return response.body[:64].lstrip()[:1] in (b"{", b"[")


def json_document(response: Response) -> Json:
    try:
        document = parsed_json(response.body)
    except NotAFeed as error:
        raise ReadFailed("The forum's answer looks like JSON but cannot be read.") from error
    if not isinstance(document, dict):
        raise ReadFailed("The forum answered with JSON that is neither a list nor a thread.")
    return document


def _decoded(body: bytes, content_type: str | None) -> str:
    """The page's text. If the header does not name a charset, the page may."""
    declared = _META_CHARSET.search(body, 0, 4_096)
    if declared and "charset" not in (content_type or "").lower():
        content_type = f"text/html; charset={declared[1].decode('ascii')}"
    return repaired_utf8(as_utf8(body, content_type)).decode("utf-8", "replace")


def link(page: ForumPage, href: str | None) -> str | None:
    """An address on the same server, without session parameters; None for any other."""
    address = safe_link(href, page.base)
    if not address or not address.startswith(("http://", "https://")):
        return None
    address = without_session(address.partition("#")[0]).rstrip("?&")
    try:
        return address if same_server(page.url, address) or same_server(address, page.url) else None
    except BadAddress:
        return None


def without_session(address: str) -> str:
    """An address without what differs from one visit to the next."""
    return _SESSION.sub("", address)


def title_of(page: ForumPage) -> str:
    found = page.root.css_first("title")
    return plain(found.text() if found else "")[:MAX_TITLE]


def language_of(page: ForumPage) -> str | None:
    html = page.root if page.root.tag == "html" else page.root.css_first("html")
    lang = ((html.attributes.get("lang") if html else None) or "").strip().replace("_", "-")
    return lang if _LANGUAGE.fullmatch(lang) else None


def zone_of(page: ForumPage) -> int | None:
    """The offset from UTC, in minutes, that the page gives for its times; None if it gives none."""
    named = _ZONE.search(page.html)
    if not named:
        return None
    offset = _OFFSET.match(page.html, named.end())
    if not offset:
        return 0
    minutes = int(offset[2]) * 60 + int(offset[3] or 0) + int(offset[4] or 0) * 6
    return (minutes if offset[1] == "+" else -minutes) if minutes <= 15 * 60 else None


def nothing_found(page: ForumPage, reason: str) -> ReadFailed:
    """The failure to report when a page has nothing to read: it keeps programs out, or the `reason`."""
    html = page.html.encode("utf-8", "replace")
    if is_bot_check(html):
        return Blocked("The server answered with a bot check instead of the forum.")
    if has_login_form(html):
        return Blocked(f"{reason} The page has a login form: it may be for members only.")
    return ReadFailed(reason)
