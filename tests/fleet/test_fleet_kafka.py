"""The portfolio by way of Debezium and Kafka: changes of machines reach it through events.miner."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from headwater import wire
from headwater.app.fleet import miners, portfolio
from headwater.app.fleet.miners import MinerChange, NewMiner
from headwater.app.instance import owner
from headwater.consumers import portfolio as consumer
from headwater.events.kafka.connector import Cluster
from headwater.events.kafka.follow import follow
from headwater.settings import load
from headwater.wire import Parts, loops
from headwater.work import portfolios
from support.kafka import deployed, kafka_address, own_cluster

CHANGES = 40


@pytest.fixture
def parts(postgres_url: str, tmp_path: Path) -> Iterator[Parts]:
    opened = wire.open_parts(load({"HEADWATER_DATABASE_URL": postgres_url, "HEADWATER_DATA_DIR": str(tmp_path)}))
    wire.prepare_store(opened)
    yield opened
    opened.close()


@pytest.fixture
def cluster(parts: Parts, postgres_url: str) -> Iterator[Cluster]:
    with deployed(own_cluster(kafka_address("kafka"), kafka_address("connect")), parts.db, postgres_url) as made:
        yield made


def test_every_change_reaches_the_portfolio_through_kafka(parts: Parts, cluster: Cluster) -> None:  # E8, E12
    reader = owner(parts.db)
    wanted = NewMiner(model="Antminer T21", electricity_usd_per_kwh=Decimal("0.05"))
    machine = parts.db.write_now(miners.add, reader, wanted, parts.now())
    mine = consumer.consumer(parts.stale_portfolios.send)._replace(name=cluster.name)  # a group of its own

    async def quantity() -> int:
        found: int = (await portfolio.main(parts.db, parts.cache, reader)).portfolio["machines"]["quantity"]
        return found

    async def shows(wanted: int) -> None:
        while await quantity() != wanted:
            await asyncio.sleep(0.02)

    async def change() -> int:
        stop = asyncio.Event()
        async with asyncio.timeout(300), asyncio.TaskGroup() as group:
            group.create_task(follow(parts.db, mine, cluster.brokers, parts.now, stop, prefix=cluster.prefix))
            tools = loops.calculation_tools(parts)
            group.create_task(portfolios.keep_calculated(tools, parts.stale_portfolios, stop))
            for number in range(2, CHANGES + 2):
                change = MinerChange(quantity=number)
                await parts.db.write_grouped(miners.change, reader, machine.id, change, parts.now())
            await shows(CHANGES + 1)
            await asyncio.to_thread(parts.db.write_now, miners.remove, reader, machine.id, parts.now())
            await shows(0)
            stop.set()
        return await quantity()

    assert asyncio.run(change()) == 0, "and nothing late changes it again"
