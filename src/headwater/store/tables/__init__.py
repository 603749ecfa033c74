"""The tables, with their constraints and the indexes that pages and loops need.

Sources, posts and what happened to them are shared by all readers. Tables with tenant_id and user_id are personal. The
migrations make the tables; a test compares them with these definitions.
"""

from __future__ import annotations

from headwater.store.tables.columns import metadata
from headwater.store.tables.log import (
    consumer_cursors,
    consumer_inbox,
    consumer_trials,
    event_dlq,
    event_outbox,
    locks,
    webhook_deliveries,
    webhooks,
)
from headwater.store.tables.people import api_tokens, fold_settings, post_states, secrets, subscriptions, tenants, users
from headwater.store.tables.posts import (
    fold_runs,
    hot_posts,
    hot_window,
    images,
    post_images,
    post_versions,
    posts,
    posts_apart,
    story_decisions,
    story_members,
    story_partings,
    story_sides,
)
from headwater.store.tables.sources import (
    alerts,
    budget_use,
    cached_listings,
    checkpoints,
    crawl_days,
    crawl_hours,
    crawls,
    hosts,
    hub_subscriptions,
    items,
    meters,
    request_budgets,
    robots,
    source_aliases,
    sources,
    visit_tasks,
)

__all__ = [
    "alerts",
    "api_tokens",
    "budget_use",
    "cached_listings",
    "checkpoints",
    "consumer_cursors",
    "consumer_inbox",
    "consumer_trials",
    "crawl_days",
    "crawl_hours",
    "crawls",
    "event_dlq",
    "event_outbox",
    "fold_runs",
    "fold_settings",
    "hosts",
    "hot_posts",
    "hot_window",
    "hub_subscriptions",
    "images",
    "items",
    "locks",
    "metadata",
    "meters",
    "post_images",
    "post_states",
    "post_versions",
    "posts",
    "posts_apart",
    "request_budgets",
    "robots",
    "secrets",
    "source_aliases",
    "sources",
    "story_decisions",
    "story_members",
    "story_partings",
    "story_sides",
    "subscriptions",
    "tenants",
    "users",
    "visit_tasks",
    "webhook_deliveries",
    "webhooks",
]
