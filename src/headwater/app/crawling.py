"""How crawling goes: hour by hour, how far each list was read, and what the lists have brought."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.app import sources as followed
from headwater.crawl import warm_up
from headwater.crawl.checkpoint import Checkpoint
from headwater.crawl.checkpoint import items_read as items_read
from headwater.errors import NotFound
from headwater.model import Reader
from headwater.store.sources import limits
from headwater.store.sources.limits import Budget
from headwater.store.sources.pool import ListingCoverage
from headwater.store.visits import checkpoints, metrics
from headwater.store.visits.checkpoints import CheckpointRow, Statistics
from headwater.store.visits.metrics import HOUR as HOUR
from headwater.store.visits.metrics import OUTCOMES as OUTCOMES
from headwater.store.visits.metrics import Alert, HourMetrics
from headwater.store.visits.metrics import hour_of as hour_of


class Progress(NamedTuple):
    """The last hours and days, the alerts that are raised, requests to Reddit by the minute, and what was brought."""

    hours: list[HourMetrics]
    days: list[HourMetrics]
    alerts: list[Alert]
    requests: Mapping[datetime, int]
    statistics: Statistics
    warmth: ListingCoverage


def progress(
    conn: Connection,
    reader: Reader,
    now: datetime,
    budget: Budget,
    *,
    hours: int,
    days: int,
    requests_for: timedelta,
) -> Progress:
    return Progress(
        metrics.recent(conn, now, hours),
        metrics.recent_days(conn, now, days),
        [one for one in metrics.all_alerts(conn) if one.cleared_at is None],
        limits.use_since(conn, budget, now - requests_for),
        checkpoints.statistics(conn, reader),
        warm_up.warmth(conn, now),
    )


def by_hour(conn: Connection, now: datetime, hours: int) -> list[HourMetrics]:
    """Returns the hours in which Headwater counted, the oldest first."""
    return metrics.recent(conn, now, hours)


def statistics(conn: Connection, reader: Reader) -> Statistics:
    """Counts what the lists that the reader follows have brought."""
    return checkpoints.statistics(conn, reader)


def every_checkpoint(conn: Connection, reader: Reader) -> list[CheckpointRow]:
    """Returns how far the crawls of the lists got that the reader follows."""
    return checkpoints.followed(conn, reader)


def checkpoint(conn: Connection, reader: Reader, source_id: int, now: datetime) -> CheckpointRow:
    """Returns how far the crawl of a list got."""
    followed.one(conn, reader, source_id, now)
    row = checkpoints.of_source(conn, source_id)
    if row is None:
        raise NotFound(f"The source {source_id} has no checkpoint: no list of it was crawled.")
    return row


def clear_checkpoint(conn: Connection, reader: Reader, source_id: int, now: datetime) -> CheckpointRow:
    """Forgets how far a crawl got, and returns it. The next one looks through the whole list, but fetches only what is
    not stored."""
    row = checkpoint(conn, reader, source_id, now)
    Checkpoint(row).clear(conn)
    return row
