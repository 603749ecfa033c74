"""Watches over the store: logs what is wrong with it, and reads the whole SQLite file once a day to find damage."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import structlog

from headwater.errors import StoreUnavailable
from headwater.store.db import Database
from headwater.waiting import wait

LOOK_SECONDS = 15.0
FIRST_CHECK_SECONDS = 600.0
CHECK_SECONDS = 86400.0

log = structlog.get_logger(__name__)


async def watch(db: Database, stop: asyncio.Event) -> None:
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
