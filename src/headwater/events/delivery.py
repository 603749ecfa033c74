"""How an event has its effect once: whichever log brought it, however often, and whatever the handler does.

A batch is handled at once. If that fails, its events are handled one by one, so that one bad event does not hold its
neighbours. One that fails is tried again at once, then after five seconds, then it is a dead letter. Until then the
later events of its key wait; after that they go on, or wait until a person has decided, as the consumer declares.

Everything here runs within one transaction, by whoever holds the consumer's cursor for the partition.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence, Set
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog
from sqlalchemy import Connection

from headwater.store import sql
from headwater.store.db import is_the_stores_fault
from headwater.store.log import dead_letters, inbox, outbox
from headwater.store.log.dead_letters import DeadLetter, Failure
from headwater.store.log.outbox import LoggedEvent

RETRY_AFTER = timedelta(seconds=5)
JITTER = 0.2
LONGEST_ERROR = 2000
log = structlog.get_logger()


class Consumer(NamedTuple):
    """Code that gives events their effect: the kinds it wants and a function that takes a batch of them.

    `handle` works within the transaction of its inbox row and cursor: what it writes with `conn` happens once. What it
    does elsewhere may happen more often.
    `rest` is how long it lets events gather after something came: for work that is cheaper in large batches.
    `waits_for_dead` says that events of a key wait until a dead letter of that key is replayed or skipped.
    `reset` empties what it has written, so that it can be rebuilt from the log.
    """

    name: str
    kinds: frozenset[str]
    handle: Callable[[Connection, list[LoggedEvent]], None]
    batch: int = 500
    rest: float = 0.0
    waits_for_dead: bool = False
    reset: Callable[[Connection], None] | None = None


def deliver(conn: Connection, consumer: Consumer, partition: int, events: Sequence[LoggedEvent], now: datetime) -> int:
    """Give these events their effect, or keep them as letters; returns how many were new to the consumer."""
    fresh = _fresh(conn, consumer, events)
    if not fresh:
        return 0
    held = _held(conn, consumer, partition, {event.key for event in fresh})
    free = [event for event in fresh if event.key not in held]
    handled, failures = free, list[Failure]()
    if len(free) == 1 or (free and _attempt(conn, consumer, free) is not None):
        handled, failures = _one_by_one(conn, consumer, free)
    done = {event.event_id for event in handled}
    kept = done | {failure.event.event_id for failure in failures}
    inbox.note(conn, consumer.name, done)
    dead_letters.keep_failed(conn, consumer.name, partition, failures, now, _next_try(now))
    dead_letters.keep_waiting(conn, consumer.name, partition, [event for event in fresh if event.event_id not in kept])
    return len(fresh)


def retry(conn: Connection, consumer: Consumer, partition: int, now: datetime, most: int = 50) -> None:
    """Try the letters again whose time has come; a failure now is the last. Then what waited for them goes on."""
    for letter in dead_letters.due(conn, consumer.name, partition, now, most):
        error = _attempt(conn, consumer, [letter.event])
        if error is None:
            _handled_after_all(conn, letter)
        else:
            dead_letters.bury(conn, letter, error, now)
            log.error("event.dead", consumer=consumer.name, event_id=letter.event.event_id, error=error)
        release(conn, consumer, partition, letter.event.key, now)


def replay_letter(conn: Connection, consumer: Consumer, letter: DeadLetter, now: datetime) -> str | None:
    """Try a dead letter once more, now; returns what went wrong, or None. Its key goes on if it did not.

    One that somebody has settled meanwhile stays as it is.
    """
    if not _is_still_dead(conn, letter):
        return None
    error = _attempt(conn, consumer, [letter.event])
    if error is not None:
        dead_letters.bury(conn, letter, error, now)
        return error
    inbox.note(conn, consumer.name, [letter.event.event_id])
    dead_letters.settle(conn, letter, "replayed", now)
    release(conn, consumer, letter.partition, letter.event.key, now)
    return None


def skip_letter(conn: Connection, consumer: Consumer, letter: DeadLetter, now: datetime) -> None:
    """A person decided that this event shall have no effect. Its key goes on."""
    if not _is_still_dead(conn, letter):
        return
    dead_letters.settle(conn, letter, "skipped", now)
    release(conn, consumer, letter.partition, letter.event.key, now)


def release(conn: Connection, consumer: Consumer, partition: int, key: str, now: datetime) -> None:
    """Handle what waits for nothing any more, in order, until one of them fails."""
    if _held(conn, consumer, partition, {key}, by={"retrying", "dead"}):
        return
    while waiting := dead_letters.waiting(conn, consumer.name, partition, key):
        for letter in waiting:
            error, attempts = _twice(conn, consumer, letter.event)
            if error is not None:
                dead_letters.try_later(conn, letter, attempts, error, now, _next_try(now))
                return
            _handled_after_all(conn, letter)


def _held(
    conn: Connection,
    consumer: Consumer,
    partition: int,
    keys: set[str],
    by: Set[str] = frozenset({"retrying", "waiting", "dead"}),
) -> set[str]:
    """Those of these keys whose next event has to wait."""
    holding = by if consumer.waits_for_dead else by - {"dead"}
    states = dead_letters.open_states(conn, consumer.name, partition, sorted(keys))
    return {key for key, found in states.items() if found & holding}


def _fresh(conn: Connection, consumer: Consumer, events: Sequence[LoggedEvent]) -> list[LoggedEvent]:
    """What the consumer wants and has not met yet, each once (E3)."""
    wanted = {event.event_id: event for event in events if event.kind in consumer.kinds}
    if not wanted:
        return []
    known = inbox.known(conn, consumer.name, list(wanted))
    return [event for event_id, event in wanted.items() if event_id not in known]


def _one_by_one(
    conn: Connection, consumer: Consumer, events: Sequence[LoggedEvent]
) -> tuple[list[LoggedEvent], list[Failure]]:
    """Those that were handled, and the first of each key that failed; what comes after it in its key is in neither."""
    handled: list[LoggedEvent] = []
    failures: dict[str, Failure] = {}
    for event in events:
        if event.key in failures:
            continue
        error, attempts = _twice(conn, consumer, event)
        if error is None:
            handled.append(event)
        else:
            failures[event.key] = Failure(event, attempts, error)
    return handled, list(failures.values())


def _twice(conn: Connection, consumer: Consumer, event: LoggedEvent) -> tuple[str | None, int]:
    if _attempt(conn, consumer, [event]) is None:
        return None, 1
    return _attempt(conn, consumer, [event]), 2


def _attempt(conn: Connection, consumer: Consumer, events: list[LoggedEvent]) -> str | None:
    """Let the handler work; what it wrote before it failed is undone. Returns what went wrong, or None.

    Trouble with the database is nobody's failure: it ends the transaction, and the events come again.
    """
    sql.begin_savepoint(conn)
    try:
        consumer.handle(conn, events)
        sql.keep_savepoint(conn)
    except Exception as error:  # whatever a handler raises, the log goes on (H83, H98)
        if is_the_stores_fault(error):
            raise
        sql.undo_savepoint(conn)
        words = _words(error)
        if len(events) == 1:
            log.warning("event.failed", consumer=consumer.name, event_id=events[0].event_id, error=words)
        return words
    return None


def _words(error: Exception) -> str:
    """What the error says, in a form that every database takes. An error need not even be printable."""
    try:
        words = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - see above
        words = f"{type(error).__name__}: it cannot be printed"
    return words[:LONGEST_ERROR].replace("\0", "").encode(errors="replace").decode()


def _is_still_dead(conn: Connection, letter: DeadLetter) -> bool:
    found = dead_letters.one(conn, letter.id)
    return found is not None and found.state == "dead"


def _handled_after_all(conn: Connection, letter: DeadLetter) -> None:
    inbox.note(conn, letter.consumer, [letter.event.event_id])
    dead_letters.drop(conn, letter)


def _next_try(now: datetime) -> datetime:
    return now + RETRY_AFTER * (1 + JITTER * random.random())


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
