"""When sources are visited because people want it: visits that they ask for, and how often they want them.

A shared source is visited as often as the reader needs it who wants it most often. Readers who chose nothing count with
the usual interval. What the source itself wants, and the back-off after failures, come before every choice.

A task is a visit that somebody asked for, and how it went. It is written when it is asked for, and finished by the next
visit of its source, in that visit's transaction; or by a later one, if the next one fails and asking again may help. So
it cannot be lost, and needs no queue: the schedule is a column of the source. Results are kept for a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.row_security import of_everybody
from headwater.store.sql import columns, portable


class _Schedule(NamedTuple):
    """When a source was visited, and what decides when it will be. `not_before` is its own wish or the back-off."""

    last_crawled_at: datetime | None
    not_before: datetime | None
    interval_seconds: int | None
    chosen_seconds: int | None
    chosen_by_all: bool
    waits_for: str | None


_ask = portable(
    """UPDATE sources SET next_check_at = :now, asked_at = COALESCE(asked_at, :now), active = :active
    WHERE id = :id AND (lease_until IS NULL OR lease_until <= :now)"""
)
_choose = portable(
    "UPDATE subscriptions SET interval_seconds = ? WHERE tenant_id = ? AND user_id = ? AND source_id = ?"
)
_apply_choices = portable(
    """UPDATE sources SET
        chosen_seconds = (SELECT min(f.interval_seconds) FROM subscriptions f WHERE f.source_id = sources.id),
        chosen_by_all = (SELECT count(*) = count(f.interval_seconds) AND count(*) > 0 FROM subscriptions f
            WHERE f.source_id = sources.id)
    WHERE id = ?"""
)
_schedule = portable(f"SELECT {columns(_Schedule)} FROM sources WHERE id = ?", row=_Schedule)
_come_at = portable(
    "UPDATE sources SET next_check_at = ? WHERE id = ? AND (lease_until IS NULL OR lease_until <= ?) AND active"
)


def ask(conn: Connection, source_id: int, now: datetime) -> bool:
    """Asks for a visit that goes before all others. Returns False if the source is being visited already."""
    return bool(_ask.once(conn, now=now, active=True, id=source_id))


def choose_interval(
    conn: Connection, reader: Reader, source_id: int, seconds: int | None, usual: timedelta, now: datetime
) -> bool:
    """Sets how often a reader wants a source to be visited; None: as usual. Returns whether the reader follows it.

    The next visit comes as soon as the choice says, but not before the source itself allows it.
    """
    if not _choose.once(conn, seconds, reader.tenant_id, reader.user_id, source_id):
        return False
    apply_choices(conn, [source_id])
    found = _schedule.first(conn, source_id)
    if found is None or found.last_crawled_at is None or found.waits_for is not None:
        return True
    every = timedelta(seconds=found.interval_seconds) if found.interval_seconds else usual
    if found.chosen_seconds is not None:
        chosen = timedelta(seconds=found.chosen_seconds)
        every = chosen if found.chosen_by_all else min(chosen, every)
    _come_at.once(conn, max(now, found.last_crawled_at + every, found.not_before or now), source_id, now)
    return True


def apply_choices(conn: Connection, source_ids: Iterable[int]) -> None:
    """Records in the sources what their readers, who have changed, chose."""
    with of_everybody(conn):
        _apply_choices.many(conn, [(source_id,) for source_id in source_ids])


TASKS_KEPT = timedelta(hours=24)


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


class FinishedTask(NamedTuple):
    """What the visit brought. `article_count` counts the posts that the source showed, new or not."""

    task_id: str
    success: bool
    article_count: int
    duration_ms: int
    error: str | None


_pending_task = portable("SELECT task_id FROM sources WHERE id = ?")
_add_task = portable("INSERT INTO visit_tasks (id, source_id, created_at) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING")
_attach_task = portable("UPDATE sources SET task_id = ? WHERE id = ?")
_finish_task = portable(
    """UPDATE visit_tasks SET finished_at = :now, success = :success, article_count = :article_count,
        duration_ms = :duration_ms, error = :error WHERE id = :task_id"""
)
_has_task = portable("SELECT count(*) FROM visit_tasks WHERE id = ?")
_one_task = portable(
    f"""SELECT {columns(VisitTask, "t")} FROM visit_tasks t JOIN subscriptions f ON f.source_id = t.source_id
    WHERE t.id = ? AND COALESCE(t.finished_at, t.created_at) > ? AND f.tenant_id = ? AND f.user_id = ?""",
    row=VisitTask,
)
_forget_tasks = portable(
    """DELETE FROM visit_tasks WHERE id IN (SELECT id FROM visit_tasks
        WHERE created_at <= ? AND COALESCE(finished_at, created_at) <= ? LIMIT ?)"""
)


def begin_task(conn: Connection, source_id: int, task_id: str, now: datetime) -> str:
    """Writes a task for the next visit of a source. Returns its id; a task that waits for that visit stays."""
    waiting: str | None = _pending_task.value(conn, source_id)
    if waiting:
        return waiting
    _add_task.once(conn, task_id, source_id, now)
    _attach_task.once(conn, task_id, source_id)
    return task_id


def has_task(conn: Connection, task_id: str) -> bool:
    """Returns whether the task was written: then a visit finishes it, or has done so."""
    return bool(_has_task.value(conn, task_id))


def finish_tasks(conn: Connection, results: Sequence[FinishedTask], now: datetime) -> None:
    _finish_task.many(conn, [{**task._asdict(), "now": now} for task in results])


def task(conn: Connection, reader: Reader, task_id: str, now: datetime) -> VisitTask | None:
    """Returns a task of a source that the reader follows, if it is not too old."""
    return _one_task.first(conn, task_id, now - TASKS_KEPT, reader.tenant_id, reader.user_id)


def forget_tasks(conn: Connection, now: datetime, limit: int = 10_000) -> int:
    """Deletes what is older than a day."""
    return _forget_tasks.once(conn, now - TASKS_KEPT, now - TASKS_KEPT, limit)
