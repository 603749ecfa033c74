"""What paged sources have brought, board by board (B9). Counted from the store itself, never from what a crawl says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, and_, func, select

from headwater.model import Reader
from headwater.store.sources import post_counts
from headwater.store.tables import checkpoints, images, items, post_images, sources, subscriptions


class BoardCount(NamedTuple):
    """A list and what came of it: threads of a forum or articles of a site, by how reading them went.

    `images` are the pictures that its posts show, by their state.
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
    """`images` are the pictures of all these lists, by their state; one that several show counts once."""

    boards: list[BoardCount]
    images: dict[str, int]

    def total(self, kind: str) -> int:
        """How many items of this kind of source were read."""
        return sum(board.done for board in self.boards if board.kind == kind)

    @property
    def succeeded(self) -> int:
        return sum(board.done for board in self.boards)

    @property
    def failed(self) -> int:
        return sum(board.failed for board in self.boards)


def gather(conn: Connection, reader: Reader) -> Statistics:
    """What the lists that a reader follows have brought."""
    follows = and_(
        subscriptions.c.source_id == sources.c.id,
        subscriptions.c.tenant_id == reader.tenant_id,
        subscriptions.c.user_id == reader.user_id,
    )
    shown = func.coalesce(subscriptions.c.title, sources.c.title)
    lists = (
        select(sources.c.id, sources.c.kind, shown.label("title"), checkpoints)
        .join(checkpoints, checkpoints.c.source_id == sources.c.id)
        .join(subscriptions, follows)
        .order_by(checkpoints.c.site, checkpoints.c.board)
    )
    rows = conn.execute(lists).all()
    ids = [row.id for row in rows]
    states, posts, shown_by = _states(conn, ids), post_counts(conn, ids), _images_by_source(conn, ids)
    boards = [
        BoardCount(
            source_id=row.id,
            kind=row.kind,
            title=row.title,
            site=row.site,
            board=row.board,
            status=row.status,
            done=states.get((row.id, "done"), 0),
            failed=states.get((row.id, "failed"), 0),
            waiting=states.get((row.id, "waiting"), 0),
            posts=posts.get(row.id, 0),
            images=shown_by.get(row.id, {}),
        )
        for row in rows
    ]
    return Statistics(boards, _images(conn, ids))


def _states(conn: Connection, source_ids: Sequence[int]) -> dict[tuple[int, str], int]:
    counted = select(items.c.source_id, items.c.state, func.count()).where(items.c.source_id.in_(source_ids))
    rows = conn.execute(counted.group_by(items.c.source_id, items.c.state))
    return {(row[0], row[1]): row[2] for row in rows}


def _images_by_source(conn: Connection, source_ids: Sequence[int]) -> dict[int, dict[str, int]]:
    source_id, found = post_images.c.source_id, dict[int, dict[str, int]]()
    counted = select(source_id, images.c.state, func.count(images.c.id.distinct())).join_from(post_images, images)
    for row in conn.execute(counted.where(source_id.in_(source_ids)).group_by(source_id, images.c.state)):
        found.setdefault(row[0], {})[row[1]] = row[2]
    return found


def _images(conn: Connection, source_ids: Sequence[int]) -> dict[str, int]:
    counted = select(images.c.state, func.count(images.c.id.distinct())).join_from(post_images, images)
    rows = conn.execute(counted.where(post_images.c.source_id.in_(source_ids)).group_by(images.c.state))
    return {row[0]: row[1] for row in rows}
