"""The log read as one, over all its partitions: by whoever follows it from a place of their own, or looks back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.log.outbox import LoggedEvent, LogPosition, logged
from headwater.store.sql import Prepared, portable

START = LogPosition(0, 0)
_COLUMNS = "xid, id, event_id, kind, version, key, tenant_id, user_id, traceparent, created_at"
_HORIZON = "xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint"

_end = Prepared(
    sqlite="SELECT 0, id FROM event_outbox ORDER BY id DESC LIMIT 1",
    postgresql=f"SELECT xid, id FROM event_outbox WHERE {_HORIZON} ORDER BY xid DESC, id DESC LIMIT 1",
)
_after = Prepared(
    sqlite=f"SELECT {_COLUMNS}, payload FROM event_outbox WHERE ? = 0 AND id > ? ORDER BY id LIMIT ?",
    postgresql=f"""SELECT {_COLUMNS}, payload::text FROM event_outbox
        WHERE (xid, id) > (%s, %s) AND {_HORIZON} ORDER BY xid, id LIMIT %s""",
)
_followed = portable(
    "SELECT tenant_id, user_id, source_id FROM subscriptions WHERE source_id IN (?) AND user_id IN (?)"
)
_window = Prepared(
    sqlite=f"""SELECT {_COLUMNS}, payload FROM event_outbox
        WHERE partition = ? AND ? = 0 AND id > ? AND created_at >= ? AND created_at < ?
        AND kind IN (SELECT value FROM json_each(?)) AND (? = '' OR key = ?) ORDER BY id LIMIT ?""",
    postgresql=f"""SELECT {_COLUMNS}, payload::text FROM event_outbox
        WHERE partition = %s AND (xid, id) > (%s, %s) AND created_at >= %s AND created_at < %s AND {_HORIZON}
        AND kind = ANY(%s) AND (%s = '' OR key = %s) ORDER BY xid, id LIMIT %s""",
)


class Followed(NamedTuple):
    """That a user follows a source."""

    tenant_id: int
    user_id: int
    source_id: int


class Window(NamedTuple):
    """A part of the log: events that were made from `start` until before `end`, of these kinds, and of this key."""

    start: datetime
    end: datetime
    kinds: frozenset[str]
    key: str = ""


def end(conn: Connection) -> LogPosition:
    """Where the log ends now. Whatever commits from now on comes after it, even if it began to be written before."""
    rows = _end.all(conn)
    return LogPosition(*rows[0]) if rows else START


def after(conn: Connection, position: LogPosition, limit: int) -> list[LoggedEvent]:
    """The next events of all partitions."""
    return [logged(row) for row in _after.all(conn, *position, limit)]


def followed(conn: Connection, source_ids: Sequence[int], user_ids: Sequence[int]) -> set[Followed]:
    """Which of these users follow which of these sources, at this moment."""
    if not source_ids or not user_ids:
        return set()
    return {Followed(*row) for row in _followed.all(conn, list(source_ids), list(user_ids))}


def within(conn: Connection, partition: int, window: Window, *, after: LogPosition, limit: int) -> list[LoggedEvent]:
    """The next events of a partition that are in the window."""
    kinds = sorted(window.kinds)
    wanted = (window.start, window.end, kinds, window.key, window.key)
    return [logged(row) for row in _window.all(conn, partition, *after, *wanted, limit)]
