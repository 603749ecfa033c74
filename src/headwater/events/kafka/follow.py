"""The log, on Kafka: consumers follow the topics that Debezium fills from the outbox.

A consumer is a group. Kafka gives each process some partitions, the same ones of every topic; a batch of one partition
is delivered in one transaction, and its offset is committed after that. So a record may come again, and the inbox knows
it; none is passed over. Order holds for a key within its domain: two topics are read side by side.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TypeVar

import structlog
from confluent_kafka import Consumer as Member
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from sqlalchemy import Connection

from headwater.errors import HeadwaterError, UnreadableEvent
from headwater.events.delivery import Consumer, deliver, retry
from headwater.events.poison import FirstBatches
from headwater.store.db import Database
from headwater.store.log import dead_letters, outbox
from headwater.store.log.outbox import LoggedEvent, LogPosition

LOOK_SECONDS = 0.5
RETRY_SECONDS = 1.0
TROUBLE_SECONDS = 5.0
log = structlog.get_logger()
Clock = Callable[[], datetime]
T = TypeVar("T")


def topics_of(kinds: Iterable[str], prefix: str = "events") -> list[str]:
    """The topics in which events of these kinds are: one for each domain."""
    return sorted({f"{prefix}.{kind.partition('.')[0]}" for kind in kinds})


def read_record(message: Message) -> LoggedEvent:
    """The event that a record carries: CloudEvents 1.0 in binary mode, as the connector writes it."""
    try:
        headers = {name: _text(value) for name, value in _pairs(message)}
        return LoggedEvent(
            position=LogPosition(0, int(headers["ce_sequence"] or "")),
            event_id=_given(headers, "ce_id"),
            kind=_given(headers, "ce_type"),
            version=int(_given(headers, "ce_dataversion")),
            key=(message.key() or b"").decode(),
            tenant_id=_number(headers.get("ce_tenantid")),
            user_id=_number(headers.get("ce_userid")),
            traceparent=headers.get("traceparent"),
            created_at=_moment(_given(headers, "ce_time")),
            data=(message.value() or b"").decode(),
        )
    except (KeyError, ValueError) as error:
        place = f"{message.topic()}, partition {message.partition()}, offset {message.offset()}"
        raise UnreadableEvent(f"The record in {place} is no event of ours: {error!r}") from error


def _pairs(message: Message) -> list[tuple[str, str | bytes | None]]:
    headers = message.headers() or []
    return list(headers.items()) if isinstance(headers, dict) else headers


def _text(value: str | bytes | None) -> str | None:
    return (value.decode() if isinstance(value, bytes) else value) or None


def _given(headers: dict[str, str | None], name: str) -> str:
    value = headers[name]
    if value is None:
        raise ValueError(f"{name} is empty")
    return value


def _number(value: str | None) -> int | None:
    return None if value is None else int(value)


def _moment(value: str) -> datetime:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError(f"the time {value} has no zone")
    return moment


async def follow(
    db: Database, consumer: Consumer, brokers: str, now: Clock, stop: asyncio.Event, *, prefix: str = "events"
) -> None:
    """Let a consumer follow its topics until `stop` is set. Where Kafka or the store is away, it waits for them."""
    membership = Membership(consumer, brokers, prefix)
    first = FirstBatches(db, consumer, step, now)
    retried = 0.0
    try:
        while not stop.is_set():
            messages = await membership.next(consumer.batch)
            try:
                await _deliver_all(db, consumer, membership, messages, now, first)
                if time.monotonic() - retried > RETRY_SECONDS:
                    await _retry_due(db, consumer, now)
                    retried = time.monotonic()
            except HeadwaterError as error:
                log.warning("consumer.waits", consumer=consumer.name, error=error.detail)
                await _rest(TROUBLE_SECONDS, stop)
            except Exception:  # whatever goes wrong in one consumer, it goes on and so do the others (H98)
                log.exception("consumer.failed", consumer=consumer.name)
                await _rest(TROUBLE_SECONDS, stop)
            if messages:
                await _rest(consumer.rest, stop)
    finally:
        await membership.end()


async def _rest(seconds: float, stop: asyncio.Event) -> None:
    if seconds > 0:
        await asyncio.wait([waiting := asyncio.ensure_future(stop.wait())], timeout=seconds)
        waiting.cancel()


async def _deliver_all(
    db: Database, consumer: Consumer, membership: Membership, messages: list[Message], now: Clock, first: FirstBatches
) -> None:
    """Deliver partition by partition. What could not be delivered is read again: it was never passed."""
    left = by_partition(messages)
    try:
        for partition in list(left):
            events = readable(left[partition])
            if first.is_over(partition):
                await db.write(step, consumer, partition, events, now())
            else:
                await first.handle(partition, events)
            await membership.passed(left.pop(partition))
    finally:
        if left:
            await membership.read_again([message for messages in left.values() for message in messages])


def by_partition(messages: Iterable[Message]) -> dict[int, list[Message]]:
    """A key has the same partition in every topic."""
    groups: dict[int, list[Message]] = defaultdict(list)
    for message in messages:
        groups[message.partition() or 0].append(message)
    return groups


def readable(messages: Iterable[Message]) -> list[LoggedEvent]:
    """The events. A record that is none cannot be a dead letter, having no id; the log says where it is."""
    events = []
    for message in messages:
        try:
            events.append(read_record(message))
        except UnreadableEvent as error:
            log.error("kafka.unreadable", error=error.detail)
    return events


def step(conn: Connection, consumer: Consumer, partition: int, events: Sequence[LoggedEvent], now: datetime) -> int:
    """Deliver a batch. A process that Kafka took for dead may be at it too: whoever has the cursor goes first."""
    outbox.wait_for_cursor(conn, consumer.name, partition, now)
    retry(conn, consumer, partition, now)
    return deliver(conn, consumer, partition, events, now)


async def _retry_due(db: Database, consumer: Consumer, now: Clock) -> None:
    """Letters are due even when nothing new comes."""
    for partition in await db.read(dead_letters.due_partitions, consumer.name, now()):
        await db.write(step, consumer, partition, [], now())


class Membership:
    """A consumer's membership in its group. Kafka's client blocks, so all of it happens in one thread of its own."""

    def __init__(self, consumer: Consumer, brokers: str, prefix: str) -> None:
        self._name = consumer.name
        self._away = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"headwater-kafka-{consumer.name}")
        self._member = Member(_settings(consumer.name, brokers), error_cb=self._on_error)
        self._member.subscribe(topics_of(consumer.kinds, prefix))

    async def next(self, most: int) -> list[Message]:
        """The next records; after half a second without any, none."""
        return await self._run(lambda: self._next(most))

    def _next(self, most: int) -> list[Message]:
        # `consume` alone would wait for a full batch.
        first = self._member.poll(LOOK_SECONDS)
        if first is None:
            return []
        messages = [first, *(self._member.consume(most - 1, 0) if most > 1 else ())]
        for message in messages:
            if error := message.error():
                self._on_error(error)
        good = [message for message in messages if message.error() is None]
        if good and self._away:
            self._away = False
            log.info("kafka.back", consumer=self._name)
        return good

    async def passed(self, messages: list[Message]) -> None:
        """These have had their effect. If Kafka does not learn of it, they come again, and the inbox knows them."""
        ends = _edges(messages, max, 1)
        await self._run(lambda: self._member.commit(offsets=ends, asynchronous=True))

    async def read_again(self, messages: list[Message]) -> None:
        starts = _edges(messages, min, 0)
        await self._run(lambda: self._seek(starts))

    def _seek(self, places: list[TopicPartition]) -> None:
        for place in places:
            try:
                self._member.seek(place)
            except KafkaException as error:
                # The partition is another process's by now, which begins where we committed last.
                log.info("kafka.seek", consumer=self._name, error=str(error))

    async def end(self) -> None:
        """Leave the group, so that the others need not wait for us."""
        await self._run(self._member.close)
        self._thread.shutdown()

    def _on_error(self, error: KafkaError) -> None:
        if not self._away:
            self._away = True
            log.warning("kafka.away", consumer=self._name, error=error.str())

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _edges(messages: list[Message], edge: Callable[[list[int]], int], beyond: int) -> list[TopicPartition]:
    """The first or the last offset of each topic and partition."""
    offsets: dict[tuple[str, int], list[int]] = defaultdict(list)
    for message in messages:
        offsets[message.topic() or "", message.partition() or 0].append(message.offset() or 0)
    return [TopicPartition(topic, partition, edge(found) + beyond) for (topic, partition), found in offsets.items()]


def _settings(name: str, brokers: str) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": brokers,
        "group.id": f"headwater.{name}",
        "client.id": "headwater",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        # By ranges: a process has the same partitions of every topic, and so all that shares a cursor.
        "partition.assignment.strategy": "range",
        "session.timeout.ms": 10_000,
        "topic.metadata.refresh.interval.ms": 10_000,
        "queued.max.messages.kbytes": 16_384,
        "log_level": 2,  # what happens to connections comes to `_on_error` as well
    }
