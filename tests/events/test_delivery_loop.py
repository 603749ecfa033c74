"""The loop that lets consumers follow the log: what wakes it, and that nothing ends it (H83, H98)."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from headwater.events.catalogue import SOURCE_ADDED, SOURCE_RETIRED
from headwater.events.delivery import Consumer, pending
from headwater.store import db as store
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.log import dead_letters, outbox
from headwater.store.log.outbox import LoggedEvent
from headwater.waiting import WakeUpSignal
from headwater.work import consumers as consuming
from support.log import Recorder, append, number_of
from support.posts import NOON

AN_HOUR = 3600.0


@asynccontextmanager
async def following(db: Database, *consumers: Consumer, new_events: WakeUpSignal | None = None) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(consuming.consume(db, consumers, new_events or WakeUpSignal(), lambda: NOON, stop))
    try:
        yield
    finally:
        stop.set()
        await task


async def until(condition: Callable[[], object], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.01)


@pytest.fixture
def on_postgres(postgres_url: str) -> Iterator[Database]:
    yield from migrated(postgres_url)


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Database]:
    yield from migrated(f"sqlite:///{tmp_path / 'headwater.db'}")


def migrated(url: str) -> Iterator[Database]:
    db = Database(url)
    migrate.upgrade(db)
    yield db
    db.close()


def another(db: Database) -> Database:
    """The same store as another process has it."""
    return Database(db.engine.url.render_as_string(hide_password=False))


async def test_the_bell_wakes_the_consumers_of_the_process(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consuming, "POLL_SECONDS", AN_HOUR)
    recorder, new_events = Recorder(), WakeUpSignal()
    db.on_events = new_events.send
    async with following(db, recorder.consumer, new_events=new_events):
        for number in range(5):
            await db.write(append, number, key=1)
            await until(lambda: len(recorder.seen) > number)  # noqa: B023 - awaited within the round
    assert recorder.seen == list(range(5))


async def test_a_cursor_passes_what_its_consumer_does_not_take_only_now_and_then(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consuming, "PASS_SECONDS", AN_HOUR)
    recorder, new_events = Recorder(), WakeUpSignal()
    other = Consumer("other", frozenset({SOURCE_ADDED.name}), lambda conn, events: None)
    db.on_events = new_events.send
    async with following(db, recorder.consumer, other, new_events=new_events):
        await db.write(append, *range(5), key=1)
        await until(lambda: len(recorder.seen) == 5)
        await until(lambda: db.read_now(pending, other, NOON))  # on PostgreSQL they may not be visible at once
        assert db.read_now(pending, other, NOON, wanted=True) == []
    monkeypatch.setattr(consuming, "PASS_SECONDS", 0.0)
    async with following(db, other, new_events=new_events):
        await until(lambda: not db.read_now(pending, other, NOON))
    assert recorder.seen == list(range(5))


def test_ringing_for_a_loop_that_has_ended_does_no_harm(on_sqlite: Database) -> None:
    new_events, kept = WakeUpSignal(), ExitStack()

    async def listen() -> None:
        kept.enter_context(new_events.listening())

    asyncio.run(listen())
    on_sqlite.on_events = new_events.send
    on_sqlite.write_now(append, 1)
    kept.close()


async def test_without_a_bell_the_consumers_look_by_themselves(db: Database) -> None:
    recorder, writer = Recorder(), another(db)
    async with following(db, recorder.consumer):
        await writer.write(append, 1)
        await until(lambda: recorder.seen)
    writer.close()


async def test_a_notification_wakes_the_consumers_of_other_processes(
    on_postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consuming, "POLL_SECONDS", AN_HOUR)
    recorder, new_events, stop, writer = Recorder(), WakeUpSignal(), asyncio.Event(), another(on_postgres)
    listening = asyncio.create_task(outbox.listen(on_postgres, new_events.send, stop))
    async with following(on_postgres, recorder.consumer, new_events=new_events):
        for number in range(5):
            await writer.write(append, number, key=1)
            await until(lambda: len(recorder.seen) > number)  # noqa: B023 - awaited within the round
    stop.set()
    await listening
    writer.close()


async def test_a_consumer_that_always_fails_disturbs_no_other(db: Database) -> None:  # H98
    bad, good = Recorder(lambda number: True, name="bad"), Recorder()
    await db.write(append, *range(10))
    async with following(db, bad.consumer, good.consumer):
        await until(lambda: len(good.seen) == 10 and len(set(bad.tried)) == 10)
    assert db.read_now(dead_letters.counts) == {"bad": {"retrying": 10}}


async def test_a_database_that_is_locked_for_long_is_no_failure_of_the_event(  # H90
    on_sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BUSY_SECONDS", 0)
    monkeypatch.setattr(consuming, "TROUBLE_SECONDS", 0.02)
    hasty, recorder = another(on_sqlite), Recorder()
    await on_sqlite.write(append, 1)
    other = sqlite3.connect(str(on_sqlite.engine.url.database), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    async with following(hasty, recorder.consumer):
        await asyncio.sleep(0.2)
        assert not recorder.tried
        other.execute("ROLLBACK")
        await until(lambda: recorder.seen == [1])
    assert not on_sqlite.read_now(dead_letters.counts)
    other.close()
    hasty.close()


async def test_a_wait_for_the_lock_does_not_shorten_the_pause_before_a_retry(on_sqlite: Database) -> None:  # E4
    file, within = str(on_sqlite.engine.url.database), list[datetime]()
    other = sqlite3.connect(file, isolation_level=None, timeout=0, check_same_thread=False)

    def clock() -> datetime:
        """Notes the times that were asked for while a transaction had the lock."""
        now = datetime.now(UTC)
        try:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
        except sqlite3.OperationalError:
            within.append(now)
        return now

    recorder, stop = Recorder(lambda number: True), asyncio.Event()
    await on_sqlite.write(append, 1)
    task = asyncio.create_task(consuming.consume(on_sqlite, [recorder.consumer], WakeUpSignal(), clock, stop))
    await until(lambda: on_sqlite.read_now(dead_letters.page, "retrying"))
    stop.set()
    await task
    (letter,) = on_sqlite.read_now(dead_letters.page, "retrying")
    assert letter.first_failed_at in within
    other.close()


async def test_a_connection_that_breaks_under_a_handler_is_no_failure_of_the_event(  # H92
    on_postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consuming, "TROUBLE_SECONDS", 0.02)
    recorder, broken = Recorder(), threading.Event()

    def handle(conn: Connection, events: list[LoggedEvent]) -> None:
        if not broken.is_set():
            broken.set()
            conn.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
        recorder.handle(conn, events)

    await on_postgres.write(append, 1, 2, 3, key=1)
    async with following(on_postgres, recorder.consumer._replace(handle=handle)):
        await until(lambda: recorder.seen)
    assert broken.is_set()
    assert recorder.seen == [1, 2, 3]
    assert not on_postgres.read_now(dead_letters.counts)


async def test_processes_side_by_side_share_the_partitions(on_postgres: Database) -> None:  # H84
    together, effects, first = threading.Barrier(2), list[int](), {"a": True, "b": True}

    def handled_by(name: str) -> Callable[[Connection, list[LoggedEvent]], None]:
        def handle(conn: Connection, events: list[LoggedEvent]) -> None:
            if first.pop(name, False):
                together.wait(120)
            effects.extend(number_of(event) for event in events)

        return handle

    a = Consumer("shared", frozenset({SOURCE_RETIRED.name}), handled_by("a"), batch=10)
    b, other = a._replace(handle=handled_by("b")), another(on_postgres)
    for number in range(0, 400, 20):
        await on_postgres.write(append, *range(number, number + 20))
    async with following(on_postgres, a), following(other, b):
        await until(lambda: len(effects) >= 400)
    assert sorted(effects) == list(range(400))
    assert not together.broken
    other.close()
