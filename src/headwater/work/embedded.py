"""The crawl loop inside one process: claims what is due, visits it, and does the periodic work.

Several processes may run it on one database: claims are exclusive. Nothing is remembered here: the schedule is a column
of the store.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from headwater.crawl.crawler import Crawler
from headwater.errors import HeadwaterError
from headwater.store import leases
from headwater.store.db import Database
from headwater.store.outbox import uuid7
from headwater.work.resting import TROUBLE_SECONDS, rest

POLL_SECONDS = 1.0
log = structlog.get_logger()


class Pace(NamedTuple):
    """How much at once, how long a lease lasts, how far apart requests to one host are."""

    most_in_hand: int
    lease_for: timedelta
    gap: timedelta


class Periodic(NamedTuple):
    name: str
    every: timedelta
    work: Callable[[], object]


async def run(
    db: Database, crawler: Crawler, pace: Pace, now: Callable[[], datetime], woken: asyncio.Event, stop: asyncio.Event
) -> None:
    """Crawl until `stop` is set. Trouble with the store is logged and waited out; the loop does not end of it."""
    while not stop.is_set():
        pause = POLL_SECONDS
        try:
            pause = await step(db, crawler, pace, now)
        except HeadwaterError as error:
            log.warning("crawl.waits", error=error.detail)
            pause = TROUBLE_SECONDS
        await rest(pause, woken, crawler.changed, stop=stop)


async def step(db: Database, crawler: Crawler, pace: Pace, now: Callable[[], datetime]) -> float:
    """Claim and start what fits; returns how long to rest unless something happens."""
    room = pace.most_in_hand - crawler.in_hand
    if room < pace.most_in_hand / 2:
        return POLL_SECONDS
    due_at = await db.read(leases.next_due)
    if due_at is None or due_at > now():
        return min(POLL_SECONDS, (due_at - now()).total_seconds()) if due_at else POLL_SECONDS
    granted = await db.write(
        leases.claim_due, now=now(), lease=uuid7(), lease_for=pace.lease_for, gap=pace.gap, limit=room
    )
    crawler.start(granted)
    return 0.0 if granted else POLL_SECONDS / 4


async def keep_house(chores: list[Periodic], stop: asyncio.Event) -> None:
    """Do each chore at the start and then at its interval. One that fails is logged and tried again next time."""
    loop = asyncio.get_running_loop()
    due = dict.fromkeys(range(len(chores)), loop.time())
    while not stop.is_set():
        for place, chore in enumerate(chores):
            if loop.time() >= due[place]:
                due[place] = loop.time() + chore.every.total_seconds()
                await _do(chore)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), max(0.0, min(due.values()) - loop.time()))


async def _do(chore: Periodic) -> None:
    try:
        result = chore.work()
        if asyncio.iscoroutine(result):
            result = await result
        log.debug("chore.done", chore=chore.name, result=result)
    except HeadwaterError as error:
        log.warning("chore.failed", chore=chore.name, error=error.detail)
