"""Visits, what was counted about them, and alerts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from headwater.store.tables.columns import Json, Moment, counter, metadata, of_one_source, own_id, refers_to

# The listing of a community as a warm-up found it. It is only a cache: see crawl/warm_up.py.
cached_listings = sa.Table(
    "cached_listings",
    metadata,
    of_one_source(),
    sa.Column("fetched_at", Moment, nullable=False),
    sa.Column("expires_at", Moment, nullable=False),
    sa.Column("posts", Json, nullable=False),
)
sa.Index("ix_cached_listings_expires_at", cached_listings.c.expires_at)

crawls = sa.Table(
    "crawls",
    metadata,
    own_id(),
    refers_to("sources"),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("outcome", sa.String(12), nullable=False),
    sa.Column("http_status", sa.Integer),
    counter("bytes"),
    counter("new"),
    counter("updated"),
    counter("duplicates"),
    sa.Column("watermark_updated", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("truncated", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("gap", sa.Boolean, nullable=False, server_default=sa.false()),  # posts were missed
    sa.Column("error_code", sa.Text),
    sa.Column("error", sa.Text),
    sqlite_autoincrement=True,
)
sa.Index("ix_crawls_source", crawls.c.source_id, crawls.c.id)
sa.Index("ix_crawls_started_at", crawls.c.started_at)

# Visits that were asked for, and their results, which are kept for a day: see store/visits/tasks.py.
visit_tasks = sa.Table(
    "visit_tasks",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    refers_to("sources"),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("finished_at", Moment),
    sa.Column("success", sa.Boolean),
    sa.Column("article_count", sa.Integer),
    sa.Column("duration_ms", sa.Integer),
    sa.Column("error", sa.Text),
)
sa.Index("ix_visit_tasks_created_at", visit_tasks.c.created_at)
sa.Index("ix_visit_tasks_source_id", visit_tasks.c.source_id)


def _counted_visits() -> list[sa.Column[Any]]:
    """What the visits of a time brought. What cannot be counted afterwards is NULL if it was not recorded then."""
    return [
        sa.Column("visits_ok", sa.Integer, nullable=False),
        sa.Column("visits_unchanged", sa.Integer, nullable=False),
        sa.Column("visits_empty", sa.Integer, nullable=False),
        sa.Column("visits_failed", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),  # of all visits together
        sa.Column("posts_new", sa.Integer, nullable=False),
        sa.Column("posts_updated", sa.Integer, nullable=False),
        sa.Column("posts_duplicate", sa.Integer, nullable=False),
        sa.Column("valid_posts_24h", sa.Integer),
        sa.Column("sources_total", sa.Integer),
        sa.Column("tiers", Json),  # how many sources are in each
    ]


# By the hour and by the day, from midnight to midnight UTC; kept for ever.
crawl_hours = sa.Table(
    "crawl_hours", metadata, sa.Column("hour", Moment, primary_key=True, autoincrement=False), *_counted_visits()
)
crawl_days = sa.Table(
    "crawl_days", metadata, sa.Column("day", Moment, primary_key=True, autoincrement=False), *_counted_visits()
)

# What is or was wrong. An alert is raised while cleared_at is NULL.
alerts = sa.Table(
    "alerts",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("raised_at", Moment, nullable=False),
    sa.Column("cleared_at", Moment),
)
