"""What a post said at any time: its versions, each with the interval in which it was the post's text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, null, select

from headwater.model import Reader
from headwater.store.posts import stream
from headwater.store.tables import post_versions, posts


class PostVersion(NamedTuple):
    """A text of a post. It held from `valid_from`, when we first saw it, until `valid_to`; None: it still does."""

    version: int
    url: str | None
    title: str
    content: str
    author: str | None
    valid_from: datetime
    valid_to: datetime | None


def versions(conn: Connection, reader: Reader, post_id: int) -> list[PostVersion]:
    """Every text that a post has had, the newest first; nothing where the reader may not see the post."""
    if stream.one_post(conn, reader, post_id) is None:
        return []
    names = PostVersion._fields
    current = select(*(posts.c[name] if name != "valid_to" else null() for name in names)).where(posts.c.id == post_id)
    closed = select(*(post_versions.c[name] for name in names)).where(post_versions.c.post_id == post_id)
    newest_first = closed.order_by(post_versions.c.version.desc())
    return [PostVersion(*row) for query in (current, newest_first) for row in conn.execute(query)]


def version_at(found: Sequence[PostVersion], at: datetime) -> PostVersion | None:
    """The one that held at this time; None: the post was not known then. Pure."""
    return next((one for one in found if one.valid_from <= at and (one.valid_to is None or at < one.valid_to)), None)
