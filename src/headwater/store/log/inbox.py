"""The inbox: which events had their effect in which consumer, and which it has begun to handle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import Connection

from headwater.store.sql import Prepared, portable

# PostgreSQL is told to look up one after the other: asked for a list, it may read all that the consumer ever handled.
_known = Prepared(
    sqlite="""SELECT event_id FROM consumer_inbox WHERE consumer = ?1 AND event_id IN (SELECT value FROM json_each(?2))
    UNION ALL SELECT event_id FROM event_dlq WHERE consumer = ?1 AND event_id IN (SELECT value FROM json_each(?2))""",
    postgresql="""SELECT wanted.id FROM (SELECT %s::text AS consumer, unnest(%s::text[]) AS id) AS wanted, LATERAL (
        (SELECT 1 FROM consumer_inbox i WHERE i.consumer = wanted.consumer AND i.event_id = wanted.id LIMIT 1) UNION ALL
        (SELECT 1 FROM event_dlq d WHERE d.consumer = wanted.consumer AND d.event_id = wanted.id LIMIT 1)) AS met""",
)
_note = Prepared(
    sqlite="INSERT INTO consumer_inbox (consumer, event_id) SELECT ?, value FROM json_each(?)",
    postgresql="INSERT INTO consumer_inbox (consumer, event_id) SELECT %s, unnest(%s::text[])",
)
_forget = portable("DELETE FROM consumer_inbox WHERE consumer = ? AND event_id < ?")
_empty = portable("DELETE FROM consumer_inbox WHERE consumer = ?")
_consumers = portable("SELECT DISTINCT consumer FROM consumer_cursors")

BATCH = ""  # the trial of a batch; that of a single event has the event's id

_begin = portable(
    """INSERT INTO consumer_trials (consumer, partition, event_id, tries, began_at) VALUES (?, ?, ?, 1, ?)
    ON CONFLICT (consumer, partition, event_id) DO UPDATE
        SET tries = consumer_trials.tries + 1, began_at = excluded.began_at"""
)
_tries = portable("SELECT tries FROM consumer_trials WHERE consumer = ? AND partition = ? AND event_id = ?")
_end = portable("DELETE FROM consumer_trials WHERE consumer = ? AND partition = ?")
_end_one = portable("DELETE FROM consumer_trials WHERE consumer = ? AND partition = ? AND event_id = ?")


def known(conn: Connection, consumer: str, event_ids: Sequence[str]) -> set[str]:
    """Those of these events that the consumer has handled, or keeps among its dead letters."""
    return {event_id for (event_id,) in _known.all(conn, consumer, list(event_ids))}


def record(conn: Connection, consumer: str, event_ids: Iterable[str]) -> None:
    """These have had their effect. An event that is there already breaks the transaction, and with it the effect."""
    if ids := sorted(event_ids):
        _note.once(conn, consumer, list(ids))


def forget_before(conn: Connection, before: datetime) -> int:
    """Delete what is older than the log. The ids begin with the time, so this is a range of the key."""
    floor = f"{int(before.timestamp() * 1000):012x}"
    first = f"{floor[:8]}-{floor[8:]}"
    return sum(_forget.once(conn, consumer, first) for (consumer,) in _consumers.all(conn))


def clear(conn: Connection, consumer: str) -> None:
    _empty.once(conn, consumer)


def begin_handling(conn: Connection, consumer: str, partition: int, event_id: str, now: datetime) -> int:
    """Records that handling begins. Returns the attempt number."""
    _begin.once(conn, consumer, partition, event_id, now)
    tries: int = _tries.all(conn, consumer, partition, event_id)[0][0]
    return tries


def end_handling_one(conn: Connection, consumer: str, partition: int, event_id: str) -> None:
    _end_one.once(conn, consumer, partition, event_id)


def end_handling(conn: Connection, consumer: str, partition: int) -> None:
    """The batch and all its events are done with."""
    _end.once(conn, consumer, partition)
