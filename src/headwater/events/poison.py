"""Keeps an event that ends its process from ending every process that comes after (H88).

A handler that raises is caught. One that uses up the memory, or crashes, takes the process with it, and the next
process would begin with the same event. So the first batch that a process handles in a partition is written down
before. Where processes have died of it too often, its events are handled one by one, each written down before; and an
event that processes have died of too often is a dead letter, untried.

Only the first batch costs anything: a process that dies of a later one leaves that to the next process as its first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import structlog
from sqlalchemy import Connection

from headwater.events.delivery import Consumer, retry
from headwater.store.db import Database
from headwater.store.log import dead_letters, inbox
from headwater.store.log.dead_letters import DeadLetter
from headwater.store.log.outbox import LoggedEvent

MOST_TRIES = 3
log = structlog.get_logger()
Take = Callable[[Connection, Consumer, int, Sequence[LoggedEvent], datetime], int]
Clock = Callable[[], datetime]


class FirstBatches:
    """Of one consumer in one process. `take` delivers events and moves past them."""

    def __init__(self, db: Database, consumer: Consumer, take: Take, now: Clock) -> None:
        self._db, self._consumer, self._take, self._now = db, consumer, take, now
        self._begun: dict[tuple[int, str], int] = {}  # once in a process: trouble with the store is no death
        self._survived: set[int] = set()

    def is_over(self, partition: int) -> bool:
        return partition in self._survived

    async def handle(self, partition: int, events: Sequence[LoggedEvent]) -> int:
        """Handle the first batch of this process in a partition; returns how many events it moved past."""
        tries = await self._begin(partition, inbox.BATCH)
        if tries <= MOST_TRIES:
            moved = await self._db.write(_at_once, self._consumer, partition, events, self._take, self._now)
        else:
            log.warning("consumer.careful", consumer=self._consumer.name, partition=partition, died=tries - 1)
            moved = await self._one_by_one(partition, events)
        await self._db.write(inbox.end_handling, self._consumer.name, partition)
        self._survived.add(partition)
        return moved

    async def _begin(self, partition: int, event_id: str) -> int:
        tries = self._begun.get((partition, event_id))
        if tries is None:
            tries = await self._db.write(inbox.begin_handling, self._consumer.name, partition, event_id, self._now())
            self._begun[partition, event_id] = tries
        return tries

    async def _one_by_one(self, partition: int, events: Sequence[LoggedEvent]) -> int:
        db, consumer, now = self._db, self._consumer, self._now
        for letter in await db.read(dead_letters.due, consumer.name, partition, now()):
            tries = await self._begin(partition, letter.event.event_id)
            await db.write(_retry_or_bury, consumer, partition, letter, tries, now)
        moved = 0
        for event in events:
            tries = await self._begin(partition, event.event_id)
            moved += await db.write(_take_or_bury, consumer, partition, event, tries, self._take, now)
        return moved


def _at_once(
    conn: Connection, consumer: Consumer, partition: int, events: Sequence[LoggedEvent], take: Take, now: Clock
) -> int:
    """The clock is read within the transaction: a wait for SQLite's lock must not shorten the pause for a retry."""
    return take(conn, consumer, partition, events, now())


def _retry_or_bury(
    conn: Connection, consumer: Consumer, partition: int, letter: DeadLetter, tries: int, now: Clock
) -> None:
    if tries > MOST_TRIES:
        dead_letters.bury(conn, letter, _died(tries), now())
    else:
        retry(conn, consumer, partition, now(), most=1)
    inbox.end_handling_one(conn, consumer.name, partition, letter.event.event_id)


def _take_or_bury(
    conn: Connection, consumer: Consumer, partition: int, event: LoggedEvent, tries: int, take: Take, now: Clock
) -> int:
    if tries > MOST_TRIES and event.kind in consumer.kinds:
        dead_letters.keep_dead(conn, consumer.name, partition, event, tries - 1, _died(tries), now())
        log.error("event.dead", consumer=consumer.name, event_id=event.event_id, error=_died(tries))
    moved = take(conn, consumer, partition, [event], now())
    inbox.end_handling_one(conn, consumer.name, partition, event.event_id)
    return moved


def _died(tries: int) -> str:
    return f"The process ended {tries - 1} times while it handled this event."
