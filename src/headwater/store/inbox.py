"""The inbox: which events have had their effect in which consumer (E3). Written with the effect, in its transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import Connection

from headwater.store.driver import listed, portable

_known = portable(
    """SELECT event_id FROM consumer_inbox WHERE consumer = ? AND event_id IN ??
    UNION ALL SELECT event_id FROM event_dlq WHERE consumer = ? AND event_id IN ??"""
)
_note = portable("INSERT INTO consumer_inbox (consumer, event_id) VALUES (?, ?)")
_forget = portable("DELETE FROM consumer_inbox WHERE consumer = ? AND event_id < ?")
_empty = portable("DELETE FROM consumer_inbox WHERE consumer = ?")
_consumers = portable("SELECT DISTINCT consumer FROM consumer_cursors")


def known(conn: Connection, consumer: str, event_ids: Sequence[str]) -> set[str]:
    """Those of these events that the consumer has handled, or keeps among its dead letters."""
    ids = listed(conn, event_ids)
    return {event_id for (event_id,) in _known.all(conn, consumer, ids, consumer, ids)}


def note(conn: Connection, consumer: str, event_ids: Iterable[str]) -> None:
    """These have had their effect. An event that is there already breaks the transaction, and with it the effect."""
    _note.many(conn, [(consumer, event_id) for event_id in event_ids])


def forget_before(conn: Connection, before: datetime) -> int:
    """Delete what is older than the log. The ids begin with the time, so this is a range of the key."""
    floor = f"{int(before.timestamp() * 1000):012x}"
    first = f"{floor[:8]}-{floor[8:]}"
    return sum(_forget.once(conn, consumer, first) for (consumer,) in _consumers.all(conn))


def empty(conn: Connection, consumer: str) -> None:
    _empty.once(conn, consumer)
