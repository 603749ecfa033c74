"""Which pictures are to be downloaded, who may do it now, and how it went.

A claim is a lease, as for sources: its token fences what is written at the end, and a lost one is due again by itself.
Hosts are asked in turn, one picture at a time, and only when their queue has nobody waiting: a visit of a source never
stands behind a thousand pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.sources import leases
from headwater.store.sql import json_text, portable

RETRIES = (60, 600, 3600)  # seconds after each failure; then it is given up
HINDERED = timedelta(minutes=5)  # what was not the picture's fault is tried again after
JITTER = 0.2
LONGEST_WAIT = timedelta(days=2)  # further away is no retry, but a clock that went back
LONGEST_ERROR = 500
HEALED_AT_ONCE = 500

# Walks from host to host along the index, however many pictures each of them has.
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
)
_lease = portable("UPDATE images SET lease_owner = ?, lease_until = ?, next_try_at = ? WHERE id = ?")
_settle = portable(
    """UPDATE images SET state = ?, next_try_at = ?, attempts = attempts + ?, error_code = ?, error = ?, tried_at = ?,
        saved_at = ?, content_hash = ?, path = ?, type = ?, size = ?, width = ?, height = ?, metadata = ?,
        lease_owner = NULL, lease_until = NULL
    WHERE id = ? AND lease_owner = ?"""
)
_try_again = portable(
    """UPDATE images SET state = 'waiting', next_try_at = ?, attempts = 0, lease_owner = NULL, lease_until = NULL
    WHERE state = 'failed' AND state <> 'waiting'"""
)
_saved_after = portable(
    """SELECT id, path, size FROM images WHERE state = 'saved' AND state <> 'waiting' AND id > ? ORDER BY id LIMIT ?"""
)
_lose = portable(
    """UPDATE images SET state = 'waiting', next_try_at = ?, attempts = 0, saved_at = NULL, content_hash = NULL,
        path = NULL, error = ? WHERE id IN (?) AND state = 'saved'"""
)
_known = portable("SELECT DISTINCT content_hash FROM images WHERE content_hash IN (?)")
_recall = portable(
    """UPDATE images SET next_try_at = ?, lease_owner = NULL, lease_until = NULL
    WHERE state = 'waiting' AND next_try_at > ?"""
)


class ImageClaim(NamedTuple):
    """The right to download a picture, not before `start_at`."""

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

    `counts` is False where the picture is not to blame. `hold_for` is how long its host asked for quiet.
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


def due(conn: Connection, now: datetime, limit: int) -> list[int]:
    """The next picture of each host that can be asked now, those that wait for longest first."""
    return [row[0] for row in _due.all(conn, now, now, now, limit)]


def claim(
    conn: Connection, ids: Sequence[int], *, now: datetime, lease: str, lease_for: timedelta, gap: timedelta
) -> list[ImageClaim]:
    """Take these pictures, unless others have taken them or their hosts' turns in the meantime."""
    rows = _select.all(conn, list(ids), now)
    turns = leases.reserve_slots(conn, [row[2] for row in rows], now, gap)
    granted = [
        ImageClaim(image_id, url, host, attempts, lease, turns[host])
        for image_id, url, host, attempts in rows
        if host in turns
    ]
    until = now + lease_for
    _lease.many(conn, [(lease, until, until, one.image_id) for one in granted])
    return granted


def record_outcome(conn: Connection, claim: ImageClaim, outcome: ImageOutcome, now: datetime, chance: float) -> bool:
    """Write down how an attempt went. False: the lease was lost, and nothing is written."""
    state, next_try_at = next_state(outcome, claim.attempts, now, chance)
    error = outcome.error[:LONGEST_ERROR] if outcome.error else None
    row = (state, next_try_at, int(outcome.counts), outcome.error_code, error, now, now if outcome.file else None)
    file = outcome.file or (None,) * 6
    kept = _settle.once(conn, *row, *file, json_text(dict(outcome.metadata)), claim.image_id, claim.lease)
    if kept and outcome.hold_for:
        leases.pause_host(conn, claim.host, now, now + outcome.hold_for)
    return bool(kept)


def next_state(outcome: ImageOutcome, attempts: int, now: datetime, chance: float) -> tuple[str, datetime | None]:
    """The state after an attempt, and when to try again, if ever. Pure; `attempts` are those before it."""
    if outcome.state != "waiting":
        return outcome.state, None
    if not outcome.counts:
        return "waiting", now + HINDERED
    if attempts >= len(RETRIES):
        return "failed", None
    wait = timedelta(seconds=RETRIES[attempts] * (1 + JITTER * chance))
    return "waiting", now + max(wait, outcome.hold_for or wait)


def retry_failed(conn: Connection, now: datetime) -> int:
    """Have all that failed tried again; returns how many."""
    return _try_again.once(conn, now)


def saved_after(conn: Connection, image_id: int) -> list[SavedRecord]:
    """The next records that claim to have a file."""
    return [SavedRecord(*row) for row in _saved_after.all(conn, image_id, HEALED_AT_ONCE)]


def mark_missing(conn: Connection, image_ids: Sequence[int], now: datetime) -> int:
    """The files of these are gone: they are downloaded again."""
    return _lose.once(conn, now, "Its file was missing.", list(image_ids))


def known_hashes(conn: Connection, hashes: Sequence[str]) -> set[str]:
    """Those of these contents that a record names."""
    return {row[0] for row in _known.all(conn, list(hashes))}


def heal_clock(conn: Connection, now: datetime) -> int:
    """After the clock went back: pictures that claim to be due far in the future are due now (H93)."""
    return _recall.once(conn, now, now + LONGEST_WAIT)
