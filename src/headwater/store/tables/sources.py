"""Sources, how they are asked, and how far the crawl of their lists got."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
    true,
)

from headwater.store.tables.columns import BigId, Json, Moment, metadata

sources = Table(
    "sources",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("address", Text, nullable=False, unique=True),
    Column("host", Text, nullable=False),
    Column("title", Text, nullable=False, server_default=""),
    Column("site_url", Text),
    Column("language", Text),
    Column("settings", Json, nullable=False, server_default="{}"),
    Column("credential", LargeBinary),  # sealed name and password
    Column("active", Boolean, nullable=False, server_default=true()),
    Column("created_at", Moment, nullable=False),
    # What the next request says about what we have.
    Column("etag", Text),
    Column("last_modified", Text),
    Column("body_hash", LargeBinary),
    Column("validated_at", Moment),
    # How far we got.
    Column("last_crawled_at", Moment),
    Column("last_seen_post_id", Text),
    Column("last_seen_created_at", Moment),
    # When next, and whose turn it is. A claim sets next_check_at to the lease's end: a leased source is not due, and a
    # lost one becomes due by itself.
    Column("interval_seconds", Integer),
    Column("next_check_at", Moment, nullable=False),
    Column("turn_at", Moment),  # its slot in the queue of its host; None: it needs none yet
    Column("waits_for", Text),
    Column("lease_owner", Text),
    Column("lease_until", Moment),
    # How it went.
    Column("status", String(20), nullable=False, server_default="new"),
    Column("success_hit", Integer, nullable=False, server_default="0"),
    Column("empty_hit", Integer, nullable=False, server_default="0"),
    Column("failure_hit", Integer, nullable=False, server_default="0"),
    Column("consecutive_failures", Integer, nullable=False, server_default="0"),
    Column("failing_since", Moment),
    Column("last_error_code", Text),
    Column("last_error", Text),
    Column("truncated", Boolean, nullable=False, server_default=false()),  # its page is longer than what was read
    Column("gap_at", Moment),  # when a visit last found that posts had gone by unseen
    Column("note", Text, nullable=False, server_default=""),  # what a person should know about how it is read
    # How much it publishes, and how often it is visited for that: see store/sources/pool.py.
    Column("avg_valid_posts", Float),  # rolling: posts of the last 24 h, as seen at each visit
    Column("quality_score", Float),  # rolling: the share of visits that worked out and were not empty
    Column("tier", String(10)),  # None: it was given none; its interval is its own
    Column("pinned_tier", String(10)),  # a person's choice, whatever the average says
    Column("categories", Json, nullable=False, server_default="[]"),
    Column("pooled_at", Moment),  # None: it is not in the pool
    sqlite_autoincrement=True,
)
Index("ix_sources_due", sources.c.next_check_at, sqlite_where=sources.c.active, postgresql_where=sources.c.active)
Index("ix_sources_host", sources.c.host)
Index("ix_sources_kind", sources.c.kind)
_pooled = text("pooled_at IS NOT NULL")
Index("ix_sources_pooled", sources.c.last_crawled_at, sqlite_where=_pooled, postgresql_where=_pooled)
Index("ix_sources_asleep", sources.c.id, sqlite_where=text("NOT active"), postgresql_where=text("NOT active"))

source_aliases = Table(
    "source_aliases",
    metadata,
    Column("address", Text, primary_key=True),
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
)
Index("ix_source_aliases_source_id", source_aliases.c.source_id)

hosts = Table(
    "hosts",
    metadata,
    Column("host", Text, primary_key=True),
    Column("next_at", Moment, nullable=False),  # the first slot nobody has taken
    Column("held_until", Moment),  # the host asked for quiet (429, 503)
    Column("gap_seconds", Float),  # how far apart its robots.txt wants requests (Crawl-delay)
)

# What pushes: one hub at most for each source. Only the hub knows `callback_id` besides us; their
# secret is derived from it.
hub_subscriptions = Table(
    "hub_subscriptions",
    metadata,
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("hub", Text, nullable=False),
    Column("topic", Text, nullable=False),
    Column("callback_id", Text, nullable=False, unique=True),
    Column("state", String(12), nullable=False),
    Column("active_since", Moment),
    Column("lease_until", Moment),
    Column("next_try_at", Moment, nullable=False),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("trust", Integer, nullable=False, server_default="1"),  # how many times rarer the source is polled
    Column("last_push_at", Moment),
    Column("last_error", Text),
)
Index("ix_hub_subscriptions_next_try_at", hub_subscriptions.c.next_try_at)

# How many requests a budget had given out within its window, noted once a minute and kept for a day.
budget_use = Table(
    "budget_use",
    metadata,
    Column("name", Text, nullable=False),
    Column("minute", Moment, nullable=False),
    Column("used", Integer, nullable=False),
    PrimaryKeyConstraint("name", "minute"),
)

# How many requests may be made in a stretch of time: see store/sources/limits.py.
request_budgets = Table(
    "request_budgets",
    metadata,
    Column("name", Text, nullable=False),
    Column("place", Integer, nullable=False, autoincrement=False),
    Column("used_at", Moment),
    Column("free_at", Moment, nullable=False),
    PrimaryKeyConstraint("name", "place"),
)

# How much was asked in a month of someone who is paid by the month: see store/sources/limits.py.
meters = Table(
    "meters",
    metadata,
    Column("name", Text, nullable=False),
    Column("month", String(7), nullable=False),
    Column("requests", Integer, nullable=False, server_default="0"),
    Column("posts", Integer, nullable=False, server_default="0"),
    PrimaryKeyConstraint("name", "month"),
)

# What lists name: threads of a board, articles of a site. The authority for "seen": see store/visits/items.py.
items = Table(
    "items",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("item_id", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("title", Text, nullable=False, server_default=""),
    Column("mark", Text, nullable=False, server_default=""),  # its state as the list described it
    Column("published_at", Moment),  # as the list said
    Column("state", String(10), nullable=False),  # waiting, done or failed
    Column("attempts", Integer, nullable=False, server_default="0"),  # that failed in a row
    Column("error", Text),
    Column("posts", Integer, nullable=False, server_default="0"),
    Column("pages", Integer, nullable=False, server_default="0"),  # read since the list last named it as new
    Column("resume_url", Text),  # the page to read next; of a settled one, the page where reading ended
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    UniqueConstraint("source_id", "item_id"),
    sqlite_autoincrement=True,
)
Index("ix_items_state", items.c.source_id, items.c.state, items.c.id)

# How far the crawl of a list got: see crawl/checkpoint.py.
checkpoints = Table(
    "checkpoints",
    metadata,
    Column("site", Text, nullable=False),
    Column("board", Text, nullable=False),
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("status", String(10), nullable=False),  # running, completed or error
    Column("error", Text),
    Column("current_page", Integer, nullable=False, server_default="0"),  # list pages read by this crawl
    Column("page_url", Text),  # the list page to ask for next; None: the list was read to its end
    Column("page_request", Json),  # how, where that takes more than its address
    Column("last_thread_id", Text),
    Column("last_thread_url", Text),
    Column("stats", Json, nullable=False, server_default="{}"),
    Column("seen_ids", Json, nullable=False, server_default="[]"),  # the latest ones; only a cache
    Column("min_id", Text),
    Column("max_id", Text),
    Column("started_at", Moment, nullable=False),  # of this crawl
    Column("completed_at", Moment),  # the end of the last complete crawl
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    PrimaryKeyConstraint("site", "board"),
)
Index("ix_checkpoints_source_id", checkpoints.c.source_id)

# What a site asks of programs: one row for each scheme, host and port. See access/robots.py.
robots = Table(
    "robots",
    metadata,
    Column("origin", Text, primary_key=True),
    Column("status", Integer, nullable=False),  # what the server answered with
    Column("rules", Text, nullable=False, server_default=""),
    Column("fetched_at", Moment, nullable=False),
)
