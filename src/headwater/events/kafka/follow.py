"""Runs the consumers on Kafka: they follow the topics that Debezium fills from the outbox.

Each consumer is a consumer group. Kafka assigns partitions to processes, the same ones of every topic. A batch of one
partition is delivered in one transaction, and its offset is committed after that. So a record may come twice, and then
the inbox knows it; none is skipped. Events with the same key stay in order within their domain, because each domain is
a topic of its own.
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
from headwater.events.catalogue import BY_NAME
from headwater.events.delivery import Consumer, PoisonGuard, deliver, retry
from headwater.store.db import Database
from headwater.store.log import dead_letters, outbox
from headwater.store.log.outbox import LoggedEvent, LogPosition
from headwater.waiting import TROUBLE_SECONDS, wait

FETCH_SECONDS = 0.5  # how long to wait for the first record of a batch
RETRY_SECONDS = 1.0
log = structlog.get_logger()
Clock = Callable[[], datetime]
T = TypeVar("T")


def topics_of(kinds: Iterable[str], prefix: str = "events") -> list[str]:
    """Returns the topics that carry events of these kinds. Each domain has one."""
    return sorted({f"{prefix}.{_domain(kind)}" for kind in kinds})


def _domain(kind: str) -> str:
    known = BY_NAME.get(kind)
    return known.domain if known else kind.partition(".")[0]


def read_record(message: Message) -> LoggedEvent:
    """Returns the event in a record: CloudEvents 1.0 in binary mode, as the connector writes it."""
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
        raise UnreadableEvent(f"The record in {place} is not a Headwater event: {error!r}") from error


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
    """Runs a consumer on its topics until `stop` is set. While Kafka or the database is down, it waits for them."""
    membership = Membership(consumer, brokers, prefix)
    guard = PoisonGuard(db, consumer, deliver_batch, now)
    retried = 0.0
    try:
        while not stop.is_set():
            messages = await membership.next(consumer.batch)
            try:
                await _deliver_all(db, consumer, membership, messages, now, guard)
                if time.monotonic() - retried > RETRY_SECONDS:
                    await _retry_due(db, consumer, now)
                    retried = time.monotonic()
            except HeadwaterError as error:
                log.warning("consumer.waits", consumer=consumer.name, error=error.detail)
                await wait(TROUBLE_SECONDS, stop=stop)
            except Exception:  # a bug in one consumer must not stop it for good, nor stop the others
                log.exception("consumer.failed", consumer=consumer.name)
                await wait(TROUBLE_SECONDS, stop=stop)
            if messages:
                await wait(consumer.linger, stop=stop)
    finally:
        await membership.end()


async def _deliver_all(
    db: Database, consumer: Consumer, membership: Membership, messages: list[Message], now: Clock, guard: PoisonGuard
) -> None:
    """Delivers partition by partition. What could not be delivered is read again: its offset was not committed."""
    left = by_partition(messages)
    try:
        for partition in list(left):
            events = readable(left[partition])
            if guard.has_survived(partition):
                await db.write(deliver_batch, consumer, partition, events, now())
            else:
                await guard.handle(partition, events)
            await membership.commit(left.pop(partition))
    finally:
        if left:
            await membership.read_again([message for messages in left.values() for message in messages])


def by_partition(messages: Iterable[Message]) -> dict[int, list[Message]]:
    """Groups records by partition. A key has the same partition number in every topic."""
    groups: dict[int, list[Message]] = defaultdict(list)
    for message in messages:
        groups[message.partition() or 0].append(message)
    return groups


def readable(messages: Iterable[Message]) -> list[LoggedEvent]:
    """Returns the events. A record that is not an event has no id, so it is logged instead of kept as a dead letter."""
    events = []
    for message in messages:
        try:
            events.append(read_record(message))
        except UnreadableEvent as error:
            log.error("kafka.unreadable", error=error.detail)
    return events


def deliver_batch(
    conn: Connection, consumer: Consumer, partition: int, events: Sequence[LoggedEvent], now: datetime
) -> int:
    """Delivers a batch. Waits for the cursor: a process that Kafka believes dead may still be working on it."""
    outbox.wait_for_cursor(conn, consumer.name, partition, now)
    retry(conn, consumer, partition, now)
    return deliver(conn, consumer, partition, events, now)


async def _retry_due(db: Database, consumer: Consumer, now: Clock) -> None:
    """Retries events that are due, even if nothing new arrives."""
    for partition in await db.read(dead_letters.due_partitions, consumer.name, now()):
        await db.write(deliver_batch, consumer, partition, [], now())


class Membership:
    """A consumer's membership in its group. Kafka's client blocks, so it runs in a thread of its own."""

    def __init__(self, consumer: Consumer, brokers: str, prefix: str) -> None:
        self._name = consumer.name
        self._brokers = brokers
        self._topics = topics_of(consumer.kinds, prefix)
        self._away = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"headwater-kafka-{consumer.name}")
        self._member = self._join()

    def _join(self) -> Member:
        """Joins the group. A new member starts from the offsets that were committed last."""
        member = Member(_settings(self._name, self._brokers), error_cb=self._on_error)
        member.subscribe(self._topics)
        return member

    async def next(self, most: int) -> list[Message]:
        """Returns the next records, or none after half a second."""
        return await self._run(lambda: self._next(most))

    def _next(self, most: int) -> list[Message]:
        # `consume` alone would wait for a full batch.
        first = self._member.poll(FETCH_SECONDS)
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

    async def commit(self, messages: list[Message]) -> None:
        """Commits the offsets of handled records. If that gets lost they come again, and the inbox knows them."""
        ends = _edges(messages, max, 1)
        await self._run(lambda: self._member.commit(offsets=ends, asynchronous=True))

    async def read_again(self, messages: list[Message]) -> None:
        """Goes back to the first of these records, so that none is passed over.

        A seek fails if the partition was assigned to another process, but perhaps for other reasons too. Whoever reads
        on from there would commit offsets beyond what was not delivered. So this member leaves, and joins as a new one.
        """
        starts = _edges(messages, min, 0)
        await self._run(lambda: self._go_back(starts))

    def _go_back(self, places: list[TopicPartition]) -> None:
        try:
            for place in places:
                self._member.seek(place)
        except KafkaException as error:
            log.warning("kafka.rejoins", consumer=self._name, error=str(error))
            self._member.close()
            self._member = self._join()

    async def end(self) -> None:
        """Leaves the group, so that its partitions are reassigned at once."""
        await self._run(self._member.close)
        self._thread.shutdown()

    def _on_error(self, error: KafkaError) -> None:
        if not self._away:
            self._away = True
            log.warning("kafka.away", consumer=self._name, error=error.str())

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _edges(messages: list[Message], edge: Callable[[list[int]], int], beyond: int) -> list[TopicPartition]:
    """Returns the first or the last offset of each topic and partition, plus `beyond`."""
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
        # "range" assigns the same partitions of every topic, and so everything that shares a cursor.
        "partition.assignment.strategy": "range",
        "session.timeout.ms": 10_000,
        "topic.metadata.refresh.interval.ms": 10_000,
        "queued.max.messages.kbytes": 16_384,
        "log_level": 2,  # `_on_error` hears of connection problems as well
    }
