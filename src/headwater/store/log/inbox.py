"""The inbox: which events have had their effect in a consumer, and which it has begun to handle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import Connection

from headwater.store.sql import Prepared, portable

BATCH = ""  # the attempt at a whole batch; the attempt at one event has the event's id

# PostgreSQL looks up one id after the other: given a list, it may read all that the consumer ever handled.
_known = Prepared(
    sqlite="""SELECT event_id FROM consumer_inbox WHERE consumer = :consumer AND event_id IN (:ids)
    UNION ALL SELECT event_id FROM event_dlq WHERE consumer = :consumer AND event_id IN (:ids)""",
    postgresql="""SELECT wanted.id FROM (SELECT :consumer::text AS consumer, unnest(:ids::text[]) AS id) AS wanted,
        LATERAL (
        (SELECT 1 FROM consumer_inbox i WHERE i.consumer = wanted.consumer AND i.event_id = wanted.id LIMIT 1) UNION ALL
        (SELECT 1 FROM event_dlq d WHERE d.consumer = wanted.consumer AND d.event_id = wanted.id LIMIT 1)) AS met""",
)
_record = Prepared(
    sqlite="INSERT INTO consumer_inbox (consumer, event_id) SELECT ?, value FROM json_each(?)",
    postgresql="INSERT INTO consumer_inbox (consumer, event_id) SELECT ?, unnest(?::text[])",
)
_forget = portable("DELETE FROM consumer_inbox WHERE consumer = ? AND event_id < ?")
_clear = portable("DELETE FROM consumer_inbox WHERE consumer = ?")
_consumers = portable("SELECT DISTINCT consumer FROM consumer_cursors")

_begin = portable(
    """INSERT INTO consumer_trials (consumer, partition, event_id, tries, began_at) VALUES (?, ?, ?, 1, ?)
    ON CONFLICT (consumer, partition, event_id) DO UPDATE
        SET tries = consumer_trials.tries + 1, began_at = excluded.began_at"""
)
_tries = portable("SELECT tries FROM consumer_trials WHERE consumer = ? AND partition = ? AND event_id = ?")
_end = portable("DELETE FROM consumer_trials WHERE consumer = ? AND partition = ?")
_end_one = portable("DELETE FROM consumer_trials WHERE consumer = ? AND partition = ? AND event_id = ?")


def known(conn: Connection, consumer: str, event_ids: Sequence[str]) -> set[str]:
    """Returns those of these events that the consumer has handled, or has as dead letters."""
    return set(_known.values(conn, consumer=consumer, ids=list(event_ids)))


def record(conn: Connection, consumer: str, event_ids: Iterable[str]) -> None:
    """Records that these have had their effect. A known event breaks the transaction, and undoes the effect."""
    if ids := sorted(event_ids):
        _record.once(conn, consumer, ids)


def forget_before(conn: Connection, before: datetime) -> int:
    """Deletes what is older than the log. The ids begin with the time, so this is a range of the key."""
    floor = f"{int(before.timestamp() * 1000):012x}"
    first = f"{floor[:8]}-{floor[8:]}"
    return sum(_forget.once(conn, consumer, first) for consumer in _consumers.values(conn))


def clear(conn: Connection, consumer: str) -> None:
    _clear.once(conn, consumer)


def begin_handling(conn: Connection, consumer: str, partition: int, event_id: str, now: datetime) -> int:
    """Records that handling begins. Returns the attempt number."""
    _begin.once(conn, consumer, partition, event_id, now)
    return int(_tries.value(conn, consumer, partition, event_id))


def end_handling_one(conn: Connection, consumer: str, partition: int, event_id: str) -> None:
    _end_one.once(conn, consumer, partition, event_id)


def end_handling(conn: Connection, consumer: str, partition: int) -> None:
    """Records that the batch and all its events have been handled."""
    _end.once(conn, consumer, partition)
