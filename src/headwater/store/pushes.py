"""Writes what a hub pushed: posts and their history, beside the visits and never in their way.

A push holds no lease. It does not touch validators, schedule or health, and it moves the watermark only forward, and
only while nobody visits the source: a visit under way writes its own over it at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from headwater.model import Post, SavedVisit, SourceState, Visit
from headwater.store import posts
from headwater.store.driver import portable
from headwater.store.types import moment, moment_or_none
from headwater.store.visits import newest_post

SOONEST_VISIT = timedelta(minutes=5)  # after the last one, however often a hub pushes what cannot be read

_select_source = portable(
    """SELECT address, status, next_check_at, last_seen_created_at, lease_until FROM sources
    WHERE id = ? AND active AND success_hit + empty_hit > 0""",
    postgresql=" FOR UPDATE",
)
_move_watermark = portable("UPDATE sources SET last_seen_post_id = ?, last_seen_created_at = ? WHERE id = ?")
_bring_forward = portable(
    """UPDATE sources SET next_check_at = ? WHERE id = ? AND active AND next_check_at > ?
        AND (lease_until IS NULL OR lease_until <= ?) AND (last_crawled_at IS NULL OR last_crawled_at <= ?)"""
)


def save(conn: Connection, source_id: int, pushed: Sequence[Post], now: datetime) -> SavedVisit | None:
    """Write these posts as a visit would; what is known already changes nothing.

    None where the source is not followed any more or was never visited: a first visit takes it that nothing is stored.
    """
    rows = _select_source.all(conn, source_id)
    if not rows:
        return None
    known = posts.known_posts(conn, source_id, pushed)
    changes = [(source_id, change) for change in posts.changes(pushed, known)]
    stored = posts.write_changes(conn, changes, now)
    moved = _move_on(conn, source_id, rows[0], newest_post(pushed), now)
    address, status, next_check_at = rows[0][:3]
    visit = Visit(
        source_id=source_id,
        lease="",
        started_at=now,
        seconds=0.0,
        outcome="ok",
        status=status,
        next_check_at=moment(next_check_at),
        state=SourceState(),
        posts=list(pushed),
    )
    return SavedVisit(visit, address, True, status, stored, moved)


def bring_forward(conn: Connection, source_id: int, now: datetime) -> bool:
    """Have the source visited now instead of at its next time, unless it was visited just before."""
    return bool(_bring_forward.once(conn, now, source_id, now, now, now - SOONEST_VISIT))


def _move_on(conn: Connection, source_id: int, row: tuple[Any, ...], newest: Post | None, now: datetime) -> bool:
    seen, leased = moment_or_none(row[3]), moment_or_none(row[4])
    if newest is None or (leased is not None and leased > now) or (seen is not None and newest.created_at <= seen):
        return False
    _move_watermark.once(conn, newest.source_post_id, newest.created_at, source_id)
    return True
