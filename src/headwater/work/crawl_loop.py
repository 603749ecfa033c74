"""The crawl loop inside one process: claims what is due, visits it, and does the periodic work.

Several processes may run it on one database: claims are exclusive. Nothing is remembered here: the schedule is a column
of the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from headwater.crawl.crawler import Crawler
from headwater.errors import HeadwaterError
from headwater.store.db import Database
from headwater.store.log.outbox import uuid7
from headwater.store.sources import leases
from headwater.waiting import TROUBLE_SECONDS, run_until, wait
from headwater.work.periodic import JOBS, QUEUES, Job, PeriodicTools, is_expired, next_run

POLL_SECONDS = 1.0
log = structlog.get_logger()


class CrawlPace(NamedTuple):
    """How much at once, how long a lease lasts, how far apart requests to one host are."""

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
    """Crawl until `stop` is set. Trouble with the store is logged and waited out; the loop does not end of it."""
    while not stop.is_set():
        pause = POLL_SECONDS
        try:
            pause = await step(db, crawler, pace, now)
        except HeadwaterError as error:
            log.warning("crawl.waits", error=error.detail)
            pause = TROUBLE_SECONDS
        await wait(pause, woken, crawler.changed, stop=stop)


async def step(db: Database, crawler: Crawler, pace: CrawlPace, now: Callable[[], datetime]) -> float:
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


async def run_periodic(house: PeriodicTools, stop: asyncio.Event) -> None:
    """Do the periodic work, each queue beside the others and within one after the other, until `stop` is set."""
    async with asyncio.TaskGroup() as group:
        for queue in QUEUES:
            group.create_task(_work_off([job for job in JOBS if job.queue == queue], house, stop))


async def _work_off(jobs: Sequence[Job], house: PeriodicTools, stop: asyncio.Event) -> None:
    """Do each job at the start and then at its times. One that is under way at the end is given up: it can be again."""
    due = dict.fromkeys(jobs, house.now())
    while jobs and not stop.is_set():
        for job in jobs:
            now = house.now()
            due_at, due[job] = due[job], min(due[job], next_run(job, now))  # sooner where the clock went back
            if now >= due_at and not stop.is_set():
                due[job] = next_run(job, now)
                await run_until(stop, _do(job, due_at, house))
        await wait((min(due.values()) - house.now()).total_seconds(), stop=stop)


async def _do(job: Job, due_at: datetime, house: PeriodicTools) -> None:
    """One that fails is logged and tried again next time."""
    if is_expired(job, due_at, house.now()):
        log.info("job.expired", job=job.name, due_at=due_at.isoformat())
        return
    try:
        result = await job.work(house)
        log.debug("job.done", job=job.name, result=result)
    except HeadwaterError as error:
        log.warning("job.failed", job=job.name, error=error.detail)
