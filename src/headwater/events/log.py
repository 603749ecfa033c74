"""The log, embedded: consumers follow the outbox by cursors. Effect, inbox and cursor commit together.

On PostgreSQL the same steps run in as many processes as there are: a cursor is one partition's and is held by one
process at a time, so the order of a key holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from headwater.events.delivery import Consumer, deliver, retry
from headwater.store.log import dead_letters, outbox
from headwater.store.log.outbox import LoggedEvent


def pending(conn: Connection, consumer: Consumer, now: datetime) -> list[int]:
    """The partitions in which there is something to do. Reading this locks nothing."""
    return sorted({*outbox.pending(conn, consumer.name), *dead_letters.due_partitions(conn, consumer.name, now)})


def step(conn: Connection, consumer: Consumer, partition: int, now: datetime) -> int:
    """Handle the next batch of a partition; returns how many events the consumer moved past."""
    position = outbox.take_cursor(conn, consumer.name, partition)
    if position is None:
        return 0
    return _pass(conn, consumer, partition, outbox.after(conn, partition, position, consumer.batch), now)


def next_batch(conn: Connection, consumer: Consumer, partition: int) -> list[LoggedEvent]:
    """What `step` would handle now."""
    position = outbox.take_cursor(conn, consumer.name, partition)
    return [] if position is None else outbox.after(conn, partition, position, consumer.batch)


def take(conn: Connection, consumer: Consumer, partition: int, events: Sequence[LoggedEvent], now: datetime) -> int:
    """Handle these events of a partition, unless the consumer has moved past them; returns how many it moved past."""
    position = outbox.take_cursor(conn, consumer.name, partition)
    if position is None:
        return 0
    return _pass(conn, consumer, partition, [event for event in events if event.position > position], now)


def _pass(conn: Connection, consumer: Consumer, partition: int, events: list[LoggedEvent], now: datetime) -> int:
    retry(conn, consumer, partition, now)
    if events:
        deliver(conn, consumer, partition, events, now)
        outbox.move_cursor(conn, consumer.name, partition, events[-1].position, now)
    return len(events)
