"""The time that processes on several machines agree on: that of the PostgreSQL they share.

Leases, slots and budgets are points in time that one process writes and another compares with its own time. A machine
whose clock is ahead would take leases for expired that are held, and one whose clock is behind would hold what nobody
else does. So each asks the database now and then. In between, time is measured by a clock that nobody sets.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from headwater.errors import StoreUnavailable
from headwater.store.db import Database

ASK_EVERY = 10.0
AGAIN_AFTER = 1.0
PATIENCE = 0.5  # an answer that took longer says too little about the present
_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on while a machine sleeps, where there is one


def uptime() -> float:
    """Returns seconds since some point in time. Setting the clock does not change it."""
    return time.clock_gettime(_UPTIME)


def server_time(conn: Connection) -> datetime:
    """Returns the time by the clock of the server. SQLite has none of its own."""
    found: datetime = conn.exec_driver_sql("SELECT clock_timestamp()").scalar_one()
    return found.astimezone(UTC)


class SharedClock:
    """Tells the time of a PostgreSQL. Until that has answered for the first time, it tells the time of this machine.

    Calls wait for the database until it has answered once, because whatever is written by another time in between would
    stay: a lease or a slot that is an hour ahead. Later calls have it asked by a thread.
    """

    def __init__(self, db: Database, local: Callable[[], datetime], ticks: Callable[[], float] = uptime) -> None:
        self._db, self._local, self._ticks = db, local, ticks
        self._known: tuple[datetime, float] | None = None  # the time there, and the ticks at that moment
        self._ask_at = 0.0
        self._asking = threading.Lock()

    def __call__(self) -> datetime:
        if self._known is None:
            self._ask()
        elif self._ticks() >= self._ask_at and self._asking.acquire(blocking=False):
            threading.Thread(target=self._ask_once, name="clock", daemon=True).start()
        if self._known is None:
            return self._local()
        then, at = self._known
        return then + timedelta(seconds=self._ticks() - at)

    def _ask_once(self) -> None:
        try:
            self._ask()
        finally:
            self._asking.release()

    def _ask(self) -> None:
        """Asks again soon if there is no answer, or if it took too long to be of use."""
        self._ask_at = self._ticks() + AGAIN_AFTER
        try:
            found, at, seconds = self._db.read_now(self._measured)
        except StoreUnavailable:
            return
        if self._known is None or seconds <= PATIENCE:
            self._known = (found, at)
        if seconds <= PATIENCE:
            self._ask_at += ASK_EVERY

    def _measured(self, conn: Connection) -> tuple[datetime, float, float]:
        """Returns the time there, the ticks at about that moment, and how long the answer took."""
        began = self._ticks()
        found = server_time(conn)
        ended = self._ticks()
        return found, (began + ended) / 2, ended - began

    def close(self) -> None:
        """Waits for a question under way. None is asked after this."""
        with self._asking:
            self._ask_at = math.inf
