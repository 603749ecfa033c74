"""Visits are counted by the hour, shown over HTTP and drawn on a page (A8)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from sqlalchemy import Connection, delete

from api.running import Running
from headwater.follow import pool as pooling
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.tables import crawls
from headwater.store.visits import metrics
from headwater.store.visits.metrics import HourMetrics
from support.posts import NOON, a_post, a_source, visited

HOUR = timedelta(hours=1)
FAILED = {"outcome": "failed", "status": "failing", "error": "Too slow.", "facts": None}


def an_hour_of_visits(conn: Connection, owner: Reader, at: datetime = NOON) -> None:
    """One visit of each outcome, 3 s in all."""
    source_id = a_source(conn, owner)
    visited(conn, source_id, [a_post("1"), a_post("2", score=1)], at, seconds=0.5)
    visited(conn, source_id, [a_post("1"), a_post("2", score=2)], at + timedelta(minutes=10), seconds=0.5)
    visited(conn, source_id, [], at + timedelta(minutes=20), outcome="unchanged", seconds=0.5)
    visited(conn, source_id, [], at + timedelta(minutes=30), outcome="empty", status="empty", seconds=0.5)
    visited(conn, source_id, [], at + timedelta(minutes=59), **FAILED, seconds=1.0)


def counted(db: Database, now: datetime, hours: int = 48) -> list[HourMetrics]:
    db.write_now(metrics.count_hours, now)
    return db.read_now(metrics.recent, now, hours)


def test_an_hour_says_what_its_visits_brought(db: Database, owner: Reader) -> None:  # A8
    db.write_now(an_hour_of_visits, owner)
    db.write_now(pooling.pin_tier, 1, "high")
    db.write_now(a_source, owner, "https://other.example/")
    one = counted(db, NOON + timedelta(minutes=59, seconds=59))[-1]
    assert (one.hour, one.visits) == (NOON, 5)
    assert (one.visits_ok, one.visits_unchanged, one.visits_empty, one.visits_failed) == (2, 1, 1, 1)
    assert (one.posts_new, one.posts_updated, one.posts_duplicate) == (2, 1, 1)
    assert (one.average_seconds, one.cache_hit_rate) == (pytest.approx(0.6), 0.25)
    assert (one.valid_posts_24h, one.sources_total, one.tiers) == (2, 2, {"high": 1, "none": 1})


def test_counting_an_hour_again_changes_nothing(db: Database, owner: Reader) -> None:  # A8
    db.write_now(an_hour_of_visits, owner)
    now = NOON + timedelta(minutes=59)
    assert counted(db, now) == counted(db, now)


def test_a_visit_that_ends_after_its_hour_is_still_counted_in_it(db: Database, owner: Reader) -> None:  # A8
    source_id = db.write_now(a_source, owner)
    assert counted(db, NOON + timedelta(minutes=58))[-1].visits == 0
    db.write_now(visited, source_id, [a_post("1")], NOON + timedelta(minutes=59))
    past, present = counted(db, NOON + HOUR + timedelta(minutes=1))[-2:]
    assert (past.hour, past.visits, past.sources_total) == (NOON, 1, 1)
    assert (present.hour, present.visits) == (NOON + HOUR, 0)


def test_hours_without_anybody_to_count_them_are_counted_later(db: Database, owner: Reader) -> None:  # A8
    counted(db, NOON - 5 * HOUR)
    db.write_now(an_hour_of_visits, owner)
    found = {one.hour: one for one in counted(db, NOON + 6 * HOUR)}
    assert sorted(found) == [NOON + step * HOUR for step in range(-29, 7)]
    assert (found[NOON].visits, found[NOON].tiers, found[NOON].sources_total) == (5, None, None)


def test_what_was_counted_outlives_the_visits(db: Database, owner: Reader) -> None:  # A8
    db.write_now(an_hour_of_visits, owner)
    counted(db, NOON + 2 * HOUR)
    counted(db, NOON + 4 * HOUR)
    db.write_now(lambda conn: conn.execute(delete(crawls)).rowcount)
    found = {one.hour: one.visits for one in counted(db, NOON + 24 * HOUR)}
    assert found[NOON] == 5


def test_a_clock_that_was_set_back_does_not_stop_the_counting(db: Database, owner: Reader) -> None:
    counted(db, NOON + 48 * HOUR)
    db.write_now(an_hour_of_visits, owner)
    assert {one.hour: one.visits for one in counted(db, NOON + timedelta(minutes=59))}[NOON] == 5


def test_the_hours_are_served_and_drawn(on_both: Running) -> None:  # A8
    now = on_both.parts.now()
    assert "Nothing is counted yet" in on_both.browser().get("/crawling").text
    on_both.parts.db.write_now(an_hour_of_visits, on_both.owner, now - timedelta(minutes=59))
    on_both.parts.db.write_now(metrics.count_hours, now)
    found = on_both.program().get("/api/crawl/metrics").json()["items"]
    assert sum(one["crawls_successful"] + one["crawls_empty"] + one["crawls_failed"] for one in found) == 5
    assert sum(one["posts_new"] for one in found) == 2
    assert found[-1]["sources_total"] == 1
    assert found[-1]["tiers"] == {"none": 1}
    names = {  # A14
        "successful_crawls": sum(one["crawls_successful"] for one in found),
        "empty_crawls": sum(one["crawls_empty"] for one in found),
        "failed_crawls": sum(one["crawls_failed"] for one in found),
        "total_new_posts": 2,
        "total_updated_posts": sum(one["posts_updated"] for one in found),
        "total_duplicates": sum(one["posts_duplicate"] for one in found),
    }
    assert {name: sum(one[name] for one in found) for name in names} == names
    assert (found[-1]["total_communities"], found[-1]["tier_assignments"]) == (1, {"none": 1})
    assert all(one["avg_latency_seconds"] > 0 for one in found if one["successful_crawls"])
    assert f"{found[-1]['metric_date']}T{found[-1]['metric_hour']:02}" == found[-1]["hour"][:13]
    assert len(on_both.program().get("/api/crawl/metrics?hours=1").json()["items"]) == 1
    assert on_both.program().get("/api/crawl/metrics?hours=0").status == 422
    page = on_both.browser().get("/crawling").text
    for title in ("New posts per hour", "Visits per hour", "Seconds per visit", "Visits by outcome", "Sources by tier"):
        assert title in page
    assert re.search(r"<title>[^<]* UTC: 2</title>", page), "a bar says its hour and value"
    assert "<script" not in page.partition("<main")[2]
