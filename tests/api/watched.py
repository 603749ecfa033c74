"""A source as a reader sees it, for tests that only look at it."""

from __future__ import annotations

from datetime import timedelta

from headwater.store.sources import WatchedSource
from support.posts import NOON

SOURCE = WatchedSource(
    id=1,
    kind="rss",
    address="https://news.example/feed/",
    title="The News",
    folder=None,
    site_url=None,
    status="ok",
    active=True,
    created_at=NOON,
    last_crawled_at=NOON,
    next_check_at=NOON + timedelta(minutes=12),
    checking=False,
    waits_for=None,
    newest_post_at=None,
    interval_seconds=1800,
    consecutive_failures=0,
    failing_since=None,
    last_error_code=None,
    last_error=None,
    truncated=False,
    note="",
    gap_at=None,
)
