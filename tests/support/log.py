"""Events for tests, consumers run to the end of the log, and a consumer that records what it gets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection, text

from headwater.events.catalogue import SOURCE_RETIRED, SourceFacts
from headwater.events.delivery import Consumer, deliver_next, pending
from headwater.model import Event
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.log import outbox
from headwater.store.log.outbox import LoggedEvent
from support.posts import NOON

LEFT = """SELECT count(*) FROM event_outbox o WHERE NOT EXISTS (SELECT 1 FROM consumer_cursors c
    WHERE c.consumer = :name AND c.partition = o.partition AND (c.xid, c.id) >= (o.xid, o.id))"""


@contextmanager
def database_with(url: str, statement: str) -> Iterator[Database]:
    """Opens a database, migrates it to the newest schema and runs this statement."""
    database = Database(url)
    migrate.upgrade(database)
    database.write_now(lambda conn: conn.execute(text(statement)))
    yield database
    database.close()


def consume_all(db: Database, consumer: Consumer, now: datetime = NOON) -> None:
    """Delivers everything. PostgreSQL shows an event only when no older transaction is open on the server: waits."""
    deadline = time.monotonic() + 120
    db.write_now(outbox.make_cursors, consumer.name, now)
    while consume_some(db, consumer, now) or db.read_now(_left, consumer.name):
        assert time.monotonic() < deadline, "the consumer did not come to the end of the log"


def consume_some(db: Database, consumer: Consumer, now: datetime = NOON) -> int:
    partitions = db.read_now(pending, consumer, now)
    return sum(db.write_now(deliver_next, consumer, partition, now) for partition in partitions)


def _left(conn: Connection, name: str) -> int:
    return conn.execute(text(LEFT), {"name": name}).scalar_one()


def an_event(number: int, key: int | None = None) -> Event:
    """Returns an event with this number about the source `key`, by default the number itself."""
    facts = SourceFacts(source_id=number if key is None else key, address=f"https://news.example/{number}")
    return SOURCE_RETIRED(facts, once=str(number))


def append(conn: Connection, *numbers: int, key: int | None = None) -> None:
    outbox.append(conn, [an_event(number, key) for number in numbers], NOON)


def number_of(event: LoggedEvent) -> int:
    return int(SOURCE_RETIRED.read(event).address.rpartition("/")[2])


class Recorder:
    """A consumer that records what it gets; it raises for the numbers for which `fails` is true."""

    def __init__(self, fails: Callable[[int], bool] = lambda number: False, **options: object) -> None:
        self.seen: list[int] = []
        self.tried: list[int] = []
        self.fails = fails
        kinds = frozenset({SOURCE_RETIRED.name})
        self.consumer = Consumer("recorder", kinds, self.handle, batch=3)._replace(**options)  # type: ignore[arg-type]

    def handle(self, conn: Connection, events: list[LoggedEvent]) -> None:
        numbers = [number_of(event) for event in events]
        self.tried += numbers
        for number in numbers:
            if self.fails(number):
                raise RuntimeError(f"{number} is not to my taste")
        self.seen += numbers

    def catch_up(self, db: Database, now: datetime = NOON) -> list[int]:
        consume_all(db, self.consumer, now)
        return self.seen
