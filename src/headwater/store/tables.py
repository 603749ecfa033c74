"""The tables. Uniqueness lives here, in constraints; every query that a page or a loop runs has its index here.

Shared by everyone: sources, posts and what happened to them. Personal: whatever carries tenant_id and user_id.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
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

from headwater.store.metadata import metadata as metadata
from headwater.store.paged_tables import checkpoints as checkpoints
from headwater.store.paged_tables import items as items
from headwater.store.paged_tables import robots as robots
from headwater.store.types import BigId, Json, Moment

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
    # How much it publishes, and how often it is visited for that: see store/pool.py.
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

# What pushes: one hub at most for each source. Only the hub knows `callback_id` and `secret` besides us.
hub_subscriptions = Table(
    "hub_subscriptions",
    metadata,
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("hub", Text, nullable=False),
    Column("topic", Text, nullable=False),
    Column("callback_id", Text, nullable=False, unique=True),
    Column("secret", Text, nullable=False),
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

posts = Table(
    "posts",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("source_post_id", Text, nullable=False),
    Column("text_norm_hash", LargeBinary, nullable=False),
    Column("version", Integer, nullable=False, server_default="1"),
    Column("url", Text),
    Column("url_key", BigId),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("author", Text),
    Column("created_at", Moment, nullable=False),
    Column("dated", Boolean, nullable=False, server_default=true()),
    Column("fetched_at", Moment, nullable=False),
    Column("valid_from", Moment, nullable=False),
    Column("score", Integer),
    Column("num_comments", Integer),
    Column("lang", Text),
    Column("reference_kind", Text),
    Column("reference_id", Text),
    Column("extra", Json, nullable=False, server_default="{}"),
    UniqueConstraint("source_id", "source_post_id"),
    sqlite_autoincrement=True,
)
Index("ix_posts_url_key", posts.c.source_id, posts.c.url_key)
Index("ix_posts_stream", posts.c.created_at, posts.c.id)
Index("ix_posts_source_stream", posts.c.source_id, posts.c.created_at, posts.c.id)

# The newest posts once more, as the stream shows them: see store/hot.py. A row is what `posts` says, to the letter.
posts_hot = Table(
    "posts_hot",
    metadata,
    Column("id", BigId, ForeignKey("posts.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("source_id", BigId, nullable=False),
    Column("source_post_id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("url", Text),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("author", Text),
    Column("created_at", Moment, nullable=False),
    Column("fetched_at", Moment, nullable=False),
    Column("score", Integer),
    Column("num_comments", Integer),
    Column("lang", Text),
    Column("extra", Json, nullable=False),
    Column("expires_at", Moment, nullable=False),
)
Index("ix_posts_hot_stream", posts_hot.c.created_at, posts_hot.c.id)
Index("ix_posts_hot_expires_at", posts_hot.c.expires_at)

# One row: `posts_hot` holds every post that was created after `since`. In the far future: it was not filled yet.
hot_window = Table(
    "hot_window",
    metadata,
    Column("since", Moment, primary_key=True, autoincrement=False),
    Column("kept_seconds", Integer, nullable=False),  # how long what is written now will be kept
)

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

post_versions = Table(
    "post_versions",
    metadata,
    Column("post_id", BigId, ForeignKey("posts.id", ondelete="CASCADE"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("text_norm_hash", LargeBinary, nullable=False),
    Column("url", Text),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("author", Text),
    Column("extra", Json, nullable=False, server_default="{}"),
    Column("valid_from", Moment, nullable=False),
    Column("valid_to", Moment, nullable=False),
    PrimaryKeyConstraint("post_id", "version"),
)

# Which story a post belongs to: every post that was decided about has a row; one that stands alone is its own story.
# A story and a group of repeats are named after the post they began with. `seq` orders the decisions: a process that
# keeps an index in memory sees by it what others have decided.
story_members = Table(
    "story_members",
    metadata,
    Column("seq", BigId, primary_key=True),
    Column("post_id", BigId, ForeignKey("posts.id", ondelete="CASCADE"), nullable=False, unique=True),
    Column("story_id", BigId, nullable=False),
    Column("repeat_id", BigId, nullable=False),
    Column("rule", String(10), nullable=False),
    Column("score", Float, nullable=False),
    Column("why", Text, nullable=False),
    Column("source_id", BigId, nullable=False),
    Column("created_at", Moment, nullable=False),  # the post's
    Column("decided_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)
Index("ix_story_members_story", story_members.c.story_id, story_members.c.created_at, story_members.c.post_id)
Index("ix_story_members_repeat", story_members.c.repeat_id, story_members.c.created_at, story_members.c.post_id)

story_decisions = Table(
    "story_decisions",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("decided_at", Moment, nullable=False),
    Column("action", String(10), nullable=False),  # joined, parted, undone
    Column("story_id", BigId, nullable=False),
    Column("post_id", BigId, nullable=False),
    Column("rule", String(10)),
    Column("score", Float),
    Column("why", Text),
    Column("user_id", BigId),  # who; None: the rules
    sqlite_autoincrement=True,
)
Index("ix_story_decisions_story", story_decisions.c.story_id, story_decisions.c.id)
Index("ix_story_decisions_post", story_decisions.c.post_id, story_decisions.c.id)

# What a person took apart stays apart: two posts on different sides of one parting are never in one story again.
posts_apart = Table(
    "posts_apart",
    metadata,
    Column("post_id", BigId, ForeignKey("posts.id", ondelete="CASCADE"), nullable=False),
    Column("parting_id", BigId, nullable=False),
    Column("side", BigId, nullable=False),
    PrimaryKeyConstraint("post_id", "parting_id"),
)
Index("ix_posts_apart_parting_id", posts_apart.c.parting_id)

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

# How many requests a budget had given out within its window, noted once a minute and kept for a day.
budget_use = Table(
    "budget_use",
    metadata,
    Column("name", Text, nullable=False),
    Column("minute", Moment, nullable=False),
    Column("used", Integer, nullable=False),
    PrimaryKeyConstraint("name", "minute"),
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

event_outbox = Table(
    "event_outbox",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("event_id", String(36), nullable=False),
    Column("domain", Text, nullable=False, server_default=""),
    Column("kind", Text, nullable=False),
    Column("version", Integer, nullable=False, server_default="1"),
    Column("key", Text, nullable=False),
    Column("partition", Integer, nullable=False, server_default="0"),  # PostgreSQL: hash of the key; SQLite has one
    Column("tenant_id", BigId),
    Column("user_id", BigId),
    Column("payload", Json, nullable=False),
    Column("traceparent", Text),
    Column("idempotency_key", Text, nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
    Column("xid", BigId, nullable=False, server_default="0"),  # PostgreSQL: the transaction that wrote it
    sqlite_autoincrement=True,
)
Index("ix_event_outbox_log", event_outbox.c.xid, event_outbox.c.id).ddl_if(dialect="postgresql")
Index("ix_event_outbox_partition", event_outbox.c.partition, event_outbox.c.xid, event_outbox.c.id).ddl_if(
    dialect="postgresql"
)

consumer_trials = Table(
    "consumer_trials",
    metadata,
    Column("consumer", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("event_id", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("began_at", Moment, nullable=False),
    PrimaryKeyConstraint("consumer", "partition", "event_id"),
)
consumer_cursors = Table(
    "consumer_cursors",
    metadata,
    Column("consumer", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("xid", BigId, nullable=False),
    Column("id", BigId, nullable=False),
    Column("moved_at", Moment, nullable=False),
    PrimaryKeyConstraint("consumer", "partition"),
)

# What has had its effect. The ids are sorted by time, so old rows go by a range of the key.
consumer_inbox = Table(
    "consumer_inbox",
    metadata,
    Column("consumer", Text, nullable=False),
    Column("event_id", String(36), nullable=False),
    PrimaryKeyConstraint("consumer", "event_id"),
    sqlite_with_rowid=False,
)

# Events that failed in a consumer, and those of the same key that wait behind them: see store/letters.py.
event_dlq = Table(
    "event_dlq",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("consumer", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("state", String(10), nullable=False),
    Column("event_id", String(36), nullable=False),
    Column("kind", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("key", Text, nullable=False),
    Column("tenant_id", BigId),
    Column("user_id", BigId),
    Column("payload", Json, nullable=False),
    Column("traceparent", Text),
    Column("created_at", Moment, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("error", Text),
    Column("first_failed_at", Moment),
    Column("last_failed_at", Moment),
    Column("next_try_at", Moment),
    Column("settled_at", Moment),
    UniqueConstraint("consumer", "event_id"),
    sqlite_autoincrement=True,
)
_open = text("state IN ('retrying', 'waiting', 'dead')")
Index(
    "ix_event_dlq_open",
    event_dlq.c.consumer,
    event_dlq.c.partition,
    event_dlq.c.key,
    event_dlq.c.id,
    sqlite_where=_open,
    postgresql_where=_open,
)
_retrying = text("state = 'retrying'")
Index(
    "ix_event_dlq_retrying",
    event_dlq.c.consumer,
    event_dlq.c.next_try_at,
    sqlite_where=_retrying,
    postgresql_where=_retrying,
)
Index("ix_event_dlq_state", event_dlq.c.state, event_dlq.c.id)

tenants = Table(
    "tenants",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("tenant_id", BigId, ForeignKey("tenants.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("role", String(20), nullable=False),
    Column("created_at", Moment, nullable=False),
    UniqueConstraint("tenant_id", "name"),
    UniqueConstraint("tenant_id", "id"),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("tenant_id", BigId, nullable=False),
    Column("user_id", BigId, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("name", Text, nullable=False),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.id"], ondelete="CASCADE"),
)

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("tenant_id", BigId, nullable=False),
    Column("user_id", BigId, nullable=False),
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("title", Text),
    Column("folder", Text),
    Column("fold", Boolean, nullable=False, server_default=true()),  # False: its posts always stand alone
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("tenant_id", "user_id", "source_id"),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.id"], ondelete="CASCADE"),
)
Index("ix_subscriptions_source_id", subscriptions.c.source_id)

fold_settings = Table(
    "fold_settings",
    metadata,
    Column("tenant_id", BigId, nullable=False),
    Column("user_id", BigId, nullable=False),
    Column("level", String(10), nullable=False),  # off, repeats or stories
    Column("threshold", Float, nullable=False),
    PrimaryKeyConstraint("tenant_id", "user_id"),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.id"], ondelete="CASCADE"),
)

post_states = Table(
    "post_states",
    metadata,
    Column("tenant_id", BigId, nullable=False),
    Column("user_id", BigId, nullable=False),
    Column("post_id", BigId, ForeignKey("posts.id", ondelete="CASCADE"), nullable=False),
    Column("read_at", Moment),
    Column("starred_at", Moment),
    PrimaryKeyConstraint("tenant_id", "user_id", "post_id"),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.id"], ondelete="CASCADE"),
)
Index(
    "ix_post_states_starred",
    post_states.c.tenant_id,
    post_states.c.user_id,
    post_states.c.post_id,
    sqlite_where=text("starred_at IS NOT NULL"),
    postgresql_where=text("starred_at IS NOT NULL"),
)

# Receivers of events: see store/webhooks.py and store/deliveries.py. A claim sets next_try_at to the lease's end, as
# for sources; it is NULL while nothing waits.
webhooks = Table(
    "webhooks",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("tenant_id", BigId, nullable=False),
    Column("user_id", BigId, nullable=False),
    Column("address", Text, nullable=False),
    Column("kinds", Json, nullable=False, server_default="[]"),  # empty: every kind
    Column("secret", LargeBinary, nullable=False),  # sealed
    Column("state", String(8), nullable=False, server_default="active"),
    Column("created_at", Moment, nullable=False),
    Column("next_try_at", Moment),
    Column("lease_owner", Text),
    Column("lease_until", Moment),
    # How it went.
    Column("failures", Integer, nullable=False, server_default="0"),  # in a row
    Column("slow", Boolean, nullable=False, server_default=false()),
    Column("failing_since", Moment),
    Column("last_error", Text),
    Column("last_delivered_at", Moment),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.id"], ondelete="CASCADE"),
    sqlite_autoincrement=True,
)
Index("ix_webhooks_user", webhooks.c.user_id, webhooks.c.tenant_id)
_sending = text("state = 'active'")
Index("ix_webhooks_due", webhooks.c.next_try_at, sqlite_where=_sending, postgresql_where=_sending)

webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("webhook_id", BigId, ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    Column("state", String(10), nullable=False, server_default="waiting"),
    # The event, whole: the log may have forgotten it when it is sent.
    Column("xid", BigId, nullable=False),
    Column("log_id", BigId, nullable=False),
    Column("event_id", String(36), nullable=False),
    Column("kind", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("key", Text, nullable=False),
    Column("tenant_id", BigId),
    Column("user_id", BigId),
    Column("traceparent", Text),
    Column("created_at", Moment, nullable=False),
    Column("payload", Json, nullable=False),
    # How it went.
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("first_tried_at", Moment),
    Column("last_tried_at", Moment),
    Column("seconds", Float),
    Column("http_status", Integer),
    Column("error", Text),
    Column("settled_at", Moment),
    UniqueConstraint("webhook_id", "event_id"),
    sqlite_autoincrement=True,
)
_unsent = text("state = 'waiting'")
Index("ix_webhook_deliveries_log", webhook_deliveries.c.webhook_id, webhook_deliveries.c.id)
Index(
    "ix_webhook_deliveries_waiting",
    webhook_deliveries.c.webhook_id,
    webhook_deliveries.c.id,
    sqlite_where=_unsent,
    postgresql_where=_unsent,
)
Index("ix_webhook_deliveries_settled_at", webhook_deliveries.c.settled_at)

# Who may do something that only one may do at a time: see store/locks.py.
locks = Table(
    "locks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text),
    Column("token", BigId, nullable=False),
    Column("until", Moment),
)

# How many requests may be made in a stretch of time: see store/budgets.py.
request_budgets = Table(
    "request_budgets",
    metadata,
    Column("name", Text, nullable=False),
    Column("place", Integer, nullable=False, autoincrement=False),
    Column("used_at", Moment),
    Column("free_at", Moment, nullable=False),
    PrimaryKeyConstraint("name", "place"),
)

# Pictures by their address, whoever shows them: see store/images.py and store/image_queue.py. A claim sets next_try_at
# to the lease's end, as for sources; it is NULL where nothing is left to do.
images = Table(
    "images",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("url_key", LargeBinary, nullable=False, unique=True),  # addresses are too long for an index
    Column("url", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("state", String(10), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("next_try_at", Moment),
    Column("lease_owner", Text),
    Column("lease_until", Moment),
    # How it went.
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("tried_at", Moment),
    Column("error_code", Text),
    Column("error", Text),
    # What was saved.
    Column("saved_at", Moment),
    Column("content_hash", String(64)),
    Column("path", Text),  # below the folder for pictures
    Column("type", String(20)),
    Column("size", Integer),
    Column("width", Integer),
    Column("height", Integer),
    Column("metadata", Json, nullable=False, server_default="{}"),  # what its server said about it
    sqlite_autoincrement=True,
)
_undone = text("state = 'waiting'")
Index(
    "ix_images_waiting",
    images.c.host,
    images.c.next_try_at,
    images.c.id,
    sqlite_where=_undone,
    postgresql_where=_undone,
)
Index("ix_images_content", images.c.content_hash, images.c.size)
# Not of all states, or SQLite would walk this one instead of the one above.
_settled = text("state <> 'waiting'")
Index("ix_images_settled", images.c.state, images.c.id, sqlite_where=_settled, postgresql_where=_settled)

post_images = Table(
    "post_images",
    metadata,
    Column("post_id", BigId, ForeignKey("posts.id", ondelete="CASCADE"), nullable=False),
    Column("image_id", BigId, ForeignKey("images.id", ondelete="CASCADE"), nullable=False),
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("place", Integer, nullable=False),
    Column("alt", Text, nullable=False, server_default=""),
    PrimaryKeyConstraint("post_id", "image_id"),
)
Index("ix_post_images_image", post_images.c.image_id, post_images.c.source_id)
Index("ix_post_images_source", post_images.c.source_id, post_images.c.image_id)

# How much was asked in a month of someone who is paid by the month: see store/meters.py.
meters = Table(
    "meters",
    metadata,
    Column("name", Text, nullable=False),
    Column("month", String(7), nullable=False),
    Column("requests", Integer, nullable=False, server_default="0"),
    Column("posts", Integer, nullable=False, server_default="0"),
    PrimaryKeyConstraint("name", "month"),
)

# Secrets that have to be used again, sealed: see store/secrets.py.
secrets = Table(
    "secrets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("changed_at", Moment, nullable=False),
)
