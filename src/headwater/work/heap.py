"""Returns memory to the system that bursts, such as a first crawl, leave behind. For glibc; elsewhere it does nothing.

Posts come by the thousand, are written and freed. What is freed in the middle of the heap stays with the process, and
each thread has a heap of its own, unless glibc is told otherwise.
"""

from __future__ import annotations

import asyncio
import ctypes

from headwater.store.db import Database
from headwater.waiting import wait

TRIM_EVERY = 30.0
_M_ARENA_MAX = -8  # as in malloc.h


def share_one_heap() -> None:
    """Makes all threads allocate from one heap. Has an effect on threads that start later."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(_M_ARENA_MAX, 1)


async def keep_trimmed(db: Database, stop: asyncio.Event) -> None:
    """Frees what the database has cached, and returns free memory, twice a minute until `stop` is set."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while not stop.is_set():
        await asyncio.to_thread(db.shrink)
        if trim:
            await asyncio.to_thread(trim, 0)
        await wait(TRIM_EVERY, stop=stop)
