"""The log on Kafka: makes what a deployment is missing, and checks whether events get there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from headwater.errors import BadSetting
from headwater.store.db import Database

if TYPE_CHECKING:
    from headwater.events.kafka.check import KafkaFinding
    from headwater.events.kafka.setup import Cluster


def cluster(db: Database, brokers: str | None, connect_url: str) -> Cluster:
    """Returns where Kafka is. Raises BadSetting if it cannot be used with these settings."""
    try:
        from headwater.events.kafka.setup import Cluster
    except ImportError as error:
        raise BadSetting("Kafka's client is not installed: pip install 'headwater[kafka]'") from error
    if db.is_sqlite:
        raise BadSetting("Kafka needs PostgreSQL: set HEADWATER_DATABASE_URL to postgresql://…")
    if not brokers:
        raise BadSetting("Set HEADWATER_KAFKA_BOOTSTRAP_SERVERS to Kafka's address, such as kafka.example:9092.")
    return Cluster(brokers, connect_url)


async def set_up(cluster: Cluster, db: Database, database_url: str, retention: timedelta) -> Sequence[str]:
    """Makes the topics, the publication and the connector that are missing. Returns what was done, a line each."""
    from headwater.events.kafka import setup

    return await setup.set_up(cluster, db, database_url, retention)


async def check(cluster: Cluster, db: Database, database_url: str, retention: timedelta) -> list[KafkaFinding]:
    """Checks each part of the way from the database to Kafka."""
    from headwater.events.kafka import check as kafka_check

    return await kafka_check.check(cluster, db, database_url, retention)
