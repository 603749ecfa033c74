"""Readings of machines: how many go in per second, and how long a chart of a year takes.

    python bench/telemetry.py                                # SQLite, 1,000 machines
    python bench/telemetry.py --database postgresql://…      # an empty database
    python bench/telemetry.py --machines 10000               # a batch has one reading of each machine

Readings go in twice: by the store alone, from the bytes of a request to the commit, and by POST /api/telemetry of
`headwater up --no-crawl`, over several connections. They are those of 10 minutes each, as machines send them: a batch
has the newest reading of every machine, then the ones before it. The year is filled with what readings come to by the
hour and day, because that is what a chart of a year reads; single readings are kept for 35 days. Charts are asked for
at the store and at the API. Wall time, with the CPU time of our process beside it; PostgreSQL's own is not in that.
"""

from __future__ import annotations

import argparse
import http.client
import os
import random
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import orjson
from sqlalchemy import Connection, Table, insert, literal, select

from headwater.accounts import tokens
from headwater.app.fleet import miners, telemetry
from headwater.app.fleet.miners import NewMiner
from headwater.model import Reader
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.people import accounts
from headwater.store.tables import telemetry_days, telemetry_hours
from measure import cpu_seconds
from serve import served

NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
EVERY = timedelta(minutes=10)
KEPT = timedelta(days=35)
BATCH = 10_000
CONNECTIONS = 4
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
    ids = db.write_now(lambda conn: [miners.add(conn, owner, wanted, NOW).id for _ in range(machines)])
    return db, owner, ids


def take(db: Database, owner: Reader, ids: list[int], batches: int) -> Taken:
    """Takes batches as the API does: the newest reading of every machine, then the ones before it."""
    bodies = [_body(ids, number) for number in range(batches)]
    began, cpu = time.perf_counter(), time.process_time()
    stored = 0
    for body in bodies:
        stored += db.write_now(telemetry.take, owner, telemetry.read_batch(body), KEPT, NOW).stored
    return Taken(stored, time.perf_counter() - began, time.process_time() - cpu)


def send(process: int, port: int, token: str, ids: list[int], numbers: range) -> Taken:
    """Sends batches to the API over several connections at once."""
    bodies = [_body(ids, number) for number in numbers]
    began, cpu = time.perf_counter(), cpu_seconds(process)
    with ThreadPoolExecutor(CONNECTIONS) as senders:
        shares = [bodies[first::CONNECTIONS] for first in range(CONNECTIONS)]
        stored = sum(senders.map(lambda share: _send(port, token, share), shares))
    return Taken(stored, time.perf_counter() - began, cpu_seconds(process) - cpu)


def _send(port: int, token: str, bodies: list[bytes]) -> int:
    headers, stored = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}, 0
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        for body in bodies:
            connection.request("POST", "/api/telemetry", body, headers)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != 200:
                raise SystemExit(f"The server answered {answer.status}: {said[:200]!r}")
            stored += orjson.loads(said)["stored"]
    return stored


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
        start, each = NOW.replace(hour=0) - timedelta(days=days), width // EVERY
        of_one = {f"{name}_{what}": 200.0 for name in MEASURED for what in ("min", "max")}
        of_one |= {f"{name}_count": each for name in MEASURED} | {f"{name}_sum": 200.0 * each for name in MEASURED}
        owned = {"tenant_id": owner.tenant_id, "miner_id": ids[0]}
        values = [{**owned, "start": start + width * place, **of_one} for place in range(count)]
        db.write_now(lambda conn, table=table, values=values: conn.execute(insert(table), values))  # type: ignore[misc]
        for miner_id in ids[1:]:
            db.write_now(_copy_from, table, ids[0], miner_id)
        rows += len(values) * len(ids)
    return rows


def _copy_from(conn: Connection, table: Table, first: int, miner_id: int) -> None:
    copied = [literal(miner_id) if column.name == "miner_id" else column for column in table.c]
    conn.execute(insert(table).from_select(list(table.c), select(*copied).where(table.c.miner_id == first)))


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


def ask_api(
    process: int, port: int, token: str, ids: list[int], width: str, days: int, requests: int
) -> tuple[float, float]:
    """Asks the API for the same. Returns the milliseconds that 95 of 100 need at most, and the server's CPU for one."""
    chance, spent, cpu = random.Random(1), list[float](), cpu_seconds(process)
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        for _ in range(requests):
            since, until = (NOW - timedelta(days=days)).isoformat(), NOW.isoformat()
            query = urlencode({"miner_id": chance.choice(ids), "since": since, "until": until, "bucket": width})
            began = time.perf_counter()
            connection.request("GET", f"/api/telemetry?{query}", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            said = answer.read()
            spent.append(1000 * (time.perf_counter() - began))
            if answer.status != 200:
                raise SystemExit(f"The server answered {answer.status}: {said[:200]!r}")
    return sorted(spent)[int(0.95 * requests)], 1000 * (cpu_seconds(process) - cpu) / requests


def _print_taken(by: str, taken: Taken) -> None:
    print(f"in    {by:7}{taken.readings:,} readings  {taken.readings / taken.seconds:,.0f} a second", end="  ")
    print(f"{1e6 * taken.cpu_seconds / taken.readings:.1f} µs of our CPU each  goal {WANTED_PER_SECOND:,} a second")


def _print_asked(by: str, days: int, width: str, asked: tuple[float, float]) -> None:
    p95, cpu = asked
    print(f"out   {by:7}{days} days by {width}  p95 {p95:.1f} ms  ({cpu:.1f} ms of our CPU)  goal {WANTED_MS:.0f} ms")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--database", default="", help="an empty database; none: SQLite in a temporary folder")
    options.add_argument("--machines", type=int, default=1000)
    options.add_argument("--batches", type=int, default=30, help=f"of {BATCH:,} readings")
    options.add_argument("--days", type=int, default=365, help="of charts")
    options.add_argument("--requests", type=int, default=200)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.database or f"sqlite:///{Path(folder) / 'headwater.db'}"
        db, owner, ids = prepared(url, given.machines)
        token = db.write_now(tokens.issue, owner, "api", "bench", NOW)
        print(f"      {fill_year(db, owner, ids, given.days):,} hours and days of a year are filled in")
        _print_taken("store", take(db, owner, ids, given.batches))
        charts = (("1d", given.days), ("1h", given.days), ("10m", 2))
        for width, days in charts:
            _print_asked("store", days, width, ask(db, owner, ids, width, days, given.requests))
        db.close()
        with served(Path(folder), HEADWATER_DATABASE_URL=url) as (process, port):
            numbers = range(given.batches, 2 * given.batches)
            _print_taken("API", send(process, port, token, ids, numbers))
            for width, days in charts:
                _print_asked("API", days, width, ask_api(process, port, token, ids, width, days, given.requests))
    print(f"with {os.getloadavg()[0]:.1f} processes that wait for {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
