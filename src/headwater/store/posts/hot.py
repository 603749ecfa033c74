"""The hot store: the newest posts once more, so that the first pages of the stream need nothing else (A4).

A row of `posts_hot` is copied from the row of `posts` by the transaction that writes that one, so it says the same. The
window says from when on every post is here. It only moves forward while rows are removed; whoever reads below it, or
finds too little, reads on in `posts` behind the last post that was found. So neither a row that expires between two
pages nor a window that is too small loses or repeats a post: it only makes the cold store work.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from headwater.store.sql import moment, moment_or_none, portable
from headwater.store.tables import posts_hot

_COPIED = [column.name for column in posts_hot.columns if column.name != "expires_at"]
_COPY = f"""INSERT INTO posts_hot ({", ".join(_COPIED)}, expires_at)
    SELECT {", ".join(_COPIED)}, created_at + ? FROM posts"""
_AS_IN_POSTS = ", ".join(f"{name} = excluded.{name}" for name in [*_COPIED, "expires_at"] if name != "id")
_copy_these = portable(f"{_COPY} WHERE id IN (?) ON CONFLICT (id) DO UPDATE SET {_AS_IN_POSTS}")
_copy_since = portable(f"{_COPY} WHERE created_at > ? ON CONFLICT (id) DO UPDATE SET {_AS_IN_POSTS}")
_window_for_writing = portable("SELECT since, kept_seconds FROM hot_window", postgresql=" FOR SHARE")
_window_for_cleaning = portable("SELECT since FROM hot_window", postgresql=" FOR UPDATE")
_move = portable("UPDATE hot_window SET since = ?, kept_seconds = ?")
_newest_expired = portable("SELECT MAX(created_at) FROM posts_hot WHERE expires_at <= ?")
_remove = portable("DELETE FROM posts_hot WHERE created_at <= ?")


def mirror(conn: Connection, written: Sequence[tuple[int, datetime]]) -> None:
    """Copy posts that were just written, (id, created_at) each, as far as they belong here.

    PostgreSQL: the window is locked, so that it is not moved back below a post that was found too old for it.
    """
    if not written:
        return
    [(since, kept)] = _window_for_writing.all(conn)
    since = moment(since)
    ids = [post_id for post_id, created_at in written if created_at > since]
    if ids:
        _copy_these.once(conn, _span(conn, timedelta(seconds=kept)), list(ids))


def clean(conn: Connection, kept: timedelta, now: datetime) -> int:
    """Remove what has expired; returns how many posts that were. What is written from now on is `kept` for so long.

    A store that was never filled is filled instead, and so is one whose window is ahead of the clock, because the clock
    was wrong when it was cleaned.
    """
    since = moment(_window_for_cleaning.all(conn)[0][0])
    if since <= now:
        newest = moment_or_none(_newest_expired.all(conn, now)[0][0])  # by the time it was to be kept when written
        return _move_window(conn, max(since, now - kept, newest or since), kept)
    _remove.once(conn, since)
    _move_window(conn, now - kept, kept)
    _copy_since.once(conn, _span(conn, kept), now - kept)
    return 0


def _move_window(conn: Connection, since: datetime, kept: timedelta) -> int:
    _move.once(conn, since, int(kept.total_seconds()))
    return _remove.once(conn, since)


def _span(conn: Connection, kept: timedelta) -> Any:
    return kept if conn.dialect.name == "postgresql" else kept // timedelta(microseconds=1)
