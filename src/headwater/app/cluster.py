"""Checks whether the parts of a deployment on several machines answer, and says what to do if they do not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from headwater.errors import HeadwaterError
from headwater.events.health import MAX_SLOT_BYTES
from headwater.store import sources
from headwater.store.clock import server_time
from headwater.store.db import Database
from headwater.store.log import replication
from headwater.store.log.replication import LogKeeper

PATIENCE_SECONDS = 3.0
MOST_APART = 2.0  # seconds between two clocks
MOST_WAITING = 100  # messages in a queue
LATE = timedelta(minutes=5)
CLOCK_COMMAND = "headwater_clock"  # workers answer it with their time


class Finding(NamedTuple):
    what: str
    ok: bool
    detail: str


async def examine(
    db: Database,
    now: Callable[[], datetime],
    *,
    celery: Any = None,
    queues: Sequence[str] = (),
    redis_url: str | None = None,
    is_broker: bool = False,
) -> AsyncIterator[Finding]:
    """Checks what there is of a cluster: the broker with its workers and queues (`celery` is the application that sends
    tasks), Redis, the slots of PostgreSQL, and the clocks. `is_broker`: Redis carries messages as well."""
    if celery is not None:
        for finding in await asyncio.to_thread(_celery, celery, queues, now):
            yield finding
        yield _due(await _asked(db, sources.count_due, now() - LATE))
    if redis_url is not None:
        for finding in await _redis(redis_url, now, is_broker=is_broker):
            yield finding
    if not db.is_sqlite:
        slots = await _asked(db, replication.keepers)
        if isinstance(slots, HeadwaterError):
            yield Finding("replication slots", False, slots.detail)
        else:
            yield _slots(slots)
        asked_at, theirs = now(), await _asked(db, server_time)
        if isinstance(theirs, datetime):
            yield _clock("the database", _apart(theirs.timestamp(), asked_at, now()))


async def _asked(db: Database, function: Callable[..., Any], *given: Any) -> Any:
    """Returns what the store answers, or why it does not."""
    try:
        return await db.read(function, *given)
    except HeadwaterError as error:
        return error


def _celery(celery: Any, queues: Sequence[str], now: Callable[[], datetime]) -> list[Finding]:
    from kombu.exceptions import OperationalError

    where = celery.connection_for_write().as_uri()  # without its password
    try:
        with celery.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=PATIENCE_SECONDS)
            depths = {queue: messages_in(connection, queue) for queue in queues}
            taken = celery.control.inspect(timeout=PATIENCE_SECONDS, connection=connection).active_queues() or {}
            asked_at = now()
            told = celery.control.broadcast(
                CLOCK_COMMAND, reply=True, timeout=PATIENCE_SECONDS, limit=len(taken) or None, connection=connection
            )
    except (OperationalError, OSError) as error:
        advice = "Start it, or correct CELERY_BROKER_URL. Due visits wait in the store"
        return [Finding("broker", False, f"{where} does not answer: {error}. {advice}")]
    by_queue = {queue: sum(queue in {one["name"] for one in mine} for mine in taken.values()) for queue in queues}
    answered_at = now()
    return [
        Finding("broker", True, where),
        _workers(taken),
        *(_queue(queue, depths[queue], by_queue[queue]) for queue in queues if taken),
        *(
            _clock(name, _apart(answer["time"], asked_at, answered_at))
            for one in told
            for name, answer in sorted(one.items())
        ),
    ]


def messages_in(connection: Any, queue: str) -> int:
    """Returns how many messages wait in a queue of a broker.

    It declares the queue as workers do. On Redis, to ask without that finds nothing where keys have a prefix.
    """
    return int(connection.default_channel.queue_declare(queue, durable=True, auto_delete=False).message_count)


def _workers(taken: Mapping[str, Any]) -> Finding:
    if taken:
        return Finding("workers", True, f"{len(taken)}: {', '.join(sorted(taken))}")
    advice = "start `celery -A headwater.work.celery_app worker`, or look at its log"
    return Finding("workers", False, f"none answers within {PATIENCE_SECONDS:.0f} s: {advice}")


def _queue(name: str, waiting: int, workers: int) -> Finding:
    detail = f"{waiting} messages, {workers} workers"
    if not workers:
        return Finding(f"queue {name}", False, f"{detail}: add it to CELERY_QUEUE_NAMES of a worker")
    if waiting > MOST_WAITING:
        return Finding(f"queue {name}", False, f"{detail}: the workers are too few or stuck. Start another")
    return Finding(f"queue {name}", True, detail)


def _due(late: Any) -> Finding:
    if isinstance(late, HeadwaterError):
        return Finding("schedule", False, late.detail)
    if not late:
        return Finding("schedule", True, "no source has been due for more than 5 minutes")
    advice = "Start beat (`celery -A headwater.work.celery_app beat --pidfile=`) or more workers"
    return Finding("schedule", False, f"{late} sources have been due for more than 5 minutes. {advice}")


async def _redis(url: str, now: Callable[[], datetime], *, is_broker: bool) -> list[Finding]:
    import redis.asyncio as redis
    from redis.exceptions import RedisError

    client = redis.Redis.from_url(url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS)
    try:
        began = time.perf_counter()
        await client.ping()
        milliseconds = (time.perf_counter() - began) * 1000
        asked_at, (seconds, micros), answered_at = now(), await client.time(), now()
        memory = await client.info("memory")
    except (RedisError, OSError) as error:
        advice = "Headwater works without it, but more slowly. Start it, or correct HEADWATER_REDIS_URL"
        return [Finding("Redis", False, f"it does not answer: {error}. {advice}")]
    finally:
        await client.aclose()
    used, policy = memory["used_memory_human"], memory["maxmemory_policy"]
    found = Finding("Redis", True, f"answers in {milliseconds:.1f} ms and uses {used}")
    if is_broker and policy != "noeviction":
        advice = "set maxmemory-policy to noeviction, or use a separate Redis for the cache (HEADWATER_REDIS_URL)"
        found = Finding("Redis", False, f"it may delete messages when it is full ({policy}): {advice}")
    return [found, _clock("Redis", _apart(seconds + micros / 1e6, asked_at, answered_at))]


def _slots(found: Sequence[LogKeeper]) -> Finding:
    name = "replication slots"
    for slot in found:
        if slot.status in ("lost", "unreserved"):
            advice = "drop it (pg_drop_replication_slot), and restart its connector"
            return Finding(name, False, f"the log of {slot.name} is {slot.status}: {advice}")
        if slot.bytes >= MAX_SLOT_BYTES:
            reader = "its reader is too slow" if slot.active else "nobody reads it"
            advice = "restart its connector, or drop it before the disk is full"
            return Finding(name, False, f"PostgreSQL keeps {slot.bytes:,} bytes for {slot.name}, {reader}: {advice}")
    kept = sum(slot.bytes for slot in found)
    return Finding(name, True, f"{len(found)}; PostgreSQL keeps {kept:,} bytes of its log for them")


def _apart(theirs: float, asked_at: datetime, answered_at: datetime) -> float:
    """Returns how far another clock is ahead of ours, at least: it was read between these two times."""
    return min(0.0, theirs - asked_at.timestamp()) + max(0.0, theirs - answered_at.timestamp())


def _clock(whose: str, apart: float) -> Finding:
    """How far another clock is ahead of the one of this machine."""
    if abs(apart) <= MOST_APART:
        return Finding(f"clock of {whose}", True, f"{apart:+.2f} s from this machine's")
    advice = "leases and due times depend on it: set both clocks by NTP"
    return Finding(f"clock of {whose}", False, f"{apart:+.1f} s from this machine's; {advice}")
