"""A board's page: the threads it lists and its next page, found by a profile, or guessed without one.

Guessed threads are the largest group of links that look alike.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from selectolax.lexbor import LexborNode

from headwater.errors import ReadFailed
from headwater.model import Facts, Item, Page
from headwater.sources.forums.dates import parse_forum_date
from headwater.sources.forums.page import MAX_TITLE, ForumPage, language_of, link, title_of, without_session, zone_of
from headwater.sources.forums.profile import GUESSED, Profile, Selectors
from headwater.sources.forums.selectors import find, find_all, id_in, value, values
from headwater.sources.forums.threads import next_page
from headwater.text import plain
from headwater.urls import identity

MAX_THREADS = 2_000
MAX_BOARDS = 12  # named in a message
MAX_MARK = 200
MAX_LINKS = 20_000
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


def read_list(page: ForumPage, profile: Profile, zone: int | None) -> Page:
    """The threads of a board. Raises ReadFailed, naming the boards, if the page lists boards instead."""
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
    """The number of replies and what the list shows of the last one; nothing that changes by itself."""
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
    """What looks like a list of threads; None if nothing does."""
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
    """What the links of one list have in common: their surroundings, and the shape of their addresses."""
    parts = urlsplit(address)
    steps = [step for step in parts.path.split("/") if step]
    parent = anchor.parent
    around = f"{parent.tag}.{parent.attributes.get('class') or ''}" if parent is not None else ""
    first = "" if not steps or _DIGITS.search(steps[0]) else steps[0]
    return (anchor.attributes.get("class") or "", around, first, str(len(steps)), str(bool(_DIGITS.search(address))))


def _letters(group: dict[str, _ThreadLink]) -> int:
    """How much text a group of links has; 0 if it cannot be a list of threads."""
    letters = sum(len(found.title) for found in group.values())
    return letters if len(group) >= _FEWEST_LINKS and letters >= _SHORTEST_TITLES * len(group) else 0


def _with_ids(links: list[_ThreadLink]) -> list[tuple[str, _ThreadLink]]:
    """Each link with the number in its address, if every link has one of its own; else with the address itself."""
    for which in (-1, 0):
        numbers = [found[which] if (found := _DIGITS.findall(urlsplit(one.address).path)) else "" for one in links]
        if all(numbers) and len(set(numbers)) == len(links):
            return list(zip(numbers, links, strict=True))
    return [(identity(one.address), one) for one in links]
