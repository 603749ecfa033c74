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
from headwater.model import DueSource
from headwater.store.db import Database
from headwater.store.sources import leases
from headwater.waiting import POLL_SECONDS, TROUBLE_SECONDS, wait

MOST_ASKED = 50  # claimed at once without room
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
    only_room = False  # whether all that happened is that a visit ended
    while not stop.is_set():
        pause = POLL_SECONDS
        try:
            pause = await step(db, crawler, pace, now, only_room=only_room)
        except HeadwaterError as error:
            log.warning("crawl.waits", error=error.detail)
            pause = TROUBLE_SECONDS
        only_room = await wait(pause, woken, crawler.changed, stop=stop) == {crawler.changed}


async def step(
    db: Database, crawler: Crawler, pace: CrawlPace, now: Callable[[], datetime], *, only_room: bool = False
) -> float:
    """Claims and starts as many visits as there is room for. Returns how long to wait unless something happens.

    What a person asked for is started even if there is no room: it must not wait for what was claimed before it.
    """
    room = pace.most_in_hand - crawler.in_hand
    if room < pace.most_in_hand / 2:
        if not only_room and await db.read(leases.is_asked, now()):
            crawler.start(await _claim(db, leases.claim_asked, pace, now, MOST_ASKED))
        return POLL_SECONDS
    due_at = await db.read(leases.next_due)
    if due_at is None or due_at > now():
        return min(POLL_SECONDS, (due_at - now()).total_seconds()) if due_at else POLL_SECONDS
    granted = await _claim(db, leases.claim_due, pace, now, room)
    crawler.start(granted)
    return 0.0 if granted else POLL_SECONDS / 4


async def _claim(
    db: Database, claim: Callable[..., list[DueSource]], pace: CrawlPace, now: Callable[[], datetime], limit: int
) -> list[DueSource]:
    return await db.write(claim, now=now(), lease=uuid7(), lease_for=pace.lease_for, gap=pace.gap, limit=limit)
