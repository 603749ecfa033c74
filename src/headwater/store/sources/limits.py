"""How much a server may be asked: budgets of requests, requests that are paid by the month, robots.txt."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.sql import Prepared, moment, portable

LONGEST_JUMP = timedelta(minutes=5)  # a place used later than this was taken before the clock was set back
NOTES_LIVE = timedelta(days=1)


class Budget(NamedTuple):
    """At most `requests` in any `window`."""

    name: str
    requests: int
    window: timedelta


class MonthlyUse(NamedTuple):
    """What was used in a month."""

    requests: int = 0
    posts: int = 0


class MonthlyAllowance(NamedTuple):
    """What may be used in a month; 0: any number."""

    requests: int
    posts: int

    def is_spent_by(self, used: MonthlyUse) -> bool:
        return any(most and had >= most for most, had in zip(self, used, strict=True))


class RobotsRules(NamedTuple):
    """What the server at `origin` (scheme, host and port) answered. `text` is empty if it has no rules."""

    origin: str
    status: int
    text: str
    fetched_at: datetime


_TAKE = """UPDATE request_budgets SET used_at = :now, free_at = :until WHERE name = :name AND place = (
        SELECT place FROM request_budgets
        WHERE name = :name AND place < :places AND (free_at <= :now OR used_at > :latest)
        ORDER BY free_at, place LIMIT 1 {lock}) RETURNING place"""
_take = Prepared(sqlite=_TAKE.format(lock=""), postgresql=_TAKE.format(lock="FOR UPDATE SKIP LOCKED"))
_count = portable("SELECT count(*) FROM request_budgets WHERE name = ? AND place < ?")
_add = portable("INSERT INTO request_budgets (name, place, free_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING")
_next_free = portable("SELECT MIN(free_at) FROM request_budgets WHERE name = ? AND place < ?")
_hold = portable("UPDATE request_budgets SET free_at = ? WHERE name = ? AND free_at < ?")
_used_since = portable("SELECT count(*) FROM request_budgets WHERE name = ? AND used_at > ?")
_note = portable(
    """INSERT INTO budget_use (name, minute, used) VALUES (?, ?, ?)
    ON CONFLICT (name, minute) DO UPDATE SET used = excluded.used WHERE excluded.used > budget_use.used"""
)
_forget_notes = portable("DELETE FROM budget_use WHERE name = ? AND minute < ?")
_notes = portable("SELECT minute, used FROM budget_use WHERE name = ? AND minute >= ? ORDER BY minute")
_count_request = portable(
    """INSERT INTO meters (name, month, requests, posts) VALUES (:name, :month, 1, 0)
    ON CONFLICT (name, month) DO UPDATE SET requests = meters.requests + 1
    WHERE (:requests = 0 OR meters.requests < :requests) AND (:posts = 0 OR meters.posts < :posts) RETURNING requests"""
)
_count_posts = portable("UPDATE meters SET posts = posts + ? WHERE name = ? AND month = ?")
_used = portable("SELECT requests, posts FROM meters WHERE name = ? AND month = ?", row=MonthlyUse)

_load_robots = portable("SELECT origin, status, rules, fetched_at FROM robots WHERE origin = ?", row=RobotsRules)
_save_robots = portable(
    """INSERT INTO robots (origin, status, rules, fetched_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (origin) DO UPDATE SET status = excluded.status, rules = excluded.rules,
        fetched_at = excluded.fetched_at"""
)


def reserve(conn: Connection, budget: Budget, now: datetime) -> datetime | None:
    """Takes a place for one request. Returns None if it was taken, otherwise the time at which to ask again."""
    if _taken(conn, budget, now):
        return None
    if _count.value(conn, budget.name, budget.requests) < budget.requests:
        _add.many(conn, [(budget.name, place, now) for place in range(budget.requests)])
        if _taken(conn, budget, now):
            return None
    return moment(_next_free.value(conn, budget.name, budget.requests))


def pause(conn: Connection, budget: Budget, until: datetime) -> None:
    """Takes away every place until `until`: the server said that we have asked enough."""
    _hold.once(conn, until, budget.name, until)


def used(conn: Connection, budget: Budget, now: datetime) -> int:
    """Returns how many requests are in the window that ends now."""
    return int(_used_since.value(conn, budget.name, now - budget.window))


def record_use(conn: Connection, budget: Budget, now: datetime) -> int:
    """Records for this minute how many requests are in the window that ends now. Returns the number."""
    count = used(conn, budget, now)
    _note.once(conn, budget.name, now.replace(second=0, microsecond=0), count)
    _forget_notes.once(conn, budget.name, now - NOTES_LIVE)
    return count


def use_since(conn: Connection, budget: Budget, since: datetime) -> dict[datetime, int]:
    """Returns what was recorded for each minute since then."""
    return {moment(minute): count for minute, count in _notes.all(conn, budget.name, since)}


def _taken(conn: Connection, budget: Budget, now: datetime) -> bool:
    until, latest = now + budget.window, now + LONGEST_JUMP
    return bool(_take.all(conn, name=budget.name, places=budget.requests, now=now, until=until, latest=latest))


def count_request(conn: Connection, name: str, allowance: MonthlyAllowance, now: datetime) -> bool:
    """Counts one request of this month. Returns False, and counts nothing, if the month is used up."""
    month = month_of(now)
    return bool(_count_request.all(conn, name=name, month=month, requests=allowance.requests, posts=allowance.posts))


def count_posts(conn: Connection, name: str, posts: int, now: datetime) -> None:
    """Counts the posts that a counted request brought."""
    _count_posts.once(conn, posts, name, month_of(now))


def used_this_month(conn: Connection, name: str, now: datetime) -> MonthlyUse:
    return _used.first(conn, name, month_of(now)) or MonthlyUse()


def month_of(now: datetime) -> str:
    return f"{now:%Y-%m}"


def month_ends(now: datetime) -> datetime:
    """Returns when the next month begins."""
    year, month = (now.year + 1, 1) if now.month == 12 else (now.year, now.month + 1)
    return now.replace(year=year, month=month, day=1, hour=0, minute=0, second=0, microsecond=0)


def load_robots(conn: Connection, origin: str) -> RobotsRules | None:
    return _load_robots.first(conn, origin)


def save_robots(conn: Connection, rules: RobotsRules) -> None:
    _save_robots.once(conn, *rules)
