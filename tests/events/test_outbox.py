"""The outbox as the log: nothing skipped, nothing twice, nothing deleted too early (E1, H82)."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from sqlalchemy import Connection, text

from headwater import ids
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.log import outbox
from support.log import Recorder, an_event, append, consume_some, number_of
from support.posts import NOON


def test_a_consumer_sees_every_event_once_and_those_of_a_key_in_order(db: Database) -> None:
    recorder = Recorder()
    db.write_now(append, *range(10), key=1)
    assert recorder.catch_up(db) == list(range(10))
    db.write_now(append, 10, 11, 12)
    assert recorder.catch_up(db)[:10] == list(range(10))
    assert sorted(recorder.seen) == list(range(13))


def test_an_event_commits_with_its_change_or_not_at_all(db: Database) -> None:  # E1
    recorder = Recorder()

    def change_and_fail(conn: Connection) -> None:
        append(conn, 1)
        raise RuntimeError("the change did not work out")

    with pytest.raises(RuntimeError):
        db.write_now(change_and_fail)
    db.write_now(append, 2)
    assert recorder.catch_up(db) == [2]


def test_the_same_fact_is_published_once(db: Database) -> None:  # E1
    recorder = Recorder()
    db.write_now(append, 1, 1)
    db.write_now(append, 1)
    assert recorder.catch_up(db) == [1]


def test_an_event_that_commits_late_is_not_stepped_over(postgres_url: str) -> None:  # H82
    db = Database(postgres_url)
    migrate.upgrade(db)
    recorder = Recorder()
    db.write_now(outbox.make_cursors, recorder.consumer.name, NOON)
    with db.engine.connect() as slow:
        with slow.begin():
            append(slow, 1, key=5)
            db.write_now(append, 2, key=5)
            consume_some(db, recorder.consumer)
            early = list(recorder.seen)
        assert early == [], "an event was read while an earlier transaction was still open"
    assert recorder.catch_up(db) == [1, 2]
    db.close()


def test_old_events_are_forgotten_only_after_every_consumer_has_passed_them(db: Database) -> None:
    recorder = Recorder()
    db.write_now(outbox.make_cursors, "recorder", NOON)
    db.write_now(append, *range(5), key=1)
    later = NOON + timedelta(days=8)
    assert db.write_now(outbox.forget_before, later) == 0
    assert recorder.catch_up(db) == list(range(5))
    assert db.write_now(outbox.forget_before, NOON) == 0
    assert db.write_now(outbox.forget_before, later) == 5


def test_two_cleaners_side_by_side_do_no_harm(db: Database) -> None:  # H84
    recorder = Recorder()
    db.write_now(append, *range(5), key=1)
    recorder.catch_up(db)
    later = NOON + timedelta(days=8)
    other = Database(db.engine.url.render_as_string(hide_password=False))
    assert db.write_now(outbox.forget_before, later) + other.write_now(outbox.forget_before, later) == 5
    other.close()
    db.write_now(append, 5)
    assert recorder.catch_up(db) == list(range(6))


def test_an_event_carries_the_trace_of_the_request_that_caused_it(db: Database) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    token = ids.current_trace.set(ids.parse_trace(parent))
    try:
        db.write_now(append, 1)
    finally:
        ids.current_trace.reset(token)
    db.write_now(append, 2)
    rows = db.read_now(lambda conn: conn.execute(text("SELECT traceparent FROM event_outbox ORDER BY id")).all())
    assert [row[0] for row in rows] == [parent, None]
    assert ids.parse_trace("00-" + "0" * 32 + "-b7ad6b7169203331-01") is None
    assert ids.parse_trace("x" * 5000) is None


def test_a_logged_event_says_what_was_appended(db: Database) -> None:
    def first(conn: Connection) -> outbox.LoggedEvent:
        found = [outbox.after(conn, partition, outbox.LogPosition(0, 0), 1) for partition in range(outbox.PARTITIONS)]
        return next(events[0] for events in found if events)

    db.write_now(append, 7)
    recorder = Recorder()
    recorder.catch_up(db)  # until PostgreSQL shows it
    logged, event = db.read_now(first), an_event(7)
    assert (logged.kind, logged.version, logged.key) == (event.kind, event.version, "source:7")
    assert number_of(logged) == 7
    assert logged.created_at == NOON


def test_ids_sort_by_time_and_are_version_7() -> None:
    made = [ids.uuid7() for _ in range(200)]
    pattern = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch(pattern, id) for id in made)
    assert len(set(made)) == 200
    assert [id[:13] for id in made] == sorted(id[:13] for id in made)
