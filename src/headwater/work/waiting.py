"""How a loop waits: for a time, or until something happens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Coroutine
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
