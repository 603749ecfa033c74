"""An event that takes its process with it is handed to a few processes, then it is a dead letter (H88)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Connection, text

from headwater.errors import StoreUnavailable
from headwater.events import delivery
from headwater.events.catalogue import SOURCE_RETIRED
from headwater.events.delivery import MAX_ATTEMPTS, Consumer, PoisonGuard
from headwater.store.db import Database
from headwater.store.log import dead_letters, outbox
from headwater.store.log.outbox import LoggedEvent
from support import forked
from support.log import Recorder, append, consume_all, number_of
from support.posts import NOON

DEADLY = 7
MOST_DEATHS = 4 * MAX_ATTEMPTS
HANDLE_UNTIL_DEATH = f"""
import asyncio, os, signal, sys
sys.path.insert(0, {os.path.dirname(os.path.dirname(__file__))!r})
from sqlalchemy import text
from headwater.events.catalogue import SOURCE_RETIRED
from headwater.events.delivery import Consumer
from headwater.store.db import Database
from headwater.work import consumers
from support.log import number_of
from support.posts import NOON

def handle(conn, events):
    for event in events:
        if number_of(event) == {DEADLY}:
            os.kill(os.getpid(), signal.SIGKILL)
        conn.execute(text("INSERT INTO effects (number) VALUES (:number)"), {{"number": number_of(event)}})

consumer = Consumer("deadly", frozenset({{SOURCE_RETIRED.name}}), handle, batch=5)
asyncio.run(consumers.catch_up(Database(sys.argv[1]), [consumer], lambda: NOON))
"""


def handle_until_death(url: str) -> int:
    return forked.run("-c", HANDLE_UNTIL_DEATH, url, env=os.environ).returncode


@pytest.fixture
def on_sqlite(sqlite_url: str) -> Iterator[Database]:
    """Where all events are in one partition."""
    db = Database(sqlite_url)
    yield db
    db.close()


def effects(conn: Connection) -> list[int]:
    return sorted(conn.execute(text("SELECT number FROM effects")).scalars())


@pytest.mark.timeout(300)
def test_an_event_that_kills_its_process_is_a_dead_letter_after_a_few_deaths_and_the_others_have_their_effect_once(
    db: Database, store_url: str
) -> None:  # H88
    db.write_now(lambda conn: conn.execute(text("CREATE TABLE effects (number INTEGER)")))
    db.write_now(outbox.make_cursors, "deadly", NOON)
    db.write_now(append, *range(12), key=1)
    deaths = 0
    while handle_until_death(store_url) != 0:
        deaths += 1
        assert deaths <= MOST_DEATHS
    consume_all(db, Consumer("deadly", frozenset({SOURCE_RETIRED.name}), lambda conn, events: None))
    assert deaths >= 2 * MAX_ATTEMPTS
    assert db.read_now(effects) == [number for number in range(12) if number != DEADLY]
    (letter,) = db.read_now(dead_letters.page)
    assert number_of(letter.event) == DEADLY
    assert letter.error == f"The process ended {MAX_ATTEMPTS} times while it handled this event."
    assert db.read_now(lambda conn: conn.execute(text("SELECT count(*) FROM consumer_trials")).scalar_one()) == 0


def died(db: Database, name: str, *event_ids: str) -> None:
    """As if processes had begun this in vain, as often as is allowed."""
    for event_id in event_ids:
        row = {"name": name, "event_id": event_id, "tries": MAX_ATTEMPTS, "now": "2026-11-02 12:00:00+00:00"}
        statement = text("INSERT INTO consumer_trials VALUES (:name, 0, :event_id, :tries, :now)")
        db.write_now(lambda conn, row=row, statement=statement: conn.execute(statement, row))  # type: ignore[misc]


def first_batch(db: Database, consumer: Consumer) -> list[LoggedEvent]:
    return db.write_now(delivery.next_batch, consumer, 0)


def test_a_letter_whose_retry_kills_the_process_is_dead_too(on_sqlite: Database) -> None:  # H88
    recorder = Recorder(lambda number: number == 1)
    on_sqlite.write_now(append, 1, 2, key=1)
    consume_all(on_sqlite, recorder.consumer)
    (event_id,) = on_sqlite.read_now(
        lambda conn: conn.execute(text("SELECT event_id FROM event_dlq WHERE error > ''")).one()
    )
    died(on_sqlite, recorder.consumer.name, "", event_id)
    later = NOON + timedelta(minutes=1)
    first = PoisonGuard(on_sqlite, recorder.consumer, delivery.deliver_batch, lambda: later)
    asyncio.run(first.handle(0, []))
    (letter,) = on_sqlite.read_now(dead_letters.page)
    assert letter.event.event_id == event_id
    assert letter.error is not None
    assert "The process ended" in letter.error


def test_trouble_with_the_store_is_no_death_of_the_process(on_sqlite: Database) -> None:
    recorder = Recorder()
    on_sqlite.write_now(append, 1, 2, key=1)
    on_sqlite.write_now(outbox.make_cursors, recorder.consumer.name, NOON)

    def in_trouble(*_: object) -> int:
        raise StoreUnavailable("The store is away.")

    first = PoisonGuard(on_sqlite, recorder.consumer, in_trouble, lambda: NOON)
    for _ in range(MAX_ATTEMPTS + 2):
        with pytest.raises(StoreUnavailable):
            asyncio.run(first.handle(0, first_batch(on_sqlite, recorder.consumer)))
    tries = on_sqlite.read_now(lambda conn: conn.execute(text("SELECT tries FROM consumer_trials")).scalar_one())
    assert tries == 1
    assert not first.has_survived(0)


def test_after_a_few_deaths_each_event_is_begun_by_itself(on_sqlite: Database) -> None:
    recorder = Recorder()
    on_sqlite.write_now(append, 1, 2, 3, key=1)
    on_sqlite.write_now(outbox.make_cursors, recorder.consumer.name, NOON)
    died(on_sqlite, recorder.consumer.name, "")
    batches: list[int] = []

    def handle(conn: Connection, events: list[LoggedEvent]) -> None:
        batches.append(len(events))
        recorder.handle(conn, events)

    consumer = recorder.consumer._replace(handle=handle)
    first = PoisonGuard(on_sqlite, consumer, delivery.deliver_batch, lambda: NOON)
    assert asyncio.run(first.handle(0, first_batch(on_sqlite, consumer))) == 3
    assert (batches, recorder.seen) == ([1, 1, 1], [1, 2, 3])
    assert first.has_survived(0)
    assert [number_of(event) for event in first_batch(on_sqlite, consumer)] == []
