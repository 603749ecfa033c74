"""A thread's page: its posts and its next page, where a profile says they are."""

from __future__ import annotations

import re
from hashlib import blake2b
from html import unescape
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from headwater.model import Facts, Image, Item, Page, Post, Reference, Request
from headwater.sources.forums.dates import parse_forum_date
from headwater.sources.forums.page import MAX_TITLE, ForumPage, language_of, link, title_of, zone_of
from headwater.sources.forums.profile import Profile, Selectors
from headwater.sources.forums.selectors import find, find_all, id_in, value, values
from headwater.text import clean_html, plain, text_hash

MAX_POSTS = 2_000
MAX_NAME = 200
MAX_IMAGES = 50
MAX_ID = 100
NEXT = "link[rel='next']@href | a[rel~='next']@href | a.next@href | li.next a@href | a.nxt@href"
_PREVIOUS = (
    "link[rel='prev'], a[rel~='prev'], a.pageNav-jump--prev, a.pagination_previous, li.previous a, a.prev, a.pgb"
)
_REPLY = (
    "pid={number} | msg{number} | #p{number} | post-{number} | post={number} | ?p={number} | &p={number} | {number}"
)
_SMILIES = "img.smilie, img.smilies, img.smiley, img.emoji, img[smilieid], img.mceSmilie, img[data-emoticon]"
# Where pages keep the address of an image that a script loads when it scrolls into view.
_LAZY_SOURCES = ("data-src", "data-original", "data-lazy-src", "data-url", "zoomfile", "file")
_NEVER_CONTENT = "script, style, noscript, form, button, select, textarea, iframe"
_ANCHOR = re.compile(r"[\w.:-]{1,100}")
_IMG = re.compile(r"<img ([^>]*)>")
_ATTRIBUTE = re.compile(r'(src|alt)="([^"]*)"')


class Thread(NamedTuple):
    """What the posts of one page have in common. `is_first_page`: the thread starts on this page."""

    page: ForumPage
    profile: Profile
    id: str
    title: str
    is_first_page: bool
    lang: str | None
    zone: int


class RawPost(NamedTuple):
    """A post as the page shows it. The content is clean HTML; everything else is as written."""

    id: str
    anchor: str
    author: str
    dates: tuple[str, ...]
    reply_to: str
    content: str


def read_thread(page: ForumPage, profile: Profile, item: Item, zone: int | None) -> Page:
    """The posts on a page of a thread. `zone` is the offset of its times in minutes, if the settings give one."""
    found = find_all(page.root, profile.selectors.post)
    thread = thread_on(page, profile, item, zone)
    following = next_page(page, profile.selectors)
    facts = facts_of(thread, truncated=len(found) > MAX_POSTS)
    return Page(_posts(thread, found[:MAX_POSTS]), following, facts)


def has_posts(page: ForumPage, profile: Profile) -> bool:
    return bool(profile.selectors.post) and page.root.css_first(profile.selectors.post) is not None


def thread_on(page: ForumPage, profile: Profile, item: Item, zone: int | None) -> Thread:
    title = plain(value(page.root, profile.selectors.title))[:MAX_TITLE].rstrip()
    return Thread(
        page,
        profile,
        id=item.id,
        title=title or item.title or title_of(page),
        is_first_page=page.root.css_first(_PREVIOUS) is None,
        lang=language_of(page),
        zone=next(known for known in (zone, zone_of(page), profile.zone) if known is not None),
    )


def facts_of(thread: Thread, *, truncated: bool) -> Facts:
    return Facts(thread.profile.name, thread.title, thread.page.url, thread.lang, truncated=truncated)


def next_page(page: ForumPage, selectors: Selectors) -> Request | None:
    """The request for the next page of a list or thread."""
    for line in (selectors.next_page, NEXT):
        for href in values(page.root, line):
            address = link(page, href)
            if address and address != page.url.partition("#")[0]:
                return Request(address)
    return None


def _posts(thread: Thread, found: list[LexborNode]) -> list[Post]:
    """Each post once, in page order.

    They are read from the last to the first, and each is removed from the tree once it is read: an answer may be nested
    inside the post it answers, and is not part of it.
    """
    posts: list[Post] = []
    for position in range(len(found), 0, -1):
        raw = _raw_post(thread, found[position - 1])
        post = post_of(thread, raw, is_first=position == 1) if raw else None
        found[position - 1].decompose()
        if post:
            posts.append(post)
    return list({post.source_post_id: post for post in reversed(posts)}.values())


def _raw_post(thread: Thread, element: LexborNode) -> RawPost | None:
    selectors = thread.profile.selectors
    body = find(element, selectors.content)
    if body is None:
        return None
    return RawPost(
        id=_post_id(element, selectors),
        anchor=element.attributes.get("id") or element.attributes.get("data-content") or "",
        author=value(element, selectors.author),
        dates=tuple(values(element, selectors.date)),
        reply_to=id_in(value(element, selectors.reply_to), _REPLY),
        content=content_of(body, selectors.dropped, thread.page.base),
    )


def post_of(thread: Thread, raw: RawPost, *, is_first: bool) -> Post | None:
    """The post, or None if it says nothing. `is_first`: it is the first one on its page."""
    author = plain(raw.author)[:MAX_NAME].rstrip() or None
    if not raw.content and not author:
        return None
    moments = (parse_forum_date(text, thread.page.received_at, thread.zone) for text in raw.dates)
    created_at = next((moment for moment in moments if moment), None)
    is_opening = is_first and thread.is_first_page
    title = thread.title if is_opening or not thread.title else f"Re: {thread.title}"
    address = thread.page.url.partition("#")[0]
    return Post(
        source_post_id=f"{thread.id}/{raw.id or ('opening' if is_opening else _digest(author, raw.content))}",
        url=f"{address}#{raw.anchor}" if _ANCHOR.fullmatch(raw.anchor) else address,
        title=title,
        content=raw.content,
        author=author,
        created_at=created_at or thread.page.received_at,
        text_hash=text_hash(title, raw.content),
        dated=created_at is not None,
        lang=thread.lang,
        reference=_reference(thread, raw),
        extra={"thread": thread.id},
        images=images_in(raw.content),
    )


def _reference(thread: Thread, raw: RawPost) -> Reference | None:
    return Reference("reply", f"{thread.id}/{raw.reply_to}") if raw.reply_to not in ("", raw.id) else None


def _post_id(element: LexborNode, selectors: Selectors) -> str:
    for text in values(element, selectors.post_id):
        found = id_in(text, selectors.post_id_pattern)
        if found:
            return found[:MAX_ID]
    return ""


def _digest(author: str | None, content: str) -> str:
    """Stands in for the id of a post that has none: who said what."""
    return "~" + blake2b(f"{author}\0{content}".encode("utf-8", "replace"), digest_size=10).hexdigest()


def content_of(body: LexborNode, dropped: str, base: str) -> str:
    """A post's text as clean HTML, without what its page added to it."""
    for part in reversed(find_all(body, f"{_NEVER_CONTENT}, {dropped}" if dropped else _NEVER_CONTENT)):
        if part != body:
            part.decompose()
    for smiley in find_all(body, _SMILIES):
        smiley.replace_with(smiley.attributes.get("alt") or "")
    for image in body.css("img"):
        source = next((image.attributes[name] for name in _LAZY_SOURCES if image.attributes.get(name)), None)
        if source:
            image.attrs["src"] = source
    return clean_html(body.inner_html or "", base).strip()


def images_in(content: str) -> tuple[Image, ...]:
    """The images in clean HTML, each once."""
    found: dict[str, Image] = {}
    for tag in _IMG.finditer(content):
        attributes = dict(_ATTRIBUTE.findall(tag[1]))
        address = unescape(attributes.get("src", ""))
        if address.startswith(("http://", "https://")) and address not in found:
            found[address] = Image(address, plain(attributes.get("alt", ""))[:MAX_TITLE])
        if len(found) == MAX_IMAGES:
            break
    return tuple(found.values())
