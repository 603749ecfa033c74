"""What Kafka needs: topics, a publication in PostgreSQL, and Debezium's connector between them.

`set_up` creates what is missing. It can be run again at any time. `deploy/` holds the same things as files.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from sqlalchemy import make_url

from headwater.errors import LogUnavailable
from headwater.events.catalogue import DOMAINS
from headwater.store.db import Database
from headwater.store.log import replication
from headwater.store.log.outbox import PARTITIONS

ANSWER_SECONDS = 10.0
CHANGE_SECONDS = 100.0  # Kafka Connect gives up after 90
BUSY_SECONDS = 0.2
ROUTER = "io.debezium.transforms.outbox.EventRouter"
TRANSFORMS = "org.apache.kafka.connect.transforms"
STRING = "org.apache.kafka.connect.storage.StringConverter"
# Which column of the outbox becomes which header (CloudEvents 1.0, binary mode). Other headers are always the same.
HEADERS = {
    "event_id": "ce_id",
    "kind": "ce_type",
    "version": "ce_dataversion",
    "key": "ce_partitionkey",
    "id": "ce_sequence",
    "created_at": "ce_time",
    "tenant_id": "ce_tenantid",
    "user_id": "ce_userid",
    "traceparent": "traceparent",
}
FIXED_HEADERS = {"ce_source": "headwater", "content-type": "application/json"}


class Cluster(NamedTuple):
    """Where Kafka and Kafka Connect are, and what is called how there. `name` is part of every name."""

    brokers: str
    connect_url: str
    name: str = "headwater"
    prefix: str = "events"

    @property
    def connector(self) -> str:
        return f"{self.name}-outbox"

    @property
    def publication(self) -> str:
        return f"{self.name}_outbox"

    @property
    def heartbeat_topic(self) -> str:
        return f"__debezium-heartbeat.{self.name}"

    def topic(self, domain: str) -> str:
        return f"{self.prefix}.{domain}"


class Topic(NamedTuple):
    name: str
    partitions: int
    settings: dict[str, str]


def topics(cluster: Cluster, retention: timedelta) -> list[Topic]:
    """Returns a topic for each domain, and one for heartbeats.

    A consumer that lost its offset starts at the beginning of a topic. Its inbox knows what has taken effect: it keeps
    that for a day longer than events are kept. Kafka deletes whole segments, so segments are short.
    """
    kept = {"retention.ms": _milliseconds(retention), "segment.ms": _milliseconds(timedelta(hours=12))}
    events = [Topic(cluster.topic(domain), PARTITIONS, kept) for domain in DOMAINS]
    return [*events, Topic(cluster.heartbeat_topic, 1, {"cleanup.policy": "compact"})]


def connector(cluster: Cluster, database_url: str) -> dict[str, str]:
    """Returns the configuration of Debezium's connector. Whatever is not a default has its reason here."""
    database = make_url(database_url)
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "database.hostname": database.host or "localhost",
        "database.port": str(database.port or 5432),
        "database.user": database.username or "",
        "database.password": database.password or "",
        "database.dbname": database.database or "",
        "plugin.name": "pgoutput",
        "slot.name": cluster.name,
        # We create the publication: one that Debezium creates would publish deletes as well.
        "publication.name": cluster.publication,
        "publication.autocreate.mode": "disabled",
        "table.include.list": f"public.{replication.TABLE}",
        "topic.prefix": cluster.name,
        **_snapshot(),
        **_heartbeat(),
        "extended.headers.enabled": "false",
        # The default of half a second would be most of the delay from commit to consumer.
        "poll.interval.ms": "20",
        # One request is in flight at a time, to keep the order. So it should hold more than the default.
        "producer.override.batch.size": "131072",
        "producer.override.linger.ms": "5",
        # How long to wait after PostgreSQL was down. The default is ten seconds.
        "retriable.restart.connector.wait.ms": "1000",
        # A domain without a topic gets one of the same shape.
        "topic.creation.default.partitions": str(PARTITIONS),
        "topic.creation.default.replication.factor": "-1",
        "key.converter": STRING,
        "value.converter": STRING,
        "header.converter": STRING,
        **_transforms(cluster),
    }


def _snapshot() -> dict[str, str]:
    """Events from before the connector, or from a time without a slot, are read from the table, in log order."""
    table = f"public.{replication.TABLE}"
    return {
        "snapshot.mode": "when_needed",
        "snapshot.select.statement.overrides": table,
        f"snapshot.select.statement.overrides.{table}": f"SELECT * FROM {table} ORDER BY xid, id",
    }


def _heartbeat() -> dict[str, str]:
    """Without heartbeats, a server on which only other databases are busy would never move the slot and fill up."""
    return {
        "heartbeat.interval.ms": "10000",
        "heartbeat.action.query": "SELECT pg_logical_emit_message(false, 'headwater.heartbeat', '')",
        "message.prefix.exclude.list": "headwater.heartbeat",
    }


def _transforms(cluster: Cluster) -> dict[str, str]:
    """Turns a row into a record. `route.topic.regex` must keep its default, or `${routedByValue}` is not replaced."""
    placed = ["partition:partition", *(f"{column}:header:{header}" for column, header in HEADERS.items())]
    chosen = {
        "transforms": ",".join(["version", "specversion", "outbox", "id", *map(_alias, FIXED_HEADERS)]),
        # InsertHeader would turn 1.0 into a number and that into 1. A field keeps it as text.
        "transforms.version.type": f"{TRANSFORMS}.InsertField$Value",
        "transforms.version.static.field": "specversion",
        "transforms.version.static.value": "1.0",
        "transforms.specversion.type": f"{TRANSFORMS}.HeaderFrom$Value",
        "transforms.specversion.fields": "specversion",
        "transforms.specversion.headers": "ce_specversion",
        "transforms.specversion.operation": "move",
        "transforms.outbox.type": ROUTER,
        "transforms.outbox.route.by.field": "domain",
        "transforms.outbox.route.topic.replacement": cluster.topic("${routedByValue}"),
        "transforms.outbox.table.field.event.id": "event_id",
        "transforms.outbox.table.field.event.key": "key",
        "transforms.outbox.table.field.event.payload": "payload",
        "transforms.outbox.table.fields.additional.placement": ",".join(placed),
        # The router adds the event's id a second time, under this name.
        "transforms.id.type": f"{TRANSFORMS}.DropHeaders",
        "transforms.id.headers": "id",
    }
    for header, value in FIXED_HEADERS.items():
        own = f"transforms.{_alias(header)}"
        chosen |= {f"{own}.type": f"{TRANSFORMS}.InsertHeader", f"{own}.header": header, f"{own}.value.literal": value}
    return chosen


def _alias(header: str) -> str:
    return header.removeprefix("ce_").replace("-", "")


def _milliseconds(time: timedelta) -> str:
    return str(time // timedelta(milliseconds=1))


def deploy_files() -> dict[str, str]:
    """Returns the files in `deploy/` for people who set up by hand: what `set_up` would do, with the usual names."""
    usual = Cluster("kafka:9092", "http://connect:8083")
    password = quote("${env:HEADWATER_DATABASE_PASSWORD}", safe="")  # Kafka Connect replaces it with the value
    config = connector(usual, f"postgresql://headwater:{password}@postgres:5432/headwater")
    declared = [topic._asdict() for topic in topics(usual, timedelta(days=7))]
    return {
        "debezium/outbox-connector.json": json.dumps({"name": usual.connector, "config": config}, indent=2) + "\n",
        "kafka/topics.json": json.dumps(declared, indent=2) + "\n",
    }


async def set_up(cluster: Cluster, db: Database, database_url: str, retention: timedelta) -> list[str]:
    """Creates topics, publication and connector. Returns what was done.

    `database_url` is the address at which Kafka Connect reaches PostgreSQL.
    """
    if db.is_sqlite:
        raise LogUnavailable("Kafka gets its events from PostgreSQL. Set HEADWATER_DATABASE_URL to postgresql://…")
    made = await asyncio.to_thread(make_topics, cluster, topics(cluster, retention))
    done = [f"topic {name} created" for name in made]
    if await db.write(replication.make_publication, cluster.publication):
        done.append(f"publication {cluster.publication} created")
    if await asyncio.to_thread(register, cluster, connector(cluster, database_url)):
        done.append(f"connector {cluster.connector} registered")
    elif await asyncio.to_thread(restart_failed, cluster):
        done.append(f"connector {cluster.connector} had failed and was restarted")
    return done


def open_admin(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.brokers, "log_level": 2})


def make_topics(cluster: Cluster, wanted: Iterable[Topic]) -> list[str]:
    """Creates the missing topics. Returns their names."""
    admin = open_admin(cluster)
    new = [NewTopic(topic.name, num_partitions=topic.partitions, config=topic.settings) for topic in wanted]
    answers = admin.create_topics(new, request_timeout=ANSWER_SECONDS)
    return [name for name, answer in answers.items() if _is_made(name, answer, cluster)]


def _is_made(name: str, answer: Future[None], cluster: Cluster) -> bool:
    try:
        answer.result()
    except KafkaException as error:
        problem = error.args[0]
        if problem.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise LogUnavailable(f"Kafka at {cluster.brokers} did not create the topic {name}: {problem.str()}") from error
    return True


def register(cluster: Cluster, wanted: dict[str, str]) -> bool:
    """Gives Kafka Connect this configuration. Returns False if it had it already."""
    if registered(cluster) == {**wanted, "name": cluster.connector}:
        return False
    ask_connect(cluster, "PUT", f"/connectors/{cluster.connector}/config", wanted)
    return True


def restart_failed(cluster: Cluster) -> bool:
    """Restarts the connector if it failed, which Kafka Connect does not do. Returns whether it had failed."""
    status = ask_connect(cluster, "GET", f"/connectors/{cluster.connector}/status") or {}
    parts = [status.get("connector", {}), *status.get("tasks", [])]
    failed = any(part.get("state") == "FAILED" for part in parts)
    if failed:
        ask_connect(cluster, "POST", f"/connectors/{cluster.connector}/restart?includeTasks=true&onlyFailed=true")
    return failed


def unregister(cluster: Cluster) -> None:
    ask_connect(cluster, "DELETE", f"/connectors/{cluster.connector}")


def registered(cluster: Cluster) -> dict[str, str] | None:
    """Returns the configuration in Kafka Connect, or None."""
    config: dict[str, str] | None = ask_connect(cluster, "GET", f"/connectors/{cluster.connector}/config")
    return config


def ask_connect(cluster: Cluster, method: str, path: str, body: object = None) -> Any:
    """Makes a request to Kafka Connect. Returns None for a 404. Repeats it while workers rebalance (409)."""
    request = urllib.request.Request(
        cluster.connect_url.rstrip("/") + path,
        method=method,
        data=json.dumps(body).encode() if body is not None else None,
        headers={"content-type": "application/json"},
    )
    patience = ANSWER_SECONDS if method == "GET" else CHANGE_SECONDS
    deadline = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(request, timeout=patience) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                said = _said(error.read())
            if error.code == 404:
                return None
            if error.code != 409 or time.monotonic() > deadline:
                raise LogUnavailable(f"Kafka Connect refused {method} {path}: {said}") from error
        except (OSError, ValueError) as error:
            raise LogUnavailable(f"Kafka Connect at {cluster.connect_url} does not answer: {error}") from error
        time.sleep(BUSY_SECONDS)


def _said(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")[:500]
