"""Brings the records of pictures and their files together again, after kills, lost disks and hands in the folder."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from headwater.store import image_files, image_queue
from headwater.store.db import Database
from headwater.store.image_queue import SavedRecord

FORGOTTEN = timedelta(hours=1)  # a file that nobody has recorded for so long is nobody's


async def heal(db: Database, folder: Path, now: Callable[[], datetime]) -> int:
    """Bring records and files together again: what has no record goes, what has no file is downloaded again."""
    await db.write(image_queue.heal_clock, now())
    return await _drop_forgotten(db, folder) + await _find_lost(db, folder, now)


async def _drop_forgotten(db: Database, folder: Path) -> int:
    """Ages are compared with the clock that the files have their times from."""
    before = time.time() - FORGOTTEN.total_seconds()
    old = [file for file in await asyncio.to_thread(image_files.found, folder) if file.changed_at < before]
    dropped = 0
    for start in range(0, len(old), image_queue.HEALED_AT_ONCE):
        batch = old[start : start + image_queue.HEALED_AT_ONCE]
        known = await db.read(image_queue.known, [file.content_hash for file in batch if file.content_hash])
        for file in batch:
            if file.content_hash not in known:
                await asyncio.to_thread(image_files.drop, folder, file.path)
                dropped += 1
    return dropped


async def _find_lost(db: Database, folder: Path, now: Callable[[], datetime]) -> int:
    lost, after = 0, 0
    while records := await db.read(image_queue.saved_after, after):
        after = records[-1].image_id
        if missing := await asyncio.to_thread(_missing, folder, records):
            lost += await db.write(image_queue.lose, missing, now())
    return lost


def _missing(folder: Path, records: Sequence[SavedRecord]) -> list[int]:
    return [one.image_id for one in records if image_files.size_of(folder, one.path) != one.size]
