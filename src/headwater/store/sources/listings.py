"""Cached listings: what a community showed when it was warmed up. They expire, and no post is made of them (A5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from headwater.model import Source
from headwater.store.sql import json_text, portable
from headwater.store.tables import cached_listings, sources

_keep = portable(
    """INSERT INTO cached_listings (source_id, fetched_at, expires_at, posts) VALUES (?, ?, ?, ?)
    ON CONFLICT (source_id) DO UPDATE SET fetched_at = excluded.fetched_at, expires_at = excluded.expires_at,
        posts = excluded.posts"""
)
_remove_expired = portable("DELETE FROM cached_listings WHERE expires_at <= ?")


class Listing(NamedTuple):
    """The posts that a community showed, in its order; each as `title`, `url`, `score` and so on."""

    source_id: int
    fetched_at: datetime
    expires_at: datetime
    posts: list[dict[str, Any]]


class ListingCoverage(NamedTuple):
    """How many communities of the pool are visited, and how many of them have a listing that is still good."""

    communities: int
    cached: int


def due_for_warm_up(conn: Connection, kinds: Sequence[str], before: datetime) -> list[Source]:
    """The sources of the pool, of these kinds, whose listing is older than this, the oldest first."""
    query = (
        _pooled(kinds, sources.c.id, sources.c.kind, sources.c.address, sources.c.title, sources.c.settings)
        .where(func.coalesce(cached_listings.c.fetched_at <= before, True))
        .order_by(cached_listings.c.fetched_at.nulls_first(), sources.c.id)
    )
    return [Source(*row) for row in conn.execute(query)]


def save(conn: Connection, found: Sequence[Listing]) -> None:
    _keep.many(conn, [(one.source_id, one.fetched_at, one.expires_at, json_text(one.posts)) for one in found])


def of_source(conn: Connection, source_id: int, now: datetime) -> Listing | None:
    """The listing of this source, unless it has expired."""
    wanted = cached_listings.c.source_id == source_id, cached_listings.c.expires_at > now
    row = conn.execute(select(cached_listings).where(*wanted)).first()
    return Listing(row.source_id, row.fetched_at, row.expires_at, row.posts) if row else None


def remove_expired(conn: Connection, now: datetime) -> int:
    return _remove_expired.once(conn, now)


def coverage(conn: Connection, kinds: Sequence[str], now: datetime) -> ListingCoverage:
    good = func.count(cached_listings.c.source_id).filter(cached_listings.c.expires_at > now)
    return ListingCoverage(*conn.execute(_pooled(kinds, func.count(), good)).one())


def _pooled(kinds: Sequence[str], *columns: Any) -> Any:
    return (
        select(*columns)
        .select_from(sources)
        .outerjoin(cached_listings, cached_listings.c.source_id == sources.c.id)
        .where(sources.c.pooled_at.is_not(None), sources.c.active, sources.c.kind.in_(kinds))
    )
