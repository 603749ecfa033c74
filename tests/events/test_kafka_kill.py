"""Nothing is lost and nothing happens twice when Kafka Connect and the broker are killed in the middle of it all."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from headwater.events.catalogue import SOURCE_RETIRED
from headwater.events.delivery import Consumer
from headwater.events.kafka.connector import set_up
from headwater.events.kafka.follow import follow
from headwater.store.db import Database
from headwater.store.log.outbox import LoggedEvent
from support.checkout import Checkout
from support.kafka import RETENTION, kafka_address, own_cluster
from support.log import append, database_with, number_of

KEYS, EVENTS = 7, 3000


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    with database_with(postgres_url, "CREATE TABLE effects (at bigserial, key text, number int)") as database:
        yield database


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    """Servers of its own: those of the session may be in use by somebody else."""
    kafka_address("connect")
    there = Checkout(tmp_path / "checkout")
    there.services("up", "connect")
    yield there
    there.services("clean")


def note_effects(conn: Connection, events: list[LoggedEvent]) -> None:
    rows = [{"key": event.key, "number": number_of(event)} for event in events]
    conn.execute(text("INSERT INTO effects (key, number) VALUES (:key, :number)"), rows)


def effects(conn: Connection) -> dict[str, list[int]]:
    """What happened to each key, in the order in which it happened."""
    found: dict[str, list[int]] = defaultdict(list)
    for key, number in conn.execute(text("SELECT key, number FROM effects ORDER BY at")):
        found[key].append(number)
    return found


def count(conn: Connection) -> int:
    return int(conn.execute(text("SELECT count(*) FROM effects")).scalar_one())


def utc_now() -> datetime:
    return datetime.now(UTC)


async def write_events(db: Database) -> None:
    for number in range(EVENTS):
        await db.write(append, number, key=number % KEYS)


async def kill_in_turn(checkout: Checkout) -> None:
    for name in ("connect", "kafka"):
        os.kill(await asyncio.to_thread(checkout.process, name), signal.SIGKILL)
        await asyncio.to_thread(checkout.services, "up", "connect")


async def test_events_written_while_connect_and_the_broker_are_killed_have_their_effect_once_and_in_order(
    database: Database, postgres_url: str, checkout: Checkout
) -> None:  # H79, H89
    urls = checkout.urls()
    cluster = own_cluster(urls["HEADWATER_TEST_KAFKA"], urls["HEADWATER_TEST_CONNECT"])
    consumer = Consumer(cluster.name, frozenset({SOURCE_RETIRED.name}), note_effects)
    stop = asyncio.Event()
    await set_up(cluster, database, postgres_url, RETENTION)
    async with asyncio.timeout(400), asyncio.TaskGroup() as group:
        group.create_task(follow(database, consumer, cluster.brokers, utc_now, stop, prefix=cluster.prefix))
        written = group.create_task(write_events(database))
        await kill_in_turn(checkout)
        await written
        while await database.read(count) < EVENTS:
            await asyncio.sleep(0.1)
        stop.set()
    assert checkout.urls() == urls
    found = database.read_now(effects)
    assert found == {f"source:{key}": [*range(key, EVENTS, KEYS)] for key in range(KEYS)}
