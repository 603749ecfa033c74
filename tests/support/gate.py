"""The gate of a simulated site: it notes who asked for what, and lets every answer wait a moment.

Which page was under way when a process was killed can be told by this alone. Processes are told apart by how they name
themselves, so nothing depends on when a request of one that is dead by then arrives.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple

from headwater.sim.serving import served


class Asked(NamedTuple):
    path: str
    agent: str


class Gate:
    """`asked` is what came in, in this order; `answered` is how many answers have left again."""

    def __init__(self, delay: float = 0.02) -> None:
        self.delay = delay
        self.asked: list[Asked] = []
        self.answered = 0
        self._lock = threading.Lock()

    @contextmanager
    def before(self, door: type[BaseHTTPRequestHandler]) -> Iterator[str]:
        """Serve what is behind this door; gives its address."""
        gate = self

        class Watched(door):  # type: ignore[misc, valid-type]
            def do_GET(self) -> None:
                gate._enter(Asked(self.path, self.headers.get("User-Agent", "")))
                super().do_GET()
                self.wfile.flush()
                gate._leave()

        with served(Watched) as url:
            yield url

    def _enter(self, asked: Asked) -> None:
        with self._lock:
            self.asked.append(asked)
        time.sleep(self.delay)

    def _leave(self) -> None:
        with self._lock:
            self.answered += 1
