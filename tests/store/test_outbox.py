"""The outbox as the log: nothing skipped, nothing twice, nothing deleted too early (E1, H82)."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from headwater.events.catalogue import SOURCE_RETIRED
from headwater.events.log import Consumer, step
from headwater.model import Event
from headwater.store import migrate, outbox
from headwater.store.db import Database
from headwater.store.outbox import LoggedEvent
from support.log import consume_all
from support.posts import NOON


def an_event(number: int) -> Event:
    return SOURCE_RETIRED(key=number, once=str(number), source_id=number, address="https://news.example/")


def append(conn: Connection, *numbers: int) -> None:
    outbox.append(conn, [an_event(number) for number in numbers], NOON)


class Recorder:
    """A consumer that writes down what it was given."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.consumer = Consumer("recorder", frozenset({SOURCE_RETIRED.name}), self.handle, batch=3)

    def handle(self, conn: Connection, events: list[LoggedEvent]) -> None:
        self.seen += [event.payload["source_id"] for event in events]

    def catch_up(self, db: Database) -> list[int]:
        consume_all(db, self.consumer)
        return self.seen


def test_a_consumer_sees_every_event_once_in_order(db: Database) -> None:
    recorder = Recorder()
    db.write_now(append, *range(10))
    assert recorder.catch_up(db) == list(range(10))
    db.write_now(append, 10)
    assert recorder.catch_up(db) == list(range(11))


def test_the_same_fact_is_published_once(db: Database) -> None:  # E1
    recorder = Recorder()
    db.write_now(append, 1, 1)
    db.write_now(append, 1)
    assert recorder.catch_up(db) == [1]


def test_an_event_that_commits_late_is_not_stepped_over(postgres_url: str) -> None:  # H82
    db = Database(postgres_url)
    migrate.upgrade(db)
    recorder = Recorder()
    with db.engine.connect() as slow:
        with slow.begin():
            append(slow, 1)
            db.write_now(append, 2)
            db.write_now(step, recorder.consumer, NOON)
            early = list(recorder.seen)
        assert early == [], "an event was read while an earlier transaction was still open"
    assert recorder.catch_up(db) == [1, 2]
    db.close()


def test_a_handler_that_fails_leaves_the_cursor_where_it_was(db: Database) -> None:
    recorder = Recorder()
    db.write_now(append, 1, 2)

    def broken(conn: Connection, events: list[LoggedEvent]) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        db.write_now(step, recorder.consumer._replace(handle=broken), NOON)
    assert recorder.catch_up(db) == [1, 2]


def test_old_events_are_forgotten_only_after_every_consumer_has_passed_them(db: Database) -> None:
    recorder = Recorder()
    db.write_now(append, *range(5))
    while not recorder.seen:
        db.write_now(step, recorder.consumer, NOON)
    later = NOON + timedelta(days=8)
    assert db.write_now(outbox.forget_before, later) == 3
    assert recorder.catch_up(db) == list(range(5))
    assert db.write_now(outbox.forget_before, NOON) == 0
    assert db.write_now(outbox.forget_before, later) == 2


def test_ids_sort_by_time_and_are_version_7() -> None:
    made = [outbox.uuid7() for _ in range(200)]
    pattern = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch(pattern, id) for id in made)
    assert len(set(made)) == 200
    assert [id[:13] for id in made] == sorted(id[:13] for id in made)
