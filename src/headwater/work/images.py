"""Downloads the images that posts show: a few at once, one at a time from each host, up to a total size.

A worker that is killed leaves a lease that expires, and at most a file that is recognised later by its content.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import structlog
from sqlalchemy import Connection

from headwater.crawl.images import ImageTools, save
from headwater.errors import StoreUnavailable
from headwater.ids import uuid7
from headwater.store import images
from headwater.store.db import Database
from headwater.store.images import files, queue
from headwater.store.images.queue import HINDERED, ImageClaim, ImageOutcome, SavedRecord
from headwater.work.leased import LeaseWorker

CONCURRENCY = 8  # downloads at once
LEASE = timedelta(minutes=5)
COUNT_EVERY = timedelta(minutes=1)  # other processes save images too
ORPHANED_AFTER = timedelta(hours=1)  # a file that has no record by then belongs to nobody

log = structlog.get_logger()


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
    """Downloads until `stop` is set. Then downloads in flight have `patience` to finish."""
    await LeaseWorker(db, Saver(db, tools, pace, clock)).run(stop, patience)


class Saver:
    """Claims images that are due and downloads them, while there is room on the disk."""

    name = "images"

    def __init__(self, db: Database, tools: ImageTools, pace: ImagePace, clock: ImageClock) -> None:
        self._db, self._tools, self._pace, self._clock = db, tools, pace, clock
        self._hindered_until: datetime | None = None
        self._counted_at: datetime | None = None
        self._is_full = False

    async def claim(self, in_hand: Collection[ImageClaim]) -> list[ImageClaim]:
        now = self._clock.now()
        room = CONCURRENCY - len(in_hand)
        if room <= 0 or (self._hindered_until and now < self._hindered_until):
            return []
        ids = await self._db.read(queue.due, now, room)
        if not ids or await self._full(now):
            return []
        return await self._db.write(queue.claim, ids, now=now, lease=uuid7(), lease_for=LEASE, gap=self._pace.gap)

    async def work(self, claim: ImageClaim) -> ImageOutcome:
        """Downloads one image when its host's turn comes."""
        delay = (claim.start_at - self._clock.now()).total_seconds()
        if delay > 0:
            await asyncio.sleep(delay)
        try:
            outcome = await save(claim.url, self._tools)
        except StoreUnavailable as error:
            # The disk takes nothing: the next images would be downloaded in vain.
            self._hindered_until = self._clock.now() + HINDERED
            log.error("images.unwritable", error=error.detail)
            return ImageOutcome("waiting", error_code=error.code, error=error.detail, counts=False)
        if outcome.error:
            log.info("image.failed", url=claim.url, state=outcome.state, error=outcome.error)
        return outcome

    def settle(self, conn: Connection, claim: ImageClaim, outcome: ImageOutcome) -> bool:
        return queue.record_outcome(conn, claim, outcome, self._clock.now(), self._clock.chance())

    def label(self, claim: ImageClaim) -> str:
        return claim.url

    async def _full(self, now: datetime) -> bool:
        if self._counted_at is None or not self._counted_at <= now < self._counted_at + COUNT_EVERY:
            total = await self._db.read(images.total_bytes)
            was_full, self._is_full = self._is_full, total >= self._pace.max_total_bytes
            self._counted_at = now
            if self._is_full and not was_full:
                log.warning("images.full", bytes=total, limit=self._pace.max_total_bytes)
        return self._is_full


async def heal(db: Database, folder: Path, now: Callable[[], datetime]) -> int:
    """Repairs the image store: deletes files without a record and downloads missing files again. Returns how many."""
    await db.write(queue.heal_clock, now())
    return await _drop_orphans(db, folder) + await _requeue_missing(db, folder, now)


async def _drop_orphans(db: Database, folder: Path) -> int:
    """Uses the file system's clock, not ours: the ages of files are measured by it."""
    before = time.time() - ORPHANED_AFTER.total_seconds()
    old = [file for file in await asyncio.to_thread(files.all_files, folder) if file.changed_at < before]
    dropped = 0
    for start in range(0, len(old), queue.HEALED_AT_ONCE):
        batch = old[start : start + queue.HEALED_AT_ONCE]
        known = await db.read(queue.known_hashes, [file.content_hash for file in batch if file.content_hash])
        for file in batch:
            if file.content_hash not in known:
                await asyncio.to_thread(files.delete, folder, file.path)
                dropped += 1
    return dropped


async def _requeue_missing(db: Database, folder: Path, now: Callable[[], datetime]) -> int:
    lost, after = 0, 0
    while records := await db.read(queue.saved_after, after):
        after = records[-1].image_id
        if missing := await asyncio.to_thread(_missing, folder, records):
            lost += await db.write(queue.mark_missing, missing, now())
    return lost


def _missing(folder: Path, records: Sequence[SavedRecord]) -> list[int]:
    return [one.image_id for one in records if files.size_of(folder, one.path) != one.size]
