"""A gate in front of a simulated site: it records every request and delays every response a little.

It shows which page was in flight when a process was killed. Processes are told apart by their user agent, so a late
request of a process that is dead by then does no harm.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from headwater.sim.serving import Answered, Ask, request_handler, served


class Asked(NamedTuple):
    path: str
    agent: str


class Gate:
    """`asked` holds the requests in order; `answered` counts the responses sent."""

    def __init__(self, delay: float = 0.02) -> None:
        self.delay = delay
        self.asked: list[Asked] = []
        self.answered = 0
        self._lock = threading.Lock()

    @contextmanager
    def before(self, answer: Callable[[Ask], Answered]) -> Iterator[str]:
        """Serves a site that answers with this function; yields its address."""
        gate = self

        class Watched(request_handler(answer)):  # type: ignore[misc]
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
