"""How loops wait: for a time, for a wake-up signal, for a free slot, or until they have to stop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Coroutine, Iterator, Set
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from datetime import timedelta
from typing import Any

POLL_SECONDS = 1.0  # how often a loop looks for work when nothing wakes it
SOON_SECONDS = 0.005  # how soon it looks again when what woke it may not be visible yet
TROUBLE_SECONDS = 5.0  # how long it waits after an error


class WakeUpSignal:
    """Wakes every loop of this process that listens. A loop that misses it looks by itself a second later."""

    def __init__(self) -> None:
        self._listeners: dict[asyncio.Event, tuple[asyncio.AbstractEventLoop, Set[str]]] = {}

    @contextmanager
    def listening(self, kinds: Set[str] = frozenset()) -> Iterator[asyncio.Event]:
        """Yields an event that each `send` sets, or each that is about one of these kinds. The listener clears it."""
        woken = asyncio.Event()
        self._listeners[woken] = asyncio.get_running_loop(), kinds
        try:
            yield woken
        finally:
            del self._listeners[woken]

    def send(self, kinds: Set[str] = frozenset()) -> None:
        """Wakes the listeners: those that listen for one of these kinds or, if none is named, all. May be called from
        any thread."""
        for woken, (loop, wanted) in list(self._listeners.items()):
            if not woken.is_set() and (not kinds or not wanted or not wanted.isdisjoint(kinds)):
                with suppress(RuntimeError):  # its loop has just closed; the write that wakes it must not fail for that
                    loop.call_soon_threadsafe(woken.set)


class Slots:
    """Lets a number of tasks work at once. Those that come first overtake all others that wait."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._first: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()

    def taken(self, *, first: bool = False) -> AbstractAsyncContextManager[None]:
        """Waits for a free slot, and holds it."""
        return _TakenSlot(self, first)

    async def take(self, *, first: bool) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        (self._first if first else self._others).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()  # it was this task's turn just then
            raise

    def give_back(self) -> None:
        for waiting in (self._first, self._others):
            while waiting:
                turn = waiting.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1


class _TakenSlot(AbstractAsyncContextManager[None]):
    def __init__(self, slots: Slots, first: bool) -> None:
        self._slots, self._is_first = slots, first

    async def __aenter__(self) -> None:
        await self._slots.take(first=self._is_first)

    async def __aexit__(self, *_: object) -> None:
        self._slots.give_back()


async def wait(seconds: float, *wakers: asyncio.Event, stop: asyncio.Event | None = None) -> set[asyncio.Event]:
    """Waits until a waker or `stop` is set, but no longer than `seconds`. Returns the wakers that were set, cleared."""
    if seconds <= 0 and not wakers:
        return set()
    signals = (*wakers, stop) if stop else wakers
    waiting = [asyncio.ensure_future(signal.wait()) for signal in signals]
    try:
        await asyncio.wait(waiting, timeout=max(seconds, 0.0), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
    woken = {signal for signal in wakers if signal.is_set()}
    for signal in woken:
        signal.clear()
    return woken


async def run_until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Does the work, but cancels it when `stop` is set."""
    stopping, working = asyncio.ensure_future(stop.wait()), asyncio.ensure_future(work)
    try:
        await asyncio.wait([stopping, working], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        if not working.done():
            working.cancel()
    with suppress(asyncio.CancelledError):
        await working


async def finish(tasks: Collection[asyncio.Task[None]], patience: timedelta) -> None:
    """Lets the tasks finish. Cancels those that are still running after `patience`."""
    if not tasks:
        return
    _, unfinished = await asyncio.wait(tasks, timeout=patience.total_seconds())
    for task in unfinished:
        task.cancel()
    await asyncio.gather(*unfinished, return_exceptions=True)
