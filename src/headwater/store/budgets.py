"""Budgets of requests: at most so many in any stretch of time, over all processes on one database (A10).

A budget has as many places as requests are allowed. A request takes a free place and keeps it for the whole window, so
no stretch of that length, wherever it begins, holds more requests than there are places.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.driver import Prepared, portable
from headwater.store.types import moment

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


class Budget(NamedTuple):
    """At most `requests` in any `window`."""

    name: str
    requests: int
    window: timedelta


def take(conn: Connection, budget: Budget, now: datetime) -> datetime | None:
    """Take a place for one request; None: it is yours. Otherwise the time at which to ask again."""
    if _taken(conn, budget, now):
        return None
    if _count.all(conn, budget.name, budget.requests)[0][0] < budget.requests:
        _add.many(conn, [(budget.name, place, now) for place in range(budget.requests)])
        if _taken(conn, budget, now):
            return None
    return moment(_next_free.all(conn, budget.name, budget.requests)[0][0])


def hold(conn: Connection, budget: Budget, until: datetime) -> None:
    """Whoever is asked says that we have asked enough: nothing more before `until`."""
    _hold.once(conn, until, budget.name, until)


def used(conn: Connection, budget: Budget, now: datetime) -> int:
    """How many requests the window that ends now holds."""
    return int(_used_since.all(conn, budget.name, now - budget.window)[0][0])


def note_use(conn: Connection, budget: Budget, now: datetime) -> int:
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
