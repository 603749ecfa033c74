"""A thread's page: its posts and its next page, where a profile says that they stand."""

from __future__ import annotations

import re
from hashlib import blake2b
from html import unescape
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from headwater.model import Facts, Image, Item, Page, Post, Reference, Request
from headwater.sources.forums.dates import moment_of
from headwater.sources.forums.page import MAX_TITLE, HtmlPage, language_of, link, title_of, zone_of
from headwater.sources.forums.places import every, id_in, node, value, values
from headwater.sources.forums.profile import Profile
from headwater.text import clean_html, plain, text_hash

MAX_POSTS = 2_000
MAX_NAME = 200
MAX_IMAGES = 50
MAX_NUMBER = 100
NEXT = "link[rel='next']@href | a[rel~='next']@href | a.next@href | li.next a@href | a.nxt@href"
_EARLIER = "link[rel='prev'], a[rel~='prev'], a.pageNav-jump--prev, a.pagination_previous, li.previous a, a.prev, a.pgb"
_REPLY = (
    "pid={number} | msg{number} | #p{number} | post-{number} | post={number} | ?p={number} | &p={number} | {number}"
)
_SMILIES = "img.smilie, img.smilies, img.smiley, img.emoji, img[smilieid], img.mceSmilie, img[data-emoticon]"
# Where pages keep the address of a picture that a script loads when it comes into view.
_LATER = ("data-src", "data-original", "data-lazy-src", "data-url", "zoomfile", "file")
_NEVER_SAID = "script, style, noscript, form, button, select, textarea, iframe"
_ANCHOR = re.compile(r"[\w.:-]{1,100}")
_IMG = re.compile(r"<img ([^>]*)>")
_ATTRIBUTE = re.compile(r'(src|alt)="([^"]*)"')


class Thread(NamedTuple):
    """What the posts of a page have in common."""

    page: HtmlPage
    profile: Profile
    id: str
    title: str
    opens: bool
    lang: str | None
    zone: int


class Told(NamedTuple):
    """What a page tells of one post: its text is clean, everything else as it was written."""

    number: str
    anchor: str
    author: str
    dates: tuple[str, ...]
    answers: str
    content: str


def read_thread(page: HtmlPage, profile: Profile, item: Item, zone: int | None) -> Page:
    """The posts of a page of a thread. `zone` is what is known about its times from elsewhere, in minutes."""
    found = every(page.root, profile.post)
    thread = thread_on(page, profile, item, zone)
    following = next_page(page, profile)
    facts = facts_of(thread, truncated=len(found) > MAX_POSTS)
    return Page(_posts(thread, found[:MAX_POSTS]), following, facts)


def holds_posts(page: HtmlPage, profile: Profile) -> bool:
    return bool(profile.post) and page.root.css_first(profile.post) is not None


def thread_on(page: HtmlPage, profile: Profile, item: Item, zone: int | None) -> Thread:
    return Thread(
        page,
        profile,
        id=item.id,
        title=plain(value(page.root, profile.title))[:MAX_TITLE].rstrip() or item.title or title_of(page),
        opens=page.root.css_first(_EARLIER) is None,
        lang=language_of(page),
        zone=next(known for known in (zone, zone_of(page), profile.zone) if known is not None),
    )


def facts_of(thread: Thread, *, truncated: bool) -> Facts:
    return Facts(thread.profile.name, thread.title, thread.page.url, thread.lang, truncated=truncated)


def next_page(page: HtmlPage, profile: Profile) -> Request | None:
    for line in (profile.next_page, NEXT):
        for href in values(page.root, line):
            address = link(page, href)
            if address and address != page.url.partition("#")[0]:
                return Request(address)
    return None


def _posts(thread: Thread, found: list[LexborNode]) -> list[Post]:
    """Each post once, in the order of the page.

    They are read from the last to the first, and each is taken out of the tree when it has been read: posts may stand
    within the post they answer, and are no part of what it says.
    """
    read: list[Post] = []
    for position in range(len(found), 0, -1):
        told = _told(thread, found[position - 1])
        post = post_of(thread, told, opens=position == 1) if told else None
        found[position - 1].decompose()
        if post:
            read.append(post)
    return list({post.source_post_id: post for post in reversed(read)}.values())


def _told(thread: Thread, post: LexborNode) -> Told | None:
    profile = thread.profile
    body = node(post, profile.content)
    if body is None:
        return None
    return Told(
        number=_number(post, profile),
        anchor=post.attributes.get("id") or post.attributes.get("data-content") or "",
        author=value(post, profile.author),
        dates=tuple(values(post, profile.date)),
        answers=id_in(value(post, profile.reply_to), _REPLY),
        content=content_of(body, profile.dropped, thread.page.base),
    )


def post_of(thread: Thread, told: Told, *, opens: bool) -> Post | None:
    """A post by what its page tells of it; None where it says nothing. `opens`: it is the first of its page."""
    author = plain(told.author)[:MAX_NAME].rstrip() or None
    if not told.content and not author:
        return None
    moments = (moment_of(text, thread.page.received_at, thread.zone) for text in told.dates)
    created_at = next((moment for moment in moments if moment), None)
    first = opens and thread.opens
    title = thread.title if first or not thread.title else f"Re: {thread.title}"
    address = thread.page.url.partition("#")[0]
    return Post(
        source_post_id=f"{thread.id}/{told.number or ('opening' if first else _mark(author, told.content))}",
        url=f"{address}#{told.anchor}" if _ANCHOR.fullmatch(told.anchor) else address,
        title=title,
        content=told.content,
        author=author,
        created_at=created_at or thread.page.received_at,
        text_hash=text_hash(title, told.content),
        dated=created_at is not None,
        lang=thread.lang,
        reference=_reference(thread, told),
        extra={"thread": thread.id},
        images=images_in(told.content),
    )


def _reference(thread: Thread, told: Told) -> Reference | None:
    return Reference("reply", f"{thread.id}/{told.answers}") if told.answers not in ("", told.number) else None


def _number(post: LexborNode, profile: Profile) -> str:
    for said in values(post, profile.post_id):
        found = id_in(said, profile.post_id_pattern)
        if found:
            return found[:MAX_NUMBER]
    return ""


def _mark(author: str | None, content: str) -> str:
    """What stands for the id of a post that has none: who said what."""
    return "~" + blake2b(f"{author}\0{content}".encode("utf-8", "replace"), digest_size=10).hexdigest()


def content_of(body: LexborNode, dropped: str, base: str) -> str:
    """What a post says, as clean HTML, without what its page added to it."""
    for part in reversed(every(body, f"{_NEVER_SAID}, {dropped}" if dropped else _NEVER_SAID)):
        if part != body:
            part.decompose()
    for smiley in every(body, _SMILIES):
        smiley.replace_with(smiley.attributes.get("alt") or "")
    for picture in body.css("img"):
        later = next((picture.attributes[name] for name in _LATER if picture.attributes.get(name)), None)
        if later:
            picture.attrs["src"] = later
    return clean_html(body.inner_html or "", base).strip()


def images_in(content: str) -> tuple[Image, ...]:
    """The pictures of clean HTML, each once."""
    found: dict[str, Image] = {}
    for tag in _IMG.finditer(content):
        attributes = dict(_ATTRIBUTE.findall(tag[1]))
        address = unescape(attributes.get("src", ""))
        if address.startswith(("http://", "https://")) and address not in found:
            found[address] = Image(address, plain(attributes.get("alt", ""))[:MAX_TITLE])
        if len(found) == MAX_IMAGES:
            break
    return tuple(found.values())
