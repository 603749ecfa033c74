"""A small web on loopback that tests fill with feeds and pages. It records every request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple

from headwater.sim.serving import served

ALLOW_LOOPBACK = {"HEADWATER_ALLOW_PRIVATE_NETWORKS": "127.0.0.0/8"}


class Asked(NamedTuple):
    path: str
    at: float
    headers: dict[str, str]


class Answer(NamedTuple):
    body: bytes | str = b""
    status: int = 200
    headers: dict[str, str] = {}
    delay: float = 0.0


NOT_HERE = Answer("nothing here", 404)


@dataclass(kw_only=True)
class Overlaps:
    """Counts the requests in progress; `overlaps` names the paths that had two at the same time."""

    under_way: dict[str, int] = field(default_factory=dict)
    overlaps: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def noting(self, path: str, note: Callable[[], None]) -> Iterator[None]:
        """Makes a note of a request, and counts it for as long as the block lasts."""
        with self.lock:
            note()
            self.under_way[path] = self.under_way.get(path, 0) + 1
            if self.under_way[path] > 1:
                self.overlaps.append(path)
        try:
            yield
        finally:
            with self.lock:
                self.under_way[path] -= 1


@dataclass
class Web(Overlaps):
    address: str
    pages: dict[str, Answer | Callable[[Asked], Answer]] = field(default_factory=dict)
    fallback: Answer | Callable[[Asked], Answer] = NOT_HERE  # for all that `pages` does not name
    asked: list[Asked] = field(default_factory=list)

    def url(self, path: str) -> str:
        return self.address + path

    def paths(self) -> list[str]:
        return [one.path for one in self.asked]


def rss(*titles: str, title: str = "The News", base: str = "https://news.example") -> str:
    items = "".join(
        f"<item><guid>{base}/{name}</guid><link>{base}/{name}</link><title>{name}</title>"
        f"<pubDate>Mon, 02 Nov 2026 {10 + place // 60 % 12:02}:{place % 60:02}:00 GMT</pubDate>"
        f"<description>Text of {name}</description></item>"
        for place, name in enumerate(titles)
    )
    return f'<rss version="2.0"><channel><title>{title}</title><link>{base}/</link>{items}</channel></rss>'


@contextmanager
def web() -> Iterator[Web]:
    class Connection(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = Asked(self.path, time.monotonic(), {name.lower(): value for name, value in self.headers.items()})
            with world.noting(self.path, lambda: world.asked.append(asked)):
                self._answer(asked)

        def _answer(self, asked: Asked) -> None:
            page = world.pages.get(self.path, world.fallback)
            answer = page(asked) if callable(page) else page
            time.sleep(answer.delay)
            body = answer.body.encode() if isinstance(answer.body, str) else answer.body
            try:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if answer.status != 304:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except ConnectionError:
                pass  # whoever asked was killed in the meantime

        def log_message(self, format: str, *args: object) -> None: ...

    world = Web("")
    with served(Connection) as world.address:
        yield world
