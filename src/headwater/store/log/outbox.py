"""The outbox: events commit in the transaction of the change they tell of, or not at all (E1). It is also the log.

A consumer's cursors say how far it got. On PostgreSQL the log has partitions, by the hash of the key: several processes
follow it side by side and the order of a key holds. And ids are given out there before they commit, so a reader that
goes by id alone would step over a late one: the log is read behind the transaction horizon, ordered by `xid` and id.

`xid` is the newest transaction that had ended when the event was appended, or the event's own if that is newer. While a
transaction is open, none of its events is behind the horizon. And who changes a key after another has ended sees that
end: of two events of a key the later one stands later, even if its transaction began first.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.ids import current_trace, uuid7s
from headwater.model import Event
from headwater.store.db import APPENDED
from headwater.store.sql import Prepared, microseconds, moment, portable

PARTITIONS = 8  # on PostgreSQL, and of each Kafka topic; a power of two
CHANNEL = "headwater_events"

_COLUMNS = "xid, id, event_id, kind, version, key, tenant_id, user_id, traceparent, created_at"
_HORIZON = "xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_XID = """greatest(pg_current_xact_id()::text::bigint,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)"""
_INSERT = """INSERT INTO event_outbox (event_id, domain, kind, version, key, tenant_id, user_id, payload, traceparent,
    idempotency_key, created_at"""
_ONCE = "ON CONFLICT (idempotency_key) DO NOTHING"

_append = Prepared(
    sqlite=f"{_INSERT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) {_ONCE}",
    postgresql=f"""{_INSERT}, partition, xid) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,
        hashtext(%s) & {PARTITIONS - 1}, {_XID}) {_ONCE}""",
)
_notify = Prepared(postgresql=f"SELECT pg_notify('{CHANNEL}', '')")
_make_cursor = portable(
    """INSERT INTO consumer_cursors (consumer, partition, xid, id, moved_at) VALUES (?, ?, 0, 0, ?)
    ON CONFLICT (consumer, partition) DO NOTHING"""
)
_TAKE = "SELECT xid, id FROM consumer_cursors WHERE consumer = ? AND partition = ?"
_take_cursor = portable(_TAKE, postgresql=" FOR UPDATE SKIP LOCKED")
_wait_for_cursor = portable(_TAKE, postgresql=" FOR UPDATE")
_move_cursor = portable(
    "UPDATE consumer_cursors SET xid = ?, id = ?, moved_at = ? WHERE consumer = ? AND partition = ?"
)
_after = Prepared(
    sqlite=f"""SELECT {_COLUMNS}, payload FROM event_outbox
        WHERE partition = ? AND ? = 0 AND id > ? ORDER BY id LIMIT ?""",
    postgresql=f"""SELECT {_COLUMNS}, payload::text FROM event_outbox
        WHERE partition = %s AND (xid, id) > (%s, %s) AND {_HORIZON} ORDER BY xid, id LIMIT %s""",
)
_pending = Prepared(
    sqlite="""SELECT c.partition FROM consumer_cursors c WHERE c.consumer = ?
        AND c.id < (SELECT max(id) FROM event_outbox)""",
    postgresql=f"""SELECT c.partition FROM consumer_cursors c WHERE c.consumer = %s AND EXISTS (
        SELECT 1 FROM event_outbox o WHERE o.partition = c.partition AND (o.xid, o.id) > (c.xid, c.id) AND o.{_HORIZON})
        ORDER BY c.partition""",
)
_forget = portable(
    """DELETE FROM event_outbox WHERE id IN (SELECT id FROM event_outbox ORDER BY id LIMIT ?) AND created_at < ?
        AND NOT EXISTS (SELECT 1 FROM consumer_cursors c WHERE ? AND c.partition = event_outbox.partition
            AND (c.xid < event_outbox.xid OR (c.xid = event_outbox.xid AND c.id < event_outbox.id)))"""
)


class LogPosition(NamedTuple):
    """A place in the log: on PostgreSQL `xid` as above, on SQLite always 0; and the event."""

    xid: int
    id: int


class LoggedEvent(NamedTuple):
    """An event as it stands in the log. `data` is JSON: `Kind.read` in the catalogue makes its payload of it."""

    position: LogPosition
    event_id: str
    kind: str
    version: int
    key: str
    tenant_id: int | None
    user_id: int | None
    traceparent: str | None
    created_at: datetime
    data: str


def append(conn: Connection, events: Sequence[Event], now: datetime) -> None:
    """Add these events; one whose idempotency key is there already is the same fact and changes nothing."""
    if not events:
        return
    parent = current_trace.get()
    partitioned = conn.dialect.name == "postgresql"
    when = now if partitioned else microseconds(now)
    rows = []
    for event_id, event in zip(uuid7s(len(events)), events, strict=True):
        kind, version, key, data, idempotency_key, tenant_id, user_id = event
        domain = kind.partition(".")[0]
        row = (event_id, domain, kind, version, key, tenant_id, user_id, data, parent, idempotency_key, when)
        rows.append((*row, key) if partitioned else row)
    _append.many(conn, rows)
    if partitioned:
        _notify.once(conn)
    conn.info[APPENDED] = True


def partitions(conn: Connection) -> int:
    return PARTITIONS if conn.dialect.name == "postgresql" else 1


def make_cursors(conn: Connection, consumer: str, now: datetime) -> None:
    """Let a consumer begin at the start of the log, if it has not begun yet."""
    for partition in range(partitions(conn)):
        _make_cursor.once(conn, consumer, partition, now)


def take_cursor(conn: Connection, consumer: str, partition: int) -> LogPosition | None:
    """The consumer's cursor, held until the transaction ends; None while another process has it."""
    rows = _take_cursor.all(conn, consumer, partition)
    return LogPosition(*rows[0]) if rows else None


def wait_for_cursor(conn: Connection, consumer: str, partition: int, now: datetime) -> LogPosition:
    """The same, but wait while another process has it."""
    _make_cursor.once(conn, consumer, partition, now)
    return LogPosition(*_wait_for_cursor.all(conn, consumer, partition)[0])


def move_cursor(conn: Connection, consumer: str, partition: int, position: LogPosition, now: datetime) -> None:
    _move_cursor.once(conn, position.xid, position.id, now, consumer, partition)


def pending(conn: Connection, consumer: str) -> list[int]:
    """The partitions in which events wait for this consumer. Reading this locks nothing."""
    return [partition for (partition,) in _pending.all(conn, consumer)]


def after(conn: Connection, partition: int, position: LogPosition, limit: int) -> list[LoggedEvent]:
    return [logged(row) for row in _after.all(conn, partition, position.xid, position.id, limit)]


def logged(row: Sequence[Any]) -> LoggedEvent:
    xid, id, event_id, kind, version, key, tenant_id, user_id, traceparent, created_at, data = row
    position = LogPosition(xid, id)
    return LoggedEvent(
        position, event_id, kind, version, key, tenant_id, user_id, traceparent, moment(created_at), data
    )


def forget_before(conn: Connection, before: datetime, *, followed: bool = True, limit: int = 20_000) -> int:
    """Delete the oldest events; of those that consumers follow by cursors, only what every one of them has passed."""
    return _forget.once(conn, limit, before, followed)
