"""A receiver of webhooks on loopback: it takes, refuses, dawdles, and remembers what came in which order."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from headwater.sim.serving import served
from support.web import Overlaps


class Got(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def kind(self) -> str:
        return self.headers["headwater-event"]

    def event(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver(Overlaps):
    """`answers` says by path what is answered: a status, or a function of what came."""

    url: str
    answers: dict[str, int | Callable[[Got], int]] = field(default_factory=dict)
    delays: dict[str, float] = field(default_factory=dict)
    retry_after: str = ""
    got: list[Got] = field(default_factory=list)

    def at(self, path: str) -> list[Got]:
        with self.lock:
            return [one for one in self.got if one.path == path]

    def numbers(self, path: str = "/hook") -> list[int]:
        """Which events came, by the number in the address that they tell of."""
        return [int(one.event()["data"]["address"].rpartition("/")[2]) for one in self.at(path)]

    def take(self, got: Got) -> int:
        with self.noting(got.path, lambda: self.got.append(got)):
            time.sleep(self.delays.get(got.path, 0.0))
            answer = self.answers.get(got.path, 204)
            return answer(got) if callable(answer) else answer


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Connection(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.take(Got(self.path, {name.lower(): self.headers[name] for name in self.headers}, body))
            try:
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", f"{receiver.url}/elsewhere")
                if receiver.retry_after and status >= 400:
                    self.send_header("Retry-After", receiver.retry_after)
                self.send_header("Content-Length", "0")
                self.end_headers()
            except ConnectionError:
                pass  # whoever sent it was killed in the meantime

        def log_message(self, format: str, *args: object) -> None: ...

    receiver = Receiver("")
    with served(Connection) as receiver.url:
        yield receiver
