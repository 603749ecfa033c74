"""What Kafka needs: topics, a publication in PostgreSQL, and Debezium's connector between them.

`set_up` creates what is missing. It can be run again at any time. `check` examines each part in turn, and says what to
do if it is broken. `deploy/` holds the same things as files.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from sqlalchemy import make_url

from headwater.errors import HeadwaterError, LogUnavailable
from headwater.events.catalogue import DOMAINS
from headwater.store.db import Database
from headwater.store.log import replication
from headwater.store.log.outbox import PARTITIONS

ANSWER_SECONDS = 10.0
STATE_SECONDS = 2.0  # somebody waits for the health page
CHANGE_SECONDS = 100.0  # Kafka Connect gives up after 90
BUSY_SECONDS = 0.2
BEHIND_BYTES = 256 * 1024 * 1024  # a heartbeat moves the slot every ten seconds; a busy server writes less in between
SET_UP = "run `headwater kafka setup`"
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


def connector_state(connect_url: str, database: str) -> str:
    """Returns the state of the connector that reads the outbox of this database, as Kafka Connect has it.

    That is RUNNING only if its tasks run as well. MISSING: there is none. Raises LogUnavailable if Kafka Connect does
    not answer.
    """
    cluster = Cluster("", connect_url)
    found = ask_connect(cluster, "GET", "/connectors?expand=status&expand=info", patience=STATE_SECONDS) or {}
    known = [one for one in found.values() if {"info", "status"} <= one.keys()]  # one that is being deleted has neither
    states = [_state(one["status"]) for one in known if _reads_outbox(one["info"]["config"], database)]
    return next((state for state in states if state != "RUNNING"), "RUNNING" if states else "MISSING")


def _reads_outbox(config: Mapping[str, str], database: str) -> bool:
    return config.get("database.dbname") == database and replication.TABLE in config.get("table.include.list", "")


def _state(status: Mapping[str, Any]) -> str:
    states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
    return next((state for state in states if state != "RUNNING"), "RUNNING" if status["tasks"] else "STARTING")


def ask_connect(cluster: Cluster, method: str, path: str, body: object = None, *, patience: float | None = None) -> Any:
    """Makes a request to Kafka Connect. Returns None for a 404. Repeats it while workers rebalance (409)."""
    request = urllib.request.Request(
        cluster.connect_url.rstrip("/") + path,
        method=method,
        data=json.dumps(body).encode() if body is not None else None,
        headers={"content-type": "application/json"},
    )
    patience = patience or (ANSWER_SECONDS if method == "GET" else CHANGE_SECONDS)
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


class KafkaFinding(NamedTuple):
    what: str
    ok: bool
    detail: str


async def check(cluster: Cluster, db: Database, database_url: str, retention: timedelta) -> list[KafkaFinding]:
    """Returns the findings in the order in which an event passes the parts. The arguments are those of `set_up`."""
    return [finding async for finding in _findings(cluster, db, database_url, retention)]


async def _findings(
    cluster: Cluster, db: Database, database_url: str, retention: timedelta
) -> AsyncIterator[KafkaFinding]:
    if db.is_sqlite:
        yield KafkaFinding(
            "database", False, "SQLite; Kafka gets its events from PostgreSQL: set HEADWATER_DATABASE_URL"
        )
    else:
        for finding in await _of_database(cluster, db):
            yield finding
    for finding in await asyncio.to_thread(_of_connector, cluster, connector(cluster, database_url)):
        yield finding
    for finding in await asyncio.to_thread(_of_kafka, cluster, topics(cluster, retention)):
        yield finding


async def _of_database(cluster: Cluster, db: Database) -> list[KafkaFinding]:
    try:
        level = await db.read(replication.wal_level)
        published = await db.read(replication.publication, cluster.publication)
        slot = await db.read(replication.slot, cluster.name)
    except HeadwaterError as error:
        return [KafkaFinding("database", False, error.detail)]
    return [judge_wal_level(level), judge_publication(cluster, published), judge_slot(cluster, slot)]


def judge_wal_level(level: str) -> KafkaFinding:
    if level == "logical":
        return KafkaFinding("database", True, "PostgreSQL with wal_level = logical")
    return KafkaFinding("database", False, f"wal_level is {level}; set it to logical and restart PostgreSQL")


def judge_publication(cluster: Cluster, found: replication.Publication | None) -> KafkaFinding:
    name = cluster.publication
    if found is None:
        return KafkaFinding("publication", False, f"{name} does not exist; {SET_UP}")
    if found.tables != (replication.TABLE,):
        tables = ", ".join(found.tables) or "nothing"
        return KafkaFinding("publication", False, f"{name} publishes {tables}; drop it and {SET_UP}")
    if not found.inserts_only:
        return KafkaFinding("publication", False, f"{name} publishes more than inserts; drop it and {SET_UP}")
    return KafkaFinding("publication", True, f"{name} publishes inserts into {replication.TABLE}")


def judge_slot(cluster: Cluster, found: replication.ReplicationSlot | None) -> KafkaFinding:
    name = cluster.name
    if found is None:
        return KafkaFinding("slot", False, f"{name} does not exist; the connector creates it when it starts")
    if not found.kept:
        return KafkaFinding(
            "slot", False, f"{name} lost its log (max_slot_wal_keep_size); drop it and restart the connector"
        )
    if not found.active:
        return KafkaFinding("slot", False, f"nobody reads {name}, {found.behind:,} bytes behind; check Kafka Connect")
    if found.behind > BEHIND_BYTES:
        return KafkaFinding(
            "slot", False, f"{name} is {found.behind:,} bytes behind; Kafka or the connector is too slow"
        )
    return KafkaFinding("slot", True, f"{name} is read, {found.behind:,} bytes behind")


def _of_connector(cluster: Cluster, wanted: dict[str, str]) -> list[KafkaFinding]:
    try:
        found = registered(cluster)
        if found is None:
            return [KafkaFinding("connector", False, f"{cluster.connector} is not registered; {SET_UP}")]
        status = ask_connect(cluster, "GET", f"/connectors/{cluster.connector}/status")
    except HeadwaterError as error:
        return [KafkaFinding("connector", False, error.detail)]
    return [judge_status(cluster, status or {}), judge_configuration(wanted, found)]


def judge_status(cluster: Cluster, status: dict[str, Any]) -> KafkaFinding:
    """The first line of the trace says why a connector failed."""
    parts = [status.get("connector", {}), *status.get("tasks", [])]
    for part in parts:
        if part.get("state") != "RUNNING":
            reason = (part.get("trace") or "no reason given").splitlines()[0]
            return KafkaFinding(
                "connector", False, f"{cluster.connector} is {part.get('state', 'not started')}: {reason}"
            )
    if len(parts) < 2:
        return KafkaFinding("connector", False, f"{cluster.connector} has no task yet; try again in a moment")
    return KafkaFinding("connector", True, f"{cluster.connector} and its task are running")


def judge_configuration(wanted: dict[str, str], found: dict[str, str]) -> KafkaFinding:
    """Prints only names: a value may be a password."""
    other = sorted(name for name in {*wanted, *found} - {"name"} if wanted.get(name) != found.get(name))
    if other:
        return KafkaFinding("configuration", False, f"differs from Headwater's: {', '.join(other)}; {SET_UP}")
    return KafkaFinding("configuration", True, "the connector has Headwater's configuration")


def _of_kafka(cluster: Cluster, wanted: list[Topic]) -> list[KafkaFinding]:
    try:
        found = open_admin(cluster).list_topics(timeout=ANSWER_SECONDS)
    except KafkaException as error:
        return [KafkaFinding("kafka", False, f"{cluster.brokers} does not answer: {error.args[0].str()}")]
    partitions = {name: len(topic.partitions) for name, topic in found.topics.items()}
    answers = KafkaFinding("kafka", True, f"{cluster.brokers} answers; brokers: {len(found.brokers)}")
    return [answers, *(judge_topic(topic, partitions.get(topic.name)) for topic in wanted)]


def judge_topic(topic: Topic, partitions: int | None) -> KafkaFinding:
    """Extra partitions stay empty. With too few, the connector stops at the first event for a missing partition."""
    what = f"topic {topic.name}"
    if partitions is None:
        return KafkaFinding(what, False, f"does not exist; {SET_UP}")
    if partitions < topic.partitions:
        advice = f"add some: kafka-topics.sh --alter --topic {topic.name} --partitions {topic.partitions}"
        return KafkaFinding(what, False, f"{partitions} partitions instead of {topic.partitions}; {advice}")
    return KafkaFinding(what, True, f"{partitions} partitions")
