"""Readings of machines: how many go in per second, and how long a chart of a year takes.

    python bench/telemetry.py                                    # SQLite, 1,000 machines, 30 days filled for real
    python bench/telemetry.py --database postgresql://… --machines 200

Readings go in by the path of the API, from the bytes of a request to the commit. They are those of 10 minutes each, as
machines send them: a batch has one reading of many machines. The year is filled by what readings come to by the hour,
because that and the days are what a chart of a year reads; single readings are kept for 35 days.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import orjson
from sqlalchemy import insert

from headwater.app.fleet import miners, telemetry
from headwater.app.fleet.miners import NewMiner
from headwater.model import Reader
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.people import accounts
from headwater.store.tables import telemetry_days, telemetry_hours

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
EVERY = timedelta(minutes=10)
KEPT = timedelta(days=35)
BATCH = 10_000
MEASURED = ("hashrate", "power", "temperature")
WANTED_PER_SECOND = 50_000
WANTED_MS = 100.0


class Taken(NamedTuple):
    readings: int
    seconds: float
    cpu_seconds: float


def prepared(url: str, machines: int) -> tuple[Database, Reader, list[int]]:
    db = Database(url)
    migrate.upgrade(db)
    owner = db.write_now(accounts.make_owner, NOW)
    wanted = NewMiner(actual_hashrate_th="200", actual_power_w="3500", electricity_usd_per_kwh="0.06")
    ids = [db.write_now(miners.add, owner, wanted, NOW).id for _ in range(machines)]
    return db, owner, ids


def take(db: Database, owner: Reader, ids: list[int], batches: int) -> Taken:
    """Takes batches as the API does: the newest reading of every machine, then the ones before it."""
    bodies = [_body(ids, number) for number in range(batches)]
    began, cpu = time.perf_counter(), time.process_time()
    stored = 0
    for body in bodies:
        stored += db.write_now(telemetry.take, owner, telemetry.read_batch(body), KEPT, NOW).stored
    return Taken(stored, time.perf_counter() - began, time.process_time() - cpu)


def _body(ids: list[int], number: int) -> bytes:
    first, chance = number * BATCH, random.Random(number)
    readings = [
        {
            "miner_id": ids[place % len(ids)],
            "at": (NOW - EVERY * (place // len(ids))).isoformat(),
            "hashrate_th": round(chance.uniform(180, 205), 2),
            "power_w": round(chance.uniform(3400, 3600), 1),
            "temperature_c": round(chance.uniform(55, 75), 1),
        }
        for place in range(first, first + BATCH)
    ]
    return orjson.dumps({"readings": readings})


def fill_year(db: Database, owner: Reader, ids: list[int], days: int = 365) -> int:
    """Writes what a year of readings comes to, by the hour and by the day. Returns how many rows that is."""
    rows = 0
    for table, width, count in (
        (telemetry_hours, timedelta(hours=1), days * 24),
        (telemetry_days, timedelta(days=1), days),
    ):
        first = NOW.replace(hour=0) - timedelta(days=days + 40)
        each = width // EVERY
        for miner_id in ids:
            values = [
                {
                    "tenant_id": owner.tenant_id,
                    "miner_id": miner_id,
                    "start": first + width * place,
                    **{f"{name}_count": each for name in ("hashrate", "power", "temperature")},
                    **{
                        f"{name}_{what}": 200.0
                        for name in ("hashrate", "power", "temperature")
                        for what in ("min", "max")
                    },
                    **{f"{name}_sum": 200.0 * each for name in ("hashrate", "power", "temperature")},
                }
                for place in range(count)
            ]
            db.write_now(lambda conn, table=table, values=values: conn.execute(insert(table), values))  # type: ignore[misc]
            rows += len(values)
    return rows


def ask(db: Database, owner: Reader, ids: list[int], width: str, days: int, requests: int) -> tuple[float, float]:
    """Asks for charts of machines by chance. Returns the milliseconds that 95 of 100 need at most, and their CPU."""
    chance, spent, cpu = random.Random(1), list[float](), list[float]()
    for _ in range(requests):
        miner_id = chance.choice(ids)
        began, began_cpu = time.perf_counter(), time.process_time()
        db.read_now(telemetry.series, owner, miner_id, NOW - timedelta(days=days), NOW, width)
        spent.append(1000 * (time.perf_counter() - began))
        cpu.append(1000 * (time.process_time() - began_cpu))
    place = int(0.95 * requests)
    return sorted(spent)[place], sorted(cpu)[place]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--database", default="", help="an empty database; none: SQLite in a temporary folder")
    options.add_argument("--machines", type=int, default=1000)
    options.add_argument("--batches", type=int, default=30, help=f"of {BATCH:,} readings")
    options.add_argument("--requests", type=int, default=200)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.database or f"sqlite:///{Path(folder) / 'headwater.db'}"
        db, owner, ids = prepared(url, given.machines)
        taken = take(db, owner, ids, given.batches)
        print(
            f"in    {taken.readings:,} readings  {taken.readings / taken.seconds:,.0f} a second"
            f"  {1e6 * taken.cpu_seconds / taken.readings:.1f} µs of our CPU each  goal {WANTED_PER_SECOND:,} a second"
        )
        rows = fill_year(db, owner, ids)
        for width, days in (("1d", 365), ("1h", 365), ("10m", 2)):
            p95, cpu = ask(db, owner, ids, width, days, given.requests)
            print(f"out   {days} days by {width}, beside {rows:,} rows  p95 {p95:.1f} ms", end="  ")
            print(f"({cpu:.1f} ms of our CPU)  goal {WANTED_MS:.0f} ms")
        db.close()


if __name__ == "__main__":
    main()
