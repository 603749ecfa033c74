"""The inbox: which events have had their effect in a consumer, when and how long it took; and which it has begun."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.log.outbox import LoggedEvent
from headwater.store.sql import Prepared, portable


class Handled(NamedTuple):
    """An event that had its effect in a consumer. The last four are None where an older Headwater handled it.

    `milliseconds` is its share of the time that its batch took.
    """

    consumer: str
    event_id: str
    kind: str | None
    user_id: int | None
    consumed_at: datetime | None
    milliseconds: float | None


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
_COLUMNS = "consumer, event_id, kind, user_id, consumed_at, milliseconds"
_record = Prepared(
    sqlite=f"""INSERT INTO consumer_inbox ({_COLUMNS})
    SELECT :consumer, value, :kind, :user_id, :now, :milliseconds FROM json_each(:ids)""",
    postgresql=f"""INSERT INTO consumer_inbox ({_COLUMNS})
    SELECT :consumer, unnest(:ids::text[]), :kind, :user_id::bigint, :now, :milliseconds""",
)
_history = portable(
    f"SELECT {_COLUMNS} FROM consumer_inbox WHERE consumer = ? AND event_id < ? ORDER BY event_id DESC LIMIT ?",
    row=Handled,
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


def record(
    conn: Connection, consumer: str, events: Sequence[LoggedEvent], now: datetime, milliseconds: float | None
) -> None:
    """Records that these have had their effect, which took so long for all of them together.

    A known event breaks the transaction, and undoes the effect.
    """
    alike: dict[tuple[str, int | None], list[str]] = {}
    for event in events:
        alike.setdefault((event.kind, event.user_id), []).append(event.event_id)
    for (kind, user_id), ids in alike.items():
        _record.once(
            conn,
            consumer=consumer,
            ids=sorted(ids),
            kind=kind,
            user_id=user_id,
            now=now,
            milliseconds=None if milliseconds is None else round(milliseconds / len(events), 3),
        )


def history(conn: Connection, consumer: str, *, before: str = "g", limit: int = 50) -> list[Handled]:
    """Returns what the consumer has handled, the newest events first. Ids sort by time; `g` is after all."""
    return _history.all(conn, consumer, before, limit)


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
