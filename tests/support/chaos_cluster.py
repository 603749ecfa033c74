"""A Celery deployment under faults, on a simulated web whose truth is known, and a count of the results.

Feeds on a few hosts publish posts as time goes by. Web servers, workers and beats are killed and stopped, and their
clocks are set. PostgreSQL, Redis, Kafka and Kafka Connect are killed and started again, Redis is emptied, and messages
come twice. In the end every post has to be stored once, with one event that had its effect, and no feed may have been
asked by two at once or faster than its host allows.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import psutil
import psycopg
import redis
from sqlalchemy import Connection, text

from headwater import wire
from headwater.errors import StoreUnavailable
from headwater.follow.add import follow
from headwater.settings import load
from headwater.wire import Parts
from support.chaos_web import API_REQUESTS, GAP_SECONDS, MOST_POSTS, WINDOW_SECONDS, SimulatedWeb, simulated_web
from support.checkout import Checkout
from support.clocks import ProcessClock
from support.cluster import APP
from support.ports import free_port
from support.services import with_database
from support.web import ALLOW_LOOPBACK

LEASE_SECONDS = 12
VISIT_SECONDS = 8
DUE_EVERY = 2.0
PATIENCE = 300.0
RESTART_SECONDS = 4.0  # what a fault takes on average: Kafka and Connect need half a minute on a busy machine


class Outcome(NamedTuple):
    """`lost` and `twice` are posts, `effects` are events whose effect is missing or there twice."""

    posts: int
    lost: int
    twice: int
    stopped: int
    overlaps: int
    over_host_budget: int
    over_api_budget: int
    effects: int
    dead: int

    @property
    def is_flawless(self) -> bool:
        return self.posts > 0 and not any(self[1:])


class Report(NamedTuple):
    outcome: Outcome
    faults: Counter[str]
    requests: int
    seconds: float


class Deployment:
    """PostgreSQL, Redis, and the processes of Headwater. What is killed is started again at once."""

    def __init__(self, folder: Path, api: str, *, webs: int, workers: int, beats: int, kafka: bool = False) -> None:
        self._folder = folder
        self.servers = Checkout(folder / "servers")
        self.servers.services("up", "postgres", "redis", *(("kafka", "connect") if kafka else ()))
        urls = self.servers.urls()
        server = urls["HEADWATER_TEST_POSTGRES_URL"]
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute("CREATE DATABASE chaos")
        self.redis_url = urls["HEADWATER_TEST_REDIS_URL"]
        self.environ = {
            **ALLOW_LOOPBACK,
            "HEADWATER_DATABASE_URL": with_database(server, "chaos"),
            "HEADWATER_DATA_DIR": str(folder / "data"),
            "HEADWATER_SECRET_KEY": "Zm9yIHRlc3RzIGFsb25lLCAzMiBieXRlcyBsb25nISE=",
            "HEADWATER_HOST_GAP_SECONDS": str(GAP_SECONDS),
            "HEADWATER_LEASE_SECONDS": str(LEASE_SECONDS),
            "HEADWATER_VISIT_SECONDS": str(VISIT_SECONDS),
            "HEADWATER_PARSER_PROCESSES": "1",
            "HEADWATER_LOG_LEVEL": "warning",
            "REDDIT_CLIENT_ID": "chaos",
            "REDDIT_CLIENT_SECRET": "chaos",
            "HEADWATER_REDDIT_URL": api,
            "HEADWATER_REDDIT_API_URL": api,
            "REDDIT_RATE_LIMIT": str(API_REQUESTS),
            "REDDIT_RATE_LIMIT_WINDOW_SECONDS": str(WINDOW_SECONDS),
            "CELERY_BROKER_URL": self.redis_url,
            "CELERY_WORKER_COUNT": "1",
        }
        if kafka:
            self.environ["HEADWATER_KAFKA_BOOTSTRAP_SERVERS"] = urls["HEADWATER_TEST_KAFKA"]
            self.environ["HEADWATER_KAFKA_CONNECT_URL"] = urls["HEADWATER_TEST_CONNECT"]
        self.parts = wire.open_parts(load(self.environ))
        self.owner = wire.prepare_store(self.parts)
        if kafka:
            command = [sys.executable, "-m", "headwater", "kafka", "setup"]
            subprocess.run(command, env={**os.environ, **self.environ}, check=True, capture_output=True, timeout=300)
        self._commands: dict[str, list[str]] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._copied: dict[tuple[str, int], int] = {}  # how far records were copied, by topic and partition
        for number in range(webs):
            self._commands[f"web {number}"] = ["-m", "headwater", "up", "--port", str(free_port())]
        for number in range(workers):
            name = f"worker{number}@chaos"
            self._commands[f"worker {number}"] = ["-m", "celery", "-A", APP, "worker", "-l", "WARNING", "-n", name]
        for number in range(beats):
            self._commands[f"beat {number}"] = ["-m", "celery", "-A", APP, "beat", "-l", "WARNING", "--pidfile="]
        self._clocks = {name: ProcessClock(folder / f"{name}.clock") for name in self._commands}
        for name in self._commands:
            self._start(name)

    def _start(self, name: str) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, *self._commands[name]],
                env={**os.environ, **self.environ, "PYTHONWARNINGS": "ignore", **self._clocks[name].environ},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def names(self, kind: str) -> list[str]:
        return [name for name in self._commands if name.startswith(kind)]

    def check(self) -> None:
        """Starts what ended by itself, as a supervisor would."""
        for name, process in list(self._running.items()):
            if process.poll() is not None:
                self._start(name)

    def kill(self, name: str) -> None:
        self._signal(name, signal.SIGKILL)
        self._running[name].wait()
        self._start(name)

    def kill_child(self, name: str) -> None:
        """Kills the process that carries out a task, as running out of memory does."""
        with suppress(psutil.Error):
            for child in psutil.Process(self._running[name].pid).children()[:1]:
                child.kill()

    def stop(self, name: str, seconds: float) -> None:
        """Stops a process with its children, and lets it go on later."""
        process = self._running[name]
        self._signal(name, signal.SIGSTOP)

        def go_on() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGCONT)

        threading.Timer(seconds, go_on).start()

    def set_clock(self, name: str, ahead: timedelta) -> None:
        self._clocks[name].set_ahead(ahead)

    def _signal(self, name: str, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._running[name].pid, number)

    def restart(self, server: str) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.servers.process(server), signal.SIGKILL)
        while True:
            try:
                self.servers.services("up", server)
                return
            except AssertionError:  # what is left of it still holds its files
                time.sleep(0.5)

    def empty_redis(self) -> None:
        with suppress(redis.RedisError), redis.Redis.from_url(self.redis_url) as server:
            server.flushall()

    def send_twice(self) -> int:
        """Puts a copy of every tenth message that waits into its queue. Returns how many."""
        copied = 0
        with suppress(redis.RedisError), redis.Redis.from_url(self.redis_url, decode_responses=True) as server:
            for queue in ("celery:high", "celery:default"):
                for message in server.lrange(queue, 0, -1)[::10]:  # type: ignore[index, union-attr]
                    copy = json.loads(message)
                    copy["properties"]["delivery_tag"] = str(uuid.uuid4())
                    server.lpush(queue, json.dumps(copy))
                    copied += 1
        return copied

    def repeat_records(self) -> int:
        """Writes a copy of every tenth record that the topics of posts and sources got since the last time."""
        from confluent_kafka import Consumer, Producer, TopicPartition

        brokers = self.environ["HEADWATER_KAFKA_BOOTSTRAP_SERVERS"]
        reader = Consumer({"bootstrap.servers": brokers, "group.id": str(uuid.uuid4()), "enable.auto.commit": False})
        writer, copied = Producer({"bootstrap.servers": brokers}), 0
        try:
            known = reader.list_topics(timeout=10).topics
            names = [name for name in known if name.endswith(("events.post", "events.source"))]
            places = [(name, number) for name in names for number in known[name].partitions]
            reader.assign([TopicPartition(*place, self._copied.get(place, 0)) for place in places])
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                for record in reader.consume(500, 0.5)[::10]:
                    if record.error() is None:
                        given = (record.topic(), record.value(), record.key(), record.partition())
                        writer.produce(*given, headers=record.headers())
                        copied += 1
            writer.flush(10)
            for place in places:  # copies of copies would soon be all there is
                self._copied[place] = reader.get_watermark_offsets(TopicPartition(*place), timeout=10)[1]
        finally:
            reader.close()
        return copied

    def places(self, event_ids: Collection[str]) -> dict[str, str]:
        """Returns where in Kafka these events of posts are, and how far the search has committed that partition."""
        from confluent_kafka import Consumer, TopicPartition

        brokers, found = self.environ["HEADWATER_KAFKA_BOOTSTRAP_SERVERS"], dict[str, str]()
        reader = Consumer(
            {"bootstrap.servers": brokers, "group.id": "headwater.search", "enable.auto.commit": False}
        )  # only looks: it does not subscribe, so it is no member of the group
        try:
            for number in reader.list_topics("events.post", timeout=10).topics["events.post"].partitions:
                place = TopicPartition("events.post", number, 0)
                [committed] = reader.committed([place], timeout=10)
                last = reader.get_watermark_offsets(place, timeout=10)[1] - 1
                reader.assign([place])
                while last >= 0 and (record := reader.poll(10)) is not None and record.error() is None:
                    event_id = dict(record.headers() or [])["ce_id"].decode()
                    if event_id in event_ids:
                        at = f"{number}:{record.offset()}, committed {committed.offset}"
                        found[event_id] = f"{found.get(event_id, '')} {at}"
                    if record.offset() >= last:
                        break
        finally:
            reader.close()
        return found

    def close(self) -> None:
        for name, process in self._running.items():
            self._signal(name, signal.SIGKILL)
            process.wait()
        self.parts.close()
        for log in self.servers.folder().glob("*/log"):
            shutil.copy(log, self._folder / f"{log.parent.name}.log")
        self.servers.services("clean")


FAULTS = (
    *("kill worker", "kill worker", "kill child", "kill beat", "kill web", "stop worker", "stop beat", "stop web"),
    *("set clock", "empty Redis", "restart Redis", "restart PostgreSQL", "messages twice", "messages twice"),
)
SERVERS = {"Redis": "redis", "PostgreSQL": "postgres", "Kafka": "kafka", "Connect": "connect"}
CLOCK_ERRORS = tuple(timedelta(minutes=minutes) for minutes in (-1440, -60, -1, 0, 1, 60, 1440))
KAFKA_FAULTS = ("restart Kafka", "restart Connect", "records twice", "records twice")


def do(fault: str, there: Deployment, chance: random.Random) -> None:
    if fault in ("kill worker", "kill beat", "kill web"):
        there.kill(chance.choice(there.names(fault.removeprefix("kill "))))
    elif fault == "kill child":
        there.kill_child(chance.choice(there.names("worker")))
    elif fault.startswith("stop "):
        seconds = chance.choice([1.0, LEASE_SECONDS + 3.0])
        there.stop(chance.choice(there.names(fault.removeprefix("stop "))), seconds)
    elif fault == "set clock":
        there.set_clock(chance.choice(there.names("")), chance.choice(CLOCK_ERRORS))
    elif fault == "empty Redis":
        there.empty_redis()
    elif fault == "messages twice":
        there.send_twice()
    elif fault == "records twice":
        there.repeat_records()
    else:
        there.restart(SERVERS[fault.removeprefix("restart ")])


def run(
    folder: Path,
    *,
    faults: int,
    seed: int,
    feeds: int = 40,
    hosts: int = 4,
    communities: int = 3,
    pause: float = 3.0,
    minutes: float = 600.0,
    webs: int = 2,
    workers: int = 3,
    beats: int = 2,
    kinds: tuple[str, ...] = FAULTS,
    kafka: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Runs the deployment with fault after fault, lets it catch up, and judges. No fault begins after `minutes`."""
    chance, began, done = random.Random(seed), time.monotonic(), Counter[str]()
    lasts = faults * (pause + (RESTART_SECONDS if kafka else 0.0))
    slowness = max(1.0, lasts / MOST_POSTS)  # they publish until the last fault
    with simulated_web(hosts, feeds, communities, slowness) as web, ExitStack() as stack:
        there = Deployment(folder, web.api, webs=webs, workers=workers, beats=beats, kafka=kafka)
        stack.callback(there.close)
        web.began = time.monotonic()
        for url in web.feeds:
            there.parts.db.write_now(follow, there.owner, url, there.parts.now())
        making_due = _make_due_again(there.parts)
        stack.callback(making_due.set)
        _wait(there, lambda: len(web.asked) >= len(web.feeds))
        while sum(done.values()) < faults and time.monotonic() < began + minutes * 60:
            time.sleep(chance.uniform(0, 2 * pause))
            there.check()
            fault = chance.choice((*kinds, *KAFKA_FAULTS) if kafka else kinds)
            done[fault] += 1
            say(f"{sum(done.values())} {fault}")
            do(fault, there, chance)
        web.ended = time.monotonic()
        say("catching up")
        time.sleep(LEASE_SECONDS)
        _wait(there, lambda: _stored(there.parts) >= web.truth())
        making_due.set()
        stopped = _stopped(there, web)
        _wait(there, lambda: there.parts.db.read_now(_unsettled) == 0)
        outcome = there.parts.db.read_now(judge, web, stopped)
        if outcome.effects:
            _tell_of_missing(there, kafka, say)
        requests = sum(len(times) for times in web.asked.values())
    return Report(outcome, done, requests, time.monotonic() - began)


def _make_due_again(parts: Parts) -> threading.Event:
    """Makes every feed due every two seconds, because no interval is as short as that. Returns what ends it."""
    end = threading.Event()
    due = text(
        "UPDATE sources SET next_check_at = :now WHERE next_check_at > :now AND turn_at IS NULL "
        "AND (lease_until IS NULL OR lease_until <= :now)"
    )

    def go_on() -> None:
        while not end.wait(DUE_EVERY):
            with suppress(StoreUnavailable):
                parts.db.write_now(lambda conn: conn.execute(due, {"now": parts.now()}))

    threading.Thread(target=go_on, daemon=True).start()
    return end


def _wait(there: Deployment, condition: Callable[[], object]) -> bool:
    """Waits for it. What is missing then is counted, not waited for."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        there.check()
        with suppress(StoreUnavailable):
            if condition():
                return True
        time.sleep(0.2)
    return False


def _stored(parts: Parts) -> set[str]:
    return parts.db.read_now(lambda conn: set(conn.execute(text("SELECT source_post_id FROM posts")).scalars()))


def _stopped(there: Deployment, web: SimulatedWeb) -> int:
    """Counts feeds that nobody visits any more, though they are due."""
    since, parts = time.monotonic(), there.parts
    parts.db.write_now(
        lambda conn: conn.execute(
            text("UPDATE sources SET next_check_at = :now, turn_at = NULL WHERE lease_until IS NULL"),
            {"now": parts.now() - timedelta(seconds=1)},
        )
    )
    _wait(there, lambda: all(web.asked[url][-1][1] > since for url in web.feeds))
    return sum(web.asked[url][-1][1] <= since for url in web.feeds)


_UNSETTLED = text(
    """SELECT e.event_id, e.partition, e.created_at FROM event_outbox e WHERE e.kind = 'post.stored'
    AND NOT EXISTS (SELECT 1 FROM consumer_inbox i WHERE i.consumer = 'search' AND i.event_id = e.event_id)"""
)


def _unsettled(conn: Connection) -> int:
    """Counts events of posts that the consumers have not seen."""
    return len(conn.execute(_UNSETTLED).all())


def _tell_of_missing(there: Deployment, kafka: bool, say: Callable[[str], None]) -> None:
    """Says which events had no effect, and where they are."""
    missing = there.parts.db.read_now(lambda conn: conn.execute(_UNSETTLED).all())
    places = there.places({row.event_id for row in missing}) if kafka else {}
    for row in missing:
        say(f"no effect: {row.event_id}, partition {row.partition}, {row.created_at}: {places.get(row.event_id)}")


def judge(conn: Connection, web: SimulatedWeb, stopped: int) -> Outcome:
    stored = Counter(conn.execute(text("SELECT source_post_id FROM posts")).scalars())
    events = Counter(
        conn.execute(text("SELECT idempotency_key FROM event_outbox WHERE kind = 'post.stored'")).scalars()
    )
    truth = web.truth()
    return Outcome(
        posts=len(truth),
        lost=len(truth - stored.keys()),
        twice=sum(count - 1 for count in stored.values()),
        stopped=stopped,
        overlaps=web.overlaps(),
        over_host_budget=web.over_host_budget(),
        over_api_budget=web.over_api_budget(),
        effects=_unsettled(conn) + abs(len(stored) - sum(events.values())),
        dead=int(
            conn.execute(
                text("SELECT count(*) FROM event_dlq WHERE state IN ('retrying', 'waiting', 'dead')")
            ).scalar_one()
        ),
    )
