"""Lets the consumers follow the log: woken when something is appended, and looking once a second in any case."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from datetime import datetime

import structlog
from sqlalchemy import Connection

from headwater.errors import HeadwaterError
from headwater.events import delivery as event_log
from headwater.events.delivery import Consumer
from headwater.events.poison import FirstBatches
from headwater.store.db import Database
from headwater.store.log import outbox
from headwater.waiting import TROUBLE_SECONDS, WakeUpSignal, wait

LOOK_SECONDS = 1.0
SOON_SECONDS = 0.005  # after a ring or a batch: on PostgreSQL an older transaction may hide what came with it
log = structlog.get_logger()
Clock = Callable[[], datetime]


async def consume(
    db: Database, consumers: Sequence[Consumer], bell: WakeUpSignal, now: Clock, stop: asyncio.Event
) -> None:
    """Until `stop` is set. A consumer that is in trouble waits and tries again; the others go on."""
    async with asyncio.TaskGroup() as group:
        for consumer in consumers:
            group.create_task(_follow(db, consumer, bell, now, stop))


async def catch_up(db: Database, consumers: Sequence[Consumer], now: Clock) -> None:
    """Let each consumer come to the end of the log as it is now."""
    for consumer in consumers:
        first = FirstBatches(db, consumer, event_log.take, now)
        await db.write(outbox.make_cursors, consumer.name, now())
        while await _work_off(db, consumer, now, first):
            pass


async def _follow(db: Database, consumer: Consumer, bell: WakeUpSignal, now: Clock, stop: asyncio.Event) -> None:
    begun, pause = False, LOOK_SECONDS
    first = FirstBatches(db, consumer, event_log.take, now)
    with bell.listening() as rung:
        while not stop.is_set():
            try:
                if not begun:
                    await db.write(outbox.make_cursors, consumer.name, now())
                    begun = True
                handled = await _work_off(db, consumer, now, first)
                pause = SOON_SECONDS if handled else min(pause * 2, LOOK_SECONDS)
            except HeadwaterError as error:
                log.warning("consumer.waits", consumer=consumer.name, error=error.detail)
                pause = TROUBLE_SECONDS
            except Exception:  # whatever goes wrong in one consumer, it goes on and so do the others (H98)
                log.exception("consumer.failed", consumer=consumer.name)
                pause = TROUBLE_SECONDS
            if await wait(pause, rung, stop=stop):
                pause = SOON_SECONDS
            await wait(consumer.rest, stop=stop)


async def _work_off(db: Database, consumer: Consumer, now: Clock, first: FirstBatches) -> int:
    """Handle all that is pending; returns how many events that were."""
    partitions = await db.read(event_log.pending, consumer, now())
    random.shuffle(partitions)  # processes side by side begin at different ends
    handled = 0
    for partition in partitions:
        if not first.is_over(partition):
            handled += await first.handle(partition, await db.write(event_log.next_batch, consumer, partition))
        handled += await _work_off_partition(db, consumer, partition, now)
    return handled


def _step(conn: Connection, consumer: Consumer, partition: int, now: Clock) -> int:
    """The clock is read within the transaction: a wait for SQLite's lock must not shorten the pause for a retry."""
    return event_log.step(conn, consumer, partition, now())


async def _work_off_partition(db: Database, consumer: Consumer, partition: int, now: Clock) -> int:
    handled = 0
    while True:
        moved = await db.write(_step, consumer, partition, now)
        handled += moved
        if moved < consumer.batch:
            return handled
