"""The outbox: events commit in the transaction of the change they tell of, or not at all (E1). It is also the log.

A consumer's cursor says how far it got. On PostgreSQL ids are given out before they commit, so a reader that goes by id
alone would step over a late one; there the log is read behind the transaction horizon, ordered by transaction.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Event
from headwater.store.driver import Prepared, portable
from headwater.store.types import json_text, json_value

_append = portable(
    """INSERT INTO event_outbox (event_id, kind, key, tenant_id, user_id, payload, idempotency_key, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (idempotency_key) DO NOTHING"""
)
_make_cursor = portable(
    "INSERT INTO consumer_cursors (consumer, xid, id, moved_at) VALUES (?, 0, 0, ?) ON CONFLICT (consumer) DO NOTHING"
)
_take_cursor = portable("SELECT xid, id FROM consumer_cursors WHERE consumer = ?", postgresql=" FOR UPDATE SKIP LOCKED")
_move_cursor = portable("UPDATE consumer_cursors SET xid = ?, id = ?, moved_at = ? WHERE consumer = ?")
_after = Prepared(
    sqlite="SELECT xid, id, kind, key, payload FROM event_outbox WHERE ? = 0 AND id > ? ORDER BY id LIMIT ?",
    postgresql="""SELECT xid, id, kind, key, payload FROM event_outbox
        WHERE (xid, id) > (%s, %s) AND xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
        ORDER BY xid, id LIMIT %s""",
)
_forget = portable(
    """DELETE FROM event_outbox WHERE id IN (SELECT id FROM event_outbox ORDER BY id LIMIT ?) AND created_at < ?
        AND NOT EXISTS (SELECT 1 FROM consumer_cursors c WHERE c.xid < event_outbox.xid
            OR (c.xid = event_outbox.xid AND c.id < event_outbox.id))"""
)


class Position(NamedTuple):
    """How far a consumer got: the transaction (always 0 on SQLite) and the event."""

    xid: int
    id: int


class LoggedEvent(NamedTuple):
    position: Position
    kind: str
    key: str
    payload: dict[str, Any]


def append(conn: Connection, events: Sequence[Event], now: datetime) -> None:
    """Add these events; one whose idempotency key is there already is the same fact and changes nothing."""
    rows = []
    for event in events:
        payload = json_text(event.payload)
        rows.append(
            (uuid7(), event.kind, event.key, event.tenant_id, event.user_id, payload, event.idempotency_key, now)
        )
    _append.many(conn, rows)


def take_cursor(conn: Connection, consumer: str, now: datetime) -> Position | None:
    """The consumer's cursor, held until the transaction ends; None while another process has it."""
    _make_cursor.once(conn, consumer, now)
    rows = _take_cursor.all(conn, consumer)
    return Position(*rows[0]) if rows else None


def after(conn: Connection, position: Position, limit: int) -> list[LoggedEvent]:
    rows = _after.all(conn, position.xid, position.id, limit)
    return [LoggedEvent(Position(xid, id), kind, key, json_value(payload)) for xid, id, kind, key, payload in rows]


def move_cursor(conn: Connection, consumer: str, position: Position, now: datetime) -> None:
    _move_cursor.once(conn, position.xid, position.id, now, consumer)


def forget_before(conn: Connection, before: datetime, limit: int = 20_000) -> int:
    """Delete old events that every consumer has passed."""
    return _forget.once(conn, limit, before)


def uuid7() -> str:
    """A random id that sorts by the time it was made (RFC 9562)."""
    time_part = f"{time.time_ns() // 1_000_000:012x}"
    chance = os.urandom(10).hex()
    variant = "89ab"[int(chance[3], 16) & 3]
    return f"{time_part[:8]}-{time_part[8:]}-7{chance[:3]}-{variant}{chance[4:7]}-{chance[7:19]}"
