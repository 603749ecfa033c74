"""Second chances: dead letters are replayed or skipped, a part of the log is delivered again, a consumer is rebuilt.

Whatever happens here, happens while the consumer's cursor is held: nobody else handles its events meanwhile. And the
inbox knows what has had its effect: none has it twice (E5). It works on the outbox, whichever log the consumers follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.errors import AlreadyThere, BadInput, NotFound
from headwater.events import delivery
from headwater.events import delivery as event_log
from headwater.events.delivery import Consumer
from headwater.store.db import Database
from headwater.store.log import dead_letters as letters
from headwater.store.log import inbox, outbox, tail
from headwater.store.log.dead_letters import DeadLetter
from headwater.store.log.outbox import LogPosition
from headwater.store.log.tail import START, Window

BATCH = 500
Clock = Callable[[], datetime]


class Replayed(NamedTuple):
    """What a replay found in the window for a consumer, and what it did with it; a dry run only says what it would do.

    `unreached` are the newest: the consumer has not come to them yet, and they are left to it.
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
        raise BadInput(f"There is no consumer {name}. There are: {', '.join(one.name for one in consumers)}.")
    return found


def replay_letter(conn: Connection, consumers: Sequence[Consumer], letter_id: int, now: datetime) -> str | None:
    """Give a dead letter its effect now; returns what went wrong, or None."""
    letter, consumer = _take_dead(conn, consumers, letter_id, now)
    return delivery.replay_letter(conn, consumer, letter, now)


def skip_letter(conn: Connection, consumers: Sequence[Consumer], letter_id: int, now: datetime) -> None:
    """Let a dead letter have no effect. It is kept as a record."""
    letter, consumer = _take_dead(conn, consumers, letter_id, now)
    delivery.skip_letter(conn, consumer, letter, now)


def dead_letters(conn: Connection, consumer: str | None = None, kind: str | None = None) -> list[int]:
    """The dead letters, of a consumer and a kind if they are given, in the order in which they came."""
    found: list[int] = []
    before: int | None = None
    while page := letters.page(conn, before=before, limit=BATCH):
        found += [
            letter.id for letter in page if consumer in (None, letter.consumer) and kind in (None, letter.event.kind)
        ]
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
    """Deliver what is in the window and had no effect yet, in the order of the log. A batch is a transaction.

    A consumer that follows Kafka has no cursors that say how far it got: all of the window is delivered.
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
    """Let a consumer forget everything and begin at the start of the log, in one transaction."""
    if consumer.reset is None:
        raise BadInput(f"{consumer.name} cannot be rebuilt: it does not say how to empty what it has written.")
    cursors = range(outbox.partitions(conn))
    for partition in cursors:
        outbox.wait_for_cursor(conn, consumer.name, partition, now)
    consumer.reset(conn)
    inbox.empty(conn, consumer.name)
    letters.empty(conn, consumer.name)
    for partition in cursors:
        outbox.move_cursor(conn, consumer.name, partition, START, now)


def catch_up(db: Database, consumer: Consumer, now: Clock) -> Iterator[int]:
    """Work the consumer through the log as far as it can be read now; gives how many events each step moved past."""
    while partitions := db.read_now(event_log.pending, consumer, now()):
        steps = [db.write_now(event_log.step, consumer, partition, now()) for partition in partitions]
        yield sum(steps)
        if not sum(steps):
            return  # another process is at it


def _take_dead(
    conn: Connection, consumers: Sequence[Consumer], letter_id: int, now: datetime
) -> tuple[DeadLetter, Consumer]:
    """The letter, with the cursor of its partition held: so its state cannot change under us."""
    letter = letters.one(conn, letter_id)
    if letter is None:
        raise NotFound(f"There is no letter {letter_id}.")
    consumer = consumer_named(letter.consumer, consumers)
    outbox.wait_for_cursor(conn, consumer.name, letter.partition, now)
    letter = letters.one(conn, letter_id)
    if letter is None or letter.state != "dead":
        state = letter.state if letter else "gone: it has had its effect"
        raise AlreadyThere(f"Letter {letter_id} is not dead any more; it is {state}.")
    return letter, consumer


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
    """The next batch of the window, and where to go on; None at the end."""
    reached = outbox.wait_for_cursor(conn, consumer.name, partition, now)
    events = tail.within(conn, partition, window, after=position, limit=BATCH)
    known = inbox.known(conn, consumer.name, [event.event_id for event in events])
    fresh = [event for event in events if event.event_id not in known]
    due = [event for event in fresh if event.position <= reached or not has_cursors]
    if due and not dry_run:
        delivery.deliver(conn, consumer, partition, due, now)
    done = Replayed(consumer.name, len(events), len(known), len(due), len(fresh) - len(due))
    return done, events[-1].position if len(events) == BATCH else None
