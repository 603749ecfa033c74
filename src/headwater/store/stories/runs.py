"""Runs of folding that somebody asked for: which posts they decide about, and what came of them, kept for a day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.row_security import of_everybody
from headwater.store.sql import Prepared, columns, json_text, json_value, portable

KEPT = timedelta(hours=24)


class FoldRunRow(NamedTuple):
    """`result` and `finished_at` are None while it runs; `error` says why it failed."""

    task_id: str
    status: str
    result: dict[str, Any] | None
    error: str | None
    started_at: datetime
    lease_until: datetime
    finished_at: datetime | None


_lock = Prepared(sqlite="SELECT 1", postgresql="SELECT pg_advisory_xact_lock(hashtext('headwater fold runs'))")
_running = portable("SELECT post_ids FROM fold_runs WHERE status = 'running' AND lease_until > ?")
_begin = portable(
    """INSERT INTO fold_runs (task_id, tenant_id, user_id, status, post_ids, started_at, lease_until)
    VALUES (:task_id, :tenant_id, :user_id, 'running', :post_ids, :now, :until)"""
)
_finish = portable("UPDATE fold_runs SET status = ?, result = ?, error = ?, finished_at = ? WHERE task_id = ?")
_renew = portable("UPDATE fold_runs SET lease_until = ? WHERE task_id = ? AND status = 'running'")
_find = portable(
    f"SELECT {columns(FoldRunRow)} FROM fold_runs WHERE task_id = ? AND tenant_id = ? AND user_id = ?", row=FoldRunRow
)
_forget = portable("DELETE FROM fold_runs WHERE started_at < ?")
_configuration = portable("SELECT runs FROM fold_settings WHERE tenant_id = ? AND user_id = ?")
_save_configuration = portable(
    """INSERT INTO fold_settings (tenant_id, user_id, level, threshold, runs) VALUES (?, ?, 'stories', 0, ?)
    ON CONFLICT (tenant_id, user_id) DO UPDATE SET runs = excluded.runs"""
)


def begin(
    conn: Connection, reader: Reader, task_id: str, post_ids: Sequence[int], now: datetime, lease_for: timedelta
) -> list[int]:
    """Records that a run begins. Returns the posts that another run decides about; if there are any, this one does not
    begin."""
    _lock.all(conn)
    with of_everybody(conn):
        _forget.once(conn, now - KEPT)
        taken = {post_id for ids in _running.values(conn, now) for post_id in _ids(ids)}
    if both := sorted(taken.intersection(post_ids)):
        return both
    _begin.once(
        conn,
        task_id=task_id,
        **reader.key,
        post_ids=json_text(list(post_ids)),
        now=now,
        until=now + lease_for,
    )
    return []


def finish(
    conn: Connection,
    task_id: str,
    status: str,
    now: datetime,
    *,
    result: Mapping[str, Any] | None = None,
    error: str | None = None,
) -> None:
    _finish.once(conn, status, json_text(dict(result)) if result is not None else None, error, now, task_id)


def renew(conn: Connection, task_id: str, until: datetime) -> None:
    """Keeps the posts of a run until this time."""
    _renew.once(conn, until, task_id)


def find(conn: Connection, reader: Reader, task_id: str) -> FoldRunRow | None:
    return _find.first(conn, task_id, reader.tenant_id, reader.user_id)


def configuration_of(conn: Connection, reader: Reader) -> dict[str, Any]:
    """Returns what the reader has chosen for runs; nothing if there is no choice."""
    found: dict[str, Any] | None = json_value(_configuration.value(conn, reader.tenant_id, reader.user_id) or "{}")
    return found or {}


def save_configuration(conn: Connection, reader: Reader, chosen: Mapping[str, Any]) -> None:
    _save_configuration.once(conn, reader.tenant_id, reader.user_id, json_text(dict(chosen)))


def _ids(stored: Any) -> list[int]:
    found: list[int] = json_value(stored)
    return found
