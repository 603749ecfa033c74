"""A board's page: the threads it lists and its next page, where a profile says that they stand."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborNode

from headwater.errors import ReadFailed
from headwater.model import Facts, Item, Page
from headwater.sources.forums.dates import moment_of
from headwater.sources.forums.page import MAX_TITLE, HtmlPage, language_of, link, steady, title_of, zone_of
from headwater.sources.forums.places import every, id_in, node, value, values
from headwater.sources.forums.profile import Profile
from headwater.sources.forums.threads import next_page
from headwater.text import plain
from headwater.urls import identity

MAX_THREADS = 2_000
MAX_NAMED = 12
MAX_MARK = 200
_COUNT = re.compile(r"\d[\d.,]*(?:\s?[km万]\b)?", re.IGNORECASE)
# Lists link to where a reader left a thread; we begin at its beginning.
_WITHIN = re.compile(r"/(?:unread|latest|page-\d+)/?$")


def read_list(page: HtmlPage, profile: Profile, zone: int | None) -> Page:
    """The threads of a board. Raises ReadFailed, with the boards' names, where the page lists boards instead."""
    rows = every(page.root, profile.thread)
    own_zone = next(known for known in (zone, zone_of(page), profile.zone) if known is not None)
    items: dict[str, Item] = {}
    for row in rows[:MAX_THREADS]:
        item = _item(page, profile, row, own_zone)
        if item and (item.id not in items or items[item.id].pinned):
            items[item.id] = item
    if not items:
        _name_boards(page, profile)
    facts = Facts(profile.name, title_of(page), page.url, language_of(page), truncated=len(rows) > MAX_THREADS)
    return Page([], next_page(page, profile), facts, tuple(items.values()))


def _item(page: HtmlPage, profile: Profile, row: LexborNode, zone: int) -> Item | None:
    anchor = node(row, profile.thread_link)
    address = link(page, anchor.attributes.get("href")) if anchor is not None else None
    if anchor is None or not address:
        return None
    attributes = f"{row.attributes.get('id') or ''} {row.attributes.get('class') or ''}"
    id = id_in(address, profile.thread_id) or id_in(attributes, profile.thread_id) or identity(address)
    created = (moment_of(text, page.received_at, zone) for text in values(row, profile.created))
    return Item(
        id=id,
        url=_WITHIN.sub("/", address),
        title=plain(anchor.text(separator=" "))[:MAX_TITLE],
        mark=_mark(row, profile),
        created_at=next((moment for moment in created if moment), None),
        pinned=bool(profile.pinned) and row.css_matches(profile.pinned),
    )


def _mark(row: LexborNode, profile: Profile) -> str:
    """How many replies there are and what the list says of the last; nothing that changes by itself."""
    said = value(row, profile.replies)
    replies = _COUNT.search(said)
    last = steady(value(row, profile.last))
    mark = f"{replies[0] if replies else said[:40]}/{last}"
    return mark[:MAX_MARK] if mark != "/" else ""


def _name_boards(page: HtmlPage, profile: Profile) -> None:
    boards: dict[str, str] = {}
    for anchor in every(page.root, profile.boards):
        address = link(page, anchor.attributes.get("href"))
        name = plain(anchor.text(separator=" "))[:100]
        if address and name and len(boards) < MAX_NAMED:
            boards.setdefault(address, name)
    if boards:
        named = "; ".join(f"{name}: {address}" for address, name in boards.items())
        raise ReadFailed(f"This page lists the boards of a forum. Follow one of them instead. {named}")
