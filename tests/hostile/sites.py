"""A board and a news site of which one page turns hostile: its list, or what its list names next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from fetch.raw_server import Speaker, answer, path_of

SENTENCE = "The port says that the third crane is older than the town, and that nobody asked for another one. "
WALLS = {
    "bot wall": "<!DOCTYPE html><html><title>Just a moment...</title><body><div id='cf-chl-x'></div></body></html>",
    "login": "<html><body><form action='/login'><input name='u'><input type='password' name='p'></form></body></html>",
}
NO_RULES = answer("404 Not Found", body=b"no rules")


class Kind(NamedTuple):
    """`path_of` and `page_of` are an item's: its address and what stands there, with these words in it."""

    name: str
    list_path: str
    list_of: Callable[[list[int]], str]
    path_of: Callable[[int], str]
    page_of: Callable[[int, str], str]


def _board(numbers: list[int]) -> str:
    rows = "".join(
        '<div class="structItem structItem--thread"><div class="structItem-title">'
        f'<a href="{_thread_path(number)}">Thread {number}</a></div></div>'
        for number in numbers
    )
    return f'<html id="XF"><head><title>The board</title></head><body>{rows}</body></html>'


def _thread_path(number: int) -> str:
    return f"/threads/a.{number}/"


def _thread(number: int, words: str) -> str:
    post = (
        f'<article class="message js-post" data-content="post-{number}" data-author="alder">'
        f'<article class="message-body"><div class="bbWrapper">{words}</div></article></article>'
    )
    return f'<html id="XF"><head><title>Thread {number}</title></head><body>{post}</body></html>'


def _front(numbers: list[int]) -> str:
    boxes = "".join(f'<h2><a href="{_article_path(number)}">A story of number {number}</a></h2>' for number in numbers)
    return f"<html><head><title>The paper</title></head><body><main>{boxes}</main></body></html>"


def _article_path(number: int) -> str:
    return f"/2026/11/02/a-long-story-{number}"


def _article(number: int, words: str) -> str:
    text = f"<p>{SENTENCE * 3}</p>" * 3
    title = f"Story {number}"
    body = f"<article><h1>{title}</h1>{text}{words}{text}</article>"
    return f"<html><head><title>{title}</title></head><body>{body}</body></html>"


FORUM = Kind("forum", "/board", _board, _thread_path, _thread)
NEWS = Kind("news", "/news", _front, _article_path, _article)
SETTINGS = {"forum": {"profile": "xenforo"}, "news": {"items": "h2 a"}}


class Place(NamedTuple):
    """Which page of which kind of site is attacked."""

    kind: Kind
    is_list: bool

    def __str__(self) -> str:
        return f"{self.kind.name} {'list' if self.is_list else 'item'}"


PLACES = [Place(kind, is_list) for kind in (FORUM, NEWS) for is_list in (True, False)]


class Site:
    """At first it has one item and all is well. `turn` adds another one, and from then on a page of it is hostile."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.numbers = [11]
        self._attack: Speaker | bytes | None = None

    def turn(self, attack: Speaker | bytes) -> None:
        self.numbers = [12, 11]
        self._attack = attack

    def recover(self) -> None:
        self._attack = None

    async def speak(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        path, kind = path_of(head), self.place.kind
        hostile = kind.list_path if self.place.is_list else kind.path_of(12)
        if self._attack is not None and path == hostile:
            await _say(self._attack, head, writer)
        elif path == kind.list_path:
            writer.write(html(kind.list_of(self.numbers)))
        else:
            found = next((number for number in self.numbers if path == kind.path_of(number)), None)
            writer.write(html(kind.page_of(found, f"words {found}")) if found else NO_RULES)


async def _say(attack: Speaker | bytes, head: bytes, writer: asyncio.StreamWriter) -> None:
    if not isinstance(attack, bytes):
        return await attack(head, writer)
    writer.write(attack)
    await writer.drain()
    writer.close()
    return None


def html(page: str) -> bytes:
    return answer(body=page.encode(), Content_Type="text/html; charset=utf-8")
