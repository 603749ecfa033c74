"""How far the crawl of each list got: one row for each (site, board). What it means is `crawl.checkpoint`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.sql import json_text, json_value, moment, moment_or_none, portable

_COLUMNS = """site, board, source_id, status, error, current_page, page_url, page_request, last_thread_id,
    last_thread_url, stats, seen_ids, min_id, max_id, started_at, completed_at, created_at, updated_at"""
_select = portable(f"SELECT {_COLUMNS} FROM checkpoints WHERE site = ? AND board = ?")
_of_source = portable(f"SELECT {_COLUMNS} FROM checkpoints WHERE source_id = ? ORDER BY updated_at DESC LIMIT 1")
_followed = portable(
    f"""SELECT {_COLUMNS} FROM checkpoints WHERE source_id IN
    (SELECT source_id FROM subscriptions WHERE tenant_id = ? AND user_id = ?) ORDER BY site, board"""
)
_save = portable(
    f"""INSERT INTO checkpoints ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (site, board) DO UPDATE SET source_id = excluded.source_id, status = excluded.status,
        error = excluded.error, current_page = excluded.current_page, page_url = excluded.page_url,
        page_request = excluded.page_request, last_thread_id = excluded.last_thread_id,
        last_thread_url = excluded.last_thread_url, stats = excluded.stats, seen_ids = excluded.seen_ids,
        min_id = excluded.min_id, max_id = excluded.max_id, started_at = excluded.started_at,
        completed_at = excluded.completed_at, updated_at = excluded.updated_at"""
)
_delete = portable("DELETE FROM checkpoints WHERE site = ? AND board = ?")


class CheckpointRow(NamedTuple):
    """One row. `created_at` is kept from the first save; `completed_at` is the end of the last complete crawl."""

    site: str
    board: str
    source_id: int
    status: str
    error: str | None
    current_page: int
    page_url: str | None
    page_request: Any
    last_thread_id: str | None
    last_thread_url: str | None
    stats: Mapping[str, int]
    seen_ids: Sequence[str]
    min_id: str | None
    max_id: str | None
    started_at: datetime
    completed_at: datetime | None
    created_at: datetime
    updated_at: datetime


def load(conn: Connection, site: str, board: str) -> CheckpointRow | None:
    rows = _select.all(conn, site, board)
    return _checkpoint(rows[0]) if rows else None


def of_source(conn: Connection, source_id: int) -> CheckpointRow | None:
    rows = _of_source.all(conn, source_id)
    return _checkpoint(rows[0]) if rows else None


def followed(conn: Connection, reader: Reader) -> list[CheckpointRow]:
    """Those of the sources that a reader follows."""
    return [_checkpoint(row) for row in _followed.all(conn, reader.tenant_id, reader.user_id)]


def save(conn: Connection, checkpoint: CheckpointRow, now: datetime) -> None:
    """Write it; the time of the first save stays."""
    row = checkpoint._replace(
        page_request=None if checkpoint.page_request is None else json_text(checkpoint.page_request),
        stats=json_text(dict(checkpoint.stats)),  # type: ignore[arg-type]
        seen_ids=json_text(list(checkpoint.seen_ids)),
        created_at=now,
        updated_at=now,
    )
    _save.once(conn, *row)


def delete(conn: Connection, site: str, board: str) -> bool:
    return bool(_delete.once(conn, site, board))


def _checkpoint(row: tuple[Any, ...]) -> CheckpointRow:
    found = CheckpointRow(*row)
    return found._replace(
        page_request=None if found.page_request is None else json_value(found.page_request),
        stats=json_value(found.stats),
        seen_ids=json_value(found.seen_ids),
        started_at=moment(found.started_at),
        completed_at=moment_or_none(found.completed_at),
        created_at=moment(found.created_at),
        updated_at=moment(found.updated_at),
    )
