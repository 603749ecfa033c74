"""A source's page says how much it publishes and where it stands; the dashboard says how much was asked of Reddit."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, update

from api.running import Running
from headwater.crawl import monitors
from headwater.crawl.monitors import AlertLimits
from headwater.follow import pool as pooling
from headwater.store.sources import limits
from headwater.store.sources.pool import posts_by_day
from headwater.store.tables import sources
from headwater.store.visits import metrics
from headwater.wire import reddit_budget
from support.posts import NOON, a_post, a_source, visited

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def publish_for_weeks(on_both: Running) -> int:
    now = on_both.parts.now()
    source_id = on_both.source()
    dates = [now - DAY * day - timedelta(minutes=n) for day in range(20) for n in range(1 + day * 7 % 11)]
    on_both.publish(source_id, *[a_post(str(n), created_at=date) for n, date in enumerate(dates)])
    on_both.parts.db.write_now(pooling.pin_tier, source_id, "high")
    return source_id


def test_a_sources_page_shows_its_days_its_tier_and_its_watermark(on_both: Running) -> None:  # A2, A7
    source_id = publish_for_weeks(on_both)
    page = on_both.browser().get(f"/sources/{source_id}").text
    assert 'class="chart spark"' in page
    assert page.count("<rect ") >= 20
    assert "high, pinned" in page
    assert "everything before that is stored" in page
    assert "Next check" in page


def test_a_source_says_how_its_visits_went_and_how_much_they_knew(on_both: Running) -> None:  # A14
    source_id = on_both.source("r/webdev")
    posts = [a_post(f"t3_{number}", created_at=on_both.parts.now()) for number in range(4)]
    on_both.publish(source_id, *posts[:1])
    on_both.publish(source_id, *posts)
    on_both.parts.db.write_now(
        lambda conn: conn.execute(update(sources).where(sources.c.id == source_id).values(empty_hit=2, failure_hit=1))
    )
    shown = on_both.program().get(f"/api/sources/{source_id}").json()
    names = ("success_hit", "empty_hit", "failure_hit", "posts_cached", "dedup_rate")
    assert [shown[name] for name in names] == [2, 2, 1, 0, 0.2]
    page = on_both.browser().get(f"/sources/{source_id}").text
    assert "2 worked, 2 found nothing, 1 failed. 20% of what the latest ones read was known." in page


def test_days_are_those_of_utc_and_none_is_left_out(db: Any, owner: Any) -> None:
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        midnight = NOON - 12 * HOUR
        times = [midnight, midnight - timedelta(microseconds=1), NOON, NOON - 5 * DAY, NOON + 2 * DAY]
        visited(conn, source_id, [a_post(str(n), created_at=at) for n, at in enumerate(times)])
        assert [count for _, count in posts_by_day(conn, source_id, NOON, 3)] == [0, 1, 2]
        assert posts_by_day(conn, source_id, NOON, 1)[0][0] == midnight

    db.write_now(work)


def test_the_dashboard_draws_requests_against_their_limit_and_sums_up_days(on_both: Running) -> None:  # A8, A10, A11
    parts, now = on_both.parts, on_both.parts.now()
    publish_for_weeks(on_both)
    budget = reddit_budget(parts.settings)

    def work(conn: Connection) -> None:
        limits.reserve(conn, budget, now)
        monitors.watch_calls(conn, budget, AlertLimits(), now)
        conn.execute(update(sources).values(pooled_at=now, kind="reddit"))
        metrics.count_hours(conn, now)
        metrics.count_days(conn, now + DAY)

    parts.db.write_now(work)
    page = on_both.browser().get("/crawling").text
    assert "Requests to Reddit" in page
    assert 'class="limit"' in page
    assert "at most 1 within 60 s; 1 are allowed" in page
    assert "0 of 1 communities" in page
    assert "By the day" in page
    assert f"{now:%d %b %Y}" in page
