"""What a process had begun to handle and has not come back from: how often each batch or event was begun in vain (H88).

A trial is written before the work, in a transaction of its own, and ended by whoever comes to the end of it. So one
that is still there was left by a process that died.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from headwater.store.driver import portable

BATCH = ""  # the trial of a batch; that of a single event has the event's id

_begin = portable(
    """INSERT INTO consumer_trials (consumer, partition, event_id, tries, began_at) VALUES (?, ?, ?, 1, ?)
    ON CONFLICT (consumer, partition, event_id) DO UPDATE
        SET tries = consumer_trials.tries + 1, began_at = excluded.began_at"""
)
_tries = portable("SELECT tries FROM consumer_trials WHERE consumer = ? AND partition = ? AND event_id = ?")
_end = portable("DELETE FROM consumer_trials WHERE consumer = ? AND partition = ?")
_end_one = portable("DELETE FROM consumer_trials WHERE consumer = ? AND partition = ? AND event_id = ?")


def begin(conn: Connection, consumer: str, partition: int, event_id: str, now: datetime) -> int:
    """Somebody begins; returns the how manieth time this is."""
    _begin.once(conn, consumer, partition, event_id, now)
    tries: int = _tries.all(conn, consumer, partition, event_id)[0][0]
    return tries


def end_one(conn: Connection, consumer: str, partition: int, event_id: str) -> None:
    _end_one.once(conn, consumer, partition, event_id)


def end(conn: Connection, consumer: str, partition: int) -> None:
    """The batch and all its events are done with."""
    _end.once(conn, consumer, partition)
