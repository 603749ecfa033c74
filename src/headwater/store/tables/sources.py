"""Sources, how they are visited, how far the crawl of their lists got, visits and their counts, and alerts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from headwater.store.tables import columns as col

sources = col.table(
    "sources",
    col.own_id(),
    *col.required(kind=sa.String(20), address=sa.Text, host=sa.Text),
    sa.Column("title", sa.Text, nullable=False, server_default=""),
    *col.optional(site_url=sa.Text, language=sa.Text),
    sa.Column("settings", col.Json, nullable=False, server_default="{}"),
    sa.Column("credential", sa.LargeBinary),  # encrypted name and password
    # Derived from name and password, and part of what the source is: whoever gives others follows another source.
    sa.Column("credential_key", sa.Text, nullable=False, server_default=""),
    sa.Column("active", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("created_at", col.Moment, nullable=False),
    # Validators and content of the last answer.
    *col.optional(etag=sa.Text, last_modified=sa.Text, body_hash=sa.LargeBinary, validated_at=col.Moment),
    # How far we got.
    *col.optional(last_crawled_at=col.Moment, last_seen_post_id=sa.Text, last_seen_created_at=col.Moment),
    # When it is visited, and by whom. A claim sets next_check_at to the end of the lease: a leased source is not due,
    # and becomes due again if its lease is lost.
    sa.Column("interval_seconds", sa.Integer),
    sa.Column("chosen_seconds", sa.Integer),  # the shortest interval that a reader chose for it
    sa.Column("chosen_by_all", sa.Boolean, nullable=False, server_default=sa.false()),  # each of its readers chose one
    sa.Column("next_check_at", col.Moment, nullable=False),
    sa.Column("not_before", col.Moment),  # what the source itself wants, and the back-off: no choice goes below it
    sa.Column("asked_at", col.Moment),  # a person asked for a visit, which goes before all others
    sa.Column("task_id", sa.Text),  # the task that the next visit finishes
    sa.Column("turn_at", col.Moment),  # its slot in the queue of its host
    sa.Column("waits_for", sa.Text),
    *col.lease(),
    # How it went.
    sa.Column("status", sa.String(20), nullable=False, server_default="new"),
    col.counter("success_hit"),
    col.counter("empty_hit"),
    col.counter("failure_hit"),
    col.counter("consecutive_failures"),
    *col.optional(failing_since=col.Moment, last_error_code=sa.Text, last_error=sa.Text),
    sa.Column("truncated", sa.Boolean, nullable=False, server_default=sa.false()),  # its page was not read to the end
    sa.Column("gap_at", col.Moment),  # when a visit last found that posts had been missed
    sa.Column("note", sa.Text, nullable=False, server_default=""),  # what a person should know about how it is read
    # How much it publishes, and how often it is visited for that: see store/sources/pool.py.
    sa.Column("avg_valid_posts", sa.Float),  # rolling: posts of the last 24 h, as seen at each visit
    sa.Column("quality_score", sa.Float),  # rolling: the share of visits that worked and were not empty
    sa.Column("tier", sa.String(10)),  # None: it has no tier, and an interval of its own
    sa.Column("pinned_tier", sa.String(10)),  # a person's choice, whatever the average says
    sa.Column("categories", col.Json, nullable=False, server_default="[]"),
    sa.Column("pooled_at", col.Moment),  # None: it is not in the pool
    sa.UniqueConstraint("address", "credential_key"),
    sqlite_autoincrement=True,
)
col.partial_index("ix_sources_due", sources.c.next_check_at, where="active")
col.partial_index("ix_sources_asked", sources.c.asked_at, where="asked_at IS NOT NULL")
sa.Index("ix_sources_host", sources.c.host)
sa.Index("ix_sources_kind", sources.c.kind)
col.partial_index("ix_sources_pooled", sources.c.last_crawled_at, where="pooled_at IS NOT NULL")
col.partial_index("ix_sources_asleep", sources.c.id, where="NOT active")

source_aliases = col.table(
    "source_aliases",
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("credential_key", sa.Text, nullable=False, server_default=""),
    col.refers_to("sources"),
    sa.PrimaryKeyConstraint("address", "credential_key"),
)
sa.Index("ix_source_aliases_source_id", source_aliases.c.source_id)

hosts = col.table(
    "hosts",
    sa.Column("host", sa.Text, primary_key=True),
    sa.Column("next_at", col.Moment, nullable=False),  # the first free slot
    sa.Column("held_until", col.Moment),  # no request before then
    sa.Column("held_why", sa.Text),  # none: the host asked for a pause (429, 503)
    sa.Column("gap_seconds", sa.Float),  # how far apart its robots.txt wants requests (Crawl-delay)
)

# Subscriptions at hubs, at most one for each source. Only the hub and we know `callback_id`; the secret is derived from
# it.
hub_subscriptions = col.table(
    "hub_subscriptions",
    col.of_one_source(),
    *col.required(hub=sa.Text, topic=sa.Text),
    sa.Column("callback_id", sa.Text, nullable=False, unique=True),
    sa.Column("state", sa.String(12), nullable=False),
    *col.optional(active_since=col.Moment, lease_until=col.Moment),
    sa.Column("next_try_at", col.Moment, nullable=False),
    col.counter("failures"),
    sa.Column("trust", sa.Integer, nullable=False, server_default="1"),  # how many times less often it is polled
    *col.optional(last_push_at=col.Moment, last_error=sa.Text),
)
sa.Index("ix_hub_subscriptions_next_try_at", hub_subscriptions.c.next_try_at)

# How many requests of a budget were used within its window, recorded once a minute and kept for a day.
budget_use = col.table(
    "budget_use",
    *col.required(name=sa.Text, minute=col.Moment, used=sa.Integer),
    sa.PrimaryKeyConstraint("name", "minute"),
)

# How many requests may be made in a time window: see store/sources/limits.py.
request_budgets = col.table(
    "request_budgets",
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("place", sa.Integer, nullable=False, autoincrement=False),
    sa.Column("used_at", col.Moment),
    sa.Column("free_at", col.Moment, nullable=False),
    sa.PrimaryKeyConstraint("name", "place"),
)

# What was used of an API that is paid by the month: see store/sources/limits.py.
meters = col.table(
    "meters",
    *col.required(name=sa.Text, month=sa.String(7)),
    col.counter("requests"),
    col.counter("posts"),
    sa.PrimaryKeyConstraint("name", "month"),
)

# What lists name: threads of a board, articles of a site. It decides what was seen: see store/visits/items.py.
items = col.table(
    "items",
    col.own_id(),
    col.refers_to("sources"),
    *col.required(item_id=sa.Text, url=sa.Text),
    sa.Column("title", sa.Text, nullable=False, server_default=""),
    sa.Column("mark", sa.Text, nullable=False, server_default=""),  # its state as the list described it
    sa.Column("published_at", col.Moment),  # as the list said
    sa.Column("state", sa.String(10), nullable=False),  # waiting, done or failed
    col.counter("attempts"),  # that failed in a row
    sa.Column("error", sa.Text),
    col.counter("posts"),
    col.counter("pages"),  # read since the list last named it as new
    sa.Column("resume_url", sa.Text),  # the page to read next; of a settled one, the page where reading ended
    *col.required(created_at=col.Moment, updated_at=col.Moment),
    sa.UniqueConstraint("source_id", "item_id"),
    sqlite_autoincrement=True,
)
sa.Index("ix_items_state", items.c.source_id, items.c.state, items.c.id)

# How far the crawl of a list got: see crawl/checkpoint.py.
checkpoints = col.table(
    "checkpoints",
    *col.required(site=sa.Text, board=sa.Text),
    col.refers_to("sources"),
    sa.Column("status", sa.String(10), nullable=False),  # running, completed or error
    sa.Column("error", sa.Text),
    col.counter("current_page"),  # list pages read by this crawl
    sa.Column("page_url", sa.Text),  # the list page to read next; None: the list was read to its end
    sa.Column("page_request", col.Json),  # the request, if it takes more than the address
    *col.optional(last_thread_id=sa.Text, last_thread_url=sa.Text),
    sa.Column("stats", col.Json, nullable=False, server_default="{}"),
    sa.Column("seen_ids", col.Json, nullable=False, server_default="[]"),  # the latest ones; only a cache
    *col.optional(min_id=sa.Text, max_id=sa.Text),
    sa.Column("started_at", col.Moment, nullable=False),  # of this crawl
    sa.Column("completed_at", col.Moment),  # the end of the last complete crawl
    *col.required(created_at=col.Moment, updated_at=col.Moment),
    sa.PrimaryKeyConstraint("site", "board"),
)
sa.Index("ix_checkpoints_source_id", checkpoints.c.source_id)

# robots.txt, one row for each scheme, host and port: see access/robots.py.
robots = col.table(
    "robots",
    sa.Column("origin", sa.Text, primary_key=True),
    sa.Column("status", sa.Integer, nullable=False),  # of the answer
    sa.Column("rules", sa.Text, nullable=False, server_default=""),
    sa.Column("fetched_at", col.Moment, nullable=False),
)


# The listing of a community as a warm-up found it. It is only a cache: see crawl/warm_up.py.
cached_listings = col.table(
    "cached_listings",
    col.of_one_source(),
    *col.required(fetched_at=col.Moment, expires_at=col.Moment, posts=col.Json),
)
sa.Index("ix_cached_listings_expires_at", cached_listings.c.expires_at)

crawls = col.table(
    "crawls",
    col.own_id(),
    col.refers_to("sources"),
    *col.required(started_at=col.Moment, seconds=sa.Float, outcome=sa.String(12)),
    sa.Column("http_status", sa.Integer),
    col.counter("bytes"),
    col.counter("new"),
    col.counter("updated"),
    col.counter("duplicates"),
    sa.Column("watermark_updated", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("truncated", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("gap", sa.Boolean, nullable=False, server_default=sa.false()),  # posts were missed
    *col.optional(error_code=sa.Text, error=sa.Text),
    sa.Column("trace", sa.String(32)),  # the id of its trace, which its events have as well
    sqlite_autoincrement=True,
)
sa.Index("ix_crawls_trace", crawls.c.trace)
sa.Index("ix_crawls_source", crawls.c.source_id, crawls.c.id)
sa.Index("ix_crawls_started_at", crawls.c.started_at)

# Visits that were asked for, and their results, which are kept for a day: see store/sources/schedule.py.
visit_tasks = col.table(
    "visit_tasks",
    sa.Column("id", sa.Text, primary_key=True),
    col.refers_to("sources"),
    sa.Column("created_at", col.Moment, nullable=False),
    *col.optional(
        finished_at=col.Moment, success=sa.Boolean, article_count=sa.Integer, duration_ms=sa.Integer, error=sa.Text
    ),
)
sa.Index("ix_visit_tasks_created_at", visit_tasks.c.created_at)
sa.Index("ix_visit_tasks_source_id", visit_tasks.c.source_id)


def _counted_visits() -> list[sa.Column[Any]]:
    """What the visits of a time brought. What cannot be counted afterwards is NULL if it was not recorded then."""
    return [
        *col.required(
            visits_ok=sa.Integer, visits_unchanged=sa.Integer, visits_empty=sa.Integer, visits_failed=sa.Integer
        ),
        sa.Column("seconds", sa.Float, nullable=False),  # of all visits together
        *col.required(posts_new=sa.Integer, posts_updated=sa.Integer, posts_duplicate=sa.Integer),
        *col.optional(valid_posts_24h=sa.Integer, sources_total=sa.Integer),
        sa.Column("tiers", col.Json),  # how many sources are in each
    ]


# By the hour and by the day, from midnight to midnight UTC; kept for ever.
crawl_hours = col.table(
    "crawl_hours", sa.Column("hour", col.Moment, primary_key=True, autoincrement=False), *_counted_visits()
)
crawl_days = col.table(
    "crawl_days", sa.Column("day", col.Moment, primary_key=True, autoincrement=False), *_counted_visits()
)

# What is or was wrong. An alert is raised while cleared_at is NULL.
alerts = col.table(
    "alerts",
    sa.Column("name", sa.Text, primary_key=True),
    *col.required(detail=sa.Text, raised_at=col.Moment),
    sa.Column("cleared_at", col.Moment),
)
