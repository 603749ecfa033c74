"""The pages of a forum: a board's page to threads, a thread's page to posts, and where each continues.

A profile says where they are. Without one, the threads of a list are guessed: the largest group of links that look
alike. `forums/guess.py` guesses posts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from hashlib import blake2b
from html import unescape
from typing import NamedTuple
from urllib.parse import urlsplit

from selectolax.lexbor import LexborNode

from headwater.errors import BadAddress, Blocked, NotAFeed, ReadFailed
from headwater.model import Facts, Image, Item, Page, Post, Reference, Request, Response
from headwater.sources.dates import named_day, parse_forum_date
from headwater.sources.feeds.json import parsed_json
from headwater.sources.forums.declared import Declared, declared_posts, first_words
from headwater.sources.forums.profile import GUESSED, Profile, Selectors, find, find_all, id_in, value, values
from headwater.sources.json_values import Json
from headwater.sources.web_page import ForumPage, has_login_form, is_bot_check
from headwater.text import clean_html, plain, text_hash
from headwater.urls import identity, safe_link, same_server

MAX_TITLE = 1_000
MAX_THREADS = 2_000
MAX_BOARDS = 12  # named in a message
MAX_MARK = 200
MAX_LINKS = 20_000
MAX_POSTS = 2_000
MAX_NAME = 200
MAX_IMAGES = 50
MAX_ID = 100
GUESSED_NOTE = (
    "The forum's software is not known, so its threads are guessed from the page, and new replies to a thread that was"
    " read are not noticed. Selectors in the source's settings make it exact."
)
_COUNT = re.compile(r"\d[\d.,]*(?:\s?[km万]\b)?", re.IGNORECASE)
# Lists link to where a reader left a thread; we start at its beginning.
_WITHIN = re.compile(r"/(?:unread|latest|page-\d+)/?$")
_DIGITS = re.compile(r"\d{2,20}")
_FEWEST_LINKS = 4
_SHORTEST_TITLES = 12  # letters on average; the words of menus are shorter
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
# Where any software may keep the date of a post, if it follows schema.org.
_DATES = """\
  [itemprop='dateCreated']@datetime | [itemprop='dateCreated']@content | [itemprop='datePublished']@datetime | \
  [itemprop='datePublished']@content | time@datetime"""
_LINE = 80  # letters
OTHER_DATES = re.compile(
    r"join|member|regist|since|birth|last (?:active|seen|visit|post|edit)|edited|modified|注册|最后|编辑", re.IGNORECASE
)
_ANCHOR = re.compile(r"[\w.:-]{1,100}")
_IMG = re.compile(r"<img ([^>]*)>")
_ATTRIBUTE = re.compile(r'(src|alt)="([^"]*)"')
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,3}")
_ZONE = re.compile(
    r"(?:all times are|time zone|timezone|时区)[^<>]{0,20}?(?:gmt|utc)|\bgmt\s?(?=[+-]\d)", re.IGNORECASE
)
_OFFSET = re.compile(r"\s*([+-−])\s*(\d{1,2})(?::?(\d\d)|\.(\d))?")
# Parameters that say who reads a page, or how they got there, but nothing about what is on it.
_SESSION = re.compile(r"(?<=[?&])(?:sid|s|PHPSESSID|extra|highlight|fromuid|_fromuid)=[^&#]*(?:&|(?=#)|$)")


def read_list(page: ForumPage, profile: Profile, zone: int | None) -> Page:
    """Returns the threads of a board. Raises ReadFailed, naming the boards, if the page lists boards instead."""
    selectors = profile.selectors
    rows = find_all(page.root, selectors.thread)
    own_zone = next(known for known in (zone, zone_of(page), profile.zone) if known is not None)
    items: dict[str, Item] = {}
    for row in rows[:MAX_THREADS]:
        item = _item(page, selectors, row, own_zone)
        if item and (item.id not in items or items[item.id].pinned):
            items[item.id] = item
    if not items:
        _refuse_boards(page, selectors)
    facts = Facts(profile.name, title_of(page), page.url, language_of(page), truncated=len(rows) > MAX_THREADS)
    return Page([], next_page(page, selectors), facts, tuple(items.values()))


def _item(page: ForumPage, selectors: Selectors, row: LexborNode, zone: int) -> Item | None:
    anchor = find(row, selectors.thread_link)
    address = link(page, anchor.attributes.get("href")) if anchor is not None else None
    if anchor is None or not address:
        return None
    attributes = f"{row.attributes.get('id') or ''} {row.attributes.get('class') or ''}"
    id = id_in(address, selectors.thread_id) or id_in(attributes, selectors.thread_id) or identity(address)
    created = (parse_forum_date(text, page.received_at, zone) for text in values(row, selectors.created))
    return Item(
        id=id,
        url=_WITHIN.sub("/", address),
        title=plain(anchor.text(separator=" "))[:MAX_TITLE],
        mark=_mark(row, selectors),
        created_at=next((moment for moment in created if moment), None),
        pinned=bool(selectors.pinned) and row.css_matches(selectors.pinned),
    )


def _mark(row: LexborNode, selectors: Selectors) -> str:
    """Returns the number of replies and what the list shows of the last one; nothing that changes by itself."""
    shown = value(row, selectors.replies)
    replies = _COUNT.search(shown)
    last = without_session(value(row, selectors.last))
    mark = f"{replies[0] if replies else shown[:40]}/{last}"
    return mark[:MAX_MARK] if mark != "/" else ""


def _refuse_boards(page: ForumPage, selectors: Selectors) -> None:
    boards: dict[str, str] = {}
    for anchor in find_all(page.root, selectors.boards):
        address = link(page, anchor.attributes.get("href"))
        name = plain(anchor.text(separator=" "))[:100]
        if address and name and len(boards) < MAX_BOARDS:
            boards.setdefault(address, name)
    if boards:
        named = "; ".join(f"{name}: {address}" for address, name in boards.items())
        raise ReadFailed(f"This page lists the boards of a forum. Follow one of them instead. {named}")


class _ThreadLink(NamedTuple):
    address: str
    title: str


def guess_list(page: ForumPage) -> Page | None:
    """Returns what looks like a list of threads; None if nothing does."""
    groups: dict[tuple[str, ...], dict[str, _ThreadLink]] = {}
    for anchor in page.root.css("a[href]")[:MAX_LINKS]:
        address = link(page, anchor.attributes.get("href"))
        title = plain(anchor.text(separator=" "))[:MAX_TITLE]
        if address and title:
            groups.setdefault(_likeness(anchor, address), {}).setdefault(address, _ThreadLink(address, title))
    best = max(groups.values(), key=_letters, default={})
    if _letters(best) == 0:
        return None
    items = {id: Item(id, found.address, found.title) for id, found in _with_ids(list(best.values()))}
    is_cut = len(items) > MAX_THREADS
    facts = Facts(GUESSED.name, title_of(page), page.url, language_of(page), truncated=is_cut, note=GUESSED_NOTE)
    return Page([], next_page(page, GUESSED.selectors), facts, tuple(items.values())[:MAX_THREADS])


def _likeness(anchor: LexborNode, address: str) -> tuple[str, ...]:
    """Returns what the links of one list have in common: their surroundings, and the shape of their addresses."""
    parts = urlsplit(address)
    steps = [step for step in parts.path.split("/") if step]
    parent = anchor.parent
    around = f"{parent.tag}.{parent.attributes.get('class') or ''}" if parent is not None else ""
    first = "" if not steps or _DIGITS.search(steps[0]) else steps[0]
    return (anchor.attributes.get("class") or "", around, first, str(len(steps)), str(bool(_DIGITS.search(address))))


def _letters(group: dict[str, _ThreadLink]) -> int:
    """Returns how much text a group of links has; 0 if it cannot be a list of threads."""
    letters = sum(len(found.title) for found in group.values())
    return letters if len(group) >= _FEWEST_LINKS and letters >= _SHORTEST_TITLES * len(group) else 0


def _with_ids(links: list[_ThreadLink]) -> list[tuple[str, _ThreadLink]]:
    """Returns each link with its id: the number in its address, if every link has one of its own; else the address."""
    for which in (-1, 0):
        numbers = [found[which] if (found := _DIGITS.findall(urlsplit(one.address).path)) else "" for one in links]
        if all(numbers) and len(set(numbers)) == len(links):
            return list(zip(numbers, links, strict=True))
    return [(identity(one.address), one) for one in links]


class ThreadPage(NamedTuple):
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
    """Returns the posts on a page of a thread.

    `zone` is the offset of its times in minutes, if the settings give one.
    """
    found = find_all(page.root, profile.selectors.post)
    thread = thread_on(page, profile, item, zone)
    following = next_page(page, profile.selectors)
    facts = facts_of(thread, truncated=len(found) > MAX_POSTS)
    return Page(completed(page, _posts(thread, found[:MAX_POSTS]), thread.zone), following, facts)


def completed(page: ForumPage, posts: list[Post], zone: int) -> list[Post]:
    """Returns the posts, with the authors and dates that the page declares for those that show none."""
    if all(post.dated and post.author for post in posts):
        return posts
    declared = declared_posts(page)
    return [_completed(post, declared.get(first_words(post.content)), page.received_at, zone) for post in posts]


def _completed(post: Post, declared: Declared | None, received_at: datetime, zone: int) -> Post:
    if declared is None:
        return post
    if not post.author and declared.author:
        post = post._replace(author=plain(declared.author)[:MAX_NAME])
    moment = parse_forum_date(declared.date, received_at, zone) if not post.dated else None
    return post._replace(created_at=moment, dated=True) if moment else post


def has_posts(page: ForumPage, profile: Profile) -> bool:
    return bool(profile.selectors.post) and page.root.css_first(profile.selectors.post) is not None


def thread_on(page: ForumPage, profile: Profile, item: Item, zone: int | None) -> ThreadPage:
    title = plain(value(page.root, profile.selectors.title))[:MAX_TITLE].rstrip()
    return ThreadPage(
        page,
        profile,
        id=item.id,
        title=title or item.title or title_of(page),
        is_first_page=page.root.css_first(_PREVIOUS) is None,
        lang=language_of(page),
        zone=next(known for known in (zone, zone_of(page), profile.zone) if known is not None),
    )


def facts_of(thread: ThreadPage, *, truncated: bool) -> Facts:
    return Facts(thread.profile.name, thread.title, thread.page.url, thread.lang, truncated=truncated)


def next_page(page: ForumPage, selectors: Selectors) -> Request | None:
    """Returns the request for the next page of a list or thread."""
    for line in (selectors.next_page, NEXT):
        for href in values(page.root, line):
            address = link(page, href)
            if address and address != page.url.partition("#")[0]:
                return Request(address)
    return None


def _posts(thread: ThreadPage, found: list[LexborNode]) -> list[Post]:
    """Returns each post once, in page order.

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


def _raw_post(thread: ThreadPage, element: LexborNode) -> RawPost | None:
    selectors = thread.profile.selectors
    body = find(element, selectors.content)
    if body is None:
        return None
    header = _header(element, selectors)
    parts = [element] if header is None else [element, header]
    return RawPost(
        id=next((id for part in parts if (id := _post_id(part, selectors))), ""),
        anchor=next((at for part in parts for name in ("id", "data-content") if (at := part.attributes.get(name))), ""),
        author=next((name for part in parts if (name := value(part, selectors.author))), ""),
        dates=tuple(date for line in (selectors.date, _DATES) for part in parts for date in values(part, line))
        + tuple(_written_dates(element, body)),
        reply_to=id_in(value(element, selectors.reply_to), _REPLY),
        content=content_of(body, selectors.dropped, thread.page.base),
    )


def _header(element: LexborNode, selectors: Selectors) -> LexborNode | None:
    """Returns the element before a post that says who wrote it and when, if the software writes one."""
    before = element.prev
    while selectors.header and before is not None and not before.is_element_node:
        before = before.prev
    return before if selectors.header and before is not None and before.css_matches(selectors.header) else None


def _written_dates(element: LexborNode, body: LexborNode) -> Iterator[str]:
    """Yields the dates that are written in a post outside of its text, in no element that a profile knows."""
    within = {body.mem_id}
    before = ""
    for node in element.traverse(include_text=True):
        parent = node.parent
        if parent is not None and parent.mem_id in within:
            within.add(node.mem_id)
        elif node.is_text_node and node.mem_id not in within and (text := (node.text_content or "").strip()):
            if len(text) < _LINE and named_day(text) and not OTHER_DATES.search(f"{before[-_LINE:]} {text}"):
                yield text
            before = text


def post_of(thread: ThreadPage, raw: RawPost, *, is_first: bool) -> Post | None:
    """Returns the post, or None if it says nothing. `is_first`: it is the first one on its page."""
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
        thread=thread.id,
        opens_thread=is_opening,
    )


def _reference(thread: ThreadPage, raw: RawPost) -> Reference | None:
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
    """Returns a post's text as clean HTML, without what its page added to it."""
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
    """Returns the images in clean HTML, each once."""
    found: dict[str, Image] = {}
    for tag in _IMG.finditer(content):
        attributes = dict(_ATTRIBUTE.findall(tag[1]))
        address = unescape(attributes.get("src", ""))
        if address.startswith(("http://", "https://")) and address not in found:
            found[address] = Image(address, plain(attributes.get("alt", ""))[:MAX_TITLE])
        if len(found) == MAX_IMAGES:
            break
    return tuple(found.values())


def link(page: ForumPage, href: str | None) -> str | None:
    """Returns a link's address on the same server, without session parameters; None if it leads elsewhere."""
    address = safe_link(href, page.base)
    if not address or not address.startswith(("http://", "https://")):
        return None
    address = without_session(address.partition("#")[0]).rstrip("?&")
    try:
        return address if same_server(page.url, address) or same_server(address, page.url) else None
    except BadAddress:
        return None


def without_session(address: str) -> str:
    """Returns an address without what differs from one visit to the next."""
    return _SESSION.sub("", address)


def title_of(page: ForumPage) -> str:
    found = page.root.css_first("title")
    return plain(found.text() if found else "")[:MAX_TITLE]


def language_of(page: ForumPage) -> str | None:
    html = page.root if page.root.tag == "html" else page.root.css_first("html")
    lang = ((html.attributes.get("lang") if html else None) or "").strip().replace("_", "-")
    return lang if _LANGUAGE.fullmatch(lang) else None


def zone_of(page: ForumPage) -> int | None:
    """Returns the offset from UTC, in minutes, that the page gives for its times; None if it gives none."""
    named = _ZONE.search(page.html)
    if not named:
        return None
    offset = _OFFSET.match(page.html, named.end())
    if not offset:
        return 0
    minutes = int(offset[2]) * 60 + int(offset[3] or 0) + int(offset[4] or 0) * 6
    return (minutes if offset[1] == "+" else -minutes) if minutes <= 15 * 60 else None


def nothing_found(page: ForumPage, reason: str) -> ReadFailed:
    """Returns the failure to report when a page has nothing to read: it keeps programs out, or the `reason`."""
    html = page.html.encode("utf-8", "replace")
    if is_bot_check(html):
        return Blocked("The server answered with a bot check instead of the forum.")
    if has_login_form(html):
        return Blocked(f"{reason} The page has a login form: it may be for members only.")
    return ReadFailed(reason)


def json_document(response: Response) -> Json:
    try:
        document = parsed_json(response.body)
    except NotAFeed as error:
        raise ReadFailed("The forum's answer looks like JSON but cannot be read.") from error
    if not isinstance(document, dict):
        raise ReadFailed("The forum answered with JSON that is neither a list nor a thread.")
    return document
