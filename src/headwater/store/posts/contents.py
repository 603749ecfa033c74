"""Everything that is stored of each source, for comparing it with what should be stored."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.sql import moment_or_none, portable, row_maker


class Visited(NamedTuple):
    """A stored visit. `posts` is how many posts it brought, new or not."""

    started_at: datetime
    outcome: str
    posts: int
    gap: bool
    watermark_updated: bool


class StoredTexts(NamedTuple):
    """A post by its source's id, and its (title, content) in every version, the oldest first."""

    source_post_id: str
    texts: list[tuple[str, str]]


class Contents(NamedTuple):
    """A source with its visits in their order and all its posts."""

    source_id: int
    watermark: datetime | None
    visits: list[Visited]
    posts: list[StoredTexts]


_sources = portable("SELECT address, id, last_seen_created_at FROM sources")
_visits = portable(
    """SELECT source_id, started_at, outcome, new + updated + duplicates, gap, watermark_updated FROM crawls
    ORDER BY started_at, id"""
)
_past_texts = portable("SELECT post_id, title, content FROM post_versions ORDER BY version")
_posts = portable("SELECT id, source_id, source_post_id, title, content FROM posts")
_visited = row_maker(Visited)


def contents(conn: Connection) -> dict[str, Contents]:
    """Returns the contents of every source, by its address."""
    visits, texts = _visits_by_source(conn), _posts_by_source(conn)
    return {
        address: Contents(source_id, moment_or_none(watermark), visits[source_id], texts[source_id])
        for address, source_id, watermark in _sources.all(conn)
    }


def _visits_by_source(conn: Connection) -> dict[int, list[Visited]]:
    found: dict[int, list[Visited]] = defaultdict(list)
    for source_id, *visit in _visits.all(conn):
        found[source_id].append(_visited(visit))
    return found


def _posts_by_source(conn: Connection) -> dict[int, list[StoredTexts]]:
    past: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for post_id, title, content in _past_texts.all(conn):
        past[post_id].append((title, content))
    found: dict[int, list[StoredTexts]] = defaultdict(list)
    for post_id, source_id, source_post_id, title, content in _posts.all(conn):
        found[source_id].append(StoredTexts(source_post_id, [*past[post_id], (title, content)]))
    return found
