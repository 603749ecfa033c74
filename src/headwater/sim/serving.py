"""What all simulated sites share: a clock, faults, a record of requests, and an HTTP server on loopback.

The same seed gives the same site. Its clock stands still until it is moved: POST /sim/clock?seconds=3600 moves it
forward, GET /sim/clock returns the time. A client that uses only what the real site has cannot tell the difference.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

BEGINS = datetime(2026, 11, 2, tzinfo=UTC)


class Clock:
    """The simulated time. It only moves forward, and only when somebody moves it."""

    def __init__(self, begins: datetime = BEGINS) -> None:
        self._now = begins
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self._now

    def advance(self, by: timedelta) -> datetime:
        with self._lock:
            self._now += max(by, timedelta(0))
            return self._now

    def advance_to(self, moment: datetime) -> datetime:
        with self._lock:
            self._now = max(self._now, moment)
            return self._now


class SimVersion(Protocol):
    """What something says from a time on."""

    @property
    def since(self) -> datetime: ...


Version = TypeVar("Version", bound=SimVersion)


def version_at(versions: Sequence[Version], now: datetime) -> Version:
    """Returns the newest of these versions, which are in order of time."""
    return next(version for version in reversed(versions) if version.since <= now)


def is_visible(since: datetime, deleted_at: datetime | None, now: datetime) -> bool:
    return since <= now and not (deleted_at and deleted_at <= now)


class Faults(NamedTuple):
    """What share of responses fails, and how: 429, 500, 503, late, or cut off half way."""

    busy: float = 0.0
    broken: float = 0.0
    unavailable: float = 0.0
    slow: float = 0.0
    cut: float = 0.0
    slow_seconds: float = 0.02

    def drawn(self, chance: random.Random) -> str | None:
        """Returns the fault of the next response, if it has one."""
        roll = chance.random()
        for name in ("busy", "broken", "unavailable", "slow", "cut"):
            roll -= getattr(self, name)
            if roll < 0:
                return name
        return None


class Ask(NamedTuple):
    """A request. `known` is the client's If-None-Match."""

    method: str
    path: str
    query: Mapping[str, str]
    authorization: str = ""
    known: str = ""
    host: str = ""

    @property
    def address(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


class Answered(Protocol):
    """A response. If it sets its own Content-Length, the connection closes after the body, which may be shorter."""

    @property
    def status(self) -> int: ...
    @property
    def body(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class Answer(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Asked(NamedTuple):
    """A request as the site recorded it. `address` is the path with its query."""

    at: datetime
    path: str
    status: int
    address: str


@dataclass(kw_only=True)
class SimSite:
    """The part of a simulated site's state that every kind of site has."""

    clock: Clock
    faults: Faults = field(default_factory=Faults)
    seed: int = 0
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"faults:{self.seed}")

    def fault(self) -> str | None:
        with self.lock:
            return self.faults.drawn(self.chance)


Sim = TypeVar("Sim", bound=SimSite)


def with_faults(answer: Callable[[Sim, Ask, datetime, str | None], Answered]) -> Callable[[Sim, Ask], Answered]:
    """Wraps the function that answers for a site: adds its clock, its record of requests and its faults.

    The function gets the fault, because each site words its own errors; delays and cuts are the same everywhere.
    """

    def answer_or_fail(site: Sim, asked: Ask) -> Answered:
        if asked.path == "/sim/clock":
            return _clock(site.clock, asked)
        now, fault = site.clock.now(), site.fault()
        answered = answer(site, asked, now, fault)
        with site.lock:
            site.asked.append(Asked(now, asked.path, answered.status, asked.address))
        if fault == "slow":
            time.sleep(site.faults.slow_seconds)
        return _cut_off(answered) if fault == "cut" else answered

    return answer_or_fail


def _clock(clock: Clock, asked: Ask) -> Answer:
    if asked.method == "POST":
        clock.advance(timedelta(seconds=float(asked.query.get("seconds", 0))))
    return json_answer({"now": clock.now().isoformat()})


def _cut_off(answered: Answered) -> Answer:
    """Returns a response that promises more bytes than it sends."""
    length = {"Content-Length": str(len(answered.body) + 100)}
    return Answer(answered.status, answered.body[: len(answered.body) // 2], {**answered.headers, **length})


def json_answer(document: Any) -> Answer:
    return Answer(200, json.dumps(document, ensure_ascii=False).encode(), {"Content-Type": "application/json"})


def conditional(answer: Answer, asked: Ask) -> Answer:
    """Returns the response with an ETag, or a 304 if the client has it already."""
    if answer.status != 200:
        return answer
    tag = f'"{blake2b(answer.body, digest_size=8).hexdigest()}"'
    if tag == asked.known:
        return Answer(304, b"", {"ETag": tag})
    return answer._replace(headers={**answer.headers, "ETag": tag})


def png(colour: bytes, width: int, height: int) -> bytes:
    """Returns an image of one colour, given as three bytes."""
    rows = (b"\0" + colour * width) * height
    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", size), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    packed = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def request_handler(answer: Callable[[Ask], Answered]) -> type[BaseHTTPRequestHandler]:
    """Returns a handler class, as `http.server` wants it, that answers with this function."""

    class SimConnection(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = 65_536

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            said = [self.headers.get(name, "") for name in ("Authorization", "If-None-Match", "Host")]
            self._send(answer(Ask(self.command, parts.path, dict(parse_qsl(parts.query)), *said)))

        do_POST = do_GET

        def _send(self, answer: Answered) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if "Content-Length" not in answer.headers:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            self.close_connection = "Content-Length" in answer.headers

        def log_message(self, format: str, *args: object) -> None: ...

    return SimConnection


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores errors: they mean that the client has gone."""


@contextmanager
def served(handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    """Runs a server with this handler, a thread for each connection; yields its address."""
    server = _Server(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serving_site(site: Sim, answer: Callable[[Sim, Ask], Answered], port: int = 0) -> Iterator[Sim]:
    """Serves a site on loopback and sets its `url`."""
    with served(request_handler(partial(answer, site)), port) as site.url:
        yield site


def run(
    description: str,
    options: Mapping[str, Mapping[str, Any]],
    make: Callable[[argparse.Namespace], Sim],
    answer: Callable[[Sim, Ask], Answered],
    addresses: Callable[[Sim], Iterable[str]],
) -> None:
    """Serves a site from the command line until Ctrl-C; prints its addresses. `options` are its own arguments."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--port", type=int, default=0)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--speed", type=float, default=0.0, help="simulated seconds in a real one")
    for name, option in options.items():
        arguments.add_argument(name, **option)
    given = arguments.parse_args()
    with serving_site(make(given), answer, given.port) as site:
        print(*addresses(site), sep="\n", flush=True)
        try:
            while True:
                time.sleep(1)
                site.clock.advance(timedelta(seconds=given.speed))
        except KeyboardInterrupt:
            pass
