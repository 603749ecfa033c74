"""A simulated site on loopback: a server that answers each connection on a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


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
