"""How an event takes effect exactly once, whichever log delivers it, however often, and whatever the handler does.

A batch is handled as a whole. If that fails, its events are handled one by one, so that one bad event does not hold up
the others. An event that fails is tried again at once and after five seconds; then it becomes a dead letter. Until
then, later events with the same key wait. After that they go on, or wait until somebody decides, as the consumer says.

Each function runs in one transaction: effect, inbox and cursor commit together. Only the process that holds the
consumer's cursor for a partition delivers there, so events with the same key stay in order.

There are two logs. The outbox is read here, by `pending`, `next_batch` and `deliver_next`. Kafka is read by
`events.kafka.follow`. Both call `retry` and `deliver`.

A poison message is an event that kills its process. An exception in a handler is caught, but a handler that runs out of
memory or crashes takes the process down, and the next process would start with the same event. `PoisonGuard` keeps it
from killing every process after it. Each process records its first batch in a partition before it handles it. If
processes died of that batch too often, its events are handled one by one, each recorded first. An event that processes
died of too often becomes a dead letter without another attempt. Only the first batch costs anything: if a process dies
of a later one, that is the first batch of the next process.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence, Set
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog
from sqlalchemy import Connection

from headwater.events.catalogue import EVENT_DEAD, DeadEvent
from headwater.store import sql
from headwater.store.db import Database, is_the_stores_fault
from headwater.store.log import dead_letters, inbox, outbox
from headwater.store.log.dead_letters import DeadLetter, FailedEvent
from headwater.store.log.outbox import LoggedEvent

RETRY_AFTER = timedelta(seconds=5)
JITTER = 0.2
LONGEST_ERROR = 2000
MAX_ATTEMPTS = 3
log = structlog.get_logger()


class Consumer(NamedTuple):
    """Code that gives events their effect: the kinds it wants, and a function that handles a batch of them.

    `handle` runs in the transaction of its inbox row and cursor. What it writes with `conn` happens exactly once. What
    it does elsewhere may happen more than once.
    `linger` is how many seconds it waits for more events after some arrived, for work that is cheaper in large batches.
    `waits_for_dead` makes later events of a key wait until a dead letter of that key is replayed or skipped.
    `reset` deletes what the consumer has written, so that it can be rebuilt from the log.
    `is_quick` says that a batch takes milliseconds and leaves nothing in memory, so that it may share its transaction.
    """

    name: str
    kinds: frozenset[str]
    handle: Callable[[Connection, list[LoggedEvent]], None]
    batch: int = 500
    linger: float = 0.0
    waits_for_dead: bool = False
    reset: Callable[[Connection], None] | None = None
    is_quick: bool = False


def pending(conn: Connection, consumer: Consumer, now: datetime, *, wanted: bool = False) -> list[int]:
    """Returns the partitions that have something to do. Takes no locks.

    `wanted`: leaves out those where there is nothing but events that the consumer does not take.
    """
    name = consumer.name
    found = outbox.pending_of(conn, name, consumer.kinds) if wanted else outbox.pending(conn, name)
    return sorted({*found, *dead_letters.due_partitions(conn, name, now)})


def next_batch(conn: Connection, consumer: Consumer, partition: int) -> list[LoggedEvent]:
    """Returns what `deliver_next` would deliver now."""
    position = outbox.take_cursor(conn, consumer.name, partition)
    return [] if position is None else outbox.after(conn, partition, position, consumer.batch)


def deliver_next(conn: Connection, consumer: Consumer, partition: int, now: datetime) -> int:
    """Delivers the next batch of a partition. Returns how many events the cursor moved past."""
    position = outbox.take_cursor(conn, consumer.name, partition)
    if position is None:
        return 0
    events = outbox.after(conn, partition, position, consumer.batch)
    return _deliver_and_move(conn, consumer, partition, events, now)


def deliver_batch(
    conn: Connection, consumer: Consumer, partition: int, events: Sequence[LoggedEvent], now: datetime
) -> int:
    """Delivers those of these events that are after the cursor. Returns how many events the cursor moved past."""
    position = outbox.take_cursor(conn, consumer.name, partition)
    if position is None:
        return 0
    ahead = [event for event in events if event.position > position]
    return _deliver_and_move(conn, consumer, partition, ahead, now)


def _deliver_and_move(
    conn: Connection, consumer: Consumer, partition: int, events: list[LoggedEvent], now: datetime
) -> int:
    retry(conn, consumer, partition, now)
    if events:
        deliver(conn, consumer, partition, events, now)
        outbox.move_cursor(conn, consumer.name, partition, events[-1].position, now)
    return len(events)


def deliver(conn: Connection, consumer: Consumer, partition: int, events: Sequence[LoggedEvent], now: datetime) -> int:
    """Handles these events, or keeps those that fail for a retry. Returns how many were new to the consumer."""
    fresh = _fresh(conn, consumer, events)
    if not fresh:
        return 0
    blocked = _blocked(conn, consumer, partition, {event.key for event in fresh})
    free = [event for event in fresh if event.key not in blocked]
    handled, failures, began = free, list[FailedEvent](), time.perf_counter()
    if len(free) == 1 or (free and _attempt(conn, consumer, free) is not None):
        handled, failures = _one_by_one(conn, consumer, free)
    inbox.record(conn, consumer.name, handled, now, _milliseconds_since(began))
    kept = {event.event_id for event in handled} | {failure.event.event_id for failure in failures}
    dead_letters.add_failed(conn, consumer.name, partition, failures, now, _next_try(now))
    dead_letters.add_waiting(conn, consumer.name, partition, [event for event in fresh if event.event_id not in kept])
    return len(fresh)


def retry(conn: Connection, consumer: Consumer, partition: int, now: datetime, limit: int = 50) -> None:
    """Retries events that are due. One that fails again is a dead letter. Then releases what waited for them."""
    for dead_letter in dead_letters.due(conn, consumer.name, partition, now, limit):
        began = time.perf_counter()
        error = _attempt(conn, consumer, [dead_letter.event])
        if error is None:
            _handled_after_all(conn, dead_letter, now, began)
        else:
            dead_letters.mark_dead(conn, dead_letter, error, now)
            publish_dead(conn, consumer.name, dead_letter.event, dead_letter.attempts + 1, error, now)
            log.error("event.dead", consumer=consumer.name, event_id=dead_letter.event.event_id, error=error)
        release(conn, consumer, partition, dead_letter.event.key, now)


def replay_dead_letter(conn: Connection, consumer: Consumer, dead_letter: DeadLetter, now: datetime) -> str | None:
    """Tries a dead letter once more. Returns the error, or None if it worked; then its key goes on.

    Leaves a dead letter alone that somebody settled in the meantime.
    """
    if not _is_still_dead(conn, dead_letter):
        return None
    began = time.perf_counter()
    error = _attempt(conn, consumer, [dead_letter.event])
    if error is not None:
        dead_letters.mark_dead(conn, dead_letter, error, now)
        return error
    inbox.record(conn, consumer.name, [dead_letter.event], now, _milliseconds_since(began))
    dead_letters.resolve(conn, dead_letter, "replayed", now)
    release(conn, consumer, dead_letter.partition, dead_letter.event.key, now)
    return None


def skip_dead_letter(conn: Connection, consumer: Consumer, dead_letter: DeadLetter, now: datetime) -> None:
    """Settles a dead letter without effect, because a person decided so. Its key goes on."""
    if not _is_still_dead(conn, dead_letter):
        return
    dead_letters.resolve(conn, dead_letter, "skipped", now)
    release(conn, consumer, dead_letter.partition, dead_letter.event.key, now)


def release(conn: Connection, consumer: Consumer, partition: int, key: str, now: datetime) -> None:
    """Handles the waiting events of a key, in order, until one fails. Does nothing while the key is still blocked."""
    if _blocked(conn, consumer, partition, {key}, by={"retrying", "dead"}):
        return
    while waiting := dead_letters.waiting(conn, consumer.name, partition, key):
        for dead_letter in waiting:
            began = time.perf_counter()
            error, attempts = _try_twice(conn, consumer, dead_letter.event)
            if error is not None:
                dead_letters.schedule_retry(conn, dead_letter, attempts, error, now, _next_try(now))
                return
            _handled_after_all(conn, dead_letter, now, began)


def publish_dead(conn: Connection, consumer: str, event: LoggedEvent, attempts: int, error: str, now: datetime) -> None:
    """Publishes that an event is a dead letter, in the transaction that makes it one.

    The death of such an event is not published: a consumer that cannot handle these would never come to an end.
    """
    if event.kind == EVENT_DEAD.name:
        return
    dead = DeadEvent(
        consumer=consumer,
        event_id=event.event_id,
        event_kind=event.kind,
        event_key=event.key,
        event_created_at=event.created_at,
        payload=event.data,
        error=error,
        attempts=attempts,
    )
    published = EVENT_DEAD(dead, once=f"{consumer}:{event.event_id}:{now.isoformat()}")
    outbox.append(conn, [published._replace(traceparent=event.traceparent)], now)


def _blocked(
    conn: Connection,
    consumer: Consumer,
    partition: int,
    keys: set[str],
    by: Set[str] = frozenset({"retrying", "waiting", "dead"}),
) -> set[str]:
    """Returns those of these keys whose next event has to wait."""
    blocking = by if consumer.waits_for_dead else by - {"dead"}
    states = dead_letters.open_states(conn, consumer.name, partition, sorted(keys))
    return {key for key, found in states.items() if found & blocking}


def _fresh(conn: Connection, consumer: Consumer, events: Sequence[LoggedEvent]) -> list[LoggedEvent]:
    """Returns the events that the consumer wants and has not seen, each once."""
    wanted = {event.event_id: event for event in events if event.kind in consumer.kinds}
    if not wanted:
        return []
    known = inbox.known(conn, consumer.name, list(wanted))
    return [event for event_id, event in wanted.items() if event_id not in known]


def _one_by_one(
    conn: Connection, consumer: Consumer, events: Sequence[LoggedEvent]
) -> tuple[list[LoggedEvent], list[FailedEvent]]:
    """Returns the handled events and the first failure of each key. Events behind a failure are in neither list."""
    handled: list[LoggedEvent] = []
    failures: dict[str, FailedEvent] = {}
    for event in events:
        if event.key in failures:
            continue
        error, attempts = _try_twice(conn, consumer, event)
        if error is None:
            handled.append(event)
        else:
            failures[event.key] = FailedEvent(event, attempts, error)
    return handled, list(failures.values())


def _try_twice(conn: Connection, consumer: Consumer, event: LoggedEvent) -> tuple[str | None, int]:
    """Returns the error, if any, and the number of attempts."""
    if _attempt(conn, consumer, [event]) is None:
        return None, 1
    return _attempt(conn, consumer, [event]), 2


def _attempt(conn: Connection, consumer: Consumer, events: list[LoggedEvent]) -> str | None:
    """Runs the handler and undoes what it wrote if it fails. Returns the error, or None.

    Database errors are not handler failures: they end the transaction, and the events are delivered again.
    """
    sql.begin_savepoint(conn)
    try:
        consumer.handle(conn, events)
        sql.keep_savepoint(conn)
    except Exception as error:  # whatever a handler raises, the log goes on
        if is_the_stores_fault(error):
            raise
        sql.undo_savepoint(conn)
        text = _error_text(error)
        if len(events) == 1:
            log.warning("event.failed", consumer=consumer.name, event_id=events[0].event_id, error=text)
        return text
    return None


def _error_text(error: Exception) -> str:
    """Returns the error as text that every database can store. Even printing an error may fail."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - see above
        text = f"{type(error).__name__}: it cannot be printed"
    return text[:LONGEST_ERROR].replace("\0", "").encode(errors="replace").decode()


def _is_still_dead(conn: Connection, dead_letter: DeadLetter) -> bool:
    found = dead_letters.find(conn, dead_letter.id)
    return found is not None and found.state == "dead"


def _handled_after_all(conn: Connection, dead_letter: DeadLetter, now: datetime, began: float) -> None:
    inbox.record(conn, dead_letter.consumer, [dead_letter.event], now, _milliseconds_since(began))
    dead_letters.remove(conn, dead_letter)


def _milliseconds_since(began: float) -> float:
    return (time.perf_counter() - began) * 1000


def _next_try(now: datetime) -> datetime:
    return now + RETRY_AFTER * (1 + JITTER * random.random())


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
        publish_dead(conn, consumer.name, dead_letter.event, dead_letter.attempts + 1, _died(attempt), now())
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
        publish_dead(conn, consumer.name, event, attempt - 1, _died(attempt), now())
        log.error("event.dead", consumer=consumer.name, event_id=event.event_id, error=_died(attempt))
    moved = deliver_batch(conn, consumer, partition, [event], now())
    inbox.end_handling_one(conn, consumer.name, partition, event.event_id)
    return moved


def _died(attempt: int) -> str:
    return f"The process ended {attempt - 1} times while it handled this event."
