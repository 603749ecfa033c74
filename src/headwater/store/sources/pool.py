"""The pool and the tiers: how much each source publishes, how often it is visited, and cached listings of the pool.

A cached listing is what a community showed when it was warmed up. Listings expire, and no post is made of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader, Source
from headwater.store.sql import Prepared, json_text, json_value, moment, portable

QUIET = 50.0  # posts a day; sources of the pool that publish less are revisited
UNSEEN_FOR = timedelta(hours=8)
MOST_REVISITS = 50
DAY = timedelta(days=1)


class SourceRank(NamedTuple):
    """What decides the tier of a source. `average` and `quality` are None before its first visit."""

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
    """What a tier means for a source: how often it is visited, and how (`settings`; those not named stay)."""

    source_id: int
    tier: str
    interval_seconds: int
    settings: Mapping[str, Any] = {}


class SourceTier(NamedTuple):
    """The tier of a source and who chose it, its posts a day on average, and the newest post seen."""

    tier: str | None
    pinned_tier: str | None
    average: float | None
    last_seen_post_id: str | None
    last_seen_created_at: datetime | None


class Listing(NamedTuple):
    """The posts that a community showed, in its order; each as `title`, `url`, `score` and so on."""

    source_id: int
    fetched_at: datetime
    expires_at: datetime
    posts: list[dict[str, Any]]


class ListingCoverage(NamedTuple):
    """How many communities of the pool are visited, and how many of them have a listing that has not expired."""

    communities: int
    cached: int


_RANK = """SELECT id, kind, address, title, active, avg_valid_posts, quality_score, tier, pinned_tier, interval_seconds,
    categories, pooled_at FROM sources"""
_ranks = portable(f"{_RANK} WHERE active ORDER BY avg_valid_posts DESC NULLS LAST, id", row=SourceRank)
_pooled = portable(f"{_RANK} WHERE pooled_at IS NOT NULL ORDER BY address", row=SourceRank)
_rank_of = portable(f"{_RANK} WHERE id = ?", row=SourceRank)
_tier_of = portable(
    """SELECT tier, pinned_tier, avg_valid_posts, last_seen_post_id, last_seen_created_at FROM sources
    WHERE id = ?""",
    row=SourceTier,
)
_followed_in = portable(
    """SELECT s.id FROM sources s JOIN subscriptions f ON f.source_id = s.id
    WHERE f.tenant_id = ? AND f.user_id = ? AND s.tier = ? ORDER BY s.id"""
)
_revisit_quiet = portable(
    f"""UPDATE sources SET next_check_at = :now WHERE id IN (SELECT id FROM sources
        WHERE pooled_at IS NOT NULL AND last_crawled_at < :unseen_since AND active AND avg_valid_posts < {QUIET}
            AND next_check_at > :now AND waits_for IS NULL AND (lease_until IS NULL OR lease_until <= :now)
        ORDER BY last_crawled_at LIMIT :limit)"""
)
_enter = portable(
    "UPDATE sources SET pooled_at = ?, categories = ?, quality_score = COALESCE(quality_score, ?) WHERE id = ?"
)
_assign = portable("UPDATE sources SET tier = ?, interval_seconds = ? WHERE id = ?")
_kind_and_settings = portable("SELECT kind, settings FROM sources WHERE id = ?")
_set_settings = portable("UPDATE sources SET settings = ? WHERE id = ?")
_pin = portable("UPDATE sources SET pinned_tier = ? WHERE id = ?")
_by_day = Prepared(
    sqlite="""SELECT created_at - created_at % 86400000000, count(*) FROM posts
        WHERE source_id = ? AND created_at >= ? AND created_at < ? GROUP BY 1""",
    postgresql="""SELECT date_trunc('day', created_at, 'UTC'), count(*) FROM posts
        WHERE source_id = ? AND created_at >= ? AND created_at < ? GROUP BY 1""",
)

_POOLED = """FROM sources s LEFT JOIN cached_listings c ON c.source_id = s.id
    WHERE s.pooled_at IS NOT NULL AND s.active AND s.kind IN (?)"""
_due_for_warm_up = portable(
    f"""SELECT s.id, s.kind, s.address, s.title, s.settings {_POOLED} AND (c.fetched_at IS NULL OR c.fetched_at <= ?)
    ORDER BY c.fetched_at NULLS FIRST, s.id""",
    row=Source,
)
_coverage = portable(
    f"""SELECT count(*), COALESCE(SUM(CASE WHEN expires_at > ? THEN 1 ELSE 0 END), 0)
    FROM (SELECT c.expires_at {_POOLED}) AS pooled"""
)
_count_waiting = portable(
    """SELECT count(*) FROM sources WHERE kind IN (?) AND active AND (next_check_at <= ? OR waits_for IS NOT NULL)
        AND (lease_until IS NULL OR lease_until <= ?)"""
)
_save_listing = portable(
    """INSERT INTO cached_listings (source_id, fetched_at, expires_at, posts) VALUES (?, ?, ?, ?)
    ON CONFLICT (source_id) DO UPDATE SET fetched_at = excluded.fetched_at, expires_at = excluded.expires_at,
        posts = excluded.posts"""
)
_listing_of = portable(
    "SELECT source_id, fetched_at, expires_at, posts FROM cached_listings WHERE source_id = ? AND expires_at > ?",
    row=Listing,
)
_remove_expired = portable("DELETE FROM cached_listings WHERE expires_at <= ?")


def ranks(conn: Connection) -> list[SourceRank]:
    """Returns every active source, those that publish most first."""
    return _ranks.all(conn)


def pooled(conn: Connection) -> list[SourceRank]:
    """Returns the pool, in the order of its addresses."""
    return _pooled.all(conn)


def rank_of(conn: Connection, source_id: int) -> SourceRank | None:
    return _rank_of.first(conn, source_id)


def tier_of(conn: Connection, source_id: int) -> SourceTier:
    return _tier_of.all(conn, source_id)[0]


def followed_in(conn: Connection, reader: Reader, tier: str) -> list[int]:
    """Returns the sources of a tier that the reader follows."""
    return _followed_in.values(conn, reader.tenant_id, reader.user_id, tier)


def revisit_quiet(conn: Connection, now: datetime) -> int:
    """Makes quiet sources of the pool due that were not visited for hours, the longest unvisited first.

    A source whose host asked for a pause is left out. A visit that then fails or finds nothing counts as an empty hit.
    """
    return _revisit_quiet.once(conn, now=now, unseen_since=now - UNSEEN_FOR, limit=MOST_REVISITS)


def enter(
    conn: Connection, source_id: int, categories: Sequence[str], now: datetime, quality: float | None = None
) -> None:
    """Puts a source into the pool. `quality` counts only if none was measured yet."""
    _enter.once(conn, now, json_text(list(categories)), quality, source_id)


def assign(conn: Connection, changes: Sequence[TierChange]) -> None:
    """Gives sources their tiers. A new interval counts from the next visit."""
    for change in changes:
        _assign.once(conn, change.tier, change.interval_seconds, change.source_id)
        if change.settings:
            [(_, settings)] = _kind_and_settings.all(conn, change.source_id)
            _set_settings.once(conn, json_text({**json_value(settings), **change.settings}), change.source_id)


def set_comments(conn: Connection, source_id: int, wanted: bool, kinds: Sequence[str]) -> bool:
    """Sets whether comments are read as well. Returns False if the source is of none of these kinds."""
    [(kind, settings)] = _kind_and_settings.all(conn, source_id)
    if kind not in kinds:
        return False
    _set_settings.once(conn, json_text({**json_value(settings), "comments": wanted}), source_id)
    return True


def pin(conn: Connection, source_id: int, tier: str | None) -> None:
    """Keeps a source in this tier whatever its average is; None: the average decides again."""
    _pin.once(conn, tier, source_id)


def posts_by_day(conn: Connection, source_id: int, now: datetime, days: int) -> list[tuple[datetime, int]]:
    """Returns how many posts the source published on each of the last days (UTC), today last."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - DAY * (days - 1)
    counts = {moment(day): count for day, count in _by_day.all(conn, source_id, first, today + DAY)}
    return [(day, counts.get(day, 0)) for day in (first + DAY * number for number in range(days))]


def due_for_warm_up(conn: Connection, kinds: Sequence[str], before: datetime) -> list[Source]:
    """Returns the sources of the pool, of these kinds, whose listing is older than this, the oldest first."""
    return _due_for_warm_up.all(conn, list(kinds), before)


def visits_waiting(conn: Connection, kinds: Sequence[str], now: datetime) -> int:
    """Returns how many sources of these kinds wait for a visit."""
    return int(_count_waiting.value(conn, list(kinds), now, now))


def save_listings(conn: Connection, found: Sequence[Listing]) -> None:
    _save_listing.many(conn, [(one.source_id, one.fetched_at, one.expires_at, json_text(one.posts)) for one in found])


def listing_of(conn: Connection, source_id: int, now: datetime) -> Listing | None:
    """Returns the listing of this source, unless it has expired."""
    return _listing_of.first(conn, source_id, now)


def remove_expired_listings(conn: Connection, now: datetime) -> int:
    return _remove_expired.once(conn, now)


def listing_coverage(conn: Connection, kinds: Sequence[str], now: datetime) -> ListingCoverage:
    [(communities, cached)] = _coverage.all(conn, now, list(kinds))
    return ListingCoverage(communities, int(cached))
