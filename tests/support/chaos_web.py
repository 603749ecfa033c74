"""A small web for faults: feeds and Reddit communities that publish as time goes by, and a record of every request."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from headwater.sources.reddit import SITE
from support.web import rss

GAP_SECONDS = 0.5
API_REQUESTS = 10  # within WINDOW_SECONDS
WINDOW_SECONDS = 10.0
SLACK = 3  # requests in a window that were under way before it, or came a moment late
MOST_POSTS = 400  # of one feed
PAGE = 100  # posts of a community in one answer


class Feed(NamedTuple):
    """A feed, or a community: then `host` is the API."""

    host: str
    number: int
    period: float

    def post_id(self, url: str, post: int) -> str:
        return f"t3_c{self.number}x{post}" if url.startswith(SITE) else f"{url}/{post}"


@dataclass
class SimulatedWeb:
    """Feeds that publish a post every `period` seconds. It notes each request."""

    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    api: str = ""
    asked: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))  # by feed
    by_host: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    feeds: dict[str, Feed] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def published(self, feed: Feed) -> int:
        until = self.ended if self.ended is not None else time.monotonic()
        return min(MOST_POSTS, 1 + int((until - self.began) / feed.period))

    def truth(self) -> set[str]:
        """Returns the id of every post that was published."""
        return {feed.post_id(url, post) for url, feed in self.feeds.items() for post in range(self.published(feed))}

    def overlaps(self) -> int:
        """Counts requests for a feed that began while another one for it was under way."""
        count = 0
        for times in self.asked.values():
            ordered = sorted(times)
            count += sum(later[0] < earlier[1] for earlier, later in pairwise(ordered))
        return count

    def over_host_budget(self) -> int:
        """Counts requests beyond what a host allows within any ten seconds."""
        most = round(WINDOW_SECONDS / GAP_SECONDS)
        return max((_beyond(times, most) for host, times in self.by_host.items() if host != self.api), default=0)

    def over_api_budget(self) -> int:
        """The same of the API."""
        return _beyond(self.by_host[self.api], API_REQUESTS)


def _beyond(times: Sequence[float], most: int) -> int:
    ordered, over, last = sorted(times), 0, 0
    for place, at in enumerate(ordered):
        while last < len(ordered) and ordered[last] - at < WINDOW_SECONDS:
            last += 1
        over = max(over, last - place - most - SLACK)
    return over


@contextmanager
def simulated_web(hosts: int, feeds: int, communities: int, slowness: float = 1.0) -> Iterator[SimulatedWeb]:
    """Serves feeds on so many hosts, and communities by one API. `slowness` is how much less often they publish."""
    web = SimulatedWeb()

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            with suppress(ConnectionError):  # of a client that was killed
                super().handle()

        def do_GET(self) -> None:
            began, parts = time.monotonic(), urlsplit(self.path)
            address = f"http://{self.headers['Host']}"
            url = f"{SITE}/r/{parts.path.split('/')[2]}" if parts.path.startswith("/r/") else address + self.path
            feed = web.feeds.get(url)
            count = web.published(feed) if feed else 0
            time.sleep(random.uniform(0, 0.1))
            with web.lock:
                web.asked[url].append((began, time.monotonic()))
                web.by_host[address].append(began)
            if address == web.api and feed:
                self._answer(200, _listing(feed, url, count, parse_qs(parts.query).get("after", [""])[0], web))
            else:
                self._answer(200 if feed else 404, rss(*map(str, range(count)), title=self.path, base=url).encode())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(200, b'{"access_token": "chaos", "token_type": "bearer", "expires_in": 86400}')

        def _answer(self, status: int, body: bytes) -> None:
            with suppress(ConnectionError):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    def serve(host: int) -> str:
        server = ThreadingHTTPServer((f"127.0.0.{20 + host}", 0), Answering)
        server.daemon_threads = True
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return f"http://127.0.0.{20 + host}:{server.server_port}"

    with ExitStack() as stack:
        for host in range(hosts):
            address = serve(host)
            for number in range(host, feeds, hosts):
                web.feeds[f"{address}/feed/{number}"] = Feed(address, number, random.uniform(1.0, 4.0) * slowness)
        web.api = serve(hosts)
        for number in range(communities):
            web.feeds[f"{SITE}/r/chaos{number}"] = Feed(web.api, number, random.uniform(1.0, 4.0) * slowness)
        yield web


def _listing(feed: Feed, url: str, count: int, after: str, web: SimulatedWeb) -> bytes:
    """Returns a page of a community as Reddit's API has it, the newest first."""
    began = time.time() - (time.monotonic() - web.began)
    newest = int(after.rpartition("x")[2]) if after else count
    shown = range(newest - 1, max(-1, newest - 1 - PAGE), -1)
    children = [
        {
            "kind": "t3",
            "data": {
                "name": feed.post_id(url, post),
                "title": f"Post {post} of community {feed.number}",
                "subreddit_name_prefixed": f"r/chaos{feed.number}",
                "is_self": True,
                "selftext": f"This is post {post}.",
                "created_utc": int(began + post * feed.period),
                "permalink": f"/r/chaos{feed.number}/comments/c{feed.number}x{post}/",
            },
        }
        for post in shown
    ]
    more = feed.post_id(url, shown[-1]) if len(shown) == PAGE and shown[-1] > 0 else None
    return json.dumps({"kind": "Listing", "data": {"after": more, "children": children}}).encode()
