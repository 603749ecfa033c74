"""What may be asked of a server: budgets of requests, requests paid by the month, robots.txt rules."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.sql import Prepared, moment, portable

LONGEST_JUMP = timedelta(minutes=5)  # a place used later than this from now was taken before the clock went back
_TAKE = """UPDATE request_budgets SET used_at = {p}, free_at = {p} WHERE name = {p} AND place = (
        SELECT place FROM request_budgets WHERE name = {p} AND place < {p} AND (free_at <= {p} OR used_at > {p})
        ORDER BY free_at, place LIMIT 1 {lock}) RETURNING place"""
_take = Prepared(sqlite=_TAKE.format(p="?", lock=""), postgresql=_TAKE.format(p="%s", lock="FOR UPDATE SKIP LOCKED"))
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
NOTES_LIVE = timedelta(days=1)

_count_request = portable(
    """INSERT INTO meters (name, month, requests, posts) VALUES (?, ?, 1, 0)
    ON CONFLICT (name, month) DO UPDATE SET requests = meters.requests + 1
    WHERE (? = 0 OR meters.requests < ?) AND (? = 0 OR meters.posts < ?) RETURNING requests"""
)
_count_posts = portable("UPDATE meters SET posts = posts + ? WHERE name = ? AND month = ?")
_used = portable("SELECT requests, posts FROM meters WHERE name = ? AND month = ?")

_load = portable("SELECT origin, status, rules, fetched_at FROM robots WHERE origin = ?")
_save = portable(
    """INSERT INTO robots (origin, status, rules, fetched_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (origin) DO UPDATE SET status = excluded.status, rules = excluded.rules,
        fetched_at = excluded.fetched_at"""
)


class Budget(NamedTuple):
    """At most `requests` in any `window`."""

    name: str
    requests: int
    window: timedelta


def reserve(conn: Connection, budget: Budget, now: datetime) -> datetime | None:
    """Take a place for one request; None: it is yours. Otherwise the time at which to ask again."""
    if _taken(conn, budget, now):
        return None
    if _count.all(conn, budget.name, budget.requests)[0][0] < budget.requests:
        _add.many(conn, [(budget.name, place, now) for place in range(budget.requests)])
        if _taken(conn, budget, now):
            return None
    return moment(_next_free.all(conn, budget.name, budget.requests)[0][0])


def pause(conn: Connection, budget: Budget, until: datetime) -> None:
    """Whoever is asked says that we have asked enough: nothing more before `until`."""
    _hold.once(conn, until, budget.name, until)


def used(conn: Connection, budget: Budget, now: datetime) -> int:
    """How many requests the window that ends now holds."""
    return int(_used_since.all(conn, budget.name, now - budget.window)[0][0])


def record_use(conn: Connection, budget: Budget, now: datetime) -> int:
    """Write down how many requests the window that ends now holds, for the minute; returns the number."""
    count = used(conn, budget, now)
    _note.once(conn, budget.name, now.replace(second=0, microsecond=0), count)
    _forget_notes.once(conn, budget.name, now - NOTES_LIVE)
    return count


def use_since(conn: Connection, budget: Budget, since: datetime) -> dict[datetime, int]:
    """What was written down for each minute since then."""
    return {moment(minute): count for minute, count in _notes.all(conn, budget.name, since)}


def _taken(conn: Connection, budget: Budget, now: datetime) -> bool:
    name, until = budget.name, now + budget.window
    return bool(_take.all(conn, now, until, name, name, budget.requests, now, now + LONGEST_JUMP))


class MonthlyUse(NamedTuple):
    """So much of a month."""

    requests: int = 0
    posts: int = 0


class MonthlyAllowance(NamedTuple):
    """So much may be used in a month; 0: any number."""

    requests: int
    posts: int

    def is_spent_by(self, used: MonthlyUse) -> bool:
        return any(most and had >= most for most, had in zip(self, used, strict=True))


def count_request(conn: Connection, name: str, allowance: MonthlyAllowance, now: datetime) -> bool:
    """Count one request of this month; False: the month is spent, and nothing was counted."""
    requests, posts = allowance
    return bool(_count_request.all(conn, name, month_of(now), requests, requests, posts, posts))


def count_posts(conn: Connection, name: str, posts: int, now: datetime) -> None:
    """Count the posts that a counted request brought."""
    _count_posts.once(conn, posts, name, month_of(now))


def used_this_month(conn: Connection, name: str, now: datetime) -> MonthlyUse:
    rows = _used.all(conn, name, month_of(now))
    return MonthlyUse(*rows[0]) if rows else MonthlyUse()


def month_of(now: datetime) -> str:
    return f"{now:%Y-%m}"


def month_ends(now: datetime) -> datetime:
    """When the next month begins."""
    year, month = (now.year + 1, 1) if now.month == 12 else (now.year, now.month + 1)
    return now.replace(year=year, month=month, day=1, hour=0, minute=0, second=0, microsecond=0)


class RobotsRules(NamedTuple):
    """What the server at `origin` (scheme, host and port) answered; `text` is empty where it has no rules."""

    origin: str
    status: int
    text: str
    fetched_at: datetime


def load_robots(conn: Connection, origin: str) -> RobotsRules | None:
    rows = _load.all(conn, origin)
    return RobotsRules(*rows[0])._replace(fetched_at=moment(rows[0][3])) if rows else None


def save_robots(conn: Connection, rules: RobotsRules) -> None:
    _save.once(conn, *rules)
