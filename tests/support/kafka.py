"""Kafka and Kafka Connect for tests: a separate deployment on the shared servers, and what is in its topics."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, timedelta

import pytest
from confluent_kafka import Consumer, Message, Producer

from headwater.events.kafka.connector import Cluster, make_topics, open_admin, set_up, topics, unregister
from headwater.store.db import Database
from headwater.store.log import replication
from headwater.store.log.outbox import LoggedEvent

RETENTION = timedelta(days=7)
PATIENCE = 300.0


def kafka_address(name: str) -> str:
    """Returns the address of the `kafka` or `connect` server of `scripts/services`; skips the test if there is none."""
    variable = f"HEADWATER_TEST_{name.upper()}"
    address = os.environ.get(variable)
    if not address:
        pytest.skip(f'no {name}: {variable} is not set (scripts/services up; eval "$(scripts/services env)")')
    return address


def own_cluster(brokers: str, connect_url: str = "") -> Cluster:
    """Returns a deployment with names that nobody else uses on these servers."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    return Cluster(brokers, connect_url, name=name, prefix=f"{name}.events")


@contextmanager
def topics_made(cluster: Cluster) -> Iterator[Cluster]:
    """Makes the topics only, without a connector that fills them."""
    make_topics(cluster, topics(cluster, RETENTION))
    try:
        yield cluster
    finally:
        drop_topics(cluster)


@contextmanager
def deployed(cluster: Cluster, db: Database, database_url: str) -> Iterator[Cluster]:
    """Sets up everything and removes it at the end: a slot left behind would keep the server's log for ever."""
    try:
        asyncio.run(set_up(cluster, db, database_url, RETENTION))
        yield cluster
    finally:
        unregister(cluster)
        wait_until(lambda: not db.read_now(replication.slot, cluster.name) or drop_slot(db, cluster))
        drop_topics(cluster)


def drop_slot(db: Database, cluster: Cluster) -> bool:
    return db.write_now(replication.drop_slot, cluster.name)


def drop_topics(cluster: Cluster) -> None:
    names = [topic.name for topic in topics(cluster, RETENTION)]
    admin = open_admin(cluster)  # held until all have answered: without it, they never would
    for answer in admin.delete_topics(names, request_timeout=PATIENCE).values():
        answer.exception(timeout=PATIENCE)


def wait_until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def read_records(cluster: Cluster, domain: str, count: int) -> list[Message]:
    """Returns the first records of a topic, in order."""
    reader = Consumer(
        {
            "bootstrap.servers": cluster.brokers,
            "group.id": f"{cluster.name}.{uuid.uuid4().hex}",
            "auto.offset.reset": "earliest",
        }
    )
    reader.subscribe([cluster.topic(domain)])
    records: list[Message] = []
    deadline = time.monotonic() + PATIENCE
    try:
        while len(records) < count:
            assert time.monotonic() < deadline, f"{len(records)} of {count} records came"
            records += [record for record in reader.consume(count - len(records), 0.2) if record.error() is None]
    finally:
        reader.close()
    return records


def headers_of(event: LoggedEvent) -> dict[str, str | None]:
    """Returns the headers with which the connector writes this event."""
    number = {"ce_tenantid": event.tenant_id, "ce_userid": event.user_id}
    return {
        "ce_specversion": "1.0",
        "ce_id": event.event_id,
        "ce_type": event.kind,
        "ce_dataversion": str(event.version),
        "ce_partitionkey": event.key,
        "ce_sequence": str(event.position.id),
        "ce_time": event.created_at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        **{name: None if value is None else str(value) for name, value in number.items()},
        "traceparent": event.traceparent,
        "ce_source": "headwater",
        "content-type": "application/json",
    }


def publish(cluster: Cluster, events: Sequence[LoggedEvent], partition: int = 0) -> None:
    """Writes these events as the connector does."""
    producer = Producer({"bootstrap.servers": cluster.brokers})
    for event in events:
        topic = cluster.topic(event.kind.partition(".")[0])
        headers = [(name, None if value is None else value.encode()) for name, value in headers_of(event).items()]
        producer.produce(topic, event.data.encode(), event.key.encode(), partition, headers=headers)
    assert producer.flush(PATIENCE) == 0


def publish_rubbish(cluster: Cluster, domain: str, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": cluster.brokers})
    producer.produce(cluster.topic(domain), b"rubbish", b"source:1", partition)
    assert producer.flush(PATIENCE) == 0
