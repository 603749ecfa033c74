"""Simulated newspapers: each has a front page that names its feed, and a feed of what it has told so far.

Their clock is given, so a demonstration can run by the real one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from email.utils import format_datetime
from html import escape
from http.server import BaseHTTPRequestHandler
from urllib.parse import quote, unquote

from headwater.sim.newsroom import Telling
from headwater.sim.serving import Answer, Ask, door, served

SHOWN = 30  # entries in a feed
Papers = Mapping[str, Sequence[Telling]]


@contextmanager
def serving(papers: Papers, now: Callable[[], datetime], port: int = 0) -> Iterator[str]:
    """Serve the papers on loopback; yields where."""
    with served(door_of(papers, now), port) as url:
        yield url


def feed_address(url: str, paper: str) -> str:
    return f"{url}/{quote(paper)}/feed.xml"


def door_of(papers: Papers, now: Callable[[], datetime]) -> type[BaseHTTPRequestHandler]:
    return door(lambda asked: _answer(papers, asked, now()))


def _answer(papers: Papers, asked: Ask, now: datetime) -> Answer:
    found = page_at(papers, unquote(asked.path), f"http://{asked.host}", now)
    if found is None:
        return Answer(404, b"There is no such page.", {"Content-Type": "text/plain"})
    body, media_type = found
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {"Content-Type": f"{media_type}; charset=utf-8", "ETag": tag}
    return Answer(304, b"", headers) if asked.known == tag else Answer(200, body, headers)


def page_at(papers: Papers, path: str, site: str, now: datetime) -> tuple[bytes, str] | None:
    """What is at a path now, and its type. Pure."""
    _, paper, page = [*path.split("/", 2), "", ""][:3]
    if paper not in papers:
        return None
    told = [telling for telling in papers[paper] if telling.at <= now][-SHOWN:]
    home = f"{site}/{quote(paper)}"
    if page == "feed.xml":
        return _feed(paper, home, told, now).encode(), "application/rss+xml"
    if page == "":
        link = f'<link rel="alternate" type="application/rss+xml" href="{home}/feed.xml">'
        return f"<!doctype html><title>{escape(paper)}</title>{link}<h1>{escape(paper)}</h1>".encode(), "text/html"
    story = next((telling for telling in told if page == str(telling.id)), None)
    if story is None:
        return None
    title = escape(story.title)
    return f"<!doctype html><title>{title}</title><h1>{title}</h1><p>{escape(_text(story, now))}".encode(), "text/html"


def _feed(paper: str, home: str, told: Sequence[Telling], now: datetime) -> str:
    items = "".join(_item(home, telling, now) for telling in reversed(told))
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>{escape(paper)}</title>'
        f"<link>{home}/</link><description>What {escape(paper)} tells.</description>{items}</channel></rss>"
    )


def _item(home: str, telling: Telling, now: datetime) -> str:
    return (
        f"<item><title>{escape(telling.title)}</title><link>{home}/{telling.id}</link><guid>{home}/{telling.id}</guid>"
        f"<author>{escape(telling.author)}</author><pubDate>{format_datetime(telling.at)}</pubDate>"
        f"<description>{escape(f'<p>{escape(_text(telling, now))}</p>')}</description></item>"
    )


def _text(telling: Telling, now: datetime) -> str:
    return telling.edited[1] if telling.edited and telling.edited[0] <= now else telling.text
