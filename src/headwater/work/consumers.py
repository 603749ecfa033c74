"""Runs the consumers on the outbox: woken when events are appended, and once a second in any case."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from datetime import datetime

import structlog
from sqlalchemy import Connection

from headwater.errors import HeadwaterError
from headwater.events import delivery
from headwater.events.delivery import Consumer, PoisonGuard
from headwater.store.db import Database
from headwater.store.log import outbox
from headwater.waiting import POLL_SECONDS, SOON_SECONDS, TROUBLE_SECONDS, WakeUpSignal, wait

PASS_SECONDS = 1.0  # how long a cursor may stay before events that its consumer does not take
log = structlog.get_logger()
Clock = Callable[[], datetime]


async def consume(
    db: Database, consumers: Sequence[Consumer], new_events: WakeUpSignal, now: Clock, stop: asyncio.Event
) -> None:
    """Runs until `stop` is set. A consumer that has a problem waits and tries again; the others go on."""
    async with asyncio.TaskGroup() as group:
        for consumer in consumers:
            group.create_task(_follow(db, consumer, new_events, now, stop))


async def catch_up(db: Database, consumers: Sequence[Consumer], now: Clock) -> None:
    """Runs each consumer to the present end of the log."""
    for consumer in consumers:
        guard = PoisonGuard(db, consumer, delivery.deliver_batch, now)
        await db.write(outbox.make_cursors, consumer.name, now())
        while await _work_off(db, consumer, now, guard):
            pass


async def _follow(db: Database, consumer: Consumer, new_events: WakeUpSignal, now: Clock, stop: asyncio.Event) -> None:
    started, pause, passed_at = False, POLL_SECONDS, time.monotonic()
    guard = PoisonGuard(db, consumer, delivery.deliver_batch, now)
    # On PostgreSQL an older transaction may hide new events for a moment. SQLite shows all that it has told of.
    soon = POLL_SECONDS if db.is_sqlite else SOON_SECONDS
    with new_events.listening(consumer.kinds) as woken:
        while not stop.is_set():
            try:
                if not started:
                    await db.write(outbox.make_cursors, consumer.name, now())
                    started = True
                # Each move of a cursor is a transaction. Past events that nobody takes, one a second will do.
                passes = time.monotonic() - passed_at >= PASS_SECONDS
                handled = await _work_off(db, consumer, now, guard, wanted=not passes)
                passed_at = time.monotonic() if passes else passed_at
                pause = soon if handled else min(pause * 2, POLL_SECONDS)
            except HeadwaterError as error:
                log.warning("consumer.waits", consumer=consumer.name, error=error.detail)
                pause = TROUBLE_SECONDS
            except Exception:  # a bug in one consumer must not stop it for good, nor stop the others
                log.exception("consumer.failed", consumer=consumer.name)
                pause = TROUBLE_SECONDS
            if await wait(pause, woken, stop=stop):
                pause = soon
            await wait(consumer.linger, stop=stop)


async def _work_off(db: Database, consumer: Consumer, now: Clock, guard: PoisonGuard, *, wanted: bool = False) -> int:
    """Handles everything that is pending. Returns the number of events. `wanted`: only if the consumer takes them."""
    partitions = await db.read(delivery.pending, consumer, now(), wanted=wanted)
    random.shuffle(partitions)  # so that processes running side by side start in different places
    handled = 0
    for partition in partitions:
        if not guard.has_survived(partition):
            handled += await guard.handle(partition, await db.write(delivery.next_batch, consumer, partition))
        if not consumer.is_quick:
            handled += await _work_off_partition(db, consumer, partition, now)
    if consumer.is_quick:  # a batch is mostly waiting for the database, so partitions do not wait for each other
        handled += sum(await asyncio.gather(*(_work_off_partition(db, consumer, one, now) for one in partitions)))
    return handled


def _deliver_next(conn: Connection, consumer: Consumer, partition: int, now: Clock) -> int:
    """Reads the clock inside the transaction: waiting for SQLite's lock must not shorten the pause before a retry."""
    return delivery.deliver_next(conn, consumer, partition, now())


async def _work_off_partition(db: Database, consumer: Consumer, partition: int, now: Clock) -> int:
    handled = 0
    while True:
        write = db.write_grouped if consumer.is_quick else db.write
        moved = await write(_deliver_next, consumer, partition, now)
        handled += moved
        if moved < consumer.batch:
            return handled
