"""What is known about one source beside how it is doing: how much it publishes, its tier, and its watermark."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, select

from headwater.store.driver import Prepared
from headwater.store.tables import sources
from headwater.store.types import moment

DAY = timedelta(days=1)
_by_day = Prepared(
    sqlite="""SELECT created_at - created_at % 86400000000, count(*) FROM posts
        WHERE source_id = ? AND created_at >= ? AND created_at < ? GROUP BY 1""",
    postgresql="""SELECT date_trunc('day', created_at, 'UTC'), count(*) FROM posts
        WHERE source_id = %s AND created_at >= %s AND created_at < %s GROUP BY 1""",
)


class Place(NamedTuple):
    """Where a source stands: its tier and who chose it, posts a day on average, and the newest post seen."""

    tier: str | None
    pinned_tier: str | None
    average: float | None
    last_seen_post_id: str | None
    last_seen_created_at: datetime | None


def place(conn: Connection, source_id: int) -> Place:
    query = select(
        sources.c.tier,
        sources.c.pinned_tier,
        sources.c.avg_valid_posts,
        sources.c.last_seen_post_id,
        sources.c.last_seen_created_at,
    ).where(sources.c.id == source_id)
    return Place(*conn.execute(query).one())


def by_day(conn: Connection, source_id: int, now: datetime, days: int) -> list[tuple[datetime, int]]:
    """How many posts the source published on each of the last days (UTC), today included; the oldest first."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - DAY * (days - 1)
    counts = {moment(day): count for day, count in _by_day.all(conn, source_id, first, today + DAY)}
    return [(day, counts.get(day, 0)) for day in (first + DAY * place for place in range(days))]
