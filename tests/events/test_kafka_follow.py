"""Consumers on Kafka: each event has its effect once and in order, whatever comes twice, breaks or is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headwater.errors import StoreUnavailable
from headwater.events.delivery import Consumer
from headwater.events.kafka import follow
from headwater.events.kafka.connector import Cluster
from headwater.ids import uuid7
from headwater.store.db import Database
from headwater.store.log import dead_letters
from headwater.store.log.outbox import LoggedEvent, LogPosition
from support.kafka import kafka_address, own_cluster, publish, publish_rubbish, topics_made
from support.log import Recorder, an_event
from support.posts import NOON


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with topics_made(own_cluster(kafka_address("kafka"))) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "TROUBLE_SECONDS", 0.1)
    monkeypatch.setattr(follow, "RETRY_SECONDS", 0.0)


def logged(numbers: Sequence[int], key: int = 1) -> list[LoggedEvent]:
    events = [(number, an_event(number, key)) for number in numbers]
    return [
        LoggedEvent(LogPosition(0, number), uuid7(), e.kind, e.version, e.key, None, None, None, NOON, e.data)
        for number, e in events
    ]


@asynccontextmanager
async def following(
    db: Database, consumer: Consumer, cluster: Cluster, now: Callable[[], datetime] = lambda: NOON
) -> AsyncIterator[None]:
    """The consumer under a name that no other test uses: Kafka remembers groups."""
    own = consumer._replace(name=f"{cluster.name}.{consumer.name}")
    stop = asyncio.Event()
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(follow.follow(db, own, cluster.brokers, now, stop, prefix=cluster.prefix))
        try:
            yield
        finally:
            stop.set()


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(120):
        while not happened():
            await asyncio.sleep(0.02)


async def test_an_event_that_comes_again_and_again_has_its_effect_once(database: Database, cluster: Cluster) -> None:
    # E3, H80
    events, recorder = logged(range(20)), Recorder()
    publish(cluster, [*events, *events, *events, *logged([99])])
    async with following(database, recorder.consumer, cluster):
        await until(lambda: 99 in recorder.seen)
    assert recorder.seen == [*range(20), 99]


async def test_a_consumer_that_starts_again_goes_on_where_it_was(database: Database, cluster: Cluster) -> None:
    first, second = Recorder(), Recorder()
    publish(cluster, logged(range(5)))
    async with following(database, first.consumer, cluster):
        await until(lambda: len(first.seen) == 5)
    publish(cluster, logged(range(5, 10)))
    async with following(database, second.consumer, cluster):
        await until(lambda: len(second.seen) == 5)
    assert (first.seen, second.seen) == ([*range(5)], [*range(5, 10)])


async def test_while_the_store_is_away_events_wait_and_none_is_passed_over(
    database: Database, cluster: Cluster
) -> None:
    recorder, troubles = Recorder(), iter(range(3))

    def handle(conn: object, events: list[LoggedEvent]) -> None:
        if next(troubles, None) is not None:
            raise StoreUnavailable("gone for a moment")
        recorder.handle(conn, events)  # type: ignore[arg-type]

    for partition in range(3):
        publish(cluster, logged(range(partition * 10, partition * 10 + 10), key=partition), partition)
    async with following(database, recorder.consumer._replace(handle=handle), cluster):
        await until(lambda: len(recorder.seen) == 30)
    for key in range(3):
        assert [number for number in recorder.seen if number // 10 == key] == [*range(key * 10, key * 10 + 10)]


class UnwillingMember(follow.Member):
    """A member that cannot seek the first time, although its partitions stay its own."""

    refused: ClassVar[list[TopicPartition]] = []

    def seek(self, partition: TopicPartition) -> None:
        if not self.refused:
            self.refused.append(partition)
            raise KafkaException(KafkaError(KafkaError._STATE))
        super().seek(partition)


async def test_where_kafka_cannot_go_back_no_event_is_passed_over(
    database: Database, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:  # E3, H92
    monkeypatch.setattr(follow, "Member", UnwillingMember)
    monkeypatch.setattr(UnwillingMember, "refused", [])
    recorder, troubles = Recorder(), iter(range(1))

    def handle(conn: object, events: list[LoggedEvent]) -> None:
        if next(troubles, None) is not None:
            raise StoreUnavailable("gone for a moment")
        recorder.handle(conn, events)  # type: ignore[arg-type]

    publish(cluster, logged(range(10)))
    async with following(database, recorder.consumer._replace(handle=handle, batch=5), cluster):
        await until(lambda: 9 in recorder.seen)
    assert UnwillingMember.refused
    assert recorder.seen == [*range(10)]


async def test_a_record_that_cannot_be_read_holds_nobody_up(
    database: Database, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder()
    publish(cluster, logged([1]))
    publish_rubbish(cluster, "source")
    publish(cluster, logged([2]))
    async with following(database, recorder.consumer, cluster):
        await until(lambda: 2 in recorder.seen)
    assert recorder.seen == [1, 2]
    assert "kafka.unreadable" in capsys.readouterr().out


async def test_an_event_that_fails_is_tried_later_and_then_is_a_dead_letter(
    database: Database, cluster: Cluster
) -> None:  # E4, H83
    recorder = Recorder(fails=lambda number: number == 2)
    publish(cluster, [*logged([1, 2, 3], key=1), *logged([4], key=2)])
    clock = [NOON]
    async with following(database, recorder.consumer, cluster, lambda: clock[0]):
        await until(lambda: 4 in recorder.seen)
        assert 3 not in recorder.seen
        clock[0] += timedelta(seconds=10)
        await until(lambda: 3 in recorder.seen)
    assert recorder.tried.count(2) >= 3
    assert list(database.read_now(dead_letters.counts).values()) == [{"dead": 1}]


async def test_two_processes_side_by_side_give_each_event_its_effect_once(
    database: Database, cluster: Cluster
) -> None:  # H84 E11
    one, other = Recorder(), Recorder()
    async with following(database, one.consumer, cluster), following(database, other.consumer, cluster):
        for round_ in range(10):
            for partition in range(8):
                publish(cluster, logged([round_ * 8 + partition], key=partition), partition)
        await until(lambda: len(one.seen) + len(other.seen) >= 80)
    assert sorted(one.seen + other.seen) == [*range(80)]


async def test_without_a_broker_a_consumer_waits_and_can_be_stopped(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:  # H89
    nowhere, recorder = own_cluster("127.0.0.1:1"), Recorder()
    said: list[str] = []

    def complained() -> bool:
        said.append(capsys.readouterr().out)
        return "kafka.away" in "".join(said)

    async with following(database, recorder.consumer, nowhere):
        await until(complained)
        await asyncio.sleep(1)
    assert ("".join(said) + capsys.readouterr().out).count("kafka.away") == 1
