"""The rules that make posts of drafts: identity, time, address, words. The same for every format and every reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from html import escape
from typing import Any, NamedTuple

from headwater.model import Enclosure, Facts, Page, Post, Reference
from headwater.sources.feeds.dates import parse_date
from headwater.sources.feeds.draft import NO_WORDS, Draft, FeedDraft, Words
from headwater.sources.feeds.encoding import unmixed
from headwater.sources.feeds.markup import joined
from headwater.sources.feeds.places import point_of
from headwater.text import clean_html, looks_like_html, plain, printable, text_as_html, text_hash
from headwater.urls import identity, safe_link, without_tracking

MAX_ID = 1_000
MAX_TITLE = 1_000
MAX_ENCLOSURES = 50
MAX_CATEGORIES = 50
MAX_FACT = 2_000
MAX_NAME = 500
# Nothing was published on the Web before it existed; zero, blank and default dates lie before it.
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
TOO_FAR_AHEAD = timedelta(days=2)

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,3}")
_MAIL_AND_NAME = re.compile(r"\s*[^\s()<>]+@[^\s()<>]+\s*\(\s*(?P<name>[^()]+(?:\([^()]*\)[^()]*)*)\)\s*")
_NAME_AND_MAIL = re.compile(r"\s*\"?(?P<name>[^<>\"]+?)\"?\s*[<(]\s*(?:mailto:)?[^\s<>()]+@[^\s<>()]+\s*[>)]\s*")
_PERIOD = {"hourly": 3_600, "daily": 86_400, "weekly": 604_800, "monthly": 2_592_000, "yearly": 31_536_000}


class _Around(NamedTuple):
    """What entries have from their feed: where relative links start, its own xml:base, author and language."""

    base: str | None
    feed_base: str | None
    author: str | None
    language: str | None
    received_at: datetime


def page_of(feed: FeedDraft, *, url: str, received_at: datetime) -> Page:
    """The posts and facts of a document that was received from `url`."""
    about = feed.about
    facts = _facts(feed, url)
    # Atom and JSON Feed say that an entry without an author has the feed's; RSS does not.
    author = None if feed.format.startswith("rss") else _author(about)
    around = _Around(_base_of(about, url, facts.link), about.base, author, facts.language, received_at)
    return Page(_distinct([_post(draft, around) for draft in feed.entries]), None, facts)


def _facts(feed: FeedDraft, url: str) -> Facts:
    about = feed.about
    base = _base_of(about, url)
    links = {link.rel: link.href for link in reversed(about.links)}
    return Facts(
        format=feed.format,
        title=_title(about.title),
        link=_address(about, base),
        language=_language(about.lang),
        ttl_seconds=_ttl(about.extra),
        hub=safe_link(links.get("hub"), base),
        self_url=safe_link(links.get("self"), base),
        truncated=feed.truncated,
    )


def _base_of(about: Draft, url: str, site: str | None = None) -> str | None:
    """Where relative links start from: the document's address, unless it says better.

    A document without an address says itself where it is from. One that another host serves for the site (a feed proxy)
    was written for the site.
    """
    if not url.startswith(("http://", "https://")):
        itself = next((link.href for link in about.links if link.rel == "self"), None)
        url = safe_link(itself, None) or site or ""
    if about.base:
        return joined(url, about.base)
    return site if site and _host(site) != _host(url) else url or None


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].lower().removeprefix("www.")


def _post(draft: Draft, around: _Around) -> Post:
    base = around.base if draft.base == around.feed_base else joined(around.base, draft.base)
    url = _address(draft, base)
    title = _title(draft.title) or _title(Words(draft.other_title))
    body = _body(draft)
    # Words without a base of their own were written for the entry's page.
    content = _content(body, base if base != around.base or around.feed_base or not url else url)
    created_at = _first_true(draft.dates, around.received_at)
    updated_at = _first_true(draft.updates, around.received_at)
    first = created_at or updated_at
    hash = text_hash(title, content)
    return Post(
        source_post_id=_id(draft, url, hash),
        url=url,
        title=title,
        content=content,
        author=_author(draft) or around.author,
        created_at=first or around.received_at,
        text_hash=hash,
        dated=first is not None,
        updated_at=updated_at,
        lang=_own_language(draft, body, around.language),
        num_comments=_count(draft.comments),
        reference=_reference(draft),
        enclosures=_enclosures(draft, base),
        extra=_extra(draft, base),
    )


def _distinct(posts: list[Post]) -> list[Post]:
    """No two posts with one identity: ids that different entries share are told apart by address, then by title."""
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
        # The same entry twice: the newer is what it says now.
        if other is None or (post.updated_at or post.created_at) > (other.updated_at or other.created_at):
            kept[post.source_post_id] = post
    return list(kept.values())


def _distinction(group: list[Post]) -> Callable[[Post], str] | None:
    """What tells the posts of one id apart; None if nothing does."""
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


def _id(draft: Draft, url: str | None, hash: bytes) -> str:
    id = printable(draft.id).strip() or (without_tracking(url) if url else f"hash:{hash.hex()}")
    return id if len(id) <= MAX_ID else f"{id[:200]}#{_digest(id)}"


def _digest(mark: str) -> str:
    return blake2b(mark.encode("utf-8", "replace"), digest_size=12).hexdigest()


def _address(draft: Draft, base: str | None) -> str | None:
    """The page of an entry: its original address, else its alternate, the HTML one first, else its permanent id."""
    best: str | None = None
    best_rank = 99
    for link in draft.links:
        rank = _LINK_RANK.get(link.rel, 99)
        if link.rel == "alternate" and link.type and "html" not in link.type:
            rank += 1
        if rank < best_rank:
            href = safe_link(link.href, base)
            if href:
                best, best_rank = href, rank
    if best is None and draft.id.startswith(("http://", "https://")):
        return safe_link(draft.id, None)
    return best


_LINK_RANK = {"original": 0, "alternate": 1, "guid": 3, "via": 4, "related": 5, "content": 6}


def _title(words: Words) -> str:
    text = unmixed(words.value)
    if words.form == "text" or (words.form == "guess" and "<" in text and not looks_like_html(text)):
        text = escape(text, quote=False).replace("&amp;", "&")
    return plain(text)[:MAX_TITLE].rstrip()


def _body(draft: Draft) -> Words:
    """The fullest of the places where an entry may say something."""
    for words in (draft.content, draft.description, draft.summary, draft.other_summary, draft.media_description):
        if words.says_something:
            return words
    return NO_WORDS


def _content(words: Words, base: str | None) -> str:
    text = unmixed(words.value).strip()
    if words.form == "text" or (words.form == "guess" and not looks_like_html(text)):
        return text_as_html(text)
    return clean_html(text, joined(base, words.base) if words.base else base)


def _first_true(dates: list[tuple[int, str]], received_at: datetime) -> datetime | None:
    """The best date that can be read and that can be true."""
    for _, text in sorted(dates) if len(dates) > 1 else dates:
        moment = parse_date(text)
        if moment and EARLIEST <= moment <= received_at + TOO_FAR_AHEAD:
            return moment
    return None


def _author(draft: Draft) -> str | None:
    if not draft.authors:
        return None
    best = min(rank for rank, _ in draft.authors)
    names = dict.fromkeys(_name(text) for rank, text in draft.authors if rank == best)
    return ", ".join(name for name in names if name)[:MAX_NAME] or None


def _name(text: str) -> str:
    """The name in "mail (Name)" or "Name <mail>"; otherwise all of it."""
    text = text[:MAX_NAME]
    if "@" in text:
        found = _MAIL_AND_NAME.fullmatch(text) or _NAME_AND_MAIL.fullmatch(text)
        text = found["name"] if found else text
    return plain(unmixed(text))


def _language(text: str | None) -> str | None:
    text = (text or "").strip().replace("_", "-")
    return text if _LANGUAGE.fullmatch(text) else None


def _own_language(draft: Draft, body: Words, inherited: str | None) -> str | None:
    """What is said of the words themselves, else of the entry, else of the feed; `xml:lang=""` says that it is none."""
    of_words = body.lang if body.says_something else draft.title.lang
    if of_words is not None:
        return _language(of_words)
    return _language(draft.lang) if draft.lang is not None else inherited


def _count(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _reference(draft: Draft) -> Reference | None:
    if not draft.reference:
        return None
    kind, other = draft.reference
    return Reference(kind, printable(other).strip()[:MAX_ID])


def _enclosures(draft: Draft, base: str | None) -> tuple[Enclosure, ...]:
    if not draft.enclosures:
        return ()
    found: dict[str, Enclosure] = {}
    for link in draft.enclosures[: MAX_ENCLOSURES * 4]:
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


def _extra(draft: Draft, base: str | None) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if draft.summary.says_something and (draft.content.says_something or draft.description.says_something):
        # Its author's own short version, beside the full one.
        extra["summary"] = _title(draft.summary)
    if draft.categories:
        names = dict.fromkeys(plain(unmixed(text))[:200] for text in draft.categories[: MAX_CATEGORIES * 4])
        extra["categories"] = [name for name in names if name][:MAX_CATEGORIES]
    for name, value in draft.extra.items():
        if name == "source":
            extra[name] = {"title": plain(value["title"])[:MAX_TITLE], "url": safe_link(value["url"], base)}
        elif name == "place":
            extra[name] = value
        elif name == "latitude":
            place = point_of(value, draft.extra.get("longitude", ""))
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
