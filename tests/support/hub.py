"""A WebSub hub on loopback: it verifies, denies, publishes, signs well or badly, and records all requests.

Subscriptions are verified in a thread of their own, before or after the request for them is answered, as real hubs do.
"""

from __future__ import annotations

import hmac
import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from headwater.sim.serving import served
from support.web import rss

CHALLENGE = "a-challenge-nobody-can-guess"


class Answered(NamedTuple):
    status: int
    body: bytes


@dataclass
class Hub:
    url: str
    lease_seconds: int = 864_000
    status: int = 202  # what a request for a subscription is answered with
    moved_to: str = ""
    verifies: bool = True
    denies: str | None = None
    asked: list[dict[str, str]] = field(default_factory=list)
    verified: list[tuple[str, Answered]] = field(default_factory=list)
    under_way: list[threading.Thread] = field(default_factory=list)

    def settle(self) -> None:
        """Waits until every verification in progress is over."""
        while self.under_way:
            self.under_way.pop().join()

    def callback(self) -> str:
        """Returns the callback of the latest request."""
        return self.asked[-1]["hub.callback"]

    def take(self, form: dict[str, str]) -> None:
        self.asked.append(form)
        if self.status < 300 and (self.verifies or self.denies is not None):
            thread = threading.Thread(target=self.verify, args=(form,), daemon=True)
            self.under_way.append(thread)
            thread.start()

    def verify(self, form: dict[str, str]) -> None:
        if self.denies is not None:
            said = {"hub.mode": "denied", "hub.topic": form["hub.topic"], "hub.reason": self.denies}
        else:
            said = {name: form[name] for name in ("hub.mode", "hub.topic")}
            said |= {"hub.challenge": CHALLENGE, "hub.lease_seconds": str(self.lease_seconds)}
        self.verified.append((said["hub.mode"], self.call(form["hub.callback"], said)))

    def call(self, callback: str, said: dict[str, str]) -> Answered:
        return call("GET", f"{callback}?{urlencode(said)}")

    def push(self, body: bytes | str, *, method: str = "sha256", secret: str | None = None, **headers: str) -> Answered:
        """Publishes to the latest subscriber, signed with its secret or another; not signed if `method` is ''."""
        data = body.encode() if isinstance(body, str) else body
        key = secret if secret is not None else self.asked[-1]["hub.secret"]
        sent = {"Content-Type": "application/rss+xml", **{name.replace("_", "-"): headers[name] for name in headers}}
        if method:
            sent.setdefault("X-Hub-Signature", f"{method}={hmac.digest(key.encode(), data, method).hex()}")
        return call("POST", self.callback(), data, sent)


def call(method: str, url: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answered:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        connection.request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body, headers or {})
        answer = connection.getresponse()
        return Answered(answer.status, answer.read())
    finally:
        connection.close()


def offering(hub: str, topic: str, *names: str) -> str:
    """Returns a feed with posts of these names that offers a hub."""
    links = f'<atom:link rel="hub" href="{hub}"/><atom:link rel="self" href="{topic}"/>'
    feed = rss(*names).replace('version="2.0"', 'version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"')
    return feed.replace("<channel>", f"<channel>{links}")


@contextmanager
def hub_on_loopback() -> Iterator[Hub]:
    class Connection(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            hub.take(dict(parse_qsl(body)))
            self.send_response(hub.status)
            if hub.moved_to:
                self.send_header("Location", hub.moved_to)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    hub = Hub("")
    with served(Connection) as address:
        hub.url = f"{address}/hub"
        yield hub
