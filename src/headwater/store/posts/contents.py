"""All that the store holds of each source at once, for comparing it with what it should be. Reads everything."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, select

from headwater.store.tables import crawls, post_versions, posts, sources


class Visited(NamedTuple):
    """A visit that is on record; `posts` is how many it brought, new or not."""

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


def contents(conn: Connection) -> dict[str, Contents]:
    """Every source's, by its address."""
    columns = (sources.c.address, sources.c.id, sources.c.last_seen_created_at)
    visits, texts = _visits(conn), _posts(conn)
    return {
        address: Contents(source_id, watermark, visits[source_id], texts[source_id])
        for address, source_id, watermark in conn.execute(select(*columns))
    }


def _visits(conn: Connection) -> dict[int, list[Visited]]:
    found: dict[int, list[Visited]] = defaultdict(list)
    query = select(
        *(crawls.c.source_id, crawls.c.started_at, crawls.c.outcome),
        *(crawls.c.new + crawls.c.updated + crawls.c.duplicates, crawls.c.gap, crawls.c.watermark_updated),
    ).order_by(crawls.c.started_at, crawls.c.id)
    for source_id, *facts in conn.execute(query):
        found[source_id].append(Visited(*facts))
    return found


def _posts(conn: Connection) -> dict[int, list[StoredTexts]]:
    closed: dict[int, list[tuple[str, str]]] = defaultdict(list)
    versions = select(post_versions.c.post_id, post_versions.c.title, post_versions.c.content)
    for post_id, title, content in conn.execute(versions.order_by(post_versions.c.version)):
        closed[post_id].append((title, content))
    found: dict[int, list[StoredTexts]] = defaultdict(list)
    present = select(posts.c.id, posts.c.source_id, posts.c.source_post_id, posts.c.title, posts.c.content)
    for post_id, source_id, source_post_id, title, content in conn.execute(present):
        found[source_id].append(StoredTexts(source_post_id, [*closed[post_id], (title, content)]))
    return found
