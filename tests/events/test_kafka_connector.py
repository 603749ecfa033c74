"""From the outbox through Debezium into Kafka, with the connector that Headwater registers."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from api.running import running
from headwater.events.catalogue import EVENT_DEAD
from headwater.events.kafka import connector
from headwater.events.kafka.connector import Cluster, ask_connect, check, set_up, unregister
from headwater.events.kafka.follow import read_record
from headwater.store.db import Database
from headwater.store.log import dead_letters, outbox
from headwater.store.log.outbox import LoggedEvent
from support.kafka import RETENTION, deployed, drop_slot, kafka_address, own_cluster, read_records, wait_until
from support.log import Recorder, append, consume_all, number_of
from support.posts import NOON, a_post


@pytest.fixture
def cluster() -> Cluster:
    return own_cluster(kafka_address("kafka"), kafka_address("connect"))


def stored(conn: Connection) -> dict[int, LoggedEvent]:
    """What stands in the outbox, by id."""
    first = outbox.LogPosition(0, 0)
    events = [event for p in range(outbox.PARTITIONS) for event in outbox.after(conn, p, first, 1000)]
    return {event.position.id: event for event in events}


def partitions(conn: Connection) -> dict[str, int]:
    return dict(conn.execute(text("SELECT event_id, partition FROM event_outbox")).all())


def is_behind(conn: Connection) -> bool:
    """Whether an older transaction still hides the newest event from readers of the table."""
    return len(stored(conn)) < conn.execute(text("SELECT count(*) FROM event_outbox")).scalar_one()


def test_events_from_before_and_after_the_set_up_reach_their_topic_in_the_order_of_their_keys(
    database: Database, postgres_url: str, cluster: Cluster
) -> None:  # E2
    for number in range(100, 106):
        database.write_now(append, number, key=number % 3)
    with deployed(cluster, database, postgres_url):
        read_records(cluster, "source", 6)
        database.write_now(lambda conn: conn.execute(text("DELETE FROM event_outbox WHERE id = 1")))
        for number in range(200, 240):
            database.write_now(append, number, number + 100, key=number % 5)
        records = read_records(cluster, "source", 86)

        wait_until(lambda: not database.read_now(is_behind))
        rows, places = database.read_now(stored), database.read_now(partitions)
        events = [read_record(record) for record in records]
        assert {event.event_id for event in events} >= {event.event_id for event in rows.values()}
        for event, record in zip(events, records, strict=True):
            if row := rows.get(event.position.id):
                assert event._replace(position=row.position) == row
                assert record.partition() == places[event.event_id]
            assert record.key() == event.key.encode()
        by_key: dict[str, list[int]] = defaultdict(list)
        for event in events:
            by_key[event.key].append(event.position.id)
        assert all(ids == sorted(ids) for ids in by_key.values())


def test_events_from_while_the_slot_was_lost_are_read_from_the_table(
    database: Database, postgres_url: str, cluster: Cluster
) -> None:
    with deployed(cluster, database, postgres_url):
        database.write_now(append, 1, 2, key=1)
        read_records(cluster, "source", 2)
        ask_connect(cluster, "PUT", f"/connectors/{cluster.connector}/stop")
        wait_until(lambda: drop_slot(database, cluster))
        database.write_now(append, 3, key=1)
        ask_connect(cluster, "PUT", f"/connectors/{cluster.connector}/resume")
        records = read_records(cluster, "source", 5)
    assert [number_of(read_record(record)) for record in records] == [1, 2, 1, 2, 3]


def test_a_dead_letter_is_in_its_table_and_in_its_topic(
    database: Database, postgres_url: str, cluster: Cluster
) -> None:  # E12
    recorder = Recorder(fails=lambda number: number == 1)
    database.write_now(append, 1, 2)
    for later in (0, 10):
        consume_all(database, recorder.consumer, NOON + timedelta(seconds=later))
    (letter,) = database.read_now(dead_letters.page)
    with deployed(cluster, database, postgres_url):
        (record,) = read_records(cluster, "dlq", 1)
    published = json.loads(record.value() or b"")
    assert read_record(record).kind == EVENT_DEAD.name
    assert (published["event_id"], published["consumer"]) == (letter.event.event_id, "recorder")
    assert (published["error"], published["attempts"]) == (letter.error, 3)
    assert json.loads(published["payload"]) == json.loads(letter.event.data)


def test_a_record_has_the_headers_of_a_cloud_event_and_the_payload_as_it_is(
    database: Database, postgres_url: str, cluster: Cluster
) -> None:
    database.write_now(append, 7, key=3)
    with deployed(cluster, database, postgres_url):
        (record,) = read_records(cluster, "source", 1)
    headers = dict(record.headers() or ())
    event = read_record(record)
    assert headers == {
        "ce_specversion": b"1.0",
        "ce_source": b"headwater",
        "ce_id": event.event_id.encode(),
        "ce_type": b"source.retired",
        "ce_time": b"2026-11-02T12:00:00.000000Z",
        "ce_partitionkey": b"source:3",
        "ce_sequence": b"1",
        "ce_dataversion": b"1",
        "ce_tenantid": None,
        "ce_userid": None,
        "traceparent": None,
        "content-type": b"application/json",
    }
    assert record.value() == b'{"address": "https://news.example/7", "source_id": 3}'


def test_a_check_finds_what_is_missing_and_after_the_set_up_nothing_and_setting_up_again_does_nothing(
    database: Database, postgres_url: str, cluster: Cluster
) -> None:
    before = asyncio.run(check(cluster, database, postgres_url, RETENTION))
    assert [finding.what for finding in before if finding.ok] == ["database", "kafka"]
    with deployed(cluster, database, postgres_url):
        assert asyncio.run(set_up(cluster, database, postgres_url, RETENTION)) == []

        def complaints() -> list[str]:
            found = asyncio.run(check(cluster, database, postgres_url, RETENTION))
            return [f"{finding.what}: {finding.detail}" for finding in found if not finding.ok]

        wait_until(lambda: complaints() == [])


def test_a_check_of_servers_that_are_not_there_says_so(
    database: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "ANSWER_SECONDS", 0.5)
    nowhere = Cluster("127.0.0.1:1", "http://127.0.0.1:1")
    found = {finding.what: finding for finding in asyncio.run(check(nowhere, database, postgres_url, RETENTION))}
    assert "does not answer" in found["connector"].detail
    assert "does not answer" in found["kafka"].detail


def test_a_paused_or_stopped_connector_and_the_log_kept_for_it_are_seen(
    postgres_url: str,
) -> None:  # E9, E13
    brokers, connect = kafka_address("kafka"), kafka_address("connect")
    cluster = own_cluster(brokers, connect)
    kafka = {"HEADWATER_KAFKA_BOOTSTRAP_SERVERS": brokers, "HEADWATER_KAFKA_CONNECT_URL": connect}
    with running(postgres_url, **kafka) as headwater, deployed(cluster, headwater.parts.db, postgres_url):
        client = headwater.program()

        def figures() -> dict[str, Any]:
            found = client.get("/api/health").json()["figures"]
            return {one["name"]: one for one in found if one["consumer"] is None}

        def kept() -> float:
            lines = client.get("/metrics").text.splitlines()
            [line] = [one for one in lines if f'headwater_replication_slot_bytes{{slot="{cluster.name}"}}' in one]
            return float(line.rpartition(" ")[2])

        wait_until(lambda: (figures()["connector"]["state"], figures()["slot_read"]["state"]) == ("ok", "ok"))
        ask_connect(cluster, "PUT", f"/connectors/{cluster.connector}/pause")
        wait_until(lambda: "PAUSED" in figures()["connector"]["advice"])
        before, source_id = kept(), headwater.source()
        headwater.publish(source_id, *[a_post(str(number), content="word " * 2000) for number in range(120)])
        answer = client.get("/api/health").json()
        assert answer["status"] == "bad"
        assert answer["outbox_backlog"] >= 120
        lags = [one for one in answer["figures"] if one["name"] == "partition_lag"]
        assert {one["consumer"].partition("/")[0] for one in lags} >= {"search", "fold"}
        assert kept() > before
        assert 'headwater_partition_backlog{consumer="search",partition="' in client.get("/metrics").text
        ask_connect(cluster, "PUT", f"/connectors/{cluster.connector}/stop")
        wait_until(lambda: "STOPPED" in figures()["connector"]["advice"] and figures()["slot_read"]["state"] == "bad")
        ask_connect(cluster, "PUT", f"/connectors/{cluster.connector}/resume")
        wait_until(lambda: (figures()["connector"]["state"], figures()["slot_read"]["state"]) == ("ok", "ok"))
        read_records(cluster, "post", 120)
        unregister(cluster)
        wait_until(lambda: "MISSING" in figures()["connector"]["advice"])
