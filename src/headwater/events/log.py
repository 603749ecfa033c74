"""The log, embedded: consumers follow the outbox by cursors. Effect, inbox and cursor commit together.

On PostgreSQL the same steps run in as many processes as there are: a cursor is one partition's and is held by one
process at a time, so the order of a key holds.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from headwater.events.delivery import Consumer, deliver, retry
from headwater.store import letters, outbox


def pending(conn: Connection, consumer: Consumer, now: datetime) -> list[int]:
    """The partitions in which there is something to do. Reading this locks nothing."""
    return sorted({*outbox.pending(conn, consumer.name), *letters.due_partitions(conn, consumer.name, now)})


def step(conn: Connection, consumer: Consumer, partition: int, now: datetime) -> int:
    """Handle the next batch of a partition; returns how many events the consumer moved past."""
    position = outbox.take_cursor(conn, consumer.name, partition)
    if position is None:
        return 0
    retry(conn, consumer, partition, now)
    events = outbox.after(conn, partition, position, consumer.batch)
    if events:
        deliver(conn, consumer, partition, events, now)
        outbox.move_cursor(conn, consumer.name, partition, events[-1].position, now)
    return len(events)
