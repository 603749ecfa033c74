"""Downloads pictures that posts show: a few at once, each host's one by one, until the files take what they may.

Nothing is remembered here but how much there is: queue, leases and retries are in the store. A process that is killed
while it downloads leaves a lease that runs out, and at most a file that is found again by its content.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import structlog

from headwater.crawl import images as pictures
from headwater.crawl.images import ImageTools
from headwater.errors import HeadwaterError, StoreUnavailable
from headwater.store import images
from headwater.store.db import Database
from headwater.store.images import files, queue
from headwater.store.images.queue import HINDERED, ImageClaim, ImageOutcome, SavedRecord
from headwater.store.log.outbox import uuid7
from headwater.waiting import TROUBLE_SECONDS, finish
from headwater.waiting import wait as rest

PLACES = 8  # downloads at once
LEASE = timedelta(minutes=5)
LOOK_SECONDS = 1.0
COUNT_AGAIN = timedelta(minutes=1)  # others save as well

log = structlog.get_logger()

FORGOTTEN = timedelta(hours=1)  # a file that nobody has recorded for so long is nobody's


class ImagePace(NamedTuple):
    """How far apart requests to one host are, and how much all files together may take."""

    gap: timedelta
    max_total_bytes: int


class ImageClock(NamedTuple):
    now: Callable[[], datetime]
    chance: Callable[[], float]


async def save_images(
    db: Database, tools: ImageTools, pace: ImagePace, clock: ImageClock, patience: timedelta, stop: asyncio.Event
) -> None:
    """Download until `stop` is set; then what is under way has `patience` to end. Trouble is logged and waited out."""
    saver = Saver(db, tools, pace, clock)
    while not stop.is_set():
        pause = LOOK_SECONDS
        try:
            pause = 0.0 if await saver.start_due() else LOOK_SECONDS
        except HeadwaterError as error:
            log.warning("images.wait", error=error.detail)
            pause = TROUBLE_SECONDS
        await rest(pause, saver.ended, stop=stop)
    await saver.end_within(patience)


class Saver:
    """The downloads under way in this process."""

    def __init__(self, db: Database, tools: ImageTools, pace: ImagePace, clock: ImageClock) -> None:
        self._db, self._tools, self._pace, self._clock = db, tools, pace, clock
        self._under_way: set[asyncio.Task[None]] = set()
        self._hindered_until: datetime | None = None
        self._counted_at: datetime | None = None
        self._is_full = False
        self.ended = asyncio.Event()

    async def start_due(self) -> int:
        """Claim what is due, as far as there are places for it, and begin to download; returns how many."""
        now = self._clock.now()
        room = PLACES - len(self._under_way)
        if room <= 0 or (self._hindered_until and now < self._hindered_until):
            return 0
        ids = await self._db.read(queue.due, now, room)
        if not ids or await self._full(now):
            return 0
        claims = await self._db.write(queue.claim, ids, now=now, lease=uuid7(), lease_for=LEASE, gap=self._pace.gap)
        for claim in claims:
            task = asyncio.create_task(self._save(claim))
            self._under_way.add(task)
            task.add_done_callback(self._end)
        return len(claims)

    async def end_within(self, patience: timedelta) -> None:
        """What does not end in time is left to its lease."""
        await finish(self._under_way, patience)

    async def _full(self, now: datetime) -> bool:
        if self._counted_at is None or not self._counted_at <= now < self._counted_at + COUNT_AGAIN:
            total = await self._db.read(images.total_bytes)
            was_full, self._is_full = self._is_full, total >= self._pace.max_total_bytes
            self._counted_at = now
            if self._is_full and not was_full:
                log.warning("images.full", bytes=total, limit=self._pace.max_total_bytes)
        return self._is_full

    def _end(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self.ended.set()
        if not task.cancelled() and (error := task.exception()):
            log.error("image.broken", exc_info=error)  # its lease runs out, and it is tried again (H98)

    async def _save(self, claim: ImageClaim) -> None:
        wait = (claim.start_at - self._clock.now()).total_seconds()
        if wait > 0:
            await asyncio.sleep(wait)
        outcome = await self._outcome(claim)
        try:
            kept = await self._db.write(queue.settle, claim, outcome, self._clock.now(), self._clock.chance())
        except HeadwaterError as error:
            log.warning("image.unrecorded", url=claim.url, error=error.detail)
            return
        if not kept:
            log.warning("image.refused", url=claim.url, reason="the lease was lost")
        elif outcome.error:
            log.info("image.failed", url=claim.url, state=outcome.state, error=outcome.error)

    async def _outcome(self, claim: ImageClaim) -> ImageOutcome:
        try:
            return await pictures.save(claim.url, self._tools)
        except StoreUnavailable as error:
            # The next ones would be downloaded for nothing.
            self._hindered_until = self._clock.now() + HINDERED
            log.error("images.unwritable", error=error.detail)
            return ImageOutcome("waiting", error_code=error.code, error=error.detail, counts=False)


async def heal(db: Database, folder: Path, now: Callable[[], datetime]) -> int:
    """Bring records and files together again: what has no record goes, what has no file is downloaded again."""
    await db.write(queue.heal_clock, now())
    return await _drop_forgotten(db, folder) + await _find_lost(db, folder, now)


async def _drop_forgotten(db: Database, folder: Path) -> int:
    """Ages are compared with the clock that the files have their times from."""
    before = time.time() - FORGOTTEN.total_seconds()
    old = [file for file in await asyncio.to_thread(files.found, folder) if file.changed_at < before]
    dropped = 0
    for start in range(0, len(old), queue.HEALED_AT_ONCE):
        batch = old[start : start + queue.HEALED_AT_ONCE]
        known = await db.read(queue.known, [file.content_hash for file in batch if file.content_hash])
        for file in batch:
            if file.content_hash not in known:
                await asyncio.to_thread(files.drop, folder, file.path)
                dropped += 1
    return dropped


async def _find_lost(db: Database, folder: Path, now: Callable[[], datetime]) -> int:
    lost, after = 0, 0
    while records := await db.read(queue.saved_after, after):
        after = records[-1].image_id
        if missing := await asyncio.to_thread(_missing, folder, records):
            lost += await db.write(queue.lose, missing, now())
    return lost


def _missing(folder: Path, records: Sequence[SavedRecord]) -> list[int]:
    return [one.image_id for one in records if files.size_of(folder, one.path) != one.size]
