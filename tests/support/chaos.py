"""Writers and consumers that are killed, paused and given everything twice, and a count of the results.

A writer adds one to the state of some keys and appends an event for each, in one transaction. A consumer writes down
each event. In the end every key has to have the effects 1, 2, 3, … in this order, and as many as its state says.

The log is what lies between: `Log` says what a consumer process runs, and what else can be broken.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing.process import BaseProcess
from typing import Annotated, Any, NamedTuple

import structlog
from msgspec import Meta
from sqlalchemy import Connection, text

from headwater.errors import StoreUnavailable
from headwater.events.catalogue import EventKind, Payload
from headwater.events.delivery import Consumer
from headwater.events.kafka import follow as kafka
from headwater.events.kafka.connector import Cluster, set_up
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.log import dead_letters, outbox
from headwater.store.log.outbox import LoggedEvent
from headwater.waiting import WakeUpSignal
from headwater.work.consumers import consume
from support.checkout import Checkout

KEYS = 40
MOST_AT_ONCE = 8
STUMBLES_EVERY = 100  # this event of a key cannot be handled until it is three seconds old
STUMBLES_FOR = timedelta(seconds=3)
WRITER_REST = 0.02
LEASE_SECONDS = 1.0  # PostgreSQL ends a transaction in which nothing happened for this long
PATIENCE = 180.0


class Count(Payload, frozen=True):
    source_id: Annotated[int, Meta(description="the key")]
    count: Annotated[int, Meta(description="its state after the change")]


COUNTED = EventKind("source.counted", Count, key="source_id", meaning="A key's state grew by one.")


def utc_now() -> datetime:
    return datetime.now(UTC)


def make_tables(conn: Connection) -> None:
    id = "BIGSERIAL" if conn.dialect.name == "postgresql" else "INTEGER"
    conn.execute(text("CREATE TABLE chaos_state (key INTEGER PRIMARY KEY, count INTEGER NOT NULL)"))
    conn.execute(text(f"CREATE TABLE chaos_effects (id {id} PRIMARY KEY, key INTEGER, count INTEGER)"))
    rows = [{"key": key} for key in range(KEYS)]
    conn.execute(text("INSERT INTO chaos_state (key, count) VALUES (:key, 0)"), rows)


# What the processes do


def be_quiet() -> None:
    """Silences errors that the test provokes."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)


def change(conn: Connection, keys: Iterable[int]) -> None:
    """Writes a change of state and its events."""
    grow = text("UPDATE chaos_state SET count = count + 1 WHERE key = :key RETURNING count")
    events = []
    for key in keys:
        count = conn.execute(grow, {"key": key}).scalar_one()
        events.append(COUNTED(Count(source_id=key, count=count), once=f"{key}:{count}"))
    outbox.append(conn, events, utc_now())


def write_until_killed(url: str) -> None:
    be_quiet()
    db = Database(url, idle_seconds=LEASE_SECONDS)
    while True:
        keys = sorted(random.sample(range(KEYS), random.randint(1, MOST_AT_ONCE)))
        try:
            db.write_now(change, keys)
        except StoreUnavailable:  # a stopped process has the lock, or this one was stopped for too long
            time.sleep(0.1)
        time.sleep(random.uniform(0, WRITER_REST))


def write_down(conn: Connection, events: list[LoggedEvent]) -> None:
    """The effect."""
    rows = []
    for event in events:
        said = COUNTED.read(event)
        if said.count % STUMBLES_EVERY == 0 and utc_now() - event.created_at < STUMBLES_FOR:
            raise RuntimeError("too early")
        rows.append({"key": said.source_id, "count": said.count})
    conn.execute(text("INSERT INTO chaos_effects (key, count) VALUES (:key, :count)"), rows)


CONSUMER = Consumer("chaos", frozenset({COUNTED.name}), write_down, batch=50)


def follow_outbox(url: str) -> None:
    """Runs a consumer process, as the product does."""

    async def follow() -> None:
        db, new_events, never = Database(url, idle_seconds=LEASE_SECONDS), WakeUpSignal(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(consume(db, [CONSUMER], new_events, utc_now, never))
            if not db.is_sqlite:
                group.create_task(outbox.listen(db, new_events.send, never))

    be_quiet()
    asyncio.run(follow())


def follow_topics(url: str, brokers: str, prefix: str) -> None:
    """The same on Kafka."""
    be_quiet()
    db = Database(url, idle_seconds=LEASE_SECONDS)
    asyncio.run(kafka.follow(db, CONSUMER, brokers, utc_now, asyncio.Event(), prefix=prefix))


# What is done to them


def deliver_again(db: Database) -> None:
    """Moves the cursors back, so that events are delivered again after their effect, old ones after new ones."""
    earlier = "CASE WHEN {0} > {1} THEN {0} - {1} ELSE 0 END"
    back = f"UPDATE consumer_cursors SET xid = {earlier.format('xid', 100)}, id = {earlier.format('id', 300)}"
    db.write_now(lambda conn: conn.execute(text(back)))


@dataclass(frozen=True)
class Log:
    """A way from the outbox to the consumers. `follow` is what a consumer process runs until it is killed.

    `faults` are what can happen to the log itself; each leaves it working, or on its way to that.
    """

    name: str
    url: str
    follow: Callable[..., None] = follow_outbox
    arguments: tuple[Any, ...] = ()
    faults: Mapping[str, Callable[[Database], None]] = field(default_factory=lambda: {"again": deliver_again})


def kafka_log(checkout: Checkout, url: str) -> Log:
    """Through Debezium and Kafka, on separate servers that are killed as well. `url` has the newest schema."""
    urls = checkout.urls()
    cluster = Cluster(urls["HEADWATER_TEST_KAFKA"], urls["HEADWATER_TEST_CONNECT"])
    db = Database(url)
    asyncio.run(set_up(cluster, db, url, timedelta(days=1)))
    db.close()

    def kill(name: str) -> Callable[[Database], None]:
        def fault(_: Database) -> None:
            os.kill(checkout.process(name), signal.SIGKILL)
            checkout.services("up", "connect")

        return fault

    faults = {"kill relay": kill("connect"), "kill broker": kill("kafka")}
    return Log("Kafka", url, follow_topics, (cluster.brokers, cluster.prefix), faults)


class Outcome(NamedTuple):
    events: int
    changes: int
    missing: int
    twice: int
    disordered: int
    dead: int

    @property
    def is_flawless(self) -> bool:
        return self.changes == self.events and not any(self[2:])


class Report(NamedTuple):
    outcome: Outcome
    faults: Counter[str]
    seconds: float


class Crew:
    """The processes of one run. A killed process is replaced at once."""

    def __init__(self, log: Log, writers: int, consumers: int) -> None:
        # A fork server that has done the slow imports, and has no threads, starts a process within milliseconds.
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["headwater.work.consumers", "headwater.store.migrate", "psycopg"])
        self._work: list[tuple[Callable[..., None], tuple[Any, ...]]] = [(write_until_killed, (log.url,))] * writers
        self._work += [(log.follow, (log.url, *log.arguments))] * consumers
        self._processes = [self._start(place) for place in range(len(self._work))]
        self.writers = range(writers)
        self.consumers = range(writers, writers + consumers)

    def _start(self, place: int) -> BaseProcess:
        function, arguments = self._work[place]
        process = self._context.Process(target=function, args=arguments, daemon=True)
        process.start()
        return process

    def check(self) -> None:
        """Asserts that no process ended by itself."""
        assert all(process.is_alive() for process in self._processes), "a process ended that nobody killed"

    def kill(self, place: int) -> None:
        self._end(place)
        self._processes[place] = self._start(place)

    def stop(self, place: int, seconds: float) -> None:
        """Pauses a process wherever it is, and lets it go on later."""
        pid = self._processes[place].pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)

    def end(self, places: Iterable[int]) -> None:
        for place in places:
            self._end(place)

    def _end(self, place: int) -> None:
        self._processes[place].kill()
        self._processes[place].join()


def run(
    log: Log,
    *,
    events: int,
    seed: int,
    writers: int = 2,
    consumers: int = 2,
    pause: float = 0.3,
    stop_seconds: float = 2.0,
) -> Report:
    """Runs them until so many events are written, with one fault after another; then lets consumers catch up."""
    chance, began, faults = random.Random(seed), time.monotonic(), Counter[str]()
    db = Database(log.url)
    migrate.upgrade(db)
    db.write_now(make_tables)
    crew = Crew(log, writers, consumers)
    kinds = ["kill writer", "kill consumer"] * 3 + ["stop writer", "stop consumer", *log.faults]
    try:
        while db.read_now(changes) < events:
            time.sleep(chance.uniform(0, 2 * pause))
            crew.check()
            fault = chance.choice(kinds)
            faults[fault] += 1
            _do(fault, log, db, crew, chance, stop_seconds)
        crew.end(crew.writers)
        _catch_up(db)
    finally:
        crew.end([*crew.writers, *crew.consumers])
    outcome = db.read_now(judge)
    db.close()
    return Report(outcome, faults, time.monotonic() - began)


def _do(fault: str, log: Log, db: Database, crew: Crew, chance: random.Random, stop_seconds: float) -> None:
    if fault in log.faults:
        log.faults[fault](db)
        return
    deed, _, whom = fault.partition(" ")
    place = chance.choice(crew.writers if whom == "writer" else crew.consumers)
    if deed == "kill":
        crew.kill(place)
    else:
        crew.stop(place, stop_seconds)


def changes(conn: Connection) -> int:
    return int(conn.execute(text("SELECT sum(count) FROM chaos_state")).scalar_one())


def _catch_up(db: Database) -> None:
    """Waits until nothing changes any more. What is missing then is counted, not waited for."""
    deadline, before, since = time.monotonic() + PATIENCE, -1, time.monotonic()
    while time.monotonic() < deadline:
        done, open_letters, all = db.read_now(_progress)
        if done >= all and not open_letters:
            return
        if done != before:
            before, since = done, time.monotonic()
        if time.monotonic() - since > PATIENCE / 3:
            return
        time.sleep(0.1)


def _progress(conn: Connection) -> tuple[int, int, int]:
    done = conn.execute(text("SELECT count(*) FROM chaos_effects")).scalar_one()
    return done, sum(sum(states.values()) for states in dead_letters.counts(conn).values()), changes(conn)


def judge(conn: Connection) -> Outcome:
    """Counts the results from the state, the events and the effects."""
    rows = conn.execute(text("SELECT key, count FROM chaos_effects ORDER BY id")).all()
    effects = Counter((key, count) for key, count in rows)
    wanted = {
        (key, number)
        for key, count in conn.execute(text("SELECT key, count FROM chaos_state"))
        for number in range(1, count + 1)
    }
    last, disordered = dict.fromkeys(range(KEYS), 0), 0
    for key, count in rows:
        disordered += count <= last[key]
        last[key] = count
    return Outcome(
        events=conn.execute(text("SELECT count(*) FROM event_outbox")).scalar_one(),
        changes=len(wanted),
        missing=len(wanted - effects.keys()),
        twice=sum(count - 1 for count in effects.values()),
        disordered=disordered,
        dead=dead_letters.counts(conn).get(CONSUMER.name, {}).get("dead", 0),
    )
