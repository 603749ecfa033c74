"""Consumers that have come to the end of the log, and a consumer that writes down what it was given."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection, text

from headwater.events.catalogue import SOURCE_RETIRED, SourceFacts
from headwater.events.delivery import Consumer, deliver_next, pending
from headwater.model import Event
from headwater.store.db import Database
from headwater.store.log import outbox
from headwater.store.log.outbox import LoggedEvent
from support.posts import NOON

LEFT = """SELECT count(*) FROM event_outbox o WHERE NOT EXISTS (SELECT 1 FROM consumer_cursors c
    WHERE c.consumer = :name AND c.partition = o.partition AND (c.xid, c.id) >= (o.xid, o.id))"""


def consume_all(db: Database, consumer: Consumer, now: datetime = NOON) -> None:
    """PostgreSQL shows an event once no older transaction is open in any database of the server: wait for that."""
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
    """A fact with this number about the source `key`: the number itself, unless one is given."""
    facts = SourceFacts(source_id=number if key is None else key, address=f"https://news.example/{number}")
    return SOURCE_RETIRED(facts, once=str(number))


def append(conn: Connection, *numbers: int, key: int | None = None) -> None:
    outbox.append(conn, [an_event(number, key) for number in numbers], NOON)


def number_of(event: LoggedEvent) -> int:
    return int(SOURCE_RETIRED.read(event).address.rpartition("/")[2])


class Recorder:
    """A consumer that writes down what it was given; `fails` says for which numbers it raises instead."""

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
