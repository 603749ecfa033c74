"""How a loop waits: for a time, or until something happens."""

from __future__ import annotations

import asyncio

TROUBLE_SECONDS = 5.0


async def rest(seconds: float, *wakers: asyncio.Event, stop: asyncio.Event) -> bool:
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
