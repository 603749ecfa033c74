"""Replays: dead letters are replayed or skipped, part of the log is delivered again, a consumer is rebuilt.

All of it happens while the consumer's cursor is locked, so nobody else handles its events in the meantime. The inbox
knows which events took effect: none takes effect twice. It reads the outbox, whichever log the consumers follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.errors import AlreadyThere, BadInput, NotFound
from headwater.events import delivery
from headwater.events.delivery import Consumer
from headwater.store.db import Database
from headwater.store.log import dead_letters, inbox, outbox
from headwater.store.log.dead_letters import DeadLetter
from headwater.store.log.outbox import START, LogPosition, Window
from headwater.store.people import audit

BATCH = 500
Clock = Callable[[], datetime]


class Replayed(NamedTuple):
    """What a replay found in the window for a consumer, and what it did. A dry run says what it would do.

    `handled` took effect before. `unreached` are the newest: the consumer has not read that far yet and will.
    """

    consumer: str
    found: int = 0
    handled: int = 0
    delivered: int = 0
    unreached: int = 0

    def __add__(self, other: Replayed) -> Replayed:  # type: ignore[override]
        return Replayed(self.consumer, *(mine + more for mine, more in zip(self[1:], other[1:], strict=True)))


def consumer_named(name: str, consumers: Sequence[Consumer]) -> Consumer:
    found = next((consumer for consumer in consumers if consumer.name == name), None)
    if found is None:
        raise BadInput(f"There is no consumer {name}. Known consumers: {', '.join(one.name for one in consumers)}.")
    return found


def replay_dead_letter(
    conn: Connection, consumers: Sequence[Consumer], dead_letter_id: int, now: datetime
) -> str | None:
    """Tries a dead letter once more. Returns the error, or None if it worked."""
    dead_letter, consumer = _take(conn, consumers, dead_letter_id, now)
    audit.record(conn, None, "dead_letter.replay", dead_letter_id, f"{consumer.name}: {dead_letter.event.kind}")
    return delivery.replay_dead_letter(conn, consumer, dead_letter, now)


def skip_dead_letter(conn: Connection, consumers: Sequence[Consumer], dead_letter_id: int, now: datetime) -> None:
    """Settles a dead letter without effect. It is kept as a record."""
    dead_letter, consumer = _take(conn, consumers, dead_letter_id, now)
    delivery.skip_dead_letter(conn, consumer, dead_letter, now)
    audit.record(conn, None, "dead_letter.skip", dead_letter_id, f"{consumer.name}: {dead_letter.event.kind}")


def dead_letter_ids(conn: Connection, consumer: str | None = None, kind: str | None = None) -> list[int]:
    """Returns the ids of the dead letters, oldest first: all, or those of a consumer or a kind."""
    found: list[int] = []
    before: int | None = None
    while page := dead_letters.page(conn, before=before, limit=BATCH):
        found += [one.id for one in page if consumer in (None, one.consumer) and kind in (None, one.event.kind)]
        before = page[-1].id
    return found[::-1]


def replay_window(
    db: Database,
    consumer: Consumer,
    window: Window,
    now: Clock,
    *,
    dry_run: bool = False,
    has_cursors: bool = True,
) -> Replayed:
    """Delivers what is in the window and has not taken effect, in log order. Each batch is a transaction.

    A consumer on Kafka has no cursors that say how far it got, so the whole window is delivered.
    """
    window = window._replace(kinds=window.kinds & consumer.kinds)
    total = Replayed(consumer.name)
    for partition in range(db.read_now(outbox.partitions)):
        position: LogPosition | None = START
        while position is not None:
            done, position = db.write_now(
                _replay_batch, consumer, partition, window, position, now(), dry_run=dry_run, has_cursors=has_cursors
            )
            total += done
    return total


def rebuild(conn: Connection, consumer: Consumer, now: datetime) -> None:
    """Empties a consumer and moves it to the start of the log, in one transaction."""
    if consumer.reset is None:
        raise BadInput(f"{consumer.name} cannot be rebuilt: it does not declare how to delete what it has written.")
    cursors = range(outbox.partitions(conn))
    for partition in cursors:
        outbox.wait_for_cursor(conn, consumer.name, partition, now)
    audit.record(conn, None, "events.rebuild", detail=consumer.name)
    consumer.reset(conn)
    inbox.clear(conn, consumer.name)
    dead_letters.clear(conn, consumer.name)
    for partition in cursors:
        outbox.move_cursor(conn, consumer.name, partition, START, now)


def catch_up(db: Database, consumer: Consumer, now: Clock) -> Iterator[int]:
    """Runs the consumer to the present end of the log. Yields how many events each round moved past."""
    while partitions := db.read_now(delivery.pending, consumer, now()):
        moved = sum(db.write_now(delivery.deliver_next, consumer, partition, now()) for partition in partitions)
        yield moved
        if not moved:
            return  # another process holds the cursors


def _take(
    conn: Connection, consumers: Sequence[Consumer], dead_letter_id: int, now: datetime
) -> tuple[DeadLetter, Consumer]:
    """Returns the dead letter, with the cursor of its partition locked so that its state cannot change."""
    found = dead_letters.find(conn, dead_letter_id)
    if found is None:
        raise NotFound(f"There is no dead letter {dead_letter_id}.")
    consumer = consumer_named(found.consumer, consumers)
    outbox.wait_for_cursor(conn, consumer.name, found.partition, now)
    found = dead_letters.find(conn, dead_letter_id)
    if found is None or found.state != "dead":
        state = found.state if found else "gone because it took effect"
        raise AlreadyThere(f"Dead letter {dead_letter_id} is no longer dead; it is {state}.")
    return found, consumer


def _replay_batch(
    conn: Connection,
    consumer: Consumer,
    partition: int,
    window: Window,
    position: LogPosition,
    now: datetime,
    *,
    dry_run: bool,
    has_cursors: bool,
) -> tuple[Replayed, LogPosition | None]:
    """Replays the next batch of the window. Returns the counts and the position to go on from, None at the end."""
    reached = outbox.wait_for_cursor(conn, consumer.name, partition, now)
    events = outbox.within(conn, partition, window, after=position, limit=BATCH)
    known = inbox.known(conn, consumer.name, [event.event_id for event in events])
    fresh = [event for event in events if event.event_id not in known]
    due = [event for event in fresh if event.position <= reached or not has_cursors]
    if due and not dry_run:
        delivery.deliver(conn, consumer, partition, due, now)
        audit.record(conn, None, "events.replay", detail=f"{consumer.name}: {len(due)} events")
    done = Replayed(consumer.name, len(events), len(known), len(due), len(fresh) - len(due))
    return done, events[-1].position if len(events) == BATCH else None
