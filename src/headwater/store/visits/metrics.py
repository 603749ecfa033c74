"""What the visits of each hour and day brought, and the alerts that are raised about them.

Hours are counted from the stored visits, so counting an hour again does no harm. An alert has one row for each thing
that can be wrong; it is raised until it is cleared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.store.sql import columns, insert_into, json_text, moment, moment_or_none, portable

HOUR = timedelta(hours=1)
LATELY = timedelta(hours=24)
MOST_HOURS_BACK = 24  # visits are stored for at least a day
DAY = timedelta(days=1)
MOST_DAYS_BACK = 31
OUTCOMES = ("ok", "unchanged", "empty", "failed")


class HourMetrics(NamedTuple):
    """The visits that began within one hour. The last three are as they were then; None: they were not recorded.

    A day has the same fields: `hour` is its midnight, UTC.
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
        """The share of answers that had not changed, so that nothing had to be parsed."""
        answered = self.visits - self.visits_failed
        return self.visits_unchanged / answered if answered else None


class Alert(NamedTuple):
    """Something that is wrong since `raised_at`, or was wrong until `cleared_at`."""

    name: str
    detail: str
    raised_at: datetime
    cleared_at: datetime | None


class AlertChanges(NamedTuple):
    raised: list[Alert]
    cleared: list[Alert]


class _VisitSums(NamedTuple):
    outcome: str
    visits: int
    seconds: float
    new: int
    updated: int
    duplicates: int


_SUMMED = HourMetrics._fields[1:9]
_RECORDED = HourMetrics._fields[9:]  # as they were at a time: they cannot be counted afterwards
_HOUR = f"SELECT {columns(HourMetrics)} FROM crawl_hours"
_DAY = f"SELECT day, {', '.join(HourMetrics._fields[1:])} FROM crawl_days"
_hours_since = portable(f"{_HOUR} WHERE hour >= ? ORDER BY hour", row=HourMetrics)
_hours_between = portable(f"{_HOUR} WHERE hour >= ? AND hour < ? ORDER BY hour", row=HourMetrics)
_days_since = portable(f"{_DAY} WHERE day >= ? ORDER BY day DESC", row=HourMetrics)
_last_hour = portable("SELECT max(hour) FROM crawl_hours WHERE hour <= ?")
_last_day = portable("SELECT max(day) FROM crawl_days WHERE day < ?")
_save_hour = portable(
    f"""{insert_into("crawl_hours", ("hour", *_SUMMED))} ON CONFLICT (hour) DO UPDATE SET
    {", ".join(f"{name} = excluded.{name}" for name in _SUMMED)}"""
)
_save_day = portable(
    f"""{insert_into("crawl_days", ("day", *_SUMMED, *_RECORDED))} ON CONFLICT (day) DO UPDATE SET
    {", ".join(f"{name} = excluded.{name}" for name in (*_SUMMED, *_RECORDED))}"""
)
_record_present = portable("UPDATE crawl_hours SET valid_posts_24h = ?, sources_total = ?, tiers = ? WHERE hour = ?")
_visits_in = portable(
    """SELECT outcome, count(*), COALESCE(SUM(seconds), 0), COALESCE(SUM(new), 0), COALESCE(SUM(updated), 0),
        COALESCE(SUM(duplicates), 0)
    FROM crawls WHERE started_at >= ? AND started_at < ? GROUP BY outcome""",
    row=_VisitSums,
)
_posts_since = portable("SELECT count(*) FROM posts WHERE created_at >= ?")
_tiers = portable("SELECT COALESCE(tier, 'none'), count(*) FROM sources WHERE active GROUP BY 1")

_raise_alert = portable(
    """INSERT INTO alerts (name, detail, raised_at) VALUES (?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET detail = excluded.detail, raised_at = excluded.raised_at, cleared_at = NULL
    WHERE alerts.cleared_at IS NOT NULL RETURNING name"""
)
_update_detail = portable("UPDATE alerts SET detail = ? WHERE name = ? AND cleared_at IS NULL")
_clear_alert = portable(
    """UPDATE alerts SET cleared_at = ? WHERE name = ? AND cleared_at IS NULL
    RETURNING name, detail, raised_at, cleared_at""",
    row=Alert,
)
_all_alerts = portable(
    "SELECT name, detail, raised_at, cleared_at FROM alerts ORDER BY raised_at DESC, name", row=Alert
)
_answers = portable(
    """SELECT count(*), COALESCE(SUM(CASE WHEN crawls.outcome = 'unchanged' THEN 1 ELSE 0 END), 0)
    FROM crawls JOIN sources ON sources.id = crawls.source_id
    WHERE crawls.started_at >= ? AND crawls.outcome <> 'failed' AND sources.kind IN (?) AND sources.created_at < ?"""
)
_overdue = portable("SELECT count(*) FROM sources WHERE active AND next_check_at <= ?")


def hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def day_of(moment: datetime) -> datetime:
    return hour_of(moment).replace(hour=0)


def count_hours(conn: Connection, now: datetime) -> int:
    """Counts the hours up to now that may have changed since they were last counted. Returns how many."""
    counted = 0
    for hour in _hours_to_count(conn, now):
        _save_hour.once(conn, hour=hour, **_sums(conn, hour))
        counted += 1
    tiers = dict(_tiers.all(conn))
    posts = _posts_since.value(conn, now - LATELY)
    _record_present.once(conn, posts, sum(tiers.values()), json_text(tiers), hour_of(now))
    return counted


def recent(conn: Connection, now: datetime, hours: int) -> list[HourMetrics]:
    """Returns the last hours, the present one last."""
    return _hours_since.all(conn, hour_of(now) - HOUR * (hours - 1))


def count_days(conn: Connection, now: datetime) -> int:
    """Sums up the days that are over and were not summed up yet. Returns how many."""
    today = day_of(now)
    last = moment_or_none(_last_day.value(conn, today))
    day = max(last + DAY, today - DAY * MOST_DAYS_BACK) if last is not None else today - DAY * MOST_DAYS_BACK
    counted = 0
    while day < today:
        counted += _sum_up(conn, day)
        day += DAY
    return counted


def recent_days(conn: Connection, now: datetime, days: int) -> list[HourMetrics]:
    """Returns the sums of the last days that are over, the newest first."""
    return _days_since.all(conn, day_of(now) - DAY * days)


def _sum_up(conn: Connection, day: datetime) -> bool:
    """Writes the sums of a day's hours. What cannot be summed is taken from the last hour in which it was recorded."""
    hours = _hours_between.all(conn, day, day + DAY)
    if not hours:
        return False
    summed = {name: sum(getattr(hour, name) for hour in hours) for name in _SUMMED}
    last = next((hour for hour in reversed(hours) if hour.sources_total is not None), None)
    _save_day.once(
        conn,
        day=day,
        **summed,
        valid_posts_24h=last.valid_posts_24h if last else None,
        sources_total=last.sources_total if last else None,
        tiers=json_text(last.tiers) if last else None,
    )
    return True


def _hours_to_count(conn: Connection, now: datetime) -> Iterator[datetime]:
    """A visit is written when it ends, so the hour before the last one that was counted may have got more."""
    this = hour_of(now)
    last = _last_hour.value(conn, this)
    hour = this - HOUR * MOST_HOURS_BACK
    hour = max(hour, moment(last) - HOUR) if last is not None else hour
    while hour <= this:
        yield hour
        hour += HOUR


def _sums(conn: Connection, hour: datetime) -> dict[str, Any]:
    rows = _visits_in.all(conn, hour, hour + HOUR)
    visits = {row.outcome: row.visits for row in rows}
    return {
        **{f"visits_{outcome}": visits.get(outcome, 0) for outcome in OUTCOMES},
        "seconds": float(sum(row.seconds for row in rows)),
        "posts_new": sum(row.new for row in rows),
        "posts_updated": sum(row.updated for row in rows),
        "posts_duplicate": sum(row.duplicates for row in rows),
    }


def all_alerts(conn: Connection) -> list[Alert]:
    """Returns every alert as it was the last time, the newest first."""
    return _all_alerts.all(conn)


def update_alerts(conn: Connection, watched: Collection[str], wrong: Mapping[str, str], now: datetime) -> AlertChanges:
    """Raises alerts about what is wrong (name and detail) and clears the others. Returns what changed."""
    changed = AlertChanges([], [])
    for name in watched:
        if name not in wrong:
            changed.cleared.extend(_clear_alert.all(conn, now, name))
        elif _raise_alert.all(conn, name, wrong[name], now):
            changed.raised.append(Alert(name, wrong[name], now, None))
        else:
            _update_detail.once(conn, wrong[name], name)
    return changed


def answers(conn: Connection, kinds: Sequence[str], since: datetime) -> tuple[int, int]:
    """Returns how often sources of these kinds answered since then, and how often nothing had changed.

    Sources that are followed only since then do not count: their first answer is always new.
    """
    [(count, unchanged)] = _answers.all(conn, since, list(kinds), since)
    return int(count), int(unchanged)


def overdue(conn: Connection, since: datetime) -> int:
    """Returns how many sources have been due since this time."""
    return int(_overdue.value(conn, since))
