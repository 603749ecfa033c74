"""The items that lists name: which were read, which wait, which failed. It decides whether an item is crawled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.model import Item
from headwater.store.sql import columns, portable

MOST_ATTEMPTS = 3


class KnownItem(NamedTuple):
    """An item as stored. `resume_url` is the page to read next or, once the item is settled, the last page read."""

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
        """Whether there is nothing more to do until its mark changes."""
        return self.state == "done" or (self.state == "failed" and self.attempts >= MOST_ATTEMPTS)

    @property
    def next_url(self) -> str:
        return self.resume_url or self.url

    def as_listed(self) -> Item:
        """Returns the item with the page that is read now."""
        return Item(self.id, self.next_url, self.title, self.mark, self.published_at)

    def as_named(self) -> Item:
        """Returns the item as the list named it."""
        return self.as_listed()._replace(url=self.url)


_SELECT = "SELECT item_id, " + columns(KnownItem).removeprefix("id, ") + " FROM items WHERE source_id = ?"
_known = portable(f"{_SELECT} AND item_id IN (?)", row=KnownItem)
_waiting = portable(f"{_SELECT} AND state = 'waiting' ORDER BY id LIMIT ?", row=KnownItem)
_failed = portable(f"{_SELECT} AND state = 'failed' AND attempts < {MOST_ATTEMPTS} ORDER BY id LIMIT ?", row=KnownItem)
_put_waiting = portable(
    """INSERT INTO items (source_id, item_id, url, title, mark, published_at, state, created_at, updated_at)
    VALUES (:source_id, :item_id, :url, :title, :mark, :published_at, 'waiting', :now, :now)
    ON CONFLICT (source_id, item_id) DO UPDATE SET url = excluded.url, title = excluded.title, pages = 0,
        attempts = CASE WHEN items.mark = excluded.mark THEN items.attempts ELSE 0 END,
        mark = excluded.mark, published_at = COALESCE(excluded.published_at, items.published_at), state = 'waiting',
        updated_at = excluded.updated_at"""
)
_save = portable(
    """UPDATE items SET state = :state, attempts = :attempts, error = :error, posts = :posts, pages = :pages,
        resume_url = :resume_url, updated_at = :now WHERE source_id = :source_id AND item_id = :id"""
)


def known(conn: Connection, source_id: int, ids: Sequence[str]) -> dict[str, KnownItem]:
    found = _known.all(conn, source_id, list(ids)) if ids else []
    return {item.id: item for item in found}


def waiting(conn: Connection, source_id: int, limit: int = 1000) -> list[KnownItem]:
    """Returns what was listed and not read to its end yet."""
    return _waiting.all(conn, source_id, limit)


def to_try_again(conn: Connection, source_id: int, limit: int = 1000) -> list[KnownItem]:
    """Returns what failed, but not often enough to be given up."""
    return _failed.all(conn, source_id, limit)


def put_waiting(conn: Connection, source_id: int, fresh: Sequence[Item], now: datetime) -> None:
    """Records items that are to be read. One that was read before keeps the page where reading ended."""
    _put_waiting.many(
        conn,
        [
            {
                "source_id": source_id,
                "item_id": item.id,
                "url": item.url,
                "title": item.title,
                "mark": item.mark,
                "published_at": item.created_at,
                "now": now,
            }
            for item in fresh
        ],
    )


def save(conn: Connection, source_id: int, item: KnownItem, now: datetime) -> None:
    """Records how reading an item went."""
    _save.once(conn, source_id=source_id, now=now, **item._asdict())
