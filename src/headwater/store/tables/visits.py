"""What happened on visits, and what was counted and noticed about them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, Integer, String, Table, Text, false

from headwater.store.tables.columns import BigId, Json, Moment, metadata

# The listing of a community as a warm-up found it. It is no part of the record: see crawl/warm_up.py.
cached_listings = Table(
    "cached_listings",
    metadata,
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("fetched_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("posts", Json, nullable=False),
)
Index("ix_cached_listings_expires_at", cached_listings.c.expires_at)

crawls = Table(
    "crawls",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("outcome", String(12), nullable=False),
    Column("http_status", Integer),
    Column("bytes", Integer, nullable=False, server_default="0"),
    Column("new", Integer, nullable=False, server_default="0"),
    Column("updated", Integer, nullable=False, server_default="0"),
    Column("duplicates", Integer, nullable=False, server_default="0"),
    Column("watermark_updated", Boolean, nullable=False, server_default=false()),
    Column("truncated", Boolean, nullable=False, server_default=false()),
    Column("gap", Boolean, nullable=False, server_default=false()),  # the listing ended before what we had seen
    Column("error_code", Text),
    Column("error", Text),
    sqlite_autoincrement=True,
)
Index("ix_crawls_source", crawls.c.source_id, crawls.c.id)
Index("ix_crawls_started_at", crawls.c.started_at)


def _counted_visits() -> list[Column[Any]]:
    """What the visits of a time brought. What cannot be known afterwards is NULL where nobody looked then."""
    return [
        Column("visits_ok", Integer, nullable=False),
        Column("visits_unchanged", Integer, nullable=False),
        Column("visits_empty", Integer, nullable=False),
        Column("visits_failed", Integer, nullable=False),
        Column("seconds", Float, nullable=False),  # of all visits together
        Column("posts_new", Integer, nullable=False),
        Column("posts_updated", Integer, nullable=False),
        Column("posts_duplicate", Integer, nullable=False),
        Column("valid_posts_24h", Integer),
        Column("sources_total", Integer),
        Column("tiers", Json),  # how many sources are in each
    ]


# By the hour and by the day, from midnight to midnight UTC; kept for good.
crawl_metrics = Table(
    "crawl_metrics", metadata, Column("hour", Moment, primary_key=True, autoincrement=False), *_counted_visits()
)
crawl_days = Table(
    "crawl_days", metadata, Column("day", Moment, primary_key=True, autoincrement=False), *_counted_visits()
)

# What is or was wrong: raised while cleared_at is NULL.
alerts = Table(
    "alerts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("detail", Text, nullable=False),
    Column("raised_at", Moment, nullable=False),
    Column("cleared_at", Moment),
)
