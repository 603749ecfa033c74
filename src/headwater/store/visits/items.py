"""What lists name: which of it was read, what waits, what failed. The one authority for "was this crawled already"."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Item
from headwater.store.sql import moment, moment_or_none, portable

MOST_ATTEMPTS = 3
_COLUMNS = """item_id, url, title, mark, published_at, state, attempts, error, posts, pages, resume_url, created_at,
    updated_at"""
_known = portable(f"SELECT {_COLUMNS} FROM items WHERE source_id = ? AND item_id IN (?)")
_waiting = portable(f"SELECT {_COLUMNS} FROM items WHERE source_id = ? AND state = 'waiting' ORDER BY id LIMIT ?")
_failed = portable(
    f"""SELECT {_COLUMNS} FROM items WHERE source_id = ? AND state = 'failed' AND attempts < {MOST_ATTEMPTS}
    ORDER BY id LIMIT ?"""
)
_put_waiting = portable(
    """INSERT INTO items (source_id, item_id, url, title, mark, published_at, state, created_at, updated_at)
    VALUES (?, ?, ?, ?, ?, ?, 'waiting', ?, ?)
    ON CONFLICT (source_id, item_id) DO UPDATE SET url = excluded.url, title = excluded.title, pages = 0,
        attempts = CASE WHEN items.mark = excluded.mark THEN items.attempts ELSE 0 END,
        mark = excluded.mark, published_at = COALESCE(excluded.published_at, items.published_at), state = 'waiting',
        updated_at = excluded.updated_at"""
)
_save = portable(
    """UPDATE items SET state = ?, attempts = ?, error = ?, posts = ?, pages = ?, resume_url = ?, updated_at = ?
    WHERE source_id = ? AND item_id = ?"""
)


class KnownItem(NamedTuple):
    """An item as the store knows it. `resume_url` is the page to read next or, once settled, the last one read."""

    id: str
    url: str
    title: str
    mark: str
    published_at: datetime | None
    state: str
    attempts: int
    error: str | None
    posts: int
    pages: int
    resume_url: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing more to do about it until its mark changes."""
        return self.state == "done" or (self.state == "failed" and self.attempts >= MOST_ATTEMPTS)

    @property
    def next_url(self) -> str:
        return self.resume_url or self.url

    def as_listed(self) -> Item:
        """As its reader sees it: with the page that is read now."""
        return Item(self.id, self.next_url, self.title, self.mark, self.published_at)

    def as_named(self) -> Item:
        """As the list named it."""
        return self.as_listed()._replace(url=self.url)


def known(conn: Connection, source_id: int, ids: Sequence[str]) -> dict[str, KnownItem]:
    rows = _known.all(conn, source_id, list(ids)) if ids else []
    return {row[0]: _item(row) for row in rows}


def waiting(conn: Connection, source_id: int, limit: int = 1000) -> list[KnownItem]:
    """What was listed and not read to its end yet."""
    return [_item(row) for row in _waiting.all(conn, source_id, limit)]


def to_try_again(conn: Connection, source_id: int, limit: int = 1000) -> list[KnownItem]:
    """What failed, but not often enough to be given up."""
    return [_item(row) for row in _failed.all(conn, source_id, limit)]


def put_waiting(conn: Connection, source_id: int, fresh: Sequence[Item], now: datetime) -> None:
    """Note what is to be read. One that was read before keeps the page where reading ended."""
    _put_waiting.many(
        conn,
        [(source_id, item.id, item.url, item.title, item.mark, item.created_at, now, now) for item in fresh],
    )


def save(conn: Connection, source_id: int, item: KnownItem, now: datetime) -> None:
    """Write down how reading an item went."""
    _save.once(
        conn,
        item.state,
        item.attempts,
        item.error,
        item.posts,
        item.pages,
        item.resume_url,
        now,
        source_id,
        item.id,
    )


def _item(row: tuple[Any, ...]) -> KnownItem:
    return KnownItem(*row)._replace(
        published_at=moment_or_none(row[4]), created_at=moment(row[11]), updated_at=moment(row[12])
    )
