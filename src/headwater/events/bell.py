"""The bell: tells whoever follows the log in this process that something was appended. Missing it costs a second."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Bell:
    """`ring` may be called from any thread, at any time."""

    def __init__(self) -> None:
        self._listeners: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """A signal that is set at each ring; the listener takes it back."""
        rung = asyncio.Event()
        self._listeners[rung] = asyncio.get_running_loop()
        try:
            yield rung
        finally:
            del self._listeners[rung]

    def ring(self) -> None:
        for rung, loop in list(self._listeners.items()):
            if not rung.is_set():
                with suppress(RuntimeError):  # its loop has just ended; the write that rings must not fail for that
                    loop.call_soon_threadsafe(rung.set)
