"""How far the crawl of each list got, one row for each (site, board), and what the lists have brought.

What a checkpoint means is in `crawl.checkpoint`. Statistics are counted from the store, not from what a crawl reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.sources import post_counts
from headwater.store.sql import columns, insert_into, json_text, portable


class CheckpointRow(NamedTuple):
    """`created_at` is the time of the first save; `completed_at` is the end of the last complete crawl."""

    site: str
    board: str
    source_id: int
    status: str
    started_at: datetime
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None = None
    error: str | None = None
    current_page: int = 0
    page_url: str | None = None
    page_request: dict[str, Any] | None = None
    last_thread_id: str | None = None
    last_thread_url: str | None = None
    stats: Mapping[str, int] = {}
    seen_ids: Sequence[str] = ()
    min_id: str | None = None
    max_id: str | None = None


class BoardCount(NamedTuple):
    """A list and what came of it: threads of a forum or articles of a site, by how reading them went.

    `images` are the images of its posts, by their state.
    """

    source_id: int
    kind: str
    title: str
    site: str
    board: str
    status: str
    done: int
    failed: int
    waiting: int
    posts: int
    images: dict[str, int]


class Statistics(NamedTuple):
    """`images` are the images of all these lists, by their state; an image on several lists counts once."""

    boards: list[BoardCount]
    images: dict[str, int]

    def total(self, kind: str) -> int:
        """Returns how many items of this kind of source were read."""
        return sum(board.done for board in self.boards if board.kind == kind)

    @property
    def succeeded(self) -> int:
        return sum(board.done for board in self.boards)

    @property
    def failed(self) -> int:
        return sum(board.failed for board in self.boards)


_SELECT = f"SELECT {columns(CheckpointRow)} FROM checkpoints"
_KEPT = ("site", "board", "created_at")  # by a save of a known checkpoint
_one = portable(f"{_SELECT} WHERE site = ? AND board = ?", row=CheckpointRow)
_of_source = portable(f"{_SELECT} WHERE source_id = ? ORDER BY updated_at DESC LIMIT 1", row=CheckpointRow)
_followed = portable(
    f"""{_SELECT} WHERE source_id IN (SELECT source_id FROM subscriptions WHERE tenant_id = ? AND user_id = ?)
    ORDER BY site, board""",
    row=CheckpointRow,
)
_save = portable(
    f"""{insert_into("checkpoints", CheckpointRow._fields)} ON CONFLICT (site, board) DO UPDATE SET
    {", ".join(f"{name} = excluded.{name}" for name in CheckpointRow._fields if name not in _KEPT)}"""
)
_delete = portable("DELETE FROM checkpoints WHERE site = ? AND board = ?")
_boards = portable(
    """SELECT s.id, s.kind, COALESCE(f.title, s.title), c.site, c.board, c.status
    FROM sources s JOIN checkpoints c ON c.source_id = s.id
    JOIN subscriptions f ON f.source_id = s.id AND f.tenant_id = ? AND f.user_id = ?
    ORDER BY c.site, c.board"""
)
_item_states = portable("SELECT source_id, state, count(*) FROM items WHERE source_id IN (?) GROUP BY source_id, state")
_images_by_source = portable(
    """SELECT p.source_id, i.state, count(DISTINCT i.id) FROM post_images p JOIN images i ON i.id = p.image_id
    WHERE p.source_id IN (?) GROUP BY p.source_id, i.state"""
)
_images = portable(
    """SELECT i.state, count(DISTINCT i.id) FROM post_images p JOIN images i ON i.id = p.image_id
    WHERE p.source_id IN (?) GROUP BY i.state"""
)


def load(conn: Connection, site: str, board: str) -> CheckpointRow | None:
    return _one.first(conn, site, board)


def of_source(conn: Connection, source_id: int) -> CheckpointRow | None:
    return _of_source.first(conn, source_id)


def followed(conn: Connection, reader: Reader) -> list[CheckpointRow]:
    """Returns the checkpoints of the sources that a reader follows."""
    return _followed.all(conn, reader.tenant_id, reader.user_id)


def save(conn: Connection, checkpoint: CheckpointRow, now: datetime) -> None:
    """Writes a checkpoint. The time of its first save stays."""
    row = checkpoint._asdict() | {
        "page_request": None if checkpoint.page_request is None else json_text(checkpoint.page_request),
        "stats": json_text(dict(checkpoint.stats)),
        "seen_ids": json_text(list(checkpoint.seen_ids)),
        "created_at": now,
        "updated_at": now,
    }
    _save.once(conn, **row)


def delete(conn: Connection, site: str, board: str) -> bool:
    return bool(_delete.once(conn, site, board))


def statistics(conn: Connection, reader: Reader) -> Statistics:
    """Returns what the lists that a reader follows have brought."""
    boards = _boards.all(conn, reader.tenant_id, reader.user_id)
    ids = [source_id for source_id, *_ in boards]
    states, images = _by_source(_item_states.all(conn, ids)), _by_source(_images_by_source.all(conn, ids))
    posts = post_counts(conn, ids)

    def counted(source_id: int, *board: Any) -> BoardCount:
        by_state = states.get(source_id, {})
        items = (by_state.get(state, 0) for state in ("done", "failed", "waiting"))
        return BoardCount._make((source_id, *board, *items, posts.get(source_id, 0), images.get(source_id, {})))

    return Statistics([counted(*board) for board in boards], dict(_images.all(conn, ids)))


def _by_source(rows: Sequence[tuple[Any, ...]]) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {}
    for source_id, state, count in rows:
        found.setdefault(source_id, {})[state] = count
    return found
