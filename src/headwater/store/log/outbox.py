"""The outbox, which is also the log: an event is committed in the transaction of the change that it describes.

A consumer's cursors say how far it got. On PostgreSQL the log has partitions, by the hash of the key, so that several
processes can follow it while the order of each key is kept. Ids are assigned there before transactions commit, so
reading by id alone could skip an event that commits late. The log is therefore read up to the transaction horizon,
ordered by `xid` and id.

`xid` is the newest transaction that had ended when the event was appended, or the event's own if that is newer. While a
transaction is open, none of its events is behind the horizon. A transaction that changes a key after another one sees
that one as ended. So of two events with one key the later one has the later position, even if its transaction began
first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import structlog
from sqlalchemy import Connection

from headwater.ids import current_trace, uuid7s
from headwater.model import Event
from headwater.store.db import APPENDED, Database
from headwater.store.row_security import of_everybody
from headwater.store.sql import Prepared, microseconds, moment, portable
from headwater.waiting import TROUBLE_SECONDS, wait

PARTITIONS = 8  # on PostgreSQL, and of each Kafka topic; a power of two
CHANNEL = "headwater_events"
LISTEN_SECONDS = 1.0  # how long `listen` waits before it looks at its stop
log = structlog.get_logger()


class LogPosition(NamedTuple):
    """A position in the log. `xid` is described above; on SQLite it is always 0."""

    xid: int
    id: int


START = LogPosition(0, 0)


class LoggedEvent(NamedTuple):
    """An event as stored. `data` is JSON: `Kind.read` in the catalogue makes its payload of it."""

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


class Window(NamedTuple):
    """A part of the log: events from `start` until before `end`, of these kinds and, unless it is empty, this key."""

    start: datetime
    end: datetime
    kinds: frozenset[str]
    key: str = ""


_APPENDED = (
    *("event_id", "domain", "kind", "version", "key", "tenant_id", "user_id", "payload", "traceparent"),
    *("idempotency_key", "created_at"),
)
_NAMES, _VALUES = ", ".join(_APPENDED), ", ".join(f":{name}" for name in _APPENDED)
_XID = """greatest(pg_current_xact_id()::text::bigint,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)"""
_ONCE = "ON CONFLICT (idempotency_key) DO NOTHING"
_append = Prepared(
    sqlite=f"INSERT INTO event_outbox ({_NAMES}) VALUES ({_VALUES}) {_ONCE}",
    postgresql=f"""INSERT INTO event_outbox ({_NAMES}, partition, xid)
        VALUES ({_VALUES}, hashtext(:key) & {PARTITIONS - 1}, {_XID}) {_ONCE}""",
    order=_APPENDED,
)
_notify = Prepared(postgresql=f"SELECT pg_notify('{CHANNEL}', '')")

_make_cursor = portable(
    """INSERT INTO consumer_cursors (consumer, partition, xid, id, moved_at) VALUES (?, ?, 0, 0, ?)
    ON CONFLICT (consumer, partition) DO NOTHING"""
)
_CURSOR = "SELECT xid, id FROM consumer_cursors WHERE consumer = ? AND partition = ?"
_take_cursor = portable(_CURSOR, postgresql=" FOR UPDATE SKIP LOCKED", row=LogPosition)
_wait_for_cursor = portable(_CURSOR, postgresql=" FOR UPDATE", row=LogPosition)
_move_cursor = portable(
    "UPDATE consumer_cursors SET xid = ?, id = ?, moved_at = ? WHERE consumer = ? AND partition = ?"
)

FACTS = "event_id, kind, version, key, tenant_id, user_id, traceparent, created_at"  # as `logged` expects them
_EVENT = f"xid, id, {FACTS}"
_BEHIND_HORIZON = "xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_after = Prepared(
    sqlite=f"""SELECT {_EVENT}, payload FROM event_outbox
        WHERE partition = ? AND ? = 0 AND id > ? ORDER BY id LIMIT ?""",
    postgresql=f"""SELECT {_EVENT}, payload::text FROM event_outbox
        WHERE partition = ? AND (xid, id) > (?, ?) AND {_BEHIND_HORIZON} ORDER BY xid, id LIMIT ?""",
)
_after_in_all = Prepared(
    sqlite=f"SELECT {_EVENT}, payload FROM event_outbox WHERE ? = 0 AND id > ? ORDER BY id LIMIT ?",
    postgresql=f"""SELECT {_EVENT}, payload::text FROM event_outbox
        WHERE (xid, id) > (?, ?) AND {_BEHIND_HORIZON} ORDER BY xid, id LIMIT ?""",
)
_IN_WINDOW = """partition = :partition AND created_at >= :start AND created_at < :end AND kind IN (:kinds)
        AND (:key = '' OR key = :key)"""
_within = Prepared(
    sqlite=f"""SELECT {_EVENT}, payload FROM event_outbox
        WHERE {_IN_WINDOW} AND :xid = 0 AND id > :id ORDER BY id LIMIT :limit""",
    postgresql=f"""SELECT {_EVENT}, payload::text FROM event_outbox
        WHERE {_IN_WINDOW} AND (xid, id) > (:xid, :id) AND {_BEHIND_HORIZON} ORDER BY xid, id LIMIT :limit""",
)
_end = Prepared(
    sqlite="SELECT 0, id FROM event_outbox ORDER BY id DESC LIMIT 1",
    postgresql=f"SELECT xid, id FROM event_outbox WHERE {_BEHIND_HORIZON} ORDER BY xid DESC, id DESC LIMIT 1",
    row=LogPosition,
)
# The events that can be seen, as a version: the last one behind the horizon, and how many are beyond it. Behind the
# horizon nothing is added any more, so if both are the same, so is what can be seen.
_seen = Prepared(
    sqlite="SELECT 0, max(id), 0 FROM event_outbox",
    postgresql=f"""SELECT behind.xid, behind.id, (SELECT count(*) FROM event_outbox WHERE NOT {_BEHIND_HORIZON})
        FROM (SELECT 1) one LEFT JOIN LATERAL (SELECT xid, id FROM event_outbox WHERE {_BEHIND_HORIZON}
            ORDER BY xid DESC, id DESC LIMIT 1) behind ON TRUE""",
)
_pending = Prepared(
    sqlite="""SELECT c.partition FROM consumer_cursors c WHERE c.consumer = ?
        AND c.id < (SELECT max(id) FROM event_outbox)""",
    postgresql=f"""SELECT c.partition FROM consumer_cursors c WHERE c.consumer = ? AND EXISTS (
        SELECT 1 FROM event_outbox o
        WHERE o.partition = c.partition AND (o.xid, o.id) > (c.xid, c.id) AND o.{_BEHIND_HORIZON})
        ORDER BY c.partition""",
)
_pending_of = Prepared(
    sqlite="""SELECT c.partition FROM consumer_cursors c WHERE c.consumer = ?
        AND EXISTS (SELECT 1 FROM event_outbox o WHERE o.id > c.id AND o.kind IN (?))""",
    postgresql=f"""SELECT c.partition FROM consumer_cursors c WHERE c.consumer = ? AND EXISTS (
        SELECT 1 FROM event_outbox o WHERE o.partition = c.partition AND (o.xid, o.id) > (c.xid, c.id)
            AND o.{_BEHIND_HORIZON} AND o.kind IN (?))
        ORDER BY c.partition""",
)
_forget = portable(
    """DELETE FROM event_outbox WHERE id IN (SELECT id FROM event_outbox ORDER BY id LIMIT ?) AND created_at < ?
        AND NOT EXISTS (SELECT 1 FROM consumer_cursors c WHERE ? AND c.partition = event_outbox.partition
            AND (c.xid < event_outbox.xid OR (c.xid = event_outbox.xid AND c.id < event_outbox.id)))"""
)


def append(conn: Connection, events: Sequence[Event], now: datetime) -> None:
    """Appends these events. One whose idempotency key is known is the same fact and changes nothing."""
    if not events:
        return
    parent = current_trace.get()
    on_postgres = conn.dialect.name == "postgresql"
    created_at = now if on_postgres else microseconds(now)
    rows = []
    for event_id, event in zip(uuid7s(len(events)), events, strict=True):
        kind, version, key, payload, idempotency_key, tenant_id, user_id, domain, traceparent = event
        about = (event_id, domain or kind.partition(".")[0], kind, version, key, tenant_id, user_id, payload)
        rows.append((*about, traceparent or parent, idempotency_key, created_at))
    with of_everybody(conn):  # the log is everybody's, and shared facts belong to no tenant
        _append.many(conn, rows)
    if on_postgres:
        _notify.once(conn)
    conn.info.setdefault(APPENDED, set()).update(event.kind for event in events)


async def listen(db: Database, wake: Callable[[], None], stop: asyncio.Event) -> None:
    """Calls `wake` when another process has appended events, on PostgreSQL, until `stop` is set.

    Events are found without it, only later. It reconnects when the connection is lost.
    """
    import psycopg  # not imported on SQLite

    address = db.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    while not stop.is_set():
        try:
            async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                wake()  # for what was appended before we listened
                while not stop.is_set():
                    async for _ in connection.notifies(timeout=LISTEN_SECONDS, stop_after=1):
                        wake()
        except psycopg.Error as error:
            log.warning("wakeups.lost", error=str(error).strip())
            await wait(TROUBLE_SECONDS, stop=stop)


def partitions(conn: Connection) -> int:
    return PARTITIONS if conn.dialect.name == "postgresql" else 1


def make_cursors(conn: Connection, consumer: str, now: datetime) -> None:
    """Places a consumer at the start of the log, unless it has cursors already."""
    for partition in range(partitions(conn)):
        _make_cursor.once(conn, consumer, partition, now)


def take_cursor(conn: Connection, consumer: str, partition: int) -> LogPosition | None:
    """Locks the consumer's cursor until the transaction ends. Returns None if another process has locked it."""
    return _take_cursor.first(conn, consumer, partition)


def wait_for_cursor(conn: Connection, consumer: str, partition: int, now: datetime) -> LogPosition:
    """Locks the consumer's cursor until the transaction ends. Waits while another process has locked it."""
    _make_cursor.once(conn, consumer, partition, now)
    return _wait_for_cursor.all(conn, consumer, partition)[0]


def move_cursor(conn: Connection, consumer: str, partition: int, position: LogPosition, now: datetime) -> None:
    _move_cursor.once(conn, position.xid, position.id, now, consumer, partition)


def pending(conn: Connection, consumer: str) -> list[int]:
    """Returns the partitions that have events for this consumer. Locks nothing."""
    return _pending.values(conn, consumer)


def pending_of(conn: Connection, consumer: str, kinds: Iterable[str]) -> list[int]:
    """Returns the partitions that have events of these kinds for this consumer. Locks nothing."""
    return _pending_of.values(conn, consumer, sorted(kinds))


def after(conn: Connection, partition: int, position: LogPosition, limit: int) -> list[LoggedEvent]:
    """Returns the next events of a partition."""
    return [logged(row) for row in _after.all(conn, partition, position.xid, position.id, limit)]


def after_in_all(conn: Connection, position: LogPosition, limit: int) -> list[LoggedEvent]:
    """Returns the next events of all partitions."""
    return [logged(row) for row in _after_in_all.all(conn, position.xid, position.id, limit)]


def within(conn: Connection, partition: int, window: Window, *, after: LogPosition, limit: int) -> list[LoggedEvent]:
    """Returns the next events of a partition that are in the window."""
    rows = _within.all(
        conn,
        partition=partition,
        start=window.start,
        end=window.end,
        kinds=sorted(window.kinds),
        key=window.key,
        xid=after.xid,
        id=after.id,
        limit=limit,
    )
    return [logged(row) for row in rows]


def end(conn: Connection) -> LogPosition:
    """Returns where the log ends now. What commits later comes after it, even if it was written before."""
    return _end.first(conn) or START


def version(conn: Connection) -> str:
    """Names the events that can be seen now: another name means that there are others, and the same that there are not.

    Not for a transaction of one tenant: it counts the events of all.
    """
    return ".".join(str(number or 0) for number in _seen.all(conn)[0])


def logged(row: Sequence[Any]) -> LoggedEvent:
    """Makes an event of its columns: the position, FACTS and the payload as text."""
    xid, id, event_id, kind, version, key, tenant_id, user_id, traceparent, created_at, data = row
    position = LogPosition(xid, id)
    return LoggedEvent(
        position, event_id, kind, version, key, tenant_id, user_id, traceparent, moment(created_at), data
    )


def event_values(event: LoggedEvent) -> dict[str, Any]:
    """Returns an event as values of the columns FACTS and `payload`, for tables that hold a copy of it."""
    values = event._asdict()
    del values["position"]
    values["payload"] = values.pop("data")
    return values


def forget_before(conn: Connection, before: datetime, *, followed: bool = True, limit: int = 20_000) -> int:
    """Deletes the oldest events. If consumers follow by cursors, only those that every consumer has passed."""
    return _forget.once(conn, limit, before, followed)
