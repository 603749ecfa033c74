"""The hot store: a copy of the newest posts, from which the first pages of the stream are read.

A row of `hot_posts` is copied from `posts` in the transaction that writes `posts`, so both say the same. The window
says since when every post is in the hot store, and only moves forward when rows are removed. A page that ends before
the window, or that finds too few posts, is continued from `posts` after the last post that was found. So a row that
expires between two pages, or a window that is too small, never loses or repeats a post.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from headwater.store.sql import moment, moment_or_none, portable

_COPIED = """source_id, source_post_id, version, url, title, content, author, created_at, fetched_at, score,
    num_comments, lang, extra"""
_COPY = f"""INSERT INTO hot_posts (id, {_COPIED}, expires_at)
    SELECT id, {_COPIED}, created_at + ? FROM posts"""
_AS_IN_POSTS = ", ".join(f"{name.strip()} = excluded.{name.strip()}" for name in f"{_COPIED}, expires_at".split(","))
_copy_these = portable(f"{_COPY} WHERE id IN (?) ON CONFLICT (id) DO UPDATE SET {_AS_IN_POSTS}")
_copy_since = portable(f"{_COPY} WHERE created_at > ? ON CONFLICT (id) DO UPDATE SET {_AS_IN_POSTS}")
_window_for_writing = portable("SELECT since, kept_seconds FROM hot_window", postgresql=" FOR SHARE")
_window_for_cleaning = portable("SELECT since FROM hot_window", postgresql=" FOR UPDATE")
_move = portable("UPDATE hot_window SET since = ?, kept_seconds = ?")
_newest_expired = portable("SELECT MAX(created_at) FROM hot_posts WHERE expires_at <= ?")
_remove = portable("DELETE FROM hot_posts WHERE created_at <= ?")


def mirror(conn: Connection, written: Sequence[tuple[int, datetime]]) -> None:
    """Copies posts that were just written, (id, created_at) each, if they are in the window.

    On PostgreSQL the window is locked, so that it is not moved back before a post that was too old for it.
    """
    if not written:
        return
    [(since, kept_seconds)] = _window_for_writing.all(conn)
    starts_at = moment(since)
    ids = [post_id for post_id, created_at in written if created_at > starts_at]
    if ids:
        _copy_these.once(conn, _span(conn, timedelta(seconds=kept_seconds)), ids)


def clean(conn: Connection, kept: timedelta, now: datetime) -> int:
    """Removes expired posts. Returns how many. Posts that are written from now on are `kept` for so long.

    A store that was never filled is filled instead, and so is one whose window is in the future, because the clock was
    wrong when it was cleaned.
    """
    since = moment(_window_for_cleaning.value(conn))
    if since <= now:
        newest = moment_or_none(_newest_expired.value(conn, now))  # a row expires as was set when it was written
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
