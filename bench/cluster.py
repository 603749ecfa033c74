"""What visits cost on Celery workers, beside `headwater up` and beside a plain Celery loop with a task for each feed.

    python bench/cluster.py [--feeds 2000] [--workers 1,2]
    python bench/cluster.py --feeds 0 --due 100000 --minutes 60    how late visits are that come due over an hour
    python bench/cluster.py --feeds 0 --due 100000 --minutes 60 --first 5    the first five minutes of that hour

All read the same feeds from the same local nginx and write to a PostgreSQL of their own. The figure is feeds per second
of CPU, until the search index has caught up, database included, because the machine may be shared. The goal is 80 % of
the rate of `headwater up`. With workers, `headwater up` runs as well: its consumers fill the search index.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psycopg

from corpus import ROOT, Corpus, corpus
from headwater import wire
from headwater.follow.add import follow
from headwater.settings import load
from measure import cpu_seconds, memory_mb, wait_until_quiet
from peers import CannotBeHad, celery_loop, say, wait_until
from peers.postgres import fresh_database
from webserver import free_ports, serving

sys.path.append(str(ROOT / "tests"))

# The folder of the tests is on the path only while this runs: type checkers do not find it.
from support.cluster import OwnRedis  # type: ignore[import-not-found]

GOAL = 0.8
CRAWLED = "SELECT count(DISTINCT source_id) FROM crawls"
LOOPED = "SELECT count(DISTINCT feed) FROM loop_visits"
VISITED = "SELECT count(*) FROM was_due d WHERE EXISTS (SELECT 1 FROM crawls c WHERE c.source_id = d.id)"
BEGIN_SCHEDULE = """UPDATE sources SET next_check_at = next_check_at + (now() + interval '3 s' - begins)
    FROM (SELECT min(next_check_at) AS begins FROM sources) first"""
NOTE_DUE = """CREATE TABLE was_due AS SELECT id, next_check_at FROM sources
    WHERE next_check_at <= (SELECT min(next_check_at) FROM sources) + %s"""
LATENESS = """SELECT count(*), percentile_cont(ARRAY[0.5, 0.95, 0.99, 1.0]) WITHIN GROUP
        (ORDER BY EXTRACT(epoch FROM c.started_at - d.next_check_at)::float)
    FROM was_due d JOIN (SELECT source_id, min(started_at) AS started_at FROM crawls GROUP BY 1) c
        ON c.source_id = d.id"""
LIMIT = 1800.0
START_LIMIT = 300.0
WARM_SECONDS = 15.0
UNINDEXED = """SELECT count(*) FROM consumer_cursors c WHERE c.consumer = 'search' AND EXISTS (
    SELECT 1 FROM event_outbox o WHERE o.partition = c.partition AND (o.xid, o.id) > (c.xid, c.id))"""
CELERY = ["-m", "celery", "-A", "headwater.work.celery_app"]
UP = ["-m", "headwater", "up"]
LOOP = ["-m", "celery", "-A", "peers.celery_loop", "worker", "-l", "ERROR", "-c", "2"]


class Spent(NamedTuple):
    """What a deployment spent on its feeds: CPU seconds by program, and time."""

    feeds: int
    by_program: dict[str, float]
    wall: float

    @property
    def cpu(self) -> float:
        return sum(self.by_program.values())

    @property
    def rate(self) -> float:
        return self.feeds / self.cpu


class Place(NamedTuple):
    """A PostgreSQL and a Redis for one run."""

    environ: dict[str, str]
    database: str
    server: int
    folder: Path


@contextmanager
def fresh_place() -> Iterator[Place]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headwater-cluster-")))
        database = stack.enter_context(fresh_database(folder))
        redis = OwnRedis()
        redis.start()
        stack.callback(redis.stop)
        environ = {
            "HEADWATER_DATABASE_URL": database.url,
            "HEADWATER_DATA_DIR": str(folder / "data"),
            "HEADWATER_ALLOW_PRIVATE_NETWORKS": "true",
            "HEADWATER_HOST_GAP_SECONDS": "0",
            "HEADWATER_LOG_LEVEL": "error",
            "HEADWATER_FOLD": "off",
            "HEADWATER_PARSER_PROCESSES": "1",
            "LOOP_BROKER": redis.url,
            "LOOP_DATABASE": database.url,
            "CELERY_WORKER_COUNT": "1",
        }
        yield Place(environ, database.url, database.server, folder)


@contextmanager
def started(place: Place, commands: Mapping[str, list[str]], **more: str) -> Iterator[dict[str, int]]:
    """Runs these programs; yields their process ids."""
    env = {**os.environ, **place.environ, "PYTHONPATH": str(ROOT / "bench"), "PYTHONWARNINGS": "ignore", **more}
    processes = {}
    with (place.folder / "log").open("ab") as log:
        for name, command in commands.items():
            processes[name] = subprocess.Popen([sys.executable, *command], env=env, stdout=log, stderr=log)
    try:
        yield {name: process.pid for name, process in processes.items()}
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.wait(150)


def spent_on(place: Place, pids: Mapping[str, int], feeds: int, work: Callable[[], None]) -> Spent:
    """Returns what these programs and the database spend on the work."""
    counted = {**pids, "PostgreSQL": place.server}
    before, began = {name: cpu_seconds(pid) for name, pid in counted.items()}, time.monotonic()
    work()
    wall = time.monotonic() - began
    return Spent(feeds, {name: cpu_seconds(pid) - before[name] for name, pid in counted.items()}, wall)


def ours(urls: list[str], workers: int) -> Spent:
    """`headwater up`, alone or beside so many worker processes with a beat. Nothing is folded."""
    with fresh_place() as place:
        parts = wire.open_parts(load(place.environ))
        owner = wire.prepare_store(parts)
        commands = {"up": UP, **(deployed(workers) if workers else {})}
        more = {"CELERY_BROKER_URL": place.environ["LOOP_BROKER"]} if workers else {}
        port = free_ports(1)[0]
        with started(place, commands, HEADWATER_PORT=str(port), **more) as pids:
            wait_until(lambda: _answers(port), START_LIMIT, 0.5)
            warm_up(pids.values())

            def work() -> None:
                for url in urls:
                    parts.db.write_now(follow, owner, url, parts.now() - timedelta(seconds=1))
                with psycopg.connect(place.database, autocommit=True) as conn:
                    wait_until(lambda: _count(conn, CRAWLED) >= len(urls), LIMIT, 0.5)
                    wait_until(lambda: not _count(conn, UNINDEXED), LIMIT, 0.5)

            found = spent_on(place, pids, len(urls), work)
        parts.close()
        return found


def deployed(workers: int) -> dict[str, list[str]]:
    """A beat and so many workers."""
    each = {f"worker {n}": [*CELERY, "worker", "-l", "ERROR", "-n", f"bench{n}@here"] for n in range(workers)}
    return {"beat": [*CELERY, "beat", "-l", "ERROR", "--pidfile="], **each}


def theirs(urls: list[str]) -> Spent:
    with fresh_place() as place:
        with psycopg.connect(place.database) as conn:
            conn.execute(celery_loop.TABLES)
        celery_loop.app.conf.broker_url = place.environ["LOOP_BROKER"]
        with started(place, {"worker": LOOP}) as pids:
            warm_up(pids.values())

            def work() -> None:
                for url in urls:
                    celery_loop.app.send_task("refresh", (url,))
                with psycopg.connect(place.database, autocommit=True) as conn:
                    wait_until(lambda: _count(conn, LOOPED) >= len(urls), LIMIT, 0.5)

            return spent_on(place, pids, len(urls), work)


def _count(conn: psycopg.Connection[Any], question: str) -> int:
    row: Any = conn.execute(question).fetchone()
    return int(row[0])


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def warm_up(pids: Collection[int]) -> None:
    """Waits until these programs have started and done what they do first: that is no part of a visit."""
    time.sleep(WARM_SECONDS)
    for pid in pids:
        wait_until_quiet(pid)


def compare(feeds: Corpus, workers: Sequence[int]) -> None:
    with serving(feeds.folder) as server:
        urls = feeds.urls(server.plain)
        print(f"\n{len(urls)} feeds ({feeds.origin}), the first visit of each\n")
        print(
            "| | CPU s | wall s | feeds per CPU s | of `headwater up` | where |\n|---|---|---|---|---|---|", flush=True
        )
        embedded = ours(urls, 0)
        show("headwater up", embedded, embedded)
        shares = []
        for count in workers:
            found = ours(urls, count)
            show(f"Celery, {count} worker{'s' * (count > 1)}", found, embedded)
            shares.append(found.rate / embedded.rate)
        try:
            show("a Celery task for each feed, feedparser", theirs(urls), embedded)
        except CannotBeHad as error:
            print(f"The plain loop did not finish: {error}")
    print(f"\nGoal: Celery at {GOAL:.0%} or more: {'reached' if min(shares) >= GOAL else 'not reached'}")


def show(name: str, found: Spent, embedded: Spent) -> None:
    """Prints a row of the table as soon as it is known: all of them take a while."""
    where = ", ".join(f"{program} {cpu:.1f}" for program, cpu in found.by_program.items())
    share = found.rate / embedded.rate
    print(f"| {name} | {found.cpu:.1f} | {found.wall:.1f} | {found.rate:.1f} | {share:.0%} | {where} |", flush=True)


def lateness(feeds: Corpus, due: int, minutes: float, first: float, workers: int) -> None:
    """Has so many sources come due over a time, and prints how late the visits of its first minutes were."""
    with serving(feeds.folder) as server, fresh_place() as place:
        wire.prepare_store(parts := wire.open_parts(load(place.environ)))
        parts.close()
        say(f"adding {due} sources")
        with psycopg.connect(place.database, autocommit=True) as conn:
            add_sources(conn, feeds.urls(server.plain), due, minutes)
            with started(place, deployed(workers), CELERY_BROKER_URL=place.environ["LOOP_BROKER"]) as pids:
                warm_up(pids.values())
                conn.execute(BEGIN_SCHEDULE)
                conn.execute(NOTE_DUE, (timedelta(minutes=first),))
                wanted = _count(conn, "SELECT count(*) FROM was_due")
                say(f"{wanted} of them come due in {first:g} min")
                began = {name: cpu_seconds(pid) for name, pid in {**pids, "PostgreSQL": place.server}.items()}
                memory = watch_memory(conn, pids.values(), wanted, first * 60 + LIMIT)
                ended = {name: cpu_seconds(pid) for name, pid in {**pids, "PostgreSQL": place.server}.items()}
            row: Any = conn.execute(LATENESS).fetchone()
    half, most, nearly_all, worst = row[1]
    spent = ", ".join(f"{name} {ended[name] - began[name]:.0f}" for name in began)
    print(f"\n{due} sources, due over {minutes:g} min; the first {first:g} min of that, by {workers} workers")
    print(f"{row[0]} of the {wanted} that came due were visited, nine of ten unchanged; CPU seconds: {spent}")
    print(f"late by: median {half:.2f} s, p95 {most:.2f} s, p99 {nearly_all:.2f} s, most {worst:.2f} s")
    print(f"memory of workers and beat, MB, median of each tenth of the time: {curve(memory)}")


def add_sources(conn: psycopg.Connection[Any], urls: Sequence[str], count: int, minutes: float) -> None:
    """Adds sources that come due one after the other, from tomorrow on. Nine of ten have not changed since a visit."""
    tags = [_etag(url) for url in urls]
    begins, now = datetime.now(UTC) + timedelta(days=1), datetime.now(UTC)
    rows = (
        (
            f"{urls[n % len(urls)]}?{n}",
            now,
            begins + timedelta(minutes=minutes * n / count),
            tags[n % len(urls)] if n % 10 else None,
            now if n % 10 else None,
        )
        for n in range(count)
    )
    conn.cursor().executemany(
        """INSERT INTO sources
            (kind, address, host, created_at, next_check_at, etag, validated_at, active, settings, status)
        VALUES ('rss', %s, '127.0.0.1', %s, %s, %s, %s, TRUE, '{}', 'ok')""",
        rows,
    )
    conn.execute("ANALYZE")


def watch_memory(conn: psycopg.Connection[Any], pids: Collection[int], wanted: int, limit: float) -> list[float]:
    """Returns the memory of these programs every ten seconds until all sources were visited, or time is up."""
    memory, ends = [], time.monotonic() + limit
    while _count(conn, VISITED) < wanted and time.monotonic() < ends:
        time.sleep(10)
        memory.append(sum(memory_mb(pid) for pid in pids))
    return memory


def curve(memory: Sequence[float]) -> str:
    """Returns the medians of ten parts, one after the other. Single figures say little: parsers come and go."""
    size = max(1, len(memory) // 10)
    return " ".join(f"{median(memory[at : at + size]):.0f}" for at in range(0, len(memory), size))


def _etag(url: str) -> str | None:
    wanted = urllib.request.Request(url, method="HEAD", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(wanted, timeout=30) as answer:
        found: str | None = answer.headers.get("ETag")
        return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--feeds", type=int, default=2000)
    options.add_argument("--workers", default="1,2")
    options.add_argument("--due", type=int, default=0)
    options.add_argument("--minutes", type=float, default=60.0)
    options.add_argument("--first", type=float, help="run only so many of these minutes")
    given = options.parse_args()
    if given.feeds:
        compare(corpus(given.feeds), [int(count) for count in given.workers.split(",")])
    if given.due:
        lateness(corpus(200), given.due, given.minutes, given.first or given.minutes, workers=2)


if __name__ == "__main__":
    main()
