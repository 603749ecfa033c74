"""What a portfolio costs, and how soon a change of machines is visible in it.

    python bench/fleet.py [--machines 10000] [--trades 100] [--writes 200] [--seconds 10] [--folder /dev/shm]
    python bench/fleet.py --database postgresql://… [--kafka 127.0.0.1:9092 --connect http://127.0.0.1:8083]

First, the CPU time of calculating a portfolio from nothing, beside a plain loop of floats over the
same rows, which is what a script would do. Every entry of machines differs from the others. Second, how long it takes
from the commit of a change until `/analytics/main` shows it, in one process, while many users change their machines so
many times a second altogether. Wall time; the machine may be shared. Every commit waits for the disk, so a
commit is measured by itself as well; a folder in memory shows what is left without the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from sqlalchemy import Connection, insert

from headwater import wire
from headwater.app.fleet import miners, portfolio
from headwater.app.fleet.miners import MinerChange, NewMiner
from headwater.crawl.record import record_days
from headwater.events.catalogue import PORTFOLIO_RECALCULATED
from headwater.model import MarketDay, Reader
from headwater.settings import load
from headwater.store.fleet import portfolios
from headwater.store.log import replication
from headwater.store.tables import treasury_trades, user_miners, users
from headwater.waiting import wait
from headwater.wire import Parts

NOW = datetime(2026, 5, 18, 12, tzinfo=UTC)
DAY = MarketDay(date(2026, 5, 18), 80_000.0, 136.6e12, 950_000, 144, 2.88)
USERS = 50
ROUNDS = 5
GOAL_CPU_MS = 50
GOAL_VISIBLE_MS = 50
GOAL_KAFKA_MS = 1000


def fill(conn: Connection, reader: Reader, machines: int, trades: int) -> None:
    """Makes a fleet in which no two entries are alike, and trades of which every third is a sale."""
    chance = random.Random(7)
    owner = {"tenant_id": reader.tenant_id, "user_id": reader.user_id, "created_at": NOW}
    rows = [
        {
            **owner,
            "updated_at": NOW,
            "miner_model_id": 1 + number % 50,
            "site": f"Hall {number % 20}",
            "quantity": 1 + number % 7,
            "actual_hashrate_th": Decimal(chance.randrange(90_000, 110_000)) / 1000,
            "actual_power_w": Decimal(chance.randrange(3_000_000, 3_500_000)) / 1000,
            "electricity_usd_per_kwh": Decimal(chance.randrange(30_000, 90_000)) / 1_000_000,
        }
        for number in range(machines)
    ]
    conn.execute(insert(user_miners), rows)
    sales = [
        {
            **owner,
            "side": ("buy", "mine", "sell")[number % 3],
            "satoshis": 1_000_000,
            "usd": Decimal(600 + number),
            "traded_at": NOW - timedelta(minutes=trades - number),
            "idempotency_key": str(number),
        }
        for number in range(trades)
    ]
    if sales:
        conn.execute(insert(treasury_trades), sales)


def by_floats(conn: Connection, reader: Reader, hashprice: float) -> float:
    """What a script would do: read the rows, and add up floats."""
    profit = 0.0
    for quantity, hashrate, power, price, *_ in portfolios.holdings(conn, reader):
        profit += quantity * (float(hashrate) * hashprice / 1000 - float(power) * 0.024 * float(price))
    return profit


def measure_calculation(parts: Parts, reader: Reader) -> tuple[float, float]:
    """Returns the CPU milliseconds of a calculation, and those of the plain loop."""
    ours, plain = [], []
    for _ in range(ROUNDS):
        began = time.thread_time()
        parts.db.read_now(portfolio.calculate, reader)
        ours.append((time.thread_time() - began) * 1000)
        began = time.thread_time()
        parts.db.read_now(by_floats, reader, 35.63)
        plain.append((time.thread_time() - began) * 1000)
    return statistics.median(ours), statistics.median(plain)


def more_users(conn: Connection, reader: Reader, now: datetime) -> list[tuple[Reader, int]]:
    """Makes users with one entry of machines each. Returns them with the ids of their machines."""
    found = []
    for number in range(USERS):
        values = {"tenant_id": reader.tenant_id, "name": f"user {number}", "role": "member", "created_at": now}
        user_id = conn.execute(insert(users).values(values).returning(users.c.id)).scalar_one()
        one = reader._replace(user_id=user_id)
        wanted = NewMiner(model="Antminer T21", electricity_usd_per_kwh=Decimal("0.05"))
        found.append((one, miners.add(conn, one, wanted, now).id))
    return found


async def measure_visible(parts: Parts, owners: list[tuple[Reader, int]], writes: int, seconds: float) -> list[float]:
    """Returns how many milliseconds each change took from its commit until the answer had it.

    Changes come when they come: a slow one does not hold back the next.
    """
    stop, delays, waiting = asyncio.Event(), list[float](), set[asyncio.Task[None]]()
    following = asyncio.create_task(wire.follow_log(parts, stop))
    for one, _ in owners:
        while not (await _state(parts, one)).calculated:
            await asyncio.sleep(0.01)

    async def until_visible(one: Reader, quantity: int, committed: float) -> None:
        with parts.new_events.listening({PORTFOLIO_RECALCULATED.name}) as recalculated:  # as the page does
            while (await portfolio.main(parts.db, parts.cache, one)).portfolio["machines"]["quantity"] < quantity:
                await wait(1.0, recalculated)
        delays.append((time.monotonic() - committed) * 1000)

    async def change(number: int) -> None:
        one, miner_id = owners[number % len(owners)]
        quantity = 2 + number // len(owners)
        await parts.db.write_grouped(miners.change, one, miner_id, MinerChange(quantity=quantity), parts.now())
        if number % 5 == 0:  # those who watch must not be the load that is measured
            await until_visible(one, quantity, time.monotonic())

    began, number, cpu = time.monotonic(), 0, time.process_time()
    while (at := time.monotonic() - began) < seconds:
        if at < number / writes:
            await asyncio.sleep(number / writes - at)
        waiting.add(asyncio.create_task(change(number)))
        number += 1
    spent = time.monotonic() - began
    await asyncio.gather(*waiting)
    stop.set()
    await following
    each = (time.process_time() - cpu) / number * 1000
    print(f"{number / spent:.0f} changes a second, {each:.1f} ms CPU each with all that follows")
    return sorted(delays)


@contextmanager
def published(parts: Parts, brokers: str, connect_url: str, url: str) -> Iterator[None]:
    """Has Debezium publish the outbox to Kafka for the block, if there are brokers."""
    if not brokers:
        yield
        return
    from headwater.events.kafka import connector  # an extra

    cluster = connector.Cluster(brokers, connect_url)
    asyncio.run(connector.set_up(cluster, parts.db, url, timedelta(days=1)))
    try:
        yield
    finally:
        connector.unregister(cluster)
        while parts.db.read_now(replication.slot, cluster.name):  # a slot that is left keeps the server's log for ever
            parts.db.write_now(replication.drop_slot, cluster.name)
            time.sleep(0.1)


def commit_ms(folder: str, commits: int = 100) -> float:
    """Returns the milliseconds of a commit of one row to the disk, as the store makes them: the median."""
    spent = []
    with closing(sqlite3.connect(f"{folder}/commits.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE rows (number INTEGER)")
        for number in range(commits):
            began = time.perf_counter()
            connection.execute("INSERT INTO rows VALUES (?)", (number,))
            spent.append(1000 * (time.perf_counter() - began))
    return statistics.median(spent)


async def _state(parts: Parts, reader: Reader) -> portfolios.PortfolioState:
    return await parts.db.read(portfolios.state, reader) or portfolio.NOTHING


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--machines", type=int, default=10_000)
    arguments.add_argument("--trades", type=int, default=100)
    arguments.add_argument("--writes", type=int, default=200)
    arguments.add_argument("--seconds", type=float, default=10.0)
    arguments.add_argument("--folder", help="where to put the store; none: the system's temporary folder")
    arguments.add_argument("--database", help="an empty PostgreSQL database, instead of SQLite")
    arguments.add_argument("--kafka", default="", help="brokers: changes take the way of Debezium and Kafka")
    arguments.add_argument("--connect", default="", help="where Kafka Connect listens")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        wire.configure_logs("warning", "text")
        url = given.database or f"sqlite:///{Path(folder) / 'headwater.db'}"
        settings = {"HEADWATER_DATABASE_URL": url, "HEADWATER_DATA_DIR": folder}
        if given.kafka:
            settings |= {"HEADWATER_KAFKA_BOOTSTRAP_SERVERS": given.kafka}
        parts = wire.open_parts(load(settings))
        reader = wire.prepare_store(parts)
        parts.db.write_now(record_days, [DAY], "bench", NOW)
        parts.db.write_now(fill, reader, given.machines, given.trades)
        ours, plain = measure_calculation(parts, reader)
        print(f"calculating {given.machines:,} machines and {given.trades:,} trades: {ours:.1f} ms CPU", end=" ")
        print(f"(goal {GOAL_CPU_MS}), {ours / plain:.2f} times a plain loop of floats")
        owners = parts.db.write_now(more_users, reader, parts.now())
        with published(parts, given.kafka, given.connect, url):
            delays = asyncio.run(measure_visible(parts, owners, given.writes, given.seconds))
        p50, p95 = delays[len(delays) // 2], delays[int(len(delays) * 0.95)]
        goal = GOAL_KAFKA_MS if given.kafka else GOAL_VISIBLE_MS
        if not given.database:
            print(f"a commit to this disk: {commit_ms(folder):.2f} ms")
        print(f"change to visible: p50 {p50:.1f} ms, p95 {p95:.1f} ms (goal {goal})", end=" ")
        print(f"with {os.getloadavg()[0]:.1f} processes that wait for {os.cpu_count()} cores")
        parts.close()


if __name__ == "__main__":
    main()
