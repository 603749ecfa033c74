"""A simulated site on loopback: what it is asked, what it answers, and a server with a thread for each connection."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit


class Ask(NamedTuple):
    """What a client wants. `known` is what it says it has, `authorization` who it says it is."""

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
    """An answer. One that names a Content-Length of its own breaks off before that: the connection ends."""

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


def door(answer: Callable[[Ask], Answered]) -> type[BaseHTTPRequestHandler]:
    """Where connections arrive at a site that answers like this."""

    class Connection(BaseHTTPRequestHandler):
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

    return Connection


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever asked has gone; that is no trouble of ours."""


@contextmanager
def served(door: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    """Serve what is behind this door; gives its address."""
    server = _Server(("127.0.0.1", port), door)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
