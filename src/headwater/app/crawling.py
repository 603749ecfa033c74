"""How crawling goes: hour by hour, how far each list was read, and what the lists have brought."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app import sources as followed
from headwater.app.shapes import Example, Time
from headwater.crawl import warm_up
from headwater.crawl.visit.walk import Checkpoint
from headwater.crawl.visit.walk import items_read as items_read
from headwater.errors import NotFound
from headwater.model import Reader
from headwater.sources import KINDS
from headwater.store.people import audit
from headwater.store.sources import WatchedSource, limits
from headwater.store.sources.limits import Budget
from headwater.store.sources.pool import ListingCoverage
from headwater.store.visits import checkpoints, metrics
from headwater.store.visits.checkpoints import CheckpointRow, Statistics
from headwater.store.visits.metrics import HOUR as HOUR
from headwater.store.visits.metrics import OUTCOMES as OUTCOMES
from headwater.store.visits.metrics import Alert, HourMetrics
from headwater.store.visits.metrics import hour_of as hour_of


class CrawlProgress(NamedTuple):
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
) -> CrawlProgress:
    return CrawlProgress(
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
    source = followed.one(conn, reader, source_id, now)
    row = checkpoints.of_source(conn, source_id)
    if row is None:
        raise NotFound(f"The source {source_id} has no checkpoint: {_why_no_checkpoint(source)}")
    return row


def _why_no_checkpoint(source: WatchedSource) -> str:
    kind = KINDS.get(source.kind)
    if kind and not kind.is_list:
        return "it is not a list, and one request reads all of it."
    if source.last_crawled_at is None:
        return "it was not crawled yet."
    return "it was cleared. The next crawl reads the whole list again; what is stored stays."


def clear_checkpoint(conn: Connection, reader: Reader, source_id: int, now: datetime) -> CheckpointRow:
    """Forgets how far a crawl got, and returns it. The next one looks through the whole list, but fetches only what is
    not stored."""
    row = checkpoint(conn, reader, source_id, now)
    Checkpoint(row).clear(conn)
    audit.record(conn, reader, "source.reread", source_id)
    return row


class CheckpointJson(TypedDict):
    """How far the crawl of a list got."""

    source_id: Annotated[int, Example(12)]
    site: Annotated[str, Example("https://forum.example")]
    board: Annotated[str, Example("/c/mining")]
    status: Annotated[str, Example("running", "running, completed or error")]
    error: Annotated[str | None, Example(None)]
    current_page: Annotated[int, Example(3, "pages of the list that this crawl has read")]
    page_url: Annotated[
        str | None,
        Example("https://forum.example/c/mining?page=4", "the page of the list that comes next; null: none"),
    ]
    last_thread_id: Annotated[str | None, Example("8231", "the item that was read last")]
    last_thread_url: Annotated[str | None, Example("https://forum.example/t/8231")]
    stats: Annotated[
        dict[str, int],
        Example(
            {"list_pages": 3, "item_pages": 71, "done": 58, "failed": 1, "new": 640, "images": 12},
            "what this crawl did",
        ),
    ]
    min_id: Annotated[str | None, Example("7902")]
    max_id: Annotated[str | None, Example("8240")]
    started_at: Annotated[Time, Example("2026-01-07T09:00:00Z", "when this crawl began")]
    completed_at: Annotated[Time | None, Example("2026-01-06T21:14:00Z", "when the last complete crawl ended")]
    created_at: Annotated[Time, Example("2026-01-02T08:00:00Z")]
    updated_at: Annotated[Time, Example("2026-01-07T09:04:12Z")]


class CheckpointsJson(TypedDict):
    items: list[CheckpointJson]


class BoardJson(TypedDict):
    """What the list of a source has brought so far."""

    source_id: Annotated[int, Example(12)]
    kind: Annotated[str, Example("forum")]
    title: Annotated[str, Example("Mining")]
    site: Annotated[str, Example("https://forum.example")]
    board: Annotated[str, Example("/c/mining")]
    status: Annotated[str, Example("running", "of its crawl: running, completed or error")]
    done: Annotated[int, Example(2310, "items that were read")]
    failed: Annotated[int, Example(4)]
    waiting: Annotated[int, Example(12, "items that are named and not read yet")]
    posts: Annotated[int, Example(30122)]
    images: Annotated[
        dict[str, int],
        Example({"waiting": 3, "saved": 840, "failed": 11}, "images that its posts show, by their state"),
    ]


class StatisticsJson(TypedDict):
    """What all lists that you follow have brought, counted in the store."""

    threads: Annotated[
        int, Example(2310, "threads of forums that were read", of=lambda found: items_read(found)["threads"])
    ]
    articles: Annotated[
        int, Example(0, "articles of news sites that were read", of=lambda found: items_read(found)["articles"])
    ]
    images: Annotated[
        dict[str, int],
        Example({"waiting": 3, "saved": 840, "failed": 11}, "images of all these lists, by their state"),
    ]
    succeeded: Annotated[int, Example(2310)]
    failed: Annotated[int, Example(4)]
    boards: list[BoardJson]


class HourJson(TypedDict):
    """The visits that began within one hour. The last three are as they were then; null: Headwater did not run."""

    hour: Annotated[Time, Example("2026-01-07T09:00:00Z")]
    crawls_successful: Annotated[
        int,
        Example(310, "visits that found posts, or nothing new", of=lambda one: one.visits_ok + one.visits_unchanged),
    ]
    crawls_empty: Annotated[int, Example(2, of="visits_empty")]
    crawls_failed: Annotated[int, Example(5, of="visits_failed")]
    cache_hit_rate: Annotated[
        float | None, Example(0.81, "share of answers that had not changed, 0 to 1; null: no answer")
    ]
    avg_latency_seconds: Annotated[
        float | None, Example(0.34, "how long a visit took; null: there was none", of="average_seconds")
    ]
    posts_new: Annotated[int, Example(128)]
    posts_updated: Annotated[int, Example(9)]
    posts_duplicate: Annotated[int, Example(2210)]
    valid_posts_24h: Annotated[int | None, Example(2904, "posts of the 24 hours before")]
    sources_total: Annotated[int | None, Example(200, "sources that are visited")]
    tiers: Annotated[
        dict[str, int] | None,
        Example({"high": 29, "medium": 73, "low": 98}, "how many sources are in each tier, and in none"),
    ]
    # The same under the names that the document of the crawl metrics has for them.
    metric_date: Annotated[str, Example("2026-01-07", of=lambda one: f"{one.hour:%Y-%m-%d}")]
    metric_hour: Annotated[int, Example(9, of="hour.hour")]
    total_communities: Annotated[int | None, Example(200, of="sources_total")]
    successful_crawls: Annotated[int, Example(310, of=lambda one: one.visits_ok + one.visits_unchanged)]
    empty_crawls: Annotated[int, Example(2, of="visits_empty")]
    failed_crawls: Annotated[int, Example(5, of="visits_failed")]
    total_new_posts: Annotated[int, Example(128, of="posts_new")]
    total_updated_posts: Annotated[int, Example(9, of="posts_updated")]
    total_duplicates: Annotated[int, Example(2210, of="posts_duplicate")]
    tier_assignments: Annotated[dict[str, int] | None, Example({"high": 29, "medium": 73, "low": 98}, of="tiers")]


class HoursJson(TypedDict):
    """Hours in which Headwater counted, the oldest first."""

    items: list[HourJson]
