"""Runs libcurl's transfers on the event loop, many at once, each awaited as a future.

libcurl says which sockets it waits for. They go into one selector of our own, and the event loop only watches that.
Registering each socket with the loop costs a third to two thirds more CPU per request, because the loop then wakes once
per socket (`bench/fetch.py` measures both).
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from math import inf
from socket import socket
from typing import Any

import pycurl

Easy = Any  # pycurl.Curl; the module has no type hints
OK = 0
CLOSED = -1  # our own code: `close` was called during the transfer
_CLOSING_SECONDS = 1.0


class Transfers:
    """Belongs to the event loop it is made on. `run` runs a transfer, and removes it at once if it is cancelled."""

    def __init__(self, max_idle_connections: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._futures: dict[Easy, asyncio.Future[tuple[int, str]]] = {}
        self._lent: list[socket] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf
        self._kicked = False
        self._closing = False
        self._watched: set[int] = set()
        self._selector = selectors.DefaultSelector()
        self._loop.add_reader(self._selector.fileno(), self._sockets_ready)
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._wake_in)
        self._multi.setopt(pycurl.M_MAXCONNECTS, max_idle_connections)

    async def run(self, easy: Easy) -> tuple[int, str]:
        """Runs a transfer to its end. Returns libcurl's code (0 is success) and message."""
        future: asyncio.Future[tuple[int, str]] = self._loop.create_future()
        self._futures[easy] = future
        self._multi.add_handle(easy)
        try:
            return await future
        finally:
            if self._futures.pop(easy, None) is not None:
                self._multi.remove_handle(easy)

    def lend(self, opened: socket) -> socket:
        """Returns a socket that libcurl is about to copy. Ours is closed as soon as it has."""
        self._lent.append(opened)
        return opened

    async def close(self) -> None:
        """Ends all transfers. Name lookups that hang cannot be interrupted, so it waits only briefly for them."""
        for easy in list(self._futures):
            self._end(easy, CLOSED, "")
        # From here on the thread below owns libcurl. Nothing else may call it, and it may not call back.
        self._closing = True
        self._loop.remove_reader(self._selector.fileno())
        if self._timer:
            self._timer.cancel()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, None)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, None)
        closing = threading.Thread(target=self._multi.close, name="curl-close", daemon=True)
        closing.start()
        give_up = self._loop.time() + _CLOSING_SECONDS
        while closing.is_alive() and self._loop.time() < give_up:
            await asyncio.sleep(0.002)
        self._selector.close()

    def _watch(self, events: int, fd: int, multi: object, data: object) -> None:
        # libcurl's POLL_IN and POLL_OUT have the values of EVENT_READ and EVENT_WRITE, and so do its CSELECT flags.
        if events == pycurl.POLL_REMOVE:
            if fd in self._watched:
                self._watched.remove(fd)
                self._selector.unregister(fd)
        elif fd in self._watched:
            self._selector.modify(fd, events)
        else:
            self._watched.add(fd)
            self._selector.register(fd, events)

    def _sockets_ready(self) -> None:
        for key, events in self._selector.select(0):
            self._multi.socket_action(key.fd, events)
        self._finish()

    def _wake_in(self, milliseconds: int) -> None:
        """Sets libcurl's one timer.

        libcurl moves it with every transfer, mostly to a later time. A timer of the loop that fires too early and is
        set again costs less than cancelling it each time.
        """
        if milliseconds == 0:
            if not self._kicked:
                self._kicked = True
                self._loop.call_soon(self._kick)
            return
        self._due = self._loop.time() + milliseconds / 1000 if milliseconds > 0 else inf
        if self._timer and self._timer.when() > self._due:
            self._timer.cancel()
            self._timer = None
        if not self._timer and self._due < inf:
            self._timer = self._loop.call_at(self._due, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._due <= self._loop.time():
            self._due = inf
            self._kick()
        if not self._timer and self._due < inf:
            self._timer = self._loop.call_at(self._due, self._ring)

    def _kick(self) -> None:
        self._kicked = False
        if self._closing:
            return
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._finish()

    def _finish(self) -> None:
        while self._lent:
            self._lent.pop().close()
        waiting = 1
        while waiting:
            waiting, good, bad = self._multi.info_read()
            for easy in good:
                self._end(easy, OK, "")
            for easy, code, message in bad:
                self._end(easy, code, message)

    def _end(self, easy: Easy, code: int, message: str) -> None:
        future = self._futures.pop(easy, None)
        if future is None:
            return
        self._multi.remove_handle(easy)
        if not future.done():
            future.set_result((code, message))
