"""Alerts are raised when something is wrong and cleared when it is over, each once and as an event (A11)."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from sqlalchemy import Connection, select, update

from api.running import Running
from headwater.crawl import monitors
from headwater.crawl.monitors import AlertLimits
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.sources import limits
from headwater.store.sources.limits import Budget
from headwater.store.tables import event_outbox
from headwater.store.tables import sources as sources_table
from headwater.store.visits import metrics
from support.posts import NOON, a_source, visited

MINUTE = timedelta(minutes=1)


def alert_events(conn: Connection) -> list[tuple[str, str]]:
    query = select(event_outbox.c.kind, event_outbox.c.payload).order_by(event_outbox.c.id)
    return [(row.kind, row.payload["alert"]) for row in conn.execute(query) if row.kind.startswith("alert.")]


def names(found: list[metrics.Alert]) -> list[str]:
    return [alert.name for alert in found]


LIMITS = AlertLimits()
BUDGET = Budget("reddit api", 60, MINUTE)


@pytest.mark.parametrize(
    ("said", "is_wrong"),
    [
        (monitors.too_many_calls(54, BUDGET, LIMITS), False),
        (monitors.too_many_calls(55, BUDGET, LIMITS), True),
        (monitors.too_few_hits(100, 70, LIMITS), False),
        (monitors.too_few_hits(100, 69, LIMITS), True),
        (monitors.too_few_hits(19, 0, LIMITS), False),
        (monitors.too_long_waits(0, LIMITS), False),
        (monitors.too_long_waits(1, LIMITS), True),
    ],
)
def test_what_is_wrong_is_said(said: str | None, is_wrong: bool) -> None:  # A11
    assert bool(said) == is_wrong


def test_a_source_that_waits_for_90_minutes_raises_an_alert_until_it_is_visited(
    db: Database, owner: Reader
) -> None:  # A9, A11
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        assert monitors.watch_crawler(conn, LIMITS, NOON + 89 * MINUTE) == ([], [])
        assert names(monitors.watch_crawler(conn, LIMITS, NOON + 90 * MINUTE).raised) == ["stale_sources"]
        assert monitors.watch_crawler(conn, LIMITS, NOON + 91 * MINUTE) == ([], []), "it is raised once"
        [standing] = metrics.all_alerts(conn)
        assert (standing.raised_at, standing.cleared_at) == (NOON + 90 * MINUTE, None)
        visited(conn, source_id, [], NOON + 92 * MINUTE, next_check_at=NOON + 122 * MINUTE)
        assert names(monitors.watch_crawler(conn, LIMITS, NOON + 93 * MINUTE).cleared) == ["stale_sources"]
        assert monitors.watch_crawler(conn, LIMITS, NOON + 94 * MINUTE) == ([], [])
        assert metrics.all_alerts(conn)[0].cleared_at == NOON + 93 * MINUTE
        assert names(monitors.watch_crawler(conn, LIMITS, NOON + 300 * MINUTE).raised) == ["stale_sources"], (
            "it comes back"
        )
        assert alert_events(conn) == [
            ("alert.raised", "stale_sources"),
            ("alert.cleared", "stale_sources"),
            ("alert.raised", "stale_sources"),
        ]

    db.write_now(work)


def test_many_requests_within_a_minute_raise_an_alert_by_the_count_that_all_processes_share(
    db: Database, owner: Reader
) -> None:  # A11
    def work(conn: Connection) -> None:
        for number in range(54):
            assert limits.reserve(conn, BUDGET, NOON + timedelta(milliseconds=number)) is None
        assert monitors.watch_calls(conn, BUDGET, LIMITS, NOON + MINUTE / 2) == ([], [])
        limits.reserve(conn, BUDGET, NOON + MINUTE / 2)
        [raised] = monitors.watch_calls(conn, BUDGET, LIMITS, NOON + MINUTE / 2).raised
        assert (raised.name, raised.detail) == ("api_calls", "55 requests to Reddit within 60 seconds; 60 are allowed.")
        assert names(monitors.watch_calls(conn, BUDGET, LIMITS, NOON + MINUTE * 2).cleared) == ["api_calls"]
        assert limits.use_since(conn, BUDGET, NOON - MINUTE) == {NOON: 55, NOON + MINUTE * 2: 0}
        assert [kind for kind, _ in alert_events(conn)] == ["alert.raised", "alert.cleared"]

    db.write_now(work)


def test_feeds_that_answer_with_something_new_each_time_raise_an_alert(db: Database, owner: Reader) -> None:  # A11
    def visit_all(conn: Connection, ids: list[int], at: datetime, unchanged: int) -> None:
        for place, source_id in enumerate(ids):
            outcome = "unchanged" if place < unchanged else "ok"
            visited(conn, source_id, [], at, outcome=outcome, next_check_at=at + timedelta(hours=1))

    def work(conn: Connection) -> None:
        ids = [a_source(conn, owner, f"https://www.example/{number}") for number in range(20)]
        visit_all(conn, ids, NOON + MINUTE, unchanged=0)
        assert monitors.watch_cache(conn, LIMITS, NOON + MINUTE * 2) == ([], []), "on first visits all is new"
        visit_all(conn, ids, NOON + MINUTE * 90, unchanged=13)
        [raised] = monitors.watch_cache(conn, LIMITS, NOON + MINUTE * 100).raised
        assert raised.name == "cache_hits"
        assert "Only 65% of what feeds answered" in raised.detail
        visit_all(conn, ids, NOON + MINUTE * 180, unchanged=14)
        assert names(monitors.watch_cache(conn, LIMITS, NOON + MINUTE * 181).cleared) == ["cache_hits"]

    db.write_now(work)


def test_votes_are_no_reason_to_say_that_a_community_is_not_cached(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        for number in range(20):
            source_id = a_source(conn, owner, f"https://www.example/{number}")
            visited(conn, source_id, [], NOON + MINUTE * 90)
        conn.execute(update(sources_table).values(kind="reddit"))
        assert monitors.watch_cache(conn, LIMITS, NOON + MINUTE * 91) == ([], [])

    db.write_now(work)


def test_an_alert_stands_on_the_page_while_it_is_raised(on_both: Running) -> None:  # A11
    now = on_both.parts.now()
    on_both.source()
    on_both.parts.db.write_now(monitors.watch_crawler, LIMITS, now + timedelta(hours=2))
    assert "1 source has been waiting for a visit" in on_both.browser().get("/crawling").text
    assert 'headwater_alerts{alert="stale_sources"} 1.0' in on_both.program().get("/metrics").text
    on_both.parts.db.write_now(monitors.watch_crawler, LIMITS, now)
    assert "1 source has been waiting" not in on_both.browser().get("/crawling").text
