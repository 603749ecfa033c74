"""Threads on a list of software that we do not know: the links that look alike and say the most."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from selectolax.lexbor import LexborNode

from headwater.model import Facts, Item, Page
from headwater.sources.forums.guess import GUESSED
from headwater.sources.forums.lists import MAX_THREADS
from headwater.sources.forums.page import MAX_TITLE, HtmlPage, language_of, link, title_of
from headwater.sources.forums.threads import next_page
from headwater.text import plain
from headwater.urls import identity

NOTE = (
    "The forum's software is not known, so its threads are guessed from the page, and new replies to a thread that was"
    " read are not noticed. Selectors in the source's settings make it exact."
)
MAX_LINKS = 20_000
_FEW = 4
_SHORT = 12  # letters on average: titles are longer than the words of menus
_DIGITS = re.compile(r"\d{2,20}")


class _Link(NamedTuple):
    address: str
    title: str


def read_guessed_list(page: HtmlPage) -> Page | None:
    """What looks like a list of threads; None where nothing does."""
    groups: dict[tuple[str, ...], dict[str, _Link]] = {}
    for anchor in page.root.css("a[href]")[:MAX_LINKS]:
        address = link(page, anchor.attributes.get("href"))
        title = plain(anchor.text(separator=" "))[:MAX_TITLE]
        if address and title:
            groups.setdefault(_likeness(anchor, address), {}).setdefault(address, _Link(address, title))
    best = max(groups.values(), key=_letters, default={})
    if _letters(best) == 0:
        return None
    items = {id: Item(id, found.address, found.title) for id, found in _identified(list(best.values()))}
    facts = Facts("guessed", title_of(page), page.url, language_of(page), truncated=len(items) > MAX_THREADS, note=NOTE)
    return Page([], next_page(page, GUESSED), facts, tuple(items.values())[:MAX_THREADS])


def _likeness(anchor: LexborNode, address: str) -> tuple[str, ...]:
    """What the links of one list have in common: where they stand, and the shape of their addresses."""
    parts = urlsplit(address)
    steps = [step for step in parts.path.split("/") if step]
    parent = anchor.parent
    around = f"{parent.tag}.{parent.attributes.get('class') or ''}" if parent is not None else ""
    first = "" if not steps or _DIGITS.search(steps[0]) else steps[0]
    return (anchor.attributes.get("class") or "", around, first, str(len(steps)), str(bool(_DIGITS.search(address))))


def _letters(group: dict[str, _Link]) -> int:
    """How much a group of links says; 0 where it cannot be a list of threads."""
    letters = sum(len(found.title) for found in group.values())
    return letters if len(group) >= _FEW and letters >= _SHORT * len(group) else 0


def _identified(links: list[_Link]) -> list[tuple[str, _Link]]:
    """Each link with the number in its address, where every one has one of its own; else with the address itself."""
    for which in (-1, 0):
        numbers = [found[which] if (found := _DIGITS.findall(urlsplit(one.address).path)) else "" for one in links]
        if all(numbers) and len(set(numbers)) == len(links):
            return list(zip(numbers, links, strict=True))
    return [(identity(one.address), one) for one in links]
