"""The log, embedded: each consumer reads the outbox from its cursor. Effect and cursor commit together, so each event
has its effect once, however often a process is killed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store import outbox
from headwater.store.outbox import LoggedEvent


class Consumer(NamedTuple):
    """Code that gives events their effect: the kinds it wants, a function, how many at once.

    `rest` is how long it lets events gather when it has caught up: for work that is cheaper in large batches.
    """

    name: str
    kinds: frozenset[str]
    handle: Callable[[Connection, list[LoggedEvent]], None]
    batch: int = 500
    rest: float = 1.0


def step(conn: Connection, consumer: Consumer, now: datetime) -> int:
    """Handle the next batch; returns how many events the consumer moved past. One process at a time does this."""
    position = outbox.take_cursor(conn, consumer.name, now)
    events = outbox.after(conn, position, consumer.batch) if position else []
    if not events:
        return 0
    wanted = [event for event in events if event.kind in consumer.kinds]
    if wanted:
        consumer.handle(conn, wanted)
    outbox.move_cursor(conn, consumer.name, events[-1].position, now)
    return len(events)
