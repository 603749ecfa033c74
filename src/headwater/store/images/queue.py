"""Which images to download now, leases on them, and how downloading went.

A claim is a lease, as for sources: its token fences what is written at the end, and a lost one is due again by itself.
One image of each host is downloaded at a time, and only if no source waits for that host, so that a visit never waits
behind a thousand images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.sources import leases
from headwater.store.sql import json_text, portable

RETRIES = (60, 600, 3600)  # seconds after each failure; then the image is given up
HINDERED = timedelta(minutes=5)  # until the next try, after a failure that was not the image's fault
JITTER = 0.2
LONGEST_WAIT = timedelta(days=2)  # no retry is further away, unless the clock was set back
LONGEST_ERROR = 500
HEALED_AT_ONCE = 500


class ImageClaim(NamedTuple):
    """The right to download an image, not before `start_at`."""

    image_id: int
    url: str
    host: str
    attempts: int
    lease: str
    start_at: datetime


class SavedFile(NamedTuple):
    content_hash: str
    path: str
    type: str
    size: int
    width: int | None
    height: int | None


class ImageOutcome(NamedTuple):
    """How an attempt went. `state` is saved, skipped, failed (given up at once) or waiting (worth another attempt).

    `counts` is False if the failure was not the image's fault. `hold_for` is how long its host asked for a pause.
    """

    state: str
    file: SavedFile | None = None
    error_code: str | None = None
    error: str | None = None
    counts: bool = True
    hold_for: timedelta | None = None
    metadata: Mapping[str, str] = {}


class SavedRecord(NamedTuple):
    image_id: int
    path: str
    size: int


class _WaitingImage(NamedTuple):
    id: int
    url: str
    host: str
    attempts: int


# Goes from host to host along the index, however many images each of them has.
_due = portable(
    """WITH RECURSIVE waiting (host) AS (
        SELECT MIN(host) FROM images WHERE state = 'waiting'
        UNION ALL
        SELECT (SELECT MIN(host) FROM images WHERE state = 'waiting' AND host > waiting.host)
        FROM waiting WHERE waiting.host IS NOT NULL
    ), first (id) AS (
        SELECT (SELECT id FROM images i WHERE i.state = 'waiting' AND i.host = waiting.host AND i.next_try_at <= ?
            ORDER BY i.next_try_at, i.id LIMIT 1)
        FROM waiting WHERE host IS NOT NULL AND NOT EXISTS (SELECT 1 FROM hosts q
            WHERE q.host = waiting.host AND (q.next_at > ? OR q.held_until > ?))
    )
    SELECT i.id FROM first JOIN images i ON i.id = first.id ORDER BY i.next_try_at, i.id LIMIT ?"""
)
_select = portable(
    "SELECT id, url, host, attempts FROM images WHERE id IN (?) AND state = 'waiting' AND next_try_at <= ? ORDER BY id",
    postgresql=" FOR UPDATE SKIP LOCKED",
    row=_WaitingImage,
)
_lease = portable("UPDATE images SET lease_owner = ?, lease_until = ?, next_try_at = ? WHERE id = ?")
_settle = portable(
    """UPDATE images SET state = :state, next_try_at = :next_try_at, attempts = attempts + :attempts,
        error_code = :error_code, error = :error, tried_at = :now, saved_at = :saved_at, content_hash = :content_hash,
        path = :path, type = :type, size = :size, width = :width, height = :height, metadata = :metadata,
        lease_owner = NULL, lease_until = NULL
    WHERE id = :id AND lease_owner = :lease"""
)
_retry_failed = portable(
    """UPDATE images SET state = 'waiting', next_try_at = ?, attempts = 0, lease_owner = NULL, lease_until = NULL
    WHERE state = 'failed' AND state <> 'waiting'"""
)
_saved_after = portable(
    "SELECT id, path, size FROM images WHERE state = 'saved' AND state <> 'waiting' AND id > ? ORDER BY id LIMIT ?",
    row=SavedRecord,
)
_mark_missing = portable(
    """UPDATE images SET state = 'waiting', next_try_at = ?, attempts = 0, saved_at = NULL, content_hash = NULL,
        path = NULL, error = ? WHERE id IN (?) AND state = 'saved'"""
)
_known = portable("SELECT DISTINCT content_hash FROM images WHERE content_hash IN (?)")
_heal_clock = portable(
    """UPDATE images SET next_try_at = ?, lease_owner = NULL, lease_until = NULL
    WHERE state = 'waiting' AND next_try_at > ?"""
)


def due(conn: Connection, now: datetime, limit: int) -> list[int]:
    """Returns the next image of each host that has no queue, those that wait for longest first."""
    return _due.values(conn, now, now, now, limit)


def claim(
    conn: Connection, ids: Sequence[int], *, now: datetime, lease: str, lease_for: timedelta, gap: timedelta
) -> list[ImageClaim]:
    """Leases these images, unless others have leased them or taken the slots of their hosts in the meantime."""
    rows = _select.all(conn, list(ids), now)
    slots = leases.reserve_slots(conn, [row.host for row in rows], now, gap)
    granted = [
        ImageClaim(row.id, row.url, row.host, row.attempts, lease, slots[row.host]) for row in rows if row.host in slots
    ]
    until = now + lease_for
    _lease.many(conn, [(lease, until, until, one.image_id) for one in granted])
    return granted


def record_outcome(conn: Connection, claim: ImageClaim, outcome: ImageOutcome, now: datetime, chance: float) -> bool:
    """Records how an attempt went. Returns False, and writes nothing, if the lease was lost."""
    state, next_try_at = next_state(outcome, claim.attempts, now, chance)
    file = outcome.file._asdict() if outcome.file else dict.fromkeys(SavedFile._fields)
    written = _settle.once(
        conn,
        id=claim.image_id,
        lease=claim.lease,
        state=state,
        next_try_at=next_try_at,
        attempts=int(outcome.counts),
        error_code=outcome.error_code,
        error=outcome.error[:LONGEST_ERROR] if outcome.error else None,
        now=now,
        saved_at=now if outcome.file else None,
        metadata=json_text(dict(outcome.metadata)),
        **file,
    )
    if written and outcome.hold_for:
        leases.pause_host(conn, claim.host, now, now + outcome.hold_for)
    return bool(written)


def next_state(outcome: ImageOutcome, attempts: int, now: datetime, chance: float) -> tuple[str, datetime | None]:
    """Returns the state after an attempt, and when to try again, if ever. Pure. `attempts` are those before it."""
    if outcome.state != "waiting":
        return outcome.state, None
    if not outcome.counts:
        return "waiting", now + HINDERED
    if attempts >= len(RETRIES):
        return "failed", None
    wait = timedelta(seconds=RETRIES[attempts] * (1 + JITTER * chance))
    return "waiting", now + max(wait, outcome.hold_for or wait)


def retry_failed(conn: Connection, now: datetime) -> int:
    """Makes all failed images due again. Returns how many."""
    return _retry_failed.once(conn, now)


def saved_after(conn: Connection, image_id: int) -> list[SavedRecord]:
    """Returns the next records that should have a file."""
    return _saved_after.all(conn, image_id, HEALED_AT_ONCE)


def mark_missing(conn: Connection, image_ids: Sequence[int], now: datetime) -> int:
    """Makes images due again whose files are missing. Returns how many."""
    return _mark_missing.once(conn, now, "Its file was missing.", list(image_ids))


def known_hashes(conn: Connection, hashes: Sequence[str]) -> set[str]:
    """Returns those of these contents that a record names."""
    return set(_known.values(conn, list(hashes)))


def heal_clock(conn: Connection, now: datetime) -> int:
    """Makes images due now that are due far in the future, because the clock was set back. Returns how many."""
    return _heal_clock.once(conn, now, now + LONGEST_WAIT)
