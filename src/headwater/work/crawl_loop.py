"""The crawl loop: claims the sources that are due and has them visited.

Several processes may run it on one database, because claims are exclusive. Nothing is remembered here: the schedule is
a column in the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from headwater.crawl.crawler import Crawler
from headwater.errors import HeadwaterError
from headwater.ids import uuid7
from headwater.store.db import Database
from headwater.store.sources import leases
from headwater.waiting import POLL_SECONDS, TROUBLE_SECONDS, wait

log = structlog.get_logger()


class CrawlPace(NamedTuple):
    """How many visits at once, how long a lease lasts, how far apart requests to one host are."""

    most_in_hand: int
    lease_for: timedelta
    gap: timedelta


async def run(
    db: Database,
    crawler: Crawler,
    pace: CrawlPace,
    now: Callable[[], datetime],
    woken: asyncio.Event,
    stop: asyncio.Event,
) -> None:
    """Crawls until `stop` is set. Logs database errors and waits them out; they do not end the loop."""
    while not stop.is_set():
        pause = POLL_SECONDS
        try:
            pause = await step(db, crawler, pace, now)
        except HeadwaterError as error:
            log.warning("crawl.waits", error=error.detail)
            pause = TROUBLE_SECONDS
        await wait(pause, woken, crawler.changed, stop=stop)


async def step(db: Database, crawler: Crawler, pace: CrawlPace, now: Callable[[], datetime]) -> float:
    """Claims and starts as many visits as there is room for. Returns how long to wait unless something happens."""
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
