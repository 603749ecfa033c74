"""Small writes that share a transaction on SQLite: each is answered when it is stored, and none fails for another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import Connection, event, select, text

from headwater.errors import StoreUnavailable
from headwater.events.catalogue import SOURCE_ADDED, SourceFacts
from headwater.model import Event
from headwater.store.db import Database, after_commit
from headwater.store.log import outbox
from headwater.store.sql import begin_savepoint
from headwater.store.tables import event_outbox, locks
from support.posts import NOON


@pytest.fixture
def db(sqlite_url: str) -> Iterator[Database]:
    database = Database(sqlite_url)
    yield database
    database.close()


@asynccontextmanager
async def kept_waiting(db: Database) -> AsyncIterator[None]:
    """Keeps the writer's thread busy, so that what is asked for in the block waits together."""
    began, may_end = threading.Event(), threading.Event()

    def hold(_: Connection) -> None:
        began.set()
        may_end.wait()

    holding = asyncio.create_task(db.write(hold))
    while not began.is_set():
        await asyncio.sleep(0.001)
    yield
    may_end.set()
    await holding


async def all_waiting(db: Database, *functions: Callable[[Connection], object]) -> Sequence[object]:
    """Has these written by the same group. Returns what each returned or raised."""
    async with kept_waiting(db):
        tasks = [asyncio.create_task(db.write_grouped(function)) for function in functions]
        await asyncio.sleep(0)
    return await asyncio.gather(*tasks, return_exceptions=True)


def named(name: str, then: Callable[[Connection], None] = lambda _: None) -> Callable[[Connection], str]:
    """Returns a write of one row, after which something else is done."""

    def write(conn: Connection) -> str:
        conn.execute(locks.insert().values(name=name, token=1))
        then(conn)
        return name

    return write


def stored(db: Database) -> list[str]:
    return db.read_now(lambda conn: list(conn.execute(select(locks.c.name).order_by(locks.c.name)).scalars()))


def transactions(db: Database) -> list[str]:
    """Returns a list that grows by one with every transaction that commits."""
    found: list[str] = []
    event.listen(db.engine, "commit", lambda _: found.append("commit"))
    return found


async def test_writes_that_wait_together_are_one_transaction(db: Database) -> None:
    commits = transactions(db)
    answers = await all_waiting(db, *(named(f"{number:03}") for number in range(50)))
    assert answers == stored(db) == [f"{number:03}" for number in range(50)]
    assert len(commits) == 3  # that of whoever kept them waiting, theirs, and the one that reads


async def test_one_that_fails_leaves_nothing_and_the_others_are_stored(db: Database) -> None:
    told: list[str] = []

    def fail(conn: Connection) -> None:
        outbox.append(conn, [an_event(1)], NOON)
        after_commit(conn, lambda: told.append("failed"))
        begin_savepoint(conn)  # and leaves it open
        conn.execute(locks.insert().values(name="half", token=1))
        raise LookupError("after the write")

    answers = await all_waiting(
        db, named("a", lambda conn: after_commit(conn, lambda: told.append("a"))), named("b", fail), named("c")
    )
    assert [str(one) for one in answers] == ["a", "after the write", "c"]
    assert isinstance(answers[1], LookupError)
    assert (stored(db), told, kept_events(db)) == (["a", "c"], ["a"], [])


async def test_one_that_breaks_a_constraint_fails_alone(db: Database) -> None:
    answers = await all_waiting(db, named("a"), named("a"), named("b"))
    assert (answers[0], type(answers[1]).__name__, answers[2]) == ("a", "IntegrityError", "b")
    assert stored(db) == ["a", "b"]


async def test_one_that_fills_the_disk_does_not_take_the_others_with_it(db: Database) -> None:  # H91
    pages = db.read_now(lambda conn: int(conn.execute(text("PRAGMA page_count")).scalar_one()))
    event.listen(db.engine, "begin", lambda conn: conn.exec_driver_sql(f"PRAGMA max_page_count = {pages + 20}"))

    def fill(conn: Connection) -> None:
        conn.exec_driver_sql("CREATE TABLE big AS SELECT zeroblob(10000000) AS bytes")

    answers = await all_waiting(db, named("a"), named("b", fill), named("c"))
    assert (answers[0], type(answers[1]), answers[2]) == ("a", StoreUnavailable, "c")
    assert "disk is full" in str(answers[1])
    assert stored(db) == ["a", "c"]


async def test_a_transaction_that_cannot_be_committed_is_done_again_one_by_one(db: Database) -> None:
    def break_reference(conn: Connection) -> None:  # is found when the transaction is committed
        conn.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        columns = "source_id, user_id, tenant_id, created_at"
        conn.exec_driver_sql(f"INSERT INTO subscriptions ({columns}) VALUES (9, 9, 9, 0)")

    answers = await all_waiting(db, named("a"), named("b", break_reference), named("c"))
    assert (answers[0], type(answers[1]).__name__, answers[2]) == ("a", "IntegrityError", "c")
    assert stored(db) == ["a", "c"]


async def test_nobody_is_answered_before_the_commit(db: Database) -> None:
    seen: list[tuple[list[str], bool]] = []

    def look(_: Connection) -> None:
        seen.append((stored(db), tasks[0].done()))

    async with kept_waiting(db):
        tasks = [asyncio.create_task(db.write_grouped(named("a"))), asyncio.create_task(db.write_grouped(look))]
        await asyncio.sleep(0)
    await tasks[0]
    assert stored(db) == ["a"]  # whoever is answered reads it
    await tasks[1]
    assert seen == [([], False)]


async def test_whoever_is_cancelled_before_it_begins_writes_nothing(db: Database) -> None:
    async with kept_waiting(db):
        tasks = [asyncio.create_task(db.write_grouped(named(name))) for name in "abc"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert stored(db) == ["a", "c"]


async def test_events_are_in_the_order_in_which_they_were_asked_for(db: Database) -> None:
    told: list[frozenset[str]] = []
    db.on_events = lambda kinds: told.append(frozenset(kinds))

    def append(number: int) -> Callable[[Connection], None]:
        return lambda conn: outbox.append(conn, [an_event(number)], NOON)

    await all_waiting(db, *(append(number) for number in range(100)))
    assert kept_events(db) == [str(number) for number in range(100)]
    assert set(told) == {frozenset({SOURCE_ADDED.name})}


async def test_a_write_that_is_not_grouped_has_its_turn(db: Database) -> None:
    order: list[str] = []
    async with kept_waiting(db):
        tasks = [asyncio.create_task(db.write_grouped(named("a", lambda _: order.append("a"))))]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(db.write(named("b", lambda _: again()))))
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()

        def again() -> None:  # more come all the time
            order.append("b")
            loop.call_soon_threadsafe(
                lambda: tasks.append(asyncio.create_task(db.write_grouped(named("c", lambda _: order.append("c")))))
            )

    while len(tasks) < 3:
        await asyncio.sleep(0.001)
    await asyncio.gather(*tasks)
    assert order == ["a", "b", "c"]


def an_event(number: int) -> Event:
    return SOURCE_ADDED(SourceFacts(source_id=1, address="https://example.com/"), once=str(number))


def kept_events(db: Database) -> list[str]:
    keys = select(event_outbox.c.idempotency_key).order_by(event_outbox.c.id)
    return [one.rpartition(":")[2] for one in db.read_now(lambda conn: conn.execute(keys).scalars().all())]
