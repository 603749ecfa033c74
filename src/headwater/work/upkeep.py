"""Upkeep of a running process: watches over the store, and returns memory to the system.

The store: what is wrong with it is logged, and the whole SQLite file is read once a day to find damage.

Memory: bursts, such as a first crawl, leave free memory behind. Posts come by the thousand, are written and freed. What
is freed in the middle of the heap stays with the process, and each thread has a heap of its own, unless glibc is told
otherwise. Elsewhere than on glibc nothing is done.
"""

from __future__ import annotations

import asyncio
import ctypes
import time
from contextlib import suppress

import structlog

from headwater.errors import StoreUnavailable
from headwater.store.db import Database
from headwater.waiting import wait

LOOK_SECONDS = 15.0
FIRST_CHECK_SECONDS = 600.0
CHECK_SECONDS = 86400.0
TRIM_EVERY = 30.0
_M_ARENA_MAX = -8  # as in malloc.h

log = structlog.get_logger(__name__)


async def watch_store(db: Database, stop: asyncio.Event) -> None:
    """Runs until `stop` is set."""
    known: set[str] = set()
    if exposure := db.condition.exposure():
        log.warning("store.exposed", file=str(db.condition.file), detail=exposure)
    check_at = time.monotonic() + FIRST_CHECK_SECONDS
    while not stop.is_set():
        if time.monotonic() >= check_at:
            check_at = time.monotonic() + CHECK_SECONDS
            with suppress(StoreUnavailable):  # the condition of the store has it
                await asyncio.to_thread(db.quick_check)
        known = _report(db, known)
        await wait(LOOK_SECONDS, stop=stop)


def _report(db: Database, known: set[str]) -> set[str]:
    found = {problem.detail: problem.code for problem in db.condition.problems()}
    for detail in found.keys() - known:
        log.error("store.trouble", code=found[detail], detail=detail)
    if known and not found:
        log.info("store.recovered")
    return set(found)


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
