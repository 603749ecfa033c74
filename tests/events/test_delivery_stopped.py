"""A consumer that stands still within a transaction loses it, and what it does afterwards counts for nothing."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection as Pipe

from sqlalchemy import Connection, text

from headwater.errors import StoreUnavailable
from headwater.events import delivery
from headwater.events.catalogue import SOURCE_RETIRED
from headwater.events.delivery import Consumer
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.log import outbox
from headwater.store.log.outbox import LoggedEvent
from support.log import append, consume_all, number_of
from support.posts import NOON
from support.processes import wait_until

SHORT = 3.0  # longer than a busy machine lets a process wait in the middle of its work


def write_down(conn: Connection, events: list[LoggedEvent]) -> None:
    rows = [{"number": number_of(event)} for event in events]
    conn.execute(text("INSERT INTO effects (number) VALUES (:number)"), rows)


CONSUMER = Consumer("stopped", frozenset({SOURCE_RETIRED.name}), write_down)


def handle_one_batch(url: str, pipe: Pipe) -> None:
    """Say when the effect is written but not committed, and wait for an answer; say what came of it."""

    def write_and_wait(conn: Connection, events: list[LoggedEvent]) -> None:
        write_down(conn, events)
        pipe.send(conn.execute(text("SELECT pg_backend_pid()")).scalar_one())
        pipe.recv()

    db = Database(url, idle_seconds=SHORT)
    (partition,) = db.read_now(delivery.pending, CONSUMER, NOON)
    try:
        db.write_now(delivery.deliver_next, CONSUMER._replace(handle=write_and_wait), partition, NOON)
        pipe.send("committed")
    except StoreUnavailable:
        pipe.send("fenced")


def test_a_consumer_that_was_stopped_beyond_its_time_is_fenced_and_nothing_happens_twice(postgres_url: str) -> None:
    # H85
    db = Database(postgres_url)
    migrate.upgrade(db)
    db.write_now(lambda conn: conn.execute(text("CREATE TABLE effects (number INTEGER)")))
    db.write_now(outbox.make_cursors, CONSUMER.name, NOON)
    db.write_now(append, 1, 2, 3, key=1)
    wait_until(lambda: db.read_now(delivery.pending, CONSUMER, NOON))
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=handle_one_batch, args=(postgres_url, there))
    process.start()
    assert process.pid is not None
    session = here.recv()
    os.kill(process.pid, signal.SIGSTOP)
    alive = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")
    wait_until(lambda: not db.read_now(lambda conn: conn.execute(alive, {"pid": session}).scalar_one()))
    consume_all(db, CONSUMER)
    os.kill(process.pid, signal.SIGCONT)
    here.send("go on")
    assert here.recv() == "fenced"
    process.join()
    effects = db.read_now(lambda conn: conn.execute(text("SELECT number FROM effects ORDER BY number")).scalars().all())
    assert effects == [1, 2, 3]
    db.close()
