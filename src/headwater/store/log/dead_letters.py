"""Dead letters: events that failed in a consumer, and those that wait behind them because they have the same key.

    retrying   failed twice at once; is tried again at `next_try_at`
    waiting    has not been tried: an earlier event of its key is not settled
    dead       failed again; a person decides
    replayed   was dead, and has had its effect since
    skipped    was dead, and a person decided against it

A letter carries the whole event: it outlives the log's retention.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.store.log.outbox import LoggedEvent, LogPosition
from headwater.store.sql import json_text, json_value, moment, moment_or_none, portable

_COLUMNS = """id, consumer, partition, state, event_id, kind, version, key, tenant_id, user_id, traceparent, created_at,
    attempts, error, first_failed_at, last_failed_at, next_try_at, settled_at, payload"""
_OPEN = "state IN ('retrying', 'waiting', 'dead')"

_keep = portable(
    """INSERT INTO event_dlq (consumer, partition, state, event_id, kind, version, key, tenant_id, user_id, payload,
        traceparent, created_at, attempts, error, first_failed_at, last_failed_at, next_try_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
)
_failed = portable(
    """UPDATE event_dlq SET state = ?, attempts = attempts + ?, error = ?, last_failed_at = ?, next_try_at = ?,
        first_failed_at = COALESCE(first_failed_at, ?), settled_at = NULL WHERE id = ?"""
)
_settle = portable("UPDATE event_dlq SET state = ?, settled_at = ?, next_try_at = NULL WHERE id = ?")
_drop = portable("DELETE FROM event_dlq WHERE id = ?")
_open_states = portable(
    f"SELECT DISTINCT key, state FROM event_dlq WHERE consumer = ? AND partition = ? AND key IN (?) AND {_OPEN}"
)
_due = portable(
    f"""SELECT {_COLUMNS} FROM event_dlq WHERE consumer = ? AND partition = ? AND state = 'retrying'
        AND next_try_at <= ? ORDER BY id LIMIT ?"""
)
_due_partitions = portable(
    "SELECT DISTINCT partition FROM event_dlq WHERE consumer = ? AND state = 'retrying' AND next_try_at <= ?"
)
_waiting = portable(
    f"""SELECT {_COLUMNS} FROM event_dlq WHERE consumer = ? AND partition = ? AND key = ? AND {_OPEN}
        AND state = 'waiting' ORDER BY id LIMIT ?"""
)
_one = portable(f"SELECT {_COLUMNS} FROM event_dlq WHERE id = ?")
_page = portable(f"SELECT {_COLUMNS} FROM event_dlq WHERE state = ? AND id < ? ORDER BY id DESC LIMIT ?")
_counts = portable(f"SELECT consumer, state, count(*) FROM event_dlq WHERE {_OPEN} GROUP BY consumer, state")
_empty = portable("DELETE FROM event_dlq WHERE consumer = ?")
_forget = portable("DELETE FROM event_dlq WHERE state IN ('replayed', 'skipped') AND settled_at < ?")
_LARGEST = 2**62


class DeadLetter(NamedTuple):
    id: int
    consumer: str
    partition: int
    state: str
    event: LoggedEvent
    attempts: int
    error: str | None
    first_failed_at: datetime | None
    last_failed_at: datetime | None
    next_try_at: datetime | None
    settled_at: datetime | None


class Failure(NamedTuple):
    """An event that its consumer could not handle, how often it was tried, and what was wrong."""

    event: LoggedEvent
    attempts: int
    error: str


def add_failed(
    conn: Connection, consumer: str, partition: int, failures: Sequence[Failure], now: datetime, next_try_at: datetime
) -> None:
    rows = []
    for event, attempts, error in failures:
        tried = (attempts, error, now, now, next_try_at)
        rows.append((consumer, partition, "retrying", *_event_row(event), *tried))
    _keep.many(conn, rows)


def add_dead(
    conn: Connection, consumer: str, partition: int, event: LoggedEvent, attempts: int, error: str, now: datetime
) -> None:
    """An event that is not to be tried any more, though nobody heard what is wrong with it."""
    _keep.many(conn, [(consumer, partition, "dead", *_event_row(event), attempts, error, now, now, None)])


def add_waiting(conn: Connection, consumer: str, partition: int, events: Sequence[LoggedEvent]) -> None:
    rows = [(consumer, partition, "waiting", *_event_row(event), 0, None, None, None, None) for event in events]
    _keep.many(conn, rows)


def open_states(conn: Connection, consumer: str, partition: int, keys: Sequence[str]) -> dict[str, set[str]]:
    """The states of what is not settled, for those of these keys that have any."""
    states: dict[str, set[str]] = {}
    for key, state in _open_states.all(conn, consumer, partition, list(keys)):
        states.setdefault(key, set()).add(state)
    return states


def due(conn: Connection, consumer: str, partition: int, now: datetime, limit: int = 50) -> list[DeadLetter]:
    return [_letter(row) for row in _due.all(conn, consumer, partition, now, limit)]


def due_partitions(conn: Connection, consumer: str, now: datetime) -> list[int]:
    return [partition for (partition,) in _due_partitions.all(conn, consumer, now)]


def waiting(conn: Connection, consumer: str, partition: int, key: str, limit: int = 500) -> list[DeadLetter]:
    """What waits behind a failed event of this key, in order."""
    return [_letter(row) for row in _waiting.all(conn, consumer, partition, key, limit)]


def schedule_retry(
    conn: Connection, letter: DeadLetter, attempts: int, error: str, now: datetime, next_try_at: datetime
) -> None:
    _failed.once(conn, "retrying", attempts, error, now, next_try_at, now, letter.id)


def mark_dead(conn: Connection, letter: DeadLetter, error: str, now: datetime) -> None:
    _failed.once(conn, "dead", 1, error, now, None, now, letter.id)


def resolve(conn: Connection, letter: DeadLetter, state: str, now: datetime) -> None:
    """A dead letter is done with: replayed or skipped. It is kept as a record."""
    _settle.once(conn, state, now, letter.id)


def remove(conn: Connection, letter: DeadLetter) -> None:
    """The event has had its effect after all, and nobody needs to know."""
    _drop.once(conn, letter.id)


def find(conn: Connection, letter_id: int) -> DeadLetter | None:
    rows = _one.all(conn, letter_id)
    return _letter(rows[0]) if rows else None


def page(conn: Connection, state: str = "dead", *, before: int | None = None, limit: int = 50) -> list[DeadLetter]:
    """The newest first."""
    return [_letter(row) for row in _page.all(conn, state, before or _LARGEST, limit)]


def counts(conn: Connection) -> dict[str, dict[str, int]]:
    """By consumer and state, for what is not settled."""
    found: dict[str, dict[str, int]] = {}
    for consumer, state, count in _counts.all(conn):
        found.setdefault(consumer, {})[state] = count
    return found


def clear(conn: Connection, consumer: str) -> None:
    _empty.once(conn, consumer)


def forget_before(conn: Connection, before: datetime) -> int:
    """Delete what was settled before this. What is not settled stays."""
    return _forget.once(conn, before)


def _event_row(event: LoggedEvent) -> tuple[Any, ...]:
    who = (event.tenant_id, event.user_id)
    return (event.event_id, event.kind, event.version, event.key, *who, event.data, event.traceparent, event.created_at)


def _letter(row: Sequence[Any]) -> DeadLetter:
    id, consumer, partition, state, event_id, kind, version, key, tenant_id, user_id, traceparent, created_at = row[:12]
    attempts, error, first, last, next_try, settled, payload = row[12:]
    data = json_text(json_value(payload)) if not isinstance(payload, str) else payload
    event = LoggedEvent(
        LogPosition(0, 0), event_id, kind, version, key, tenant_id, user_id, traceparent, moment(created_at), data
    )
    times = (moment_or_none(first), moment_or_none(last), moment_or_none(next_try), moment_or_none(settled))
    return DeadLetter(id, consumer, partition, state, event, attempts, error, *times)
