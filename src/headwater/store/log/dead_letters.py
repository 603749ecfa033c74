"""Dead letters: events that failed in a consumer, and events that wait behind them because they have the same key.

    retrying   failed at once; is tried again at `next_try_at`
    waiting    has not been tried, because an earlier event of its key is not settled
    dead       failed again; a person decides
    replayed   was dead, and has had its effect since
    skipped    was dead, and a person decided against it

A dead letter holds the whole event, because it may outlive the log's retention.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.store.log.outbox import FACTS, LoggedEvent, event_values, logged
from headwater.store.sql import insert_into, moment_or_none, portable


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

    @property
    def is_resolved(self) -> bool:
        return self.state in ("replayed", "skipped")


class FailedEvent(NamedTuple):
    """An event that its consumer could not handle, how often it was tried, and what was wrong."""

    event: LoggedEvent
    attempts: int
    error: str


_ATTEMPTS = "consumer, partition, state, attempts, error, first_failed_at, last_failed_at, next_try_at"
_SELECT = f"SELECT id, {_ATTEMPTS}, settled_at, 0, 0, {FACTS}, CAST(payload AS TEXT) FROM event_dlq"
_OPEN = "state IN ('retrying', 'waiting', 'dead')"
_LARGEST = 2**62

_add = portable(insert_into("event_dlq", f"{_ATTEMPTS}, {FACTS}, payload".split(", ")))
_failed = portable(
    """UPDATE event_dlq SET state = :state, attempts = attempts + :attempts, error = :error, last_failed_at = :now,
        next_try_at = :next_try_at, first_failed_at = COALESCE(first_failed_at, :now), settled_at = NULL
    WHERE id = :id"""
)
_settle = portable("UPDATE event_dlq SET state = ?, settled_at = ?, next_try_at = NULL WHERE id = ?")
_remove = portable("DELETE FROM event_dlq WHERE id = ?")
_open_states = portable(
    f"SELECT DISTINCT key, state FROM event_dlq WHERE consumer = ? AND partition = ? AND key IN (?) AND {_OPEN}"
)
_due = portable(
    f"{_SELECT} WHERE consumer = ? AND partition = ? AND state = 'retrying' AND next_try_at <= ? ORDER BY id LIMIT ?"
)
_due_partitions = portable(
    "SELECT DISTINCT partition FROM event_dlq WHERE consumer = ? AND state = 'retrying' AND next_try_at <= ?"
)
_waiting = portable(
    f"""{_SELECT} WHERE consumer = ? AND partition = ? AND key = ? AND {_OPEN} AND state = 'waiting'
    ORDER BY id LIMIT ?"""
)
_one = portable(f"{_SELECT} WHERE id = ?")
_of_event = portable(f"{_SELECT} WHERE event_id = ? ORDER BY id")
_page = portable(f"{_SELECT} WHERE state = ? AND id < ? ORDER BY id DESC LIMIT ?")
_counts = portable(f"SELECT consumer, state, count(*) FROM event_dlq WHERE {_OPEN} GROUP BY consumer, state")
_clear = portable("DELETE FROM event_dlq WHERE consumer = ?")
_forget = portable("DELETE FROM event_dlq WHERE state IN ('replayed', 'skipped') AND settled_at < ?")


def add_failed(
    conn: Connection,
    consumer: str,
    partition: int,
    failures: Sequence[FailedEvent],
    now: datetime,
    next_try_at: datetime,
) -> None:
    _add.many(
        conn,
        [
            _new(
                consumer,
                partition,
                "retrying",
                event,
                attempts=attempts,
                error=error,
                failed_at=now,
                next_try_at=next_try_at,
            )
            for event, attempts, error in failures
        ],
    )


def add_dead(
    conn: Connection, consumer: str, partition: int, event: LoggedEvent, attempts: int, error: str, now: datetime
) -> None:
    """Adds an event that is not to be tried again, although its handler reported no error."""
    _add.once(conn, **_new(consumer, partition, "dead", event, attempts=attempts, error=error, failed_at=now))


def add_waiting(conn: Connection, consumer: str, partition: int, events: Sequence[LoggedEvent]) -> None:
    _add.many(conn, [_new(consumer, partition, "waiting", event) for event in events])


def open_states(conn: Connection, consumer: str, partition: int, keys: Sequence[str]) -> dict[str, set[str]]:
    """Returns the states of what is not settled, for those of these keys that have any."""
    states: dict[str, set[str]] = {}
    for key, state in _open_states.all(conn, consumer, partition, list(keys)):
        states.setdefault(key, set()).add(state)
    return states


def due(conn: Connection, consumer: str, partition: int, now: datetime, limit: int = 50) -> list[DeadLetter]:
    return [_letter(row) for row in _due.all(conn, consumer, partition, now, limit)]


def due_partitions(conn: Connection, consumer: str, now: datetime) -> list[int]:
    return _due_partitions.values(conn, consumer, now)


def waiting(conn: Connection, consumer: str, partition: int, key: str, limit: int = 500) -> list[DeadLetter]:
    """Returns what waits behind a failed event of this key, in order."""
    return [_letter(row) for row in _waiting.all(conn, consumer, partition, key, limit)]


def schedule_retry(
    conn: Connection, letter: DeadLetter, attempts: int, error: str, now: datetime, next_try_at: datetime
) -> None:
    _failed.once(conn, id=letter.id, state="retrying", attempts=attempts, error=error, now=now, next_try_at=next_try_at)


def mark_dead(conn: Connection, letter: DeadLetter, error: str, now: datetime) -> None:
    _failed.once(conn, id=letter.id, state="dead", attempts=1, error=error, now=now, next_try_at=None)


def resolve(conn: Connection, letter: DeadLetter, state: str, now: datetime) -> None:
    """Marks a dead letter as replayed or skipped. It is kept as a record."""
    _settle.once(conn, state, now, letter.id)


def remove(conn: Connection, letter: DeadLetter) -> None:
    """Removes one whose event has had its effect after all."""
    _remove.once(conn, letter.id)


def find(conn: Connection, letter_id: int) -> DeadLetter | None:
    row = _one.first(conn, letter_id)
    return _letter(row) if row else None


def of_event(conn: Connection, event_id: str) -> list[DeadLetter]:
    """Returns the dead letters of an event, one for each consumer that could not handle it."""
    return [_letter(row) for row in _of_event.all(conn, event_id)]


def page(conn: Connection, state: str = "dead", *, before: int | None = None, limit: int = 50) -> list[DeadLetter]:
    """Returns dead letters, the newest first."""
    return [_letter(row) for row in _page.all(conn, state, before or _LARGEST, limit)]


def counts(conn: Connection) -> dict[str, dict[str, int]]:
    """Returns how many are not settled, by consumer and state."""
    found: dict[str, dict[str, int]] = {}
    for consumer, state, count in _counts.all(conn):
        found.setdefault(consumer, {})[state] = count
    return found


def clear(conn: Connection, consumer: str) -> None:
    _clear.once(conn, consumer)


def forget_before(conn: Connection, before: datetime) -> int:
    """Deletes what was settled before this time. What is not settled stays."""
    return _forget.once(conn, before)


def _new(
    consumer: str,
    partition: int,
    state: str,
    event: LoggedEvent,
    attempts: int = 0,
    error: str | None = None,
    *,
    failed_at: datetime | None = None,
    next_try_at: datetime | None = None,
) -> dict[str, Any]:
    return event_values(event) | {
        "consumer": consumer,
        "partition": partition,
        "state": state,
        "attempts": attempts,
        "error": error,
        "first_failed_at": failed_at,
        "last_failed_at": failed_at,
        "next_try_at": next_try_at,
    }


def _letter(row: tuple[Any, ...]) -> DeadLetter:
    id, consumer, partition, state, attempts, error, *times_and_event = row
    first_failed_at, last_failed_at, next_try_at, settled_at, *event = times_and_event
    return DeadLetter(
        id=id,
        consumer=consumer,
        partition=partition,
        state=state,
        event=logged(event),
        attempts=attempts,
        error=error,
        first_failed_at=moment_or_none(first_failed_at),
        last_failed_at=moment_or_none(last_failed_at),
        next_try_at=moment_or_none(next_try_at),
        settled_at=moment_or_none(settled_at),
    )
