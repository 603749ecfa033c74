"""Poison messages: keeps an event that kills its process from killing every process after it.

An exception in a handler is caught. But a handler that runs out of memory or crashes takes the process down, and the
next process would start with the same event. So each process records its first batch in a partition before it handles
it. If processes died of that batch too often, its events are handled one by one, each recorded first. An event that
processes died of too often becomes a dead letter without another attempt.

Only the first batch costs anything: if a process dies of a later one, that is the first batch of the next process.
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

MAX_ATTEMPTS = 3
log = structlog.get_logger()
DeliverBatch = Callable[[Connection, Consumer, int, Sequence[LoggedEvent], datetime], int]
Clock = Callable[[], datetime]


class PoisonGuard:
    """Handles the first batches of one consumer in one process. `deliver_batch` is the log's."""

    def __init__(self, db: Database, consumer: Consumer, deliver_batch: DeliverBatch, now: Clock) -> None:
        self._db, self._consumer, self._deliver_batch, self._now = db, consumer, deliver_batch, now
        self._attempts: dict[tuple[int, str], int] = {}  # counted once per process: a database error is not a death
        self._survived: set[int] = set()

    def has_survived(self, partition: int) -> bool:
        """Whether this process has handled its first batch of the partition."""
        return partition in self._survived

    async def handle(self, partition: int, events: Sequence[LoggedEvent]) -> int:
        """Handles the first batch of this process in a partition. Returns how many events it moved past."""
        attempt = await self._begin(partition, inbox.BATCH)
        if attempt <= MAX_ATTEMPTS:
            moved = await self._db.write(_whole, self._consumer, partition, events, self._deliver_batch, self._now)
        else:
            log.warning("consumer.one_by_one", consumer=self._consumer.name, partition=partition, died=attempt - 1)
            moved = await self._one_by_one(partition, events)
        await self._db.write(inbox.end_handling, self._consumer.name, partition)
        self._survived.add(partition)
        return moved

    async def _begin(self, partition: int, event_id: str) -> int:
        """Records that handling begins. Returns the attempt number."""
        attempt = self._attempts.get((partition, event_id))
        if attempt is None:
            attempt = await self._db.write(inbox.begin_handling, self._consumer.name, partition, event_id, self._now())
            self._attempts[partition, event_id] = attempt
        return attempt

    async def _one_by_one(self, partition: int, events: Sequence[LoggedEvent]) -> int:
        db, consumer, now = self._db, self._consumer, self._now
        for dead_letter in await db.read(dead_letters.due, consumer.name, partition, now()):
            attempt = await self._begin(partition, dead_letter.event.event_id)
            await db.write(_retry_or_give_up, consumer, partition, dead_letter, attempt, now)
        moved = 0
        for event in events:
            attempt = await self._begin(partition, event.event_id)
            moved += await db.write(_one_or_give_up, consumer, partition, event, attempt, self._deliver_batch, now)
        return moved


def _whole(
    conn: Connection,
    consumer: Consumer,
    partition: int,
    events: Sequence[LoggedEvent],
    deliver_batch: DeliverBatch,
    now: Clock,
) -> int:
    """Reads the clock inside the transaction: waiting for SQLite's lock must not shorten the pause before a retry."""
    return deliver_batch(conn, consumer, partition, events, now())


def _retry_or_give_up(
    conn: Connection, consumer: Consumer, partition: int, dead_letter: DeadLetter, attempt: int, now: Clock
) -> None:
    if attempt > MAX_ATTEMPTS:
        dead_letters.mark_dead(conn, dead_letter, _died(attempt), now())
    else:
        retry(conn, consumer, partition, now(), limit=1)
    inbox.end_handling_one(conn, consumer.name, partition, dead_letter.event.event_id)


def _one_or_give_up(
    conn: Connection,
    consumer: Consumer,
    partition: int,
    event: LoggedEvent,
    attempt: int,
    deliver_batch: DeliverBatch,
    now: Clock,
) -> int:
    if attempt > MAX_ATTEMPTS and event.kind in consumer.kinds:
        dead_letters.add_dead(conn, consumer.name, partition, event, attempt - 1, _died(attempt), now())
        log.error("event.dead", consumer=consumer.name, event_id=event.event_id, error=_died(attempt))
    moved = deliver_batch(conn, consumer, partition, [event], now())
    inbox.end_handling_one(conn, consumer.name, partition, event.event_id)
    return moved


def _died(attempt: int) -> str:
    return f"The process ended {attempt - 1} times while it handled this event."
