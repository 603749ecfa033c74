"""Sources, how they are visited, how far the crawl of their lists got, visits and their counts, and alerts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from headwater.store.tables.columns import (
    Json,
    Moment,
    counter,
    lease,
    of_one_source,
    optional,
    own_id,
    partial_index,
    refers_to,
    required,
    table,
)

sources = table(
    "sources",
    own_id(),
    *required(kind=sa.String(20), address=sa.Text, host=sa.Text),
    sa.Column("title", sa.Text, nullable=False, server_default=""),
    *optional(site_url=sa.Text, language=sa.Text),
    sa.Column("settings", Json, nullable=False, server_default="{}"),
    sa.Column("credential", sa.LargeBinary),  # encrypted name and password
    # Derived from name and password, and part of what the source is: whoever gives others follows another source.
    sa.Column("credential_key", sa.Text, nullable=False, server_default=""),
    sa.Column("active", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("created_at", Moment, nullable=False),
    # Validators and content of the last answer.
    *optional(etag=sa.Text, last_modified=sa.Text, body_hash=sa.LargeBinary, validated_at=Moment),
    # How far we got.
    *optional(last_crawled_at=Moment, last_seen_post_id=sa.Text, last_seen_created_at=Moment),
    # When it is visited, and by whom. A claim sets next_check_at to the end of the lease: a leased source is not due,
    # and becomes due again if its lease is lost.
    sa.Column("interval_seconds", sa.Integer),
    sa.Column("chosen_seconds", sa.Integer),  # the shortest interval that a reader chose for it
    sa.Column("chosen_by_all", sa.Boolean, nullable=False, server_default=sa.false()),  # each of its readers chose one
    sa.Column("next_check_at", Moment, nullable=False),
    sa.Column("not_before", Moment),  # what the source itself wants, and the back-off: no choice goes below it
    sa.Column("asked_at", Moment),  # a person asked for a visit, which goes before all others
    sa.Column("task_id", sa.Text),  # the task that the next visit finishes
    sa.Column("turn_at", Moment),  # its slot in the queue of its host
    sa.Column("waits_for", sa.Text),
    *lease(),
    # How it went.
    sa.Column("status", sa.String(20), nullable=False, server_default="new"),
    counter("success_hit"),
    counter("empty_hit"),
    counter("failure_hit"),
    counter("consecutive_failures"),
    *optional(failing_since=Moment, last_error_code=sa.Text, last_error=sa.Text),
    sa.Column("truncated", sa.Boolean, nullable=False, server_default=sa.false()),  # its page was not read to the end
    sa.Column("gap_at", Moment),  # when a visit last found that posts had been missed
    sa.Column("note", sa.Text, nullable=False, server_default=""),  # what a person should know about how it is read
    # How much it publishes, and how often it is visited for that: see store/sources/pool.py.
    sa.Column("avg_valid_posts", sa.Float),  # rolling: posts of the last 24 h, as seen at each visit
    sa.Column("quality_score", sa.Float),  # rolling: the share of visits that worked and were not empty
    sa.Column("tier", sa.String(10)),  # None: it has no tier, and an interval of its own
    sa.Column("pinned_tier", sa.String(10)),  # a person's choice, whatever the average says
    sa.Column("categories", Json, nullable=False, server_default="[]"),
    sa.Column("pooled_at", Moment),  # None: it is not in the pool
    sa.UniqueConstraint("address", "credential_key"),
    sqlite_autoincrement=True,
)
partial_index("ix_sources_due", sources.c.next_check_at, where="active")
partial_index("ix_sources_asked", sources.c.asked_at, where="asked_at IS NOT NULL")
sa.Index("ix_sources_host", sources.c.host)
sa.Index("ix_sources_kind", sources.c.kind)
partial_index("ix_sources_pooled", sources.c.last_crawled_at, where="pooled_at IS NOT NULL")
partial_index("ix_sources_asleep", sources.c.id, where="NOT active")

source_aliases = table(
    "source_aliases",
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("credential_key", sa.Text, nullable=False, server_default=""),
    refers_to("sources"),
    sa.PrimaryKeyConstraint("address", "credential_key"),
)
sa.Index("ix_source_aliases_source_id", source_aliases.c.source_id)

hosts = table(
    "hosts",
    sa.Column("host", sa.Text, primary_key=True),
    sa.Column("next_at", Moment, nullable=False),  # the first free slot
    sa.Column("held_until", Moment),  # no request before then
    sa.Column("held_why", sa.Text),  # none: the host asked for a pause (429, 503)
    sa.Column("gap_seconds", sa.Float),  # how far apart its robots.txt wants requests (Crawl-delay)
)

# Subscriptions at hubs, at most one for each source. Only the hub and we know `callback_id`; the secret is derived from
# it.
hub_subscriptions = table(
    "hub_subscriptions",
    of_one_source(),
    *required(hub=sa.Text, topic=sa.Text),
    sa.Column("callback_id", sa.Text, nullable=False, unique=True),
    sa.Column("state", sa.String(12), nullable=False),
    *optional(active_since=Moment, lease_until=Moment),
    sa.Column("next_try_at", Moment, nullable=False),
    counter("failures"),
    sa.Column("trust", sa.Integer, nullable=False, server_default="1"),  # how many times less often it is polled
    *optional(last_push_at=Moment, last_error=sa.Text),
)
sa.Index("ix_hub_subscriptions_next_try_at", hub_subscriptions.c.next_try_at)

# How many requests of a budget were used within its window, recorded once a minute and kept for a day.
budget_use = table(
    "budget_use",
    *required(name=sa.Text, minute=Moment, used=sa.Integer),
    sa.PrimaryKeyConstraint("name", "minute"),
)

# How many requests may be made in a time window: see store/sources/limits.py.
request_budgets = table(
    "request_budgets",
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("place", sa.Integer, nullable=False, autoincrement=False),
    sa.Column("used_at", Moment),
    sa.Column("free_at", Moment, nullable=False),
    sa.PrimaryKeyConstraint("name", "place"),
)

# What was used of an API that is paid by the month: see store/sources/limits.py.
meters = table(
    "meters",
    *required(name=sa.Text, month=sa.String(7)),
    counter("requests"),
    counter("posts"),
    sa.PrimaryKeyConstraint("name", "month"),
)

# What lists name: threads of a board, articles of a site. It decides what was seen: see store/visits/items.py.
items = table(
    "items",
    own_id(),
    refers_to("sources"),
    *required(item_id=sa.Text, url=sa.Text),
    sa.Column("title", sa.Text, nullable=False, server_default=""),
    sa.Column("mark", sa.Text, nullable=False, server_default=""),  # its state as the list described it
    sa.Column("published_at", Moment),  # as the list said
    sa.Column("state", sa.String(10), nullable=False),  # waiting, done or failed
    counter("attempts"),  # that failed in a row
    sa.Column("error", sa.Text),
    counter("posts"),
    counter("pages"),  # read since the list last named it as new
    sa.Column("resume_url", sa.Text),  # the page to read next; of a settled one, the page where reading ended
    *required(created_at=Moment, updated_at=Moment),
    sa.UniqueConstraint("source_id", "item_id"),
    sqlite_autoincrement=True,
)
sa.Index("ix_items_state", items.c.source_id, items.c.state, items.c.id)

# How far the crawl of a list got: see crawl/checkpoint.py.
checkpoints = table(
    "checkpoints",
    *required(site=sa.Text, board=sa.Text),
    refers_to("sources"),
    sa.Column("status", sa.String(10), nullable=False),  # running, completed or error
    sa.Column("error", sa.Text),
    counter("current_page"),  # list pages read by this crawl
    sa.Column("page_url", sa.Text),  # the list page to read next; None: the list was read to its end
    sa.Column("page_request", Json),  # the request, if it takes more than the address
    *optional(last_thread_id=sa.Text, last_thread_url=sa.Text),
    sa.Column("stats", Json, nullable=False, server_default="{}"),
    sa.Column("seen_ids", Json, nullable=False, server_default="[]"),  # the latest ones; only a cache
    *optional(min_id=sa.Text, max_id=sa.Text),
    sa.Column("started_at", Moment, nullable=False),  # of this crawl
    sa.Column("completed_at", Moment),  # the end of the last complete crawl
    *required(created_at=Moment, updated_at=Moment),
    sa.PrimaryKeyConstraint("site", "board"),
)
sa.Index("ix_checkpoints_source_id", checkpoints.c.source_id)

# robots.txt, one row for each scheme, host and port: see access/robots.py.
robots = table(
    "robots",
    sa.Column("origin", sa.Text, primary_key=True),
    sa.Column("status", sa.Integer, nullable=False),  # of the answer
    sa.Column("rules", sa.Text, nullable=False, server_default=""),
    sa.Column("fetched_at", Moment, nullable=False),
)


# The listing of a community as a warm-up found it. It is only a cache: see crawl/warm_up.py.
cached_listings = table(
    "cached_listings",
    of_one_source(),
    *required(fetched_at=Moment, expires_at=Moment, posts=Json),
)
sa.Index("ix_cached_listings_expires_at", cached_listings.c.expires_at)

crawls = table(
    "crawls",
    own_id(),
    refers_to("sources"),
    *required(started_at=Moment, seconds=sa.Float, outcome=sa.String(12)),
    sa.Column("http_status", sa.Integer),
    counter("bytes"),
    counter("new"),
    counter("updated"),
    counter("duplicates"),
    sa.Column("watermark_updated", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("truncated", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("gap", sa.Boolean, nullable=False, server_default=sa.false()),  # posts were missed
    *optional(error_code=sa.Text, error=sa.Text),
    sa.Column("trace", sa.String(32)),  # the id of its trace, which its events have as well
    sqlite_autoincrement=True,
)
sa.Index("ix_crawls_trace", crawls.c.trace)
sa.Index("ix_crawls_source", crawls.c.source_id, crawls.c.id)
sa.Index("ix_crawls_started_at", crawls.c.started_at)

# Visits that were asked for, and their results, which are kept for a day: see store/sources/schedule.py.
visit_tasks = table(
    "visit_tasks",
    sa.Column("id", sa.Text, primary_key=True),
    refers_to("sources"),
    sa.Column("created_at", Moment, nullable=False),
    *optional(finished_at=Moment, success=sa.Boolean, article_count=sa.Integer, duration_ms=sa.Integer, error=sa.Text),
)
sa.Index("ix_visit_tasks_created_at", visit_tasks.c.created_at)
sa.Index("ix_visit_tasks_source_id", visit_tasks.c.source_id)


def _counted_visits() -> list[sa.Column[Any]]:
    """What the visits of a time brought. What cannot be counted afterwards is NULL if it was not recorded then."""
    return [
        *required(visits_ok=sa.Integer, visits_unchanged=sa.Integer, visits_empty=sa.Integer, visits_failed=sa.Integer),
        sa.Column("seconds", sa.Float, nullable=False),  # of all visits together
        *required(posts_new=sa.Integer, posts_updated=sa.Integer, posts_duplicate=sa.Integer),
        *optional(valid_posts_24h=sa.Integer, sources_total=sa.Integer),
        sa.Column("tiers", Json),  # how many sources are in each
    ]


# By the hour and by the day, from midnight to midnight UTC; kept for ever.
crawl_hours = table("crawl_hours", sa.Column("hour", Moment, primary_key=True, autoincrement=False), *_counted_visits())
crawl_days = table("crawl_days", sa.Column("day", Moment, primary_key=True, autoincrement=False), *_counted_visits())

# What is or was wrong. An alert is raised while cleared_at is NULL.
alerts = table(
    "alerts",
    sa.Column("name", sa.Text, primary_key=True),
    *required(detail=sa.Text, raised_at=Moment),
    sa.Column("cleared_at", Moment),
)
