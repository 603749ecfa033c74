"""What a record on Kafka says, and what a deployment consists of: decided without a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Message

from headwater.errors import UnreadableEvent
from headwater.events.catalogue import DOMAINS, KINDS
from headwater.events.kafka.connector import (
    BEHIND_BYTES,
    Cluster,
    Topic,
    connector,
    deploy_files,
    judge_configuration,
    judge_publication,
    judge_slot,
    judge_status,
    judge_topic,
    judge_wal_level,
    topics,
)
from headwater.events.kafka.follow import by_partition, read_record, topics_of
from headwater.store.log.outbox import LoggedEvent, LogPosition
from headwater.store.log.replication import Publication, ReplicationSlot, publication_sql
from support.kafka import headers_of

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CLUSTER = Cluster("kafka:9092", "http://connect:8083")
CONNECTS_DATABASE = "postgresql://headwater:hidden@postgres:5432/headwater"
EVENT = LoggedEvent(
    position=LogPosition(0, 12),
    event_id="01a1e250-bab5-7e9f-9c36-c65108c8357a",
    kind="post.stored",
    version=2,
    key="source:7",
    tenant_id=3,
    user_id=None,
    traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    created_at=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
    data='{"title": "Überraschung"}',
)


def record_of(event: LoggedEvent, **changed: str | None) -> Message:
    headers = {**headers_of(event), **changed}
    pairs = [(name, None if value is None else value.encode()) for name, value in headers.items()]
    return Message(
        topic="events.post", partition=5, offset=99, key=event.key.encode(), value=event.data.encode(), headers=pairs
    )


def test_a_record_is_read_as_the_event_that_was_written() -> None:
    assert read_record(record_of(EVENT)) == EVENT


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("ce_id", None),
        ("ce_id", ""),
        ("ce_type", None),
        ("ce_sequence", "many"),
        ("ce_dataversion", None),
        ("ce_tenantid", "x"),
        ("ce_time", "yesterday"),
        ("ce_time", "2026-01-02T03:04:05"),
    ],
)
def test_a_damaged_record_is_an_error_that_says_where_it_is(header: str, value: str | None) -> None:
    with pytest.raises(UnreadableEvent, match=r"events\.post, partition 5, offset 99"):
        read_record(record_of(EVENT, **{header: value}))


@pytest.mark.parametrize(("key", "value"), [(b"\xff", b"{}"), (b"source:7", b"\xff")])
def test_a_record_that_is_no_text_is_an_error(key: bytes, value: bytes) -> None:
    headers = [(name, value.encode()) for name, value in headers_of(EVENT).items() if value]
    with pytest.raises(UnreadableEvent):
        read_record(Message(topic="events.post", partition=0, offset=0, key=key, value=value, headers=headers))


def test_a_record_without_headers_is_an_error() -> None:
    with pytest.raises(UnreadableEvent):
        read_record(Message(topic="events.post", partition=0, offset=0, key=b"source:7", value=b"{}"))


def test_a_consumer_follows_one_topic_for_each_domain_of_its_kinds() -> None:
    assert topics_of({"post.stored", "post.changed", "source.added"}) == ["events.post", "events.source"]


def test_a_batch_is_split_by_partition_over_all_topics_and_keeps_its_order() -> None:
    places = [("events.post", 1, 0), ("events.source", 2, 0), ("events.source", 1, 5), ("events.post", 1, 1)]
    messages = [Message(topic=topic, partition=partition, offset=offset) for topic, partition, offset in places]
    found = by_partition(messages)
    assert {partition: [(m.topic(), m.offset()) for m in group] for partition, group in found.items()} == {
        1: [("events.post", 0), ("events.source", 5), ("events.post", 1)],
        2: [("events.source", 0)],
    }


def test_every_kind_of_event_has_a_topic() -> None:
    declared = {topic.name for topic in topics(CLUSTER, timedelta(days=7))}
    assert set(topics_of(kind.name for kind in KINDS)) <= declared
    assert len(declared) == len(DOMAINS) + 1


def test_there_are_topics_for_the_fleet_operations_and_dead_letters() -> None:  # E12
    declared = {topic.name for topic in topics(CLUSTER, timedelta(days=7))}
    assert declared > {"events.miner", "events.treasury", "events.ops", "events.dlq", "events.post", "events.source"}


@pytest.mark.parametrize("name", list(deploy_files()))
def test_the_shipped_files_are_what_the_set_up_makes(name: str) -> None:
    assert (DEPLOY / name).read_text() == deploy_files()[name], "run `.venv/bin/python scripts/reference.py`"


def test_the_shipped_publication_is_what_the_set_up_makes() -> None:
    shipped = (DEPLOY / "postgres" / "publication.sql").read_text()
    assert f"{publication_sql(CLUSTER.publication)};" in shipped


def test_a_check_says_what_is_wrong_and_what_to_do() -> None:
    topic = Topic("events.post", 8, {})
    running, failed = {"state": "RUNNING"}, {"state": "FAILED", "trace": "it broke\n at line 3"}
    bad = [
        (judge_wal_level("replica"), "restart PostgreSQL"),
        (judge_publication(CLUSTER, None), "headwater kafka setup"),
        (judge_publication(CLUSTER, Publication(False, ("event_outbox",))), "more than inserts"),
        (judge_publication(CLUSTER, Publication(True, ("event_outbox", "users"))), "users"),
        (judge_slot(CLUSTER, None), "the connector creates it"),
        (judge_slot(CLUSTER, ReplicationSlot(active=False, kept=False, behind=0)), "lost its log"),
        (judge_slot(CLUSTER, ReplicationSlot(active=False, kept=True, behind=5000)), "5,000 bytes behind"),
        (judge_slot(CLUSTER, ReplicationSlot(active=True, kept=True, behind=BEHIND_BYTES + 1)), "too slow"),
        (judge_status(CLUSTER, {}), "not started"),
        (judge_status(CLUSTER, {"connector": running}), "no task yet"),
        (judge_status(CLUSTER, {"connector": running, "tasks": [failed]}), "FAILED: it broke"),
        (judge_topic(topic, None), "headwater kafka setup"),
        (judge_topic(topic, 3), "--partitions 8"),
    ]
    for finding, words in bad:
        assert not finding.ok
        assert words in finding.detail


def test_a_check_names_the_settings_that_differ_and_no_password() -> None:
    wanted = connector(CLUSTER, CONNECTS_DATABASE)
    finding = judge_configuration(wanted, {**wanted, "name": "x", "database.password": "secret", "tasks.max": "2"})
    assert "database.password, tasks.max" in finding.detail
    assert "secret" not in finding.detail
    assert judge_configuration(wanted, {**wanted, "name": "x"}).ok
