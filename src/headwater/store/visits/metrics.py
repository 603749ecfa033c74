"""What the visits of each hour and day brought. Counted from the visits, so counting an hour again does no harm."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from headwater.store.tables import crawl_days, crawl_metrics, crawls, posts, sources

HOUR = timedelta(hours=1)
LATELY = timedelta(hours=24)
MOST_HOURS_BACK = 24  # visits are kept for at least a day
DAY = timedelta(days=1)
MOST_DAYS_BACK = 31
OUTCOMES = ("ok", "unchanged", "empty", "failed")


class HourMetrics(NamedTuple):
    """The visits that began within one hour. The last three are as they were then; None: nobody looked.

    A day's are of the same kind: `hour` is its midnight, UTC.
    """

    hour: datetime
    visits_ok: int
    visits_unchanged: int
    visits_empty: int
    visits_failed: int
    seconds: float
    posts_new: int
    posts_updated: int
    posts_duplicate: int
    valid_posts_24h: int | None
    sources_total: int | None
    tiers: dict[str, int] | None

    @property
    def visits(self) -> int:
        return self.visits_ok + self.visits_unchanged + self.visits_empty + self.visits_failed

    @property
    def average_seconds(self) -> float | None:
        return self.seconds / self.visits if self.visits else None

    @property
    def cache_hit_rate(self) -> float | None:
        """The share of answers that were what we had already, so that nothing had to be read."""
        answered = self.visits - self.visits_failed
        return self.visits_unchanged / answered if answered else None


def hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def count_hours(conn: Connection, now: datetime) -> int:
    """Count the hours up to now that may have changed since they were counted last; returns how many there were."""
    counted = 0
    for hour in _hours_to_count(conn, now):
        _keep(conn, crawl_metrics, "hour", {"hour": hour, **_visits_in(conn, hour)})
        counted += 1
    conn.execute(update(crawl_metrics).where(crawl_metrics.c.hour == hour_of(now)).values(_present(conn, now)))
    return counted


def recent(conn: Connection, now: datetime, hours: int) -> list[HourMetrics]:
    """What was counted for the last hours, the present one included; the oldest first."""
    since = hour_of(now) - HOUR * (hours - 1)
    columns = [crawl_metrics.c[name] for name in HourMetrics._fields]
    query = select(*columns).where(crawl_metrics.c.hour >= since).order_by(crawl_metrics.c.hour)
    return [HourMetrics(*row) for row in conn.execute(query)]


def day_of(moment: datetime) -> datetime:
    return hour_of(moment).replace(hour=0)


def count_days(conn: Connection, now: datetime) -> int:
    """Sum up the days that are over and were not summed up yet; returns how many there were."""
    today = day_of(now)
    last = conn.execute(select(func.max(crawl_days.c.day)).where(crawl_days.c.day < today)).scalar()
    day = max(last + DAY, today - DAY * MOST_DAYS_BACK) if last is not None else today - DAY * MOST_DAYS_BACK
    counted = 0
    while day < today:
        counted += _sum_up(conn, day)
        day += DAY
    return counted


def recent_days(conn: Connection, now: datetime, days: int) -> list[HourMetrics]:
    """The sums of the last days that are over, the newest first."""
    columns = [crawl_days.c[name] for name in ("day", *HourMetrics._fields[1:])]
    since = day_of(now) - DAY * days
    query = select(*columns).where(crawl_days.c.day >= since).order_by(crawl_days.c.day.desc())
    return [HourMetrics(*row) for row in conn.execute(query)]


def _sum_up(conn: Connection, day: datetime) -> bool:
    """Write the sum of a day's hours; what is as it was at a time is that of the last hour in which somebody looked."""
    query = select(*(crawl_metrics.c[name] for name in HourMetrics._fields))
    within = crawl_metrics.c.hour >= day, crawl_metrics.c.hour < day + DAY
    hours = [HourMetrics(*row) for row in conn.execute(query.where(*within).order_by(crawl_metrics.c.hour))]
    if not hours:
        return False
    summed = {name: sum(getattr(hour, name) for hour in hours) for name in HourMetrics._fields[1:9]}
    looked = [hour for hour in hours if hour.sources_total is not None]
    seen = {name: getattr(looked[-1], name) if looked else None for name in HourMetrics._fields[9:]}
    _keep(conn, crawl_days, "day", {"day": day, **summed, **seen})
    return True


def _hours_to_count(conn: Connection, now: datetime) -> Iterator[datetime]:
    """A visit is written when it ends, so the hour before the last one that was counted may have got more."""
    this = hour_of(now)
    last = conn.execute(select(func.max(crawl_metrics.c.hour)).where(crawl_metrics.c.hour <= this)).scalar()
    hour = this - HOUR * MOST_HOURS_BACK
    hour = max(hour, last - HOUR) if last is not None else hour
    while hour <= this:
        yield hour
        hour += HOUR


def _visits_in(conn: Connection, hour: datetime) -> dict[str, Any]:
    sums = [func.coalesce(func.sum(crawls.c[name]), 0) for name in ("seconds", "new", "updated", "duplicates")]
    query = (
        select(crawls.c.outcome, func.count(), *sums)
        .where(crawls.c.started_at >= hour, crawls.c.started_at < hour + HOUR)
        .group_by(crawls.c.outcome)
    )
    rows = conn.execute(query).all()
    counts = {row[0]: row[1] for row in rows}
    seconds, new, updated, duplicates = (sum(row[place] for row in rows) for place in range(2, 6))
    visits = {f"visits_{outcome}": counts.get(outcome, 0) for outcome in OUTCOMES}
    return {
        **visits,
        "seconds": float(seconds),
        "posts_new": new,
        "posts_updated": updated,
        "posts_duplicate": duplicates,
    }


def _keep(conn: Connection, table: Table, key: str, row: dict[str, Any]) -> None:
    insert = postgresql.insert if conn.dialect.name == "postgresql" else sqlite.insert
    counted = {name: value for name, value in row.items() if name != key}
    conn.execute(insert(table).values(row).on_conflict_do_update(index_elements=[key], set_=counted))


def _present(conn: Connection, now: datetime) -> dict[str, Any]:
    lately = select(func.count()).select_from(posts).where(posts.c.created_at >= now - LATELY)
    by_tier = select(sources.c.tier, func.count()).where(sources.c.active).group_by(sources.c.tier)
    tiers = {row[0] or "none": row[1] for row in conn.execute(by_tier)}
    return {
        "valid_posts_24h": conn.execute(lately).scalar_one(),
        "sources_total": sum(tiers.values()),
        "tiers": tiers,
    }
