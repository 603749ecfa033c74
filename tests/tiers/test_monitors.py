"""Alerts are raised when something is wrong and cleared when it is over, each once and as an event (A11)."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from sqlalchemy import Connection, select, update

from api.running import Running
from headwater.crawl import monitors
from headwater.crawl.monitors import Seen
from headwater.model import Reader
from headwater.store import alerts
from headwater.store.db import Database
from headwater.store.tables import event_outbox
from headwater.store.tables import sources as sources_table
from support.posts import NOON, a_source, visited

MINUTE = timedelta(minutes=1)


def alert_events(conn: Connection) -> list[tuple[str, str]]:
    query = select(event_outbox.c.kind, event_outbox.c.payload).order_by(event_outbox.c.id)
    return [(row.kind, row.payload["alert"]) for row in conn.execute(query) if row.kind.startswith("alert.")]


def names(found: list[alerts.Alert]) -> list[str]:
    return [alert.name for alert in found]


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        (Seen(0, 0), []),
        (Seen(54, 0), []),
        (Seen(55, 0), ["api_calls"]),
        (Seen(0, 1), ["stale_sources"]),
        (Seen(60, 3), ["api_calls", "stale_sources"]),
    ],
)
def test_what_is_wrong_is_said(seen: Seen, wrong: list[str]) -> None:  # A11
    found = monitors.wrong_in(seen)
    assert list(found) == wrong
    assert all(found.values())


def test_a_source_that_waits_for_90_minutes_raises_an_alert_until_it_is_visited(
    db: Database, owner: Reader
) -> None:  # A9, A11
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        assert monitors.watch(conn, NOON + 89 * MINUTE) == ([], [])
        assert names(monitors.watch(conn, NOON + 90 * MINUTE).raised) == ["stale_sources"]
        assert monitors.watch(conn, NOON + 91 * MINUTE) == ([], []), "it is raised once"
        [standing] = alerts.every(conn)
        assert (standing.raised_at, standing.cleared_at) == (NOON + 90 * MINUTE, None)
        visited(conn, source_id, [], NOON + 92 * MINUTE, next_check_at=NOON + 122 * MINUTE)
        assert names(monitors.watch(conn, NOON + 93 * MINUTE).cleared) == ["stale_sources"]
        assert monitors.watch(conn, NOON + 94 * MINUTE) == ([], [])
        assert alerts.every(conn)[0].cleared_at == NOON + 93 * MINUTE
        assert names(monitors.watch(conn, NOON + 300 * MINUTE).raised) == ["stale_sources"], "it comes back"
        assert alert_events(conn) == [
            ("alert.raised", "stale_sources"),
            ("alert.cleared", "stale_sources"),
            ("alert.raised", "stale_sources"),
        ]

    db.write_now(work)


def test_many_visits_of_communities_within_a_minute_raise_an_alert(db: Database, owner: Reader) -> None:  # A11
    def visit_all(conn: Connection, ids: list[int], at: datetime) -> None:
        for source_id in ids:
            visited(conn, source_id, [], at, outcome="unchanged", next_check_at=at + timedelta(hours=2))

    def work(conn: Connection) -> None:
        ids = [a_source(conn, owner, f"https://www.example/{number}") for number in range(55)]
        visit_all(conn, ids, NOON)
        assert monitors.watch(conn, NOON).raised == [], "feeds have no such limit"
        conn.execute(update(sources_table).values(kind="reddit"))
        visit_all(conn, ids, NOON + timedelta(hours=3))
        assert names(monitors.watch(conn, NOON + timedelta(hours=3, seconds=30)).raised) == ["api_calls"]
        assert names(monitors.watch(conn, NOON + timedelta(hours=3, minutes=2)).cleared) == ["api_calls"]

    db.write_now(work)


def test_an_alert_stands_on_the_page_while_it_is_raised(on_both: Running) -> None:  # A11
    now = on_both.parts.now()
    on_both.source()
    on_both.parts.db.write_now(monitors.watch, now + timedelta(hours=2))
    assert "1 source waits for a visit" in on_both.browser().get("/crawling").text
    on_both.parts.db.write_now(monitors.watch, now)
    assert "1 source waits" not in on_both.browser().get("/crawling").text
