"""Checks whether events get from PostgreSQL to Kafka: each part in turn, and what to do if it is broken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, NamedTuple

from confluent_kafka import KafkaException

from headwater.errors import HeadwaterError
from headwater.events.kafka.setup import (
    ANSWER_SECONDS,
    Cluster,
    Topic,
    ask_connect,
    connector,
    open_admin,
    registered,
    topics,
)
from headwater.store.db import Database
from headwater.store.log import replication

BEHIND_BYTES = 256 * 1024 * 1024  # a heartbeat moves the slot every ten seconds; a busy server writes less in between
SET_UP = "run `headwater kafka setup`"


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


def judge_slot(cluster: Cluster, found: replication.Slot | None) -> KafkaFinding:
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
