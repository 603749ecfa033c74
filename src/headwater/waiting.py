"""How loops wait: for a time, for a wake-up signal, or until they are told to stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

TROUBLE_SECONDS = 5.0


async def wait(seconds: float, *wakers: asyncio.Event, stop: asyncio.Event) -> bool:
    """Wait, but not longer than until `stop` or one of the wakers is set; returns whether a waker was.

    The wakers are taken back.
    """
    if seconds <= 0 and not wakers:
        return False
    waiting = [asyncio.ensure_future(signal.wait()) for signal in (*wakers, stop)]
    try:
        await asyncio.wait(waiting, timeout=max(seconds, 0.0), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
    woken = any(signal.is_set() for signal in wakers)
    for signal in wakers:
        signal.clear()
    return woken


async def run_until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do this, but give it up when `stop` is set."""
    stopping, working = asyncio.ensure_future(stop.wait()), asyncio.ensure_future(work)
    try:
        await asyncio.wait([stopping, working], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        if not working.done():
            working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working


async def finish(tasks: Collection[asyncio.Task[None]], patience: timedelta) -> None:
    """Let these come to their end; those that have not by then are given up."""
    if not tasks:
        return
    _, unfinished = await asyncio.wait(tasks, timeout=patience.total_seconds())
    for task in unfinished:
        task.cancel()
    await asyncio.gather(*unfinished, return_exceptions=True)


class WakeUpSignal:
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
