"""On PostgreSQL transactions overlap: a late commit is not passed over, and a key has the order of its changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from headwater.store.db import Database
from headwater.store.log import outbox
from support.log import Recorder, append, consume_some, database_with
from support.posts import NOON


@pytest.fixture
def db(postgres_url: str) -> Iterator[Database]:
    with database_with(postgres_url, "CREATE TABLE other (number INTEGER)") as database:
        yield database


def test_the_order_of_a_key_is_that_of_its_changes_not_that_of_when_transactions_began(db: Database) -> None:  # E2
    recorder = Recorder(batch=1)
    db.write_now(outbox.make_cursors, recorder.consumer.name, NOON)
    begin = text("INSERT INTO other (number) VALUES (1)")
    with db.engine.connect() as early, db.engine.connect() as unrelated:
        early.execute(begin)
        unrelated.execute(begin)
        db.write_now(append, 1, key=5)
        append(early, 2, key=5)
        early.commit()
        consume_some(db, recorder.consumer)
        unrelated.commit()
    assert recorder.catch_up(db) == [1, 2]


def test_an_event_of_a_transaction_that_is_open_holds_back_the_later_ones(db: Database) -> None:  # H82
    recorder = Recorder()
    db.write_now(outbox.make_cursors, recorder.consumer.name, NOON)
    with db.engine.connect() as late, late.begin():
        append(late, 1, key=5)
        db.write_now(append, 2, key=5)
        append(late, 3, key=5)
        consume_some(db, recorder.consumer)
        early = list(recorder.seen)
    assert early == []
    assert sorted(recorder.catch_up(db)) == [1, 2, 3]


def test_an_event_is_seen_on_a_server_where_nothing_else_happens(db: Database) -> None:
    """The horizon must not wait for the next transaction."""
    recorder = Recorder()
    with db.engine.connect() as early:
        early.execute(text("INSERT INTO other (number) VALUES (1)"))
        for number in range(20):
            db.write_now(append, number)
        append(early, 20)
        early.commit()
    assert sorted(recorder.catch_up(db)) == list(range(21))
