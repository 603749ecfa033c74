"""What was asked of someone who is paid by the month: requests and the posts that came, over all processes.

A month is the calendar's, in UTC, and is its own row: the first request of a new month begins a new count.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.driver import portable

_count_request = portable(
    """INSERT INTO meters (name, month, requests, posts) VALUES (?, ?, 1, 0)
    ON CONFLICT (name, month) DO UPDATE SET requests = meters.requests + 1
    WHERE (? = 0 OR meters.requests < ?) AND (? = 0 OR meters.posts < ?) RETURNING requests"""
)
_count_posts = portable("UPDATE meters SET posts = posts + ? WHERE name = ? AND month = ?")
_used = portable("SELECT requests, posts FROM meters WHERE name = ? AND month = ?")


class Used(NamedTuple):
    """So much of a month."""

    requests: int = 0
    posts: int = 0


class Allowance(NamedTuple):
    """So much may be used in a month; 0: any number."""

    requests: int
    posts: int

    def is_spent_by(self, used: Used) -> bool:
        return any(most and had >= most for most, had in zip(self, used, strict=True))


def count_request(conn: Connection, name: str, allowance: Allowance, now: datetime) -> bool:
    """Count one request of this month; False: the month is spent, and nothing was counted."""
    requests, posts = allowance
    return bool(_count_request.all(conn, name, month_of(now), requests, requests, posts, posts))


def count_posts(conn: Connection, name: str, posts: int, now: datetime) -> None:
    """Count the posts that a counted request brought."""
    _count_posts.once(conn, posts, name, month_of(now))


def used(conn: Connection, name: str, now: datetime) -> Used:
    rows = _used.all(conn, name, month_of(now))
    return Used(*rows[0]) if rows else Used()


def month_of(now: datetime) -> str:
    return f"{now:%Y-%m}"


def month_ends(now: datetime) -> datetime:
    """When the next month begins."""
    year, month = (now.year + 1, 1) if now.month == 12 else (now.year, now.month + 1)
    return now.replace(year=year, month=month, day=1, hour=0, minute=0, second=0, microsecond=0)
