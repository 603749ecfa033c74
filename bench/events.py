"""What an event costs and how soon it takes effect: the outbox and its consumers beside the bare drivers.

    python bench/events.py [--logs sqlite,postgres] [--parts write,consume,visible,growth] [--rows 1000,100000,…]

    write     a change of state with its event, as a share of the same change by the bare driver without one
    consume   events a second, from the log to a committed effect, by the loop as it runs in the product
    visible   milliseconds from the beginning of a write to the commit of its event's effect
    growth    microseconds for an event, appended and consumed, as the outbox and the inbox grow

PostgreSQL is a private server, started for this and removed afterwards; it does not wait for the disk, SQLite does.
Ratios are of things that were measured in turns within one run; the machine may be shared.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import Connection, make_url, text

from headwater.events.catalogue import SOURCE_RETIRED, SourceFacts
from headwater.events.delivery import Consumer
from headwater.model import Event
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.log import outbox
from headwater.store.log.outbox import LoggedEvent
from headwater.store.sql import Prepared, portable
from headwater.waiting import WakeUpSignal
from headwater.work.consumers import catch_up, consume
from measure import cpu_seconds
from peers.postgres import fresh_database

NOW = datetime(2026, 11, 1, tzinfo=UTC)
SOURCES = 2000
BODY = "word " * 200
GROWTH_EVENTS = 5000

_add_post = portable("INSERT INTO bench_posts (source_id, name, title, content, changed_at) VALUES (?, ?, ?, ?, ?)")
_set_state = portable("UPDATE bench_states SET number = ? WHERE id = ?")
_effect = portable("INSERT INTO bench_effects (number) VALUES (?)")


class Place(NamedTuple):
    """A store to measure on. `server` is the process of its database server, if it has one."""

    name: str
    url: str
    server: int | None


def utc_now() -> datetime:
    return datetime.now(UTC)


@contextmanager
def places(names: Sequence[str], folder: Path) -> Iterator[list[Place]]:
    found = [Place("sqlite", f"sqlite:///{folder / 'bench.db'}", None)] if "sqlite" in names else []
    if "postgres" not in names:
        yield found
        return
    with fresh_database(folder) as server:
        yield [*found, Place("postgres", server.url, server.server)]


def make_tables(conn: Connection) -> None:
    id = "BIGSERIAL" if conn.dialect.name == "postgresql" else "INTEGER"
    for sql in (
        f"""CREATE TABLE bench_posts (id {id} PRIMARY KEY, source_id INTEGER NOT NULL, name TEXT NOT NULL,
            title TEXT NOT NULL, content TEXT NOT NULL, changed_at TEXT NOT NULL, UNIQUE (source_id, name))""",
        "CREATE INDEX bench_posts_by_time ON bench_posts (changed_at, id)",
        "CREATE TABLE bench_states (id INTEGER PRIMARY KEY, number BIGINT NOT NULL)",
        "CREATE TABLE bench_effects (number BIGINT NOT NULL)",
    ):
        conn.execute(text(sql))
    conn.execute(text("INSERT INTO bench_states VALUES (:id, 0)"), [{"id": id} for id in range(SOURCES)])


def an_event(number: int) -> Event:
    facts = SourceFacts(source_id=number % SOURCES, address=f"https://news.example/{number}")
    return SOURCE_RETIRED(facts, once=f"{number:012}")


def number_of(event: LoggedEvent) -> int:
    return int(SOURCE_RETIRED.read(event).address.rpartition("/")[2])


# write: a change with its event, beside the bare driver


class Change(NamedTuple):
    """A change of state: one statement, and its parameters for a number."""

    name: str
    statement: Prepared
    row: Callable[[int], tuple[Any, ...]]


CHANGES = (
    Change("a post of 1 kB stored", _add_post, lambda n: (n % SOURCES, f"post {n}", f"Title {n}", BODY, f"{n:020}")),
    Change("one number updated", _set_state, lambda n: (n, n % SOURCES)),
)


def bare_connection(place: Place) -> Any:
    """Opens the driver alone, with the settings of the store."""
    if place.name == "postgres":
        return psycopg.connect(place.url, autocommit=True)
    bare = sqlite3.connect(str(make_url(place.url).database), isolation_level=None, timeout=10)
    for pragma in ("synchronous = FULL", "foreign_keys = ON", "cache_size = -16384", "wal_autocheckpoint = 8000"):
        bare.execute(f"PRAGMA {pragma}")
    return bare


def write_bare(bare: Any, change: Change, sql: str, numbers: range, size: int) -> None:
    cursor = bare.cursor()
    for start in numbers[::size]:
        cursor.execute("BEGIN IMMEDIATE" if isinstance(bare, sqlite3.Connection) else "BEGIN")
        cursor.executemany(sql, [change.row(number) for number in range(start, start + size)])
        cursor.execute("COMMIT")


def write_with_events(db: Database, change: Change, numbers: range, size: int) -> None:
    def work(conn: Connection, start: int) -> None:
        change.statement.many(conn, [change.row(number) for number in range(start, start + size)])
        outbox.append(conn, [an_event(number) for number in range(start, start + size)], NOW)

    for start in numbers[::size]:
        db.write_now(work, start)


def measure_writes(place: Place, db: Database, writes: int, rounds: int) -> None:
    """Measures in turns, so that a noisy moment hits both."""
    print(f"\n{place.name}: changes a second, and the share with an event\n")
    print(f"  {'change':24} {'in one transaction':>18} {'bare':>10} {'with event':>11} {'share':>7}")
    bare, next_number = bare_connection(place), 0
    for change in CHANGES:
        sql = db.read_now(change.statement.sql)
        for size, count in ((1, writes // 4), (10, 3 * writes), (100, 12 * writes)):
            bare_seconds, our_seconds = [], []
            for _ in range(rounds):
                first, second = (
                    range(next_number, next_number + count),
                    range(next_number + count, next_number + 2 * count),
                )
                next_number += 2 * count
                bare_seconds.append(timed(lambda: write_bare(bare, change, sql, first, size)))  # noqa: B023 - at once
                our_seconds.append(timed(lambda: write_with_events(db, change, second, size)))  # noqa: B023
            without, with_event = count / statistics.median(bare_seconds), count / statistics.median(our_seconds)
            share = statistics.median(b / o for b, o in zip(bare_seconds, our_seconds, strict=True))
            print(f"  {change.name:24} {size:18} {without:10,.0f} {with_event:11,.0f} {share:7.0%}", flush=True)
    bare.close()


def cost(place: Place, work: Callable[[], object]) -> tuple[float, float]:
    """Returns wall seconds and CPU seconds, ours and the server's."""
    cpu = time.process_time() + (cpu_seconds(place.server) if place.server else 0.0)
    seconds = timed(work)
    return seconds, time.process_time() + (cpu_seconds(place.server) if place.server else 0.0) - cpu


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# consume: from the log to a committed effect


def nothing(conn: Connection, events: list[LoggedEvent]) -> None:
    """A consumer that does nothing, to measure the log alone."""


def one_row_each(conn: Connection, events: list[LoggedEvent]) -> None:
    _effect.many(conn, [(number_of(event),) for event in events])


EFFECTS = (
    ("nothing", nothing, 500),
    ("a row for each event", one_row_each, 500),
    ("nothing", nothing, 2000),
    ("a row for each event", one_row_each, 2000),
)


def measure_consuming(place: Place, db: Database, events: int) -> None:
    fill(db, events)
    events = db.read_now(lambda conn: conn.execute(text("SELECT count(*) FROM event_outbox")).scalar_one())
    print(f"\n{place.name}: {events:,} events consumed\n")
    print(f"  {'effect':24} {'at once':>8} {'events/s':>10} {'CPU µs for one':>15} {'peak MB':>8}")
    for name, handle, batch in EFFECTS:
        consumer = Consumer(f"bench {name} {batch}", frozenset({SOURCE_RETIRED.name}), handle, batch)
        seconds, cpu = cost(place, lambda: asyncio.run(catch_up(db, [consumer], utc_now)))  # noqa: B023 - at once
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rate, each = events / seconds, 1e6 * cpu / events
        print(f"  {name:24} {batch:8} {rate:10,.0f} {each:15.1f} {peak:8.0f}", flush=True)


def fill(db: Database, events: int) -> None:
    for start in range(0, events, 1000):
        batch = [an_event(-1 - number) for number in range(start, min(start + 1000, events))]
        db.write_now(outbox.append, batch, NOW)


# visible: from the beginning of a write to the commit of the effect


class Watch(Database):
    """Records when the transaction that handled an event ended."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.delays: list[float] = []
        self._began: list[float] = []

    def handle(self, conn: Connection, events: list[LoggedEvent]) -> None:
        one_row_each(conn, events)
        self._began += [number_of(event) / 1e6 for event in events]

    def write_now(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        result = super().write_now(function, *args, **kwargs)
        over, began = time.time(), self._began
        self._began = []
        self.delays += [over - then for then in began]
        return result


def write_one(db: Database) -> None:
    began = int(time.time() * 1e6)
    db.write_now(outbox.append, [an_event(began)], NOW)


def write_from_elsewhere(url: str, count: int, pause: float) -> None:
    db = Database(url)
    for _ in range(count):
        time.sleep(pause)
        write_one(db)
    db.close()


async def watch_writes(place: Place, count: int, pause: float) -> list[float]:
    db, new_events, stop = Watch(place.url), WakeUpSignal(), asyncio.Event()
    db.on_events = new_events.send
    consumer = Consumer("bench visible", frozenset({SOURCE_RETIRED.name}), db.handle)
    await catch_up(db, [consumer._replace(handle=nothing)], utc_now)
    async with asyncio.TaskGroup() as group:
        group.create_task(consume(db, [consumer], new_events, utc_now, stop))
        if place.name == "postgres":
            group.create_task(outbox.listen(db, new_events.send, stop))
            await asyncio.sleep(1)
            context = multiprocessing.get_context("spawn")
            writer = context.Process(target=write_from_elsewhere, args=(place.url, count, pause))
            writer.start()
            await asyncio.to_thread(writer.join)
        else:
            for _ in range(count):
                await asyncio.sleep(pause)
                await asyncio.get_running_loop().run_in_executor(None, write_one, db)
        while len(db.delays) < count:
            await asyncio.sleep(0.05)
        stop.set()
    db.close()
    return db.delays


def two_bare_commits(place: Place, count: int, pause: float) -> list[float]:
    """Measures the driver alone for a write and a second one that depends on it."""
    bare, delays = bare_connection(place), []
    sql = "INSERT INTO bench_effects (number) VALUES (1)"
    for _ in range(count):
        time.sleep(pause)
        delays.append(timed(lambda: (bare.execute(sql), bare.execute(sql))))
    bare.close()
    return delays


def measure_visibility(place: Place, count: int) -> None:
    print(f"\n{place.name}: milliseconds from the beginning of a write to the commit of its effect\n")
    print(f"  {'writes a second':24} {'p50':>7} {'p95':>7} {'p99':>7} {'most':>7}")
    for pause in (0.05, 0.01):
        report_delays(f"at most {1 / pause:.0f}", asyncio.run(watch_writes(place, count, pause)))
        report_delays("  two bare commits", two_bare_commits(place, count, pause))


def report_delays(name: str, seconds: list[float]) -> None:
    delays = sorted(1000 * delay for delay in seconds)
    at = [delays[int(len(delays) * share)] for share in (0.5, 0.95, 0.99)]
    print(f"  {name:24} {at[0]:7.1f} {at[1]:7.1f} {at[2]:7.1f} {delays[-1]:7.1f}", flush=True)


# growth: the same event as the log grows

HANDLED = (
    "INSERT INTO consumer_inbox (consumer, event_id, kind, consumed_at, milliseconds)"
    " SELECT 'growth', event_id, kind, created_at, 0.1 FROM event_outbox WHERE id > :after"
)
GROW = {
    "sqlite": (
        """INSERT INTO event_outbox (event_id, domain, kind, version, key, payload, idempotency_key, created_at)
        WITH RECURSIVE n(i) AS (SELECT :start UNION ALL SELECT i + 1 FROM n WHERE i < :end - 1)
        SELECT printf('01900000-0000-7000-8000-%012x', i), 'source', 'source.retired', 1, 'source:' || (i % 2000),
            '{"source_id":' || (i % 2000) || ',"address":"https://news.example/' || i || '"}',
            printf('source.retired:%012d', i), 0 FROM n""",
        "UPDATE consumer_cursors SET id = (SELECT max(id) FROM event_outbox) WHERE consumer = 'growth'",
    ),
    "postgres": (
        """INSERT INTO event_outbox (event_id, domain, kind, version, key, payload, idempotency_key, created_at,
            partition)
        SELECT '01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'), 'source', 'source.retired', 1,
            'source:' || (i % 2000), jsonb_build_object('source_id', i % 2000, 'address', 'https://news.example/' || i),
            'source.retired:' || lpad(i::text, 12, '0'), now(), hashtext('source:' || (i % 2000)) & 7
        FROM generate_series(CAST(:start AS bigint), :end - 1) i""",
        """UPDATE consumer_cursors c SET xid = o.xid, id = o.id FROM (
            SELECT DISTINCT ON (partition) partition, xid, id FROM event_outbox ORDER BY partition, xid DESC, id DESC) o
        WHERE c.consumer = 'growth' AND c.partition = o.partition""",
    ),
}


def grow(db: Database, place: Place, start: int, end: int) -> None:
    """Fills the outbox and the consumer's inbox up to this number of rows."""
    outbox_rows, cursors = GROW[place.name]

    def work(conn: Connection, start: int, end: int) -> None:
        after = conn.execute(text("SELECT coalesce(max(id), 0) FROM event_outbox")).scalar_one()
        conn.execute(text(outbox_rows), {"start": start, "end": end})
        conn.execute(text(HANDLED), {"after": after})

    for first in range(start, end, 250_000):
        db.write_now(work, first, min(first + 250_000, end))
    db.write_now(lambda conn: conn.execute(text(cursors)))


def measure_growth(place: Place, db: Database, sizes: Sequence[int], rounds: int) -> None:
    print(f"\n{place.name}: microseconds for one event, written 100 and consumed 500 at once\n")
    print(f"  {'rows in the outbox':>24} {'append':>8} {'CPU':>7} {'consume':>8} {'CPU':>7} {'MB':>7}")
    consumer = Consumer("growth", frozenset({SOURCE_RETIRED.name}), nothing)
    db.write_now(outbox.make_cursors, consumer.name, NOW)
    number, before = 10**9, 0
    for size in sizes:
        grow(db, place, before, size)
        before = size
        costs = []
        for _ in range(rounds):
            appending = range(number, number + GROWTH_EVENTS, 100)
            number += GROWTH_EVENTS
            appended = cost(place, lambda: append_all(db, appending))  # noqa: B023 - at once
            consumed = cost(place, lambda: asyncio.run(catch_up(db, [consumer], utc_now)))
            costs.append((*appended, *consumed))
        a, a_cpu, c, c_cpu = (1e6 * statistics.median(column) / GROWTH_EVENTS for column in zip(*costs, strict=True))
        print(f"  {size:24,} {a:8.1f} {a_cpu:7.1f} {c:8.1f} {c_cpu:7.1f} {megabytes(db):7,.0f}", flush=True)


def append_all(db: Database, starts: range) -> None:
    for start in starts:
        db.write_now(outbox.append, [an_event(number) for number in range(start, start + 100)], NOW)


def megabytes(db: Database) -> float:
    if db.is_sqlite:
        return Path(str(db.engine.url.database)).stat().st_size / 1e6
    sql = text("SELECT pg_database_size(current_database())")
    return float(db.read_now(lambda conn: conn.execute(sql).scalar_one())) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", default="sqlite,postgres")
    parser.add_argument("--parts", default="write,consume,visible,growth")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--writes", type=int, default=500, help="a multiple of 100")
    parser.add_argument("--rounds", type=int, default=7, help="of writes, and of each size of the log")
    parser.add_argument("--rows", default="1000,100000,1000000,5000000")
    given = parser.parse_args()
    parts = given.parts.split(",")
    with tempfile.TemporaryDirectory() as folder, places(given.logs.split(","), Path(folder)) as stores:
        for place in stores:
            db = Database(place.url)
            migrate.upgrade(db)
            db.write_now(make_tables)
            if "growth" in parts:
                measure_growth(place, db, [int(rows) for rows in given.rows.split(",")], given.rounds)
            if "write" in parts:
                measure_writes(place, db, given.writes, given.rounds)
            if "consume" in parts:
                measure_consuming(place, db, given.events)
            if "visible" in parts:
                measure_visibility(place, given.writes)
            db.close()


if __name__ == "__main__":
    main()
