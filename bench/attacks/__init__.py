"""What is attacked, and what the attacks have in common.

An attack is a generator of tries. It yields None for a try that was refused, and a sentence for one that was not.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from headwater import wire
from headwater.http.auth import OPEN_PATHS, every_route
from headwater.server import create_app
from headwater.settings import load

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

# The folder of the tests is on the path only while this runs: type checkers do not find it.
from api import running  # type: ignore[import-not-found]
from support.web import Answer as Answer  # type: ignore[import-not-found]
from support.web import Web as Web
from support.web import web as web

Finding = str | None
EMAIL, PASSWORD = "ann@example.org", "correct horse battery"  # of somebody who may only read
TELLING = re.compile(r"Traceback|sqlite3\.|psycopg|SELECT .* FROM|File \"/|near \".*\": syntax error|root:x:0:0")


class Trap(NamedTuple):
    """A place that nobody may reach. It remembers whoever does."""

    port: int
    visitors: list[str]


class Got(running.Answer):  # type: ignore[misc]
    """An answer. Its bytes may be anything."""

    @property
    def text(self) -> str:
        return bytes(self.body).decode("utf-8", "replace")


class Target(NamedTuple):
    """What is attacked, with the credentials of its owner, and what it is attacked with."""

    port: int
    token: str
    cookie: str
    site: Web
    trap: Trap
    seconds: float
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Got:
        """A mapping is sent as JSON, bytes as they are. Header names are written with underscores."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host="Host" in sent, skip_accept_encoding=True)
            for name, value in {**sent, **({"Content-Length": str(len(body))} if body is not None else {})}.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Got(answer.status, found, answer.read(), answer.headers.get_all("set-cookie") or [])
        finally:
            connection.close()

    def program(self, method: str, path: str, body: Any = None, **headers: str) -> Got:
        return self.ask(method, path, body, Authorization=f"Bearer {self.token}", **headers)

    def person(self, method: str, path: str, body: Any = None, **headers: str) -> Got:
        return self.ask(method, path, body, Cookie=self.cookie, Accept="text/html", **headers)

    def raw(self, said: bytes) -> bytes:
        """Returns all that is answered to these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as client, suppress(OSError):
            client.sendall(said)
            client.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := client.recv(65536):
                answer += piece
            return answer
        return b""


def told_too_much(got: Got, what: str) -> Finding:
    if got.status >= 500:
        return f"{got.status} for {what}"
    return f"told too much for {what}" if TELLING.search(got.text) else None


def until(done: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.2)


@cache
def routes() -> list[tuple[str, str]]:
    """Returns every method and path, of the API and of the pages. What a path has to name is 1."""
    with tempfile.TemporaryDirectory(prefix="headwater-routes-") as folder:
        parts = wire.open_parts(load({"HEADWATER_DATABASE_URL": f"sqlite:///{folder}/headwater.db"}))
        found = [
            (method, re.sub(r"\{[^}]*\}", "1", route.path))
            for route in every_route(create_app(parts))
            for method in sorted(route.methods or ())
            if route.path not in OPEN_PATHS
        ]
        parts.db.close()
    return found
