"""The pool and the tiers as stored: who is in the pool, how much each source publishes, how often it is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, or_, select, update

from headwater.model import Reader
from headwater.store.sql import Prepared, moment
from headwater.store.tables import sources, subscriptions

QUIET = 50.0  # posts a day: whoever has fewer is looked after
UNSEEN_FOR = timedelta(hours=8)
MOST_REVISITS = 50

DAY = timedelta(days=1)
_by_day = Prepared(
    sqlite="""SELECT created_at - created_at % 86400000000, count(*) FROM posts
        WHERE source_id = ? AND created_at >= ? AND created_at < ? GROUP BY 1""",
    postgresql="""SELECT date_trunc('day', created_at, 'UTC'), count(*) FROM posts
        WHERE source_id = %s AND created_at >= %s AND created_at < %s GROUP BY 1""",
)


class SourceRank(NamedTuple):
    """A source by what decides about its tier. `average` and `quality` are None before its first visit."""

    source_id: int
    kind: str
    address: str
    title: str
    active: bool
    average: float | None
    quality: float | None
    tier: str | None
    pinned: str | None
    interval_seconds: int | None
    categories: list[str]
    pooled_at: datetime | None


class TierChange(NamedTuple):
    """What its tier gives a source: how often it is visited, and how (`settings`; what is not named stays)."""

    source_id: int
    tier: str
    interval_seconds: int
    settings: Mapping[str, Any] = {}


_columns: list[Any] = [
    sources.c.id,
    sources.c.kind,
    sources.c.address,
    sources.c.title,
    sources.c.active,
    sources.c.avg_valid_posts,
    sources.c.quality_score,
    sources.c.tier,
    sources.c.pinned_tier,
    sources.c.interval_seconds,
    sources.c.categories,
    sources.c.pooled_at,
]


def ranks(conn: Connection) -> list[SourceRank]:
    """Every source that is visited, those that publish most first."""
    busiest_first = (sources.c.avg_valid_posts.desc().nulls_last(), sources.c.id)
    query = select(*_columns).where(sources.c.active).order_by(*busiest_first)
    return [SourceRank(*row) for row in conn.execute(query)]


def pooled(conn: Connection) -> list[SourceRank]:
    """The pool, in the order of its addresses."""
    query = select(*_columns).where(sources.c.pooled_at.is_not(None)).order_by(sources.c.address)
    return [SourceRank(*row) for row in conn.execute(query)]


def rank_of(conn: Connection, source_id: int) -> SourceRank | None:
    row = conn.execute(select(*_columns).where(sources.c.id == source_id)).first()
    return SourceRank(*row) if row else None


def followed_in(conn: Connection, reader: Reader, tier: str) -> list[int]:
    """The sources of a tier that the reader follows."""
    mine = and_(subscriptions.c.tenant_id == reader.tenant_id, subscriptions.c.user_id == reader.user_id)
    query = (
        select(sources.c.id)
        .join(subscriptions, subscriptions.c.source_id == sources.c.id)
        .where(mine, sources.c.tier == tier)
        .order_by(sources.c.id)
    )
    return list(conn.execute(query).scalars())


def revisit_quiet(conn: Connection, now: datetime) -> int:
    """Have the quiet sources of the pool visited that were not seen for hours, the longest unseen first (A6).

    One whose host asked for a pause is left alone. A visit that then fails or finds nothing counts as an empty hit.
    """
    forgotten = (
        select(sources.c.id)
        .where(
            sources.c.pooled_at.is_not(None),
            sources.c.last_crawled_at < now - UNSEEN_FOR,
            sources.c.active,
            sources.c.avg_valid_posts < QUIET,
            sources.c.next_check_at > now,
            sources.c.waits_for.is_(None),
            or_(sources.c.lease_until.is_(None), sources.c.lease_until <= now),
        )
        .order_by(sources.c.last_crawled_at)
        .limit(MOST_REVISITS)
    )
    return conn.execute(update(sources).where(sources.c.id.in_(forgotten)).values(next_check_at=now)).rowcount


def enter(conn: Connection, source_id: int, categories: Sequence[str], now: datetime) -> None:
    """Put a source into the pool."""
    values = {"pooled_at": now, "categories": list(categories)}
    conn.execute(update(sources).where(sources.c.id == source_id).values(values))


def assign(conn: Connection, places: Sequence[TierChange]) -> None:
    """Give these sources their tiers. The new interval counts from the next visit on."""
    for place in places:
        values: dict[str, Any] = {"tier": place.tier, "interval_seconds": place.interval_seconds}
        if place.settings:
            kept = conn.execute(select(sources.c.settings).where(sources.c.id == place.source_id)).scalar_one()
            values["settings"] = {**kept, **place.settings}
        conn.execute(update(sources).where(sources.c.id == place.source_id).values(values))


def set_comments(conn: Connection, source_id: int, wanted: bool, kinds: Sequence[str]) -> bool:
    """Set whether comments are read as well; returns False if the source is of none of these kinds."""
    row = conn.execute(select(sources.c.kind, sources.c.settings).where(sources.c.id == source_id)).one()
    if row.kind not in kinds:
        return False
    kept = {**row.settings, "comments": wanted}
    conn.execute(update(sources).where(sources.c.id == source_id).values(settings=kept))
    return True


def pin(conn: Connection, source_id: int, tier: str | None) -> None:
    """Let a source keep this tier whatever its average says; None: let the average decide again."""
    conn.execute(update(sources).where(sources.c.id == source_id).values(pinned_tier=tier))


class SourceTier(NamedTuple):
    """Where a source stands: its tier and who chose it, posts a day on average, and the newest post seen."""

    tier: str | None
    pinned_tier: str | None
    average: float | None
    last_seen_post_id: str | None
    last_seen_created_at: datetime | None


def tier_of(conn: Connection, source_id: int) -> SourceTier:
    query = select(
        sources.c.tier,
        sources.c.pinned_tier,
        sources.c.avg_valid_posts,
        sources.c.last_seen_post_id,
        sources.c.last_seen_created_at,
    ).where(sources.c.id == source_id)
    return SourceTier(*conn.execute(query).one())


def posts_by_day(conn: Connection, source_id: int, now: datetime, days: int) -> list[tuple[datetime, int]]:
    """How many posts the source published on each of the last days (UTC), today included; the oldest first."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - DAY * (days - 1)
    counts = {moment(day): count for day, count in _by_day.all(conn, source_id, first, today + DAY)}
    return [(day, counts.get(day, 0)) for day in (first + DAY * tier_of for tier_of in range(days))]
