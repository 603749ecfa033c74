"""A raw feed, and the rules that turn it into posts: identity, time, address, text.

Every parser fills a `RawFeed` with what a document says. The rules are the same for every format.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from hashlib import blake2b
from html import escape
from typing import Any, NamedTuple

from headwater.model import Enclosure, Facts, Page, Post, Reference
from headwater.sources.dates import parse_date, plausible
from headwater.sources.encoding import undo_double_encoding
from headwater.sources.feeds.elements import point_of
from headwater.text import clean_html, looks_like_html, plain, printable, text_as_html, text_hash
from headwater.urls import identity, joined, safe_link, without_tracking

MAX_POSTS = 5_000
MAX_ID = 1_000
MAX_TITLE = 1_000
MAX_ENCLOSURES = 50
MAX_CATEGORIES = 50
MAX_FACT = 2_000
MAX_NAME = 500

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,3}")
_MAIL_AND_NAME = re.compile(r"\s*[^\s()<>]+@[^\s()<>]+\s*\(\s*(?P<name>[^()]+(?:\([^()]*\)[^()]*)*)\)\s*")
_NAME_AND_MAIL = re.compile(r"\s*\"?(?P<name>[^<>\"]+?)\"?\s*[<(]\s*(?:mailto:)?[^\s<>()]+@[^\s<>()]+\s*[>)]\s*")
_PERIOD = {"hourly": 3_600, "daily": 86_400, "weekly": 604_800, "monthly": 2_592_000, "yearly": 31_536_000}


class RawLink(NamedTuple):
    rel: str
    href: str
    type: str | None = None
    length: str | None = None


class RawText(NamedTuple):
    """A piece of text and how it is written: `text`, `html`, or `guess` if the format does not say.

    `base` and `lang` are set if its own element has them.
    """

    value: str
    form: str = "guess"
    base: str | None = None
    lang: str | None = None

    @property
    def is_blank(self) -> bool:
        return not self.value or self.value.isspace()


NO_TEXT = RawText("")


class RawEntry:
    """One entry, or the channel itself, as written in the document."""

    __slots__ = (
        "authors",
        "base",
        "categories",
        "comments",
        "content",
        "dates",
        "description",
        "enclosures",
        "extra",
        "id",
        "lang",
        "links",
        "media_description",
        "other_summary",
        "other_title",
        "reference",
        "summary",
        "title",
        "updates",
    )

    def __init__(self, base: str | None = None, lang: str | None = None) -> None:
        self.base = base
        self.lang = lang
        self.id: str = ""
        self.title: RawText = NO_TEXT
        self.other_title: str = ""
        self.links: list[RawLink] = []
        self.content: RawText = NO_TEXT
        self.summary: RawText = NO_TEXT
        self.other_summary: RawText = NO_TEXT
        self.description: RawText = NO_TEXT
        self.media_description: RawText = NO_TEXT
        # (rank, text): the lowest rank that can be read and believed wins.
        self.dates: list[tuple[int, str]] = []
        self.updates: list[tuple[int, str]] = []
        self.authors: list[tuple[int, str]] = []
        self.categories: list[str] = []
        self.enclosures: list[RawLink] = []
        self.comments: str | None = None
        self.reference: tuple[str, str] | None = None
        self.extra: dict[str, Any] = {}


class RawFeed(NamedTuple):
    """A whole document: what it says about itself, and its entries."""

    format: str
    channel: RawEntry
    entries: list[RawEntry]
    truncated: bool = False


class _Inherited(NamedTuple):
    """What entries inherit from their feed: where relative links start, its own xml:base, author and language."""

    base: str | None
    feed_base: str | None
    author: str | None
    language: str | None
    received_at: datetime


def page_from(feed: RawFeed, *, url: str, received_at: datetime) -> Page:
    """Returns the posts and facts of a document that came from `url`."""
    channel = feed.channel
    facts = _facts(feed, url)
    # In Atom and JSON Feed an entry without an author has the feed's; in RSS it has none.
    author = None if feed.format.startswith("rss") else _author(channel)
    inherited = _Inherited(_base_of(channel, url, facts.link), channel.base, author, facts.language, received_at)
    return Page(_distinct([_post(entry, inherited) for entry in feed.entries]), None, facts)


def _facts(feed: RawFeed, url: str) -> Facts:
    channel = feed.channel
    base = _base_of(channel, url)
    links = {link.rel: link.href for link in reversed(channel.links)}
    return Facts(
        format=feed.format,
        title=_title(channel.title),
        link=_address(channel, base),
        language=_language(channel.lang),
        ttl_seconds=_ttl(channel.extra),
        hub=safe_link(links.get("hub"), base),
        self_url=safe_link(links.get("self"), base),
        truncated=feed.truncated,
    )


def _base_of(channel: RawEntry, url: str, site: str | None = None) -> str | None:
    """Returns where relative links start: at the document's address, unless the document says otherwise.

    A document without an address says itself where it comes from. If another host serves it for the site, as a feed
    proxy does, links are relative to the site.
    """
    if not url.startswith(("http://", "https://")):
        itself = next((link.href for link in channel.links if link.rel == "self"), None)
        url = safe_link(itself, None) or site or ""
    if channel.base:
        return joined(url, channel.base)
    return site if site and _host(site) != _host(url) else url or None


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].lower().removeprefix("www.")


def _post(entry: RawEntry, inherited: _Inherited) -> Post:
    base = inherited.base if entry.base == inherited.feed_base else joined(inherited.base, entry.base)
    url = _address(entry, base)
    title = _title(entry.title) or _title(RawText(entry.other_title))
    body = _body(entry)
    # Content without a base of its own was written for the entry's page.
    content = _content(body, base if base != inherited.base or inherited.feed_base or not url else url)
    created_at = _first_true(entry.dates, inherited.received_at)
    updated_at = _first_true(entry.updates, inherited.received_at)
    first = created_at or updated_at
    hash = text_hash(title, content)
    return Post(
        source_post_id=_id(entry, url, hash),
        url=url,
        title=title,
        content=content,
        author=_author(entry) or inherited.author,
        created_at=first or inherited.received_at,
        text_hash=hash,
        dated=first is not None,
        updated_at=updated_at,
        lang=_own_language(entry, body, inherited.language),
        num_comments=_count(entry.comments),
        reference=_reference(entry),
        enclosures=_enclosures(entry, base),
        extra=_extra(entry, base),
    )


def _distinct(posts: list[Post]) -> list[Post]:
    """Makes identities unique: entries that share an id are told apart by address, then by title."""
    sharing: dict[str, list[Post]] = {}
    for post in posts:
        sharing.setdefault(post.source_post_id, []).append(post)
    if len(sharing) == len(posts):
        return posts
    marks = {id: _distinction(group) for id, group in sharing.items() if len(group) > 1}
    kept: dict[str, Post] = {}
    for post in posts:
        tell_apart = marks.get(post.source_post_id)
        if tell_apart:
            post = post._replace(source_post_id=f"{post.source_post_id[: MAX_ID - 40]}#{_digest(tell_apart(post))}")
        other = kept.get(post.source_post_id)
        # The same entry twice: the newer version counts.
        if other is None or (post.updated_at or post.created_at) > (other.updated_at or other.created_at):
            kept[post.source_post_id] = post
    return list(kept.values())


def _distinction(group: list[Post]) -> Callable[[Post], str] | None:
    """Returns what tells posts with the same id apart; None if nothing does."""
    links = {_link_key(post) for post in group}
    if len(links) == len(group):
        return _link_key
    both = {_link_and_title_key(post) for post in group}
    if len(both) == 1:
        return None
    return _link_key if len(both) == len(links) else _link_and_title_key


def _link_key(post: Post) -> str:
    return identity(post.url) if post.url else ""


def _link_and_title_key(post: Post) -> str:
    return f"{_link_key(post)}\0{post.title}"


def _id(entry: RawEntry, url: str | None, hash: bytes) -> str:
    id = printable(entry.id).strip() or (without_tracking(url) if url else f"hash:{hash.hex()}")
    return id if len(id) <= MAX_ID else f"{id[:200]}#{_digest(id)}"


def _digest(mark: str) -> str:
    return blake2b(mark.encode("utf-8", "replace"), digest_size=12).hexdigest()


def _address(entry: RawEntry, base: str | None) -> str | None:
    """Returns the page of an entry: its original address, else its alternate (HTML first), else its permanent id."""
    best: str | None = None
    best_rank = 99
    for link in entry.links:
        rank = _LINK_RANK.get(link.rel, 99)
        if link.rel == "alternate" and link.type and "html" not in link.type:
            rank += 1
        if rank < best_rank:
            href = safe_link(link.href, base)
            if href:
                best, best_rank = href, rank
    if best is None and entry.id.startswith(("http://", "https://")):
        return safe_link(entry.id, None)
    return best


_LINK_RANK = {"original": 0, "alternate": 1, "guid": 3, "via": 4, "related": 5, "content": 6}


def _title(raw: RawText) -> str:
    text = undo_double_encoding(raw.value)
    if raw.form == "text" or (raw.form == "guess" and "<" in text and not looks_like_html(text)):
        text = escape(text, quote=False).replace("&amp;", "&")
    return plain(text)[:MAX_TITLE].rstrip()


def _body(entry: RawEntry) -> RawText:
    """Returns the fullest text that an entry has."""
    for raw in (entry.content, entry.description, entry.summary, entry.other_summary, entry.media_description):
        if not raw.is_blank:
            return raw
    return NO_TEXT


def _content(raw: RawText, base: str | None) -> str:
    text = undo_double_encoding(raw.value).strip()
    if raw.form == "text" or (raw.form == "guess" and not looks_like_html(text)):
        return text_as_html(text)
    return clean_html(text, joined(base, raw.base) if raw.base else base)


def _first_true(dates: list[tuple[int, str]], received_at: datetime) -> datetime | None:
    """Returns the best date that can be read and can be true."""
    for _, text in sorted(dates) if len(dates) > 1 else dates:
        moment = plausible(parse_date(text), received_at)
        if moment:
            return moment
    return None


def _author(entry: RawEntry) -> str | None:
    if not entry.authors:
        return None
    best = min(rank for rank, _ in entry.authors)
    names = dict.fromkeys(_name(text) for rank, text in entry.authors if rank == best)
    return ", ".join(name for name in names if name)[:MAX_NAME] or None


def _name(text: str) -> str:
    """Returns the name in "mail (Name)" or "Name <mail>"; otherwise the whole text."""
    text = text[:MAX_NAME]
    if "@" in text:
        found = _MAIL_AND_NAME.fullmatch(text) or _NAME_AND_MAIL.fullmatch(text)
        text = found["name"] if found else text
    return plain(undo_double_encoding(text))


def _language(text: str | None) -> str | None:
    text = (text or "").strip().replace("_", "-")
    return text if _LANGUAGE.fullmatch(text) else None


def _own_language(entry: RawEntry, body: RawText, inherited: str | None) -> str | None:
    """Returns the language of the text itself, else of the entry, else of the feed. `xml:lang=""` means no language."""
    of_text = body.lang if not body.is_blank else entry.title.lang
    if of_text is not None:
        return _language(of_text)
    return _language(entry.lang) if entry.lang is not None else inherited


def _count(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _reference(entry: RawEntry) -> Reference | None:
    if not entry.reference:
        return None
    kind, other = entry.reference
    return Reference(kind, printable(other).strip()[:MAX_ID])


def _enclosures(entry: RawEntry, base: str | None) -> tuple[Enclosure, ...]:
    if not entry.enclosures:
        return ()
    found: dict[str, Enclosure] = {}
    for link in entry.enclosures[: MAX_ENCLOSURES * 4]:
        href = safe_link(link.href, base)
        if href and href not in found:
            found[href] = Enclosure(href, _type(link.type), _length(link.length))
    return tuple(found.values())[:MAX_ENCLOSURES]


def _type(text: str | None) -> str | None:
    text = printable(text or "").strip()
    return text[:100] or None


def _length(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


_ADDRESS_FACTS = frozenset({"image", "comments_url", "comments_feed"})
_TEXT_FACTS = frozenset({"duration", "episode", "explicit", "rights", "season"})


def _extra(entry: RawEntry, base: str | None) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if not entry.summary.is_blank and (not entry.content.is_blank or not entry.description.is_blank):
        # The author's own short version of the full text.
        extra["summary"] = _title(entry.summary)
    if entry.categories:
        categories = entry.categories[: MAX_CATEGORIES * 4]
        names = dict.fromkeys(plain(undo_double_encoding(text))[:200] for text in categories)
        extra["categories"] = [name for name in names if name][:MAX_CATEGORIES]
    for name, value in entry.extra.items():
        if name == "source":
            extra[name] = {"title": plain(value["title"])[:MAX_TITLE], "url": safe_link(value["url"], base)}
        elif name == "place":
            extra[name] = value
        elif name == "latitude":
            place = point_of(value, entry.extra.get("longitude", ""))
            if place:
                extra.setdefault("place", place)
        elif name in _ADDRESS_FACTS:
            extra[name] = safe_link(value, base)
        elif name in _TEXT_FACTS:
            extra[name] = plain(value)[:MAX_FACT]
    return {name: value for name, value in extra.items() if value} if extra else extra


def _ttl(extra: dict[str, Any]) -> int | None:
    minutes = _count(extra.get("ttl"))
    if minutes:
        return minutes * 60
    period = _PERIOD.get(str(extra.get("update_period", "")).strip().lower())
    if not period:
        return None
    return period // max(1, _count(extra.get("update_frequency")) or 1)
