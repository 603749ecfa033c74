"""Tasks: visits that somebody asked for, and how they went.

A task is written when it is asked for, and finished by the next visit of its source, in that visit's transaction. So
it cannot be lost, and needs no queue: the schedule is a column of the source. Results are kept for a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.sql import columns, portable

KEPT = timedelta(hours=24)


class VisitTask(NamedTuple):
    """A visit that was asked for. `success` and what follows is None until it is finished."""

    id: str
    source_id: int
    created_at: datetime
    finished_at: datetime | None
    success: bool | None
    article_count: int | None
    duration_ms: int | None
    error: str | None


class TaskResult(NamedTuple):
    """What the visit brought. `article_count` counts the posts that the source showed, new or not."""

    task_id: str
    success: bool
    article_count: int
    duration_ms: int
    error: str | None


_pending = portable("SELECT task_id FROM sources WHERE id = ?")
_add = portable("INSERT INTO visit_tasks (id, source_id, created_at) VALUES (?, ?, ?)")
_attach = portable("UPDATE sources SET task_id = ? WHERE id = ?")
_finish = portable(
    """UPDATE visit_tasks SET finished_at = :now, success = :success, article_count = :article_count,
        duration_ms = :duration_ms, error = :error WHERE id = :task_id"""
)
_one = portable(
    f"""SELECT {columns(VisitTask, "t")} FROM visit_tasks t JOIN subscriptions f ON f.source_id = t.source_id
    WHERE t.id = ? AND COALESCE(t.finished_at, t.created_at) > ? AND f.tenant_id = ? AND f.user_id = ?""",
    row=VisitTask,
)
_forget = portable(
    """DELETE FROM visit_tasks WHERE id IN (SELECT id FROM visit_tasks
        WHERE created_at <= ? AND COALESCE(finished_at, created_at) <= ? LIMIT ?)"""
)


def begin(conn: Connection, source_id: int, task_id: str, now: datetime) -> str:
    """Writes a task for the next visit of a source. Returns its id; a task that waits for that visit stays."""
    waiting: str | None = _pending.value(conn, source_id)
    if waiting:
        return waiting
    _add.once(conn, task_id, source_id, now)
    _attach.once(conn, task_id, source_id)
    return task_id


def finish(conn: Connection, results: Sequence[TaskResult], now: datetime) -> None:
    _finish.many(conn, [{**one._asdict(), "now": now} for one in results])


def one(conn: Connection, reader: Reader, task_id: str, now: datetime) -> VisitTask | None:
    """Returns a task of a source that the reader follows, if it is not too old."""
    return _one.first(conn, task_id, now - KEPT, reader.tenant_id, reader.user_id)


def forget(conn: Connection, now: datetime, limit: int = 10_000) -> int:
    """Deletes what is older than a day."""
    return _forget.once(conn, now - KEPT, now - KEPT, limit)
