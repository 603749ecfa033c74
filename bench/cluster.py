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
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from corpus import ROOT, Corpus, corpus
from headwater import wire
from headwater.follow.add import follow
from headwater.settings import load
from measure import cpu_seconds, memory_mb
from peers import CannotBeHad, celery_loop, say, wait_until
from peers.postgres import fresh_database
from webserver import serving

sys.path.append(str(ROOT / "tests"))

# The folder of the tests is on the path only while this runs: type checkers do not find it.
from support.cluster import OwnRedis  # type: ignore[import-not-found]

GOAL = 0.8
CRAWLED = "SELECT count(DISTINCT source_id) FROM crawls"
LOOPED = "SELECT count(DISTINCT feed) FROM loop_visits"
VISITED = "SELECT count(*) FROM was_due d WHERE EXISTS (SELECT 1 FROM crawls c WHERE c.source_id = d.id)"
LIMIT = 1800.0
START_SECONDS = 30
UNINDEXED = """SELECT count(*) FROM consumer_cursors c WHERE c.consumer = 'search' AND EXISTS (
    SELECT 1 FROM event_outbox o WHERE o.partition = c.partition AND (o.xid, o.id) > (c.xid, c.id))"""
CELERY = ["-m", "celery", "-A", "headwater.work.celery_app"]
UP = ["-m", "headwater", "up"]
LOOP = ["-m", "celery", "-A", "peers.celery_loop", "worker", "-l", "ERROR", "-c", "2"]


class Spent(NamedTuple):
    feeds: int
    cpu: float
    wall: float

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
def started(place: Place, commands: Sequence[list[str]], **more: str) -> Iterator[list[int]]:
    """Runs these programs; yields their process ids."""
    env = {**os.environ, **place.environ, "PYTHONPATH": str(ROOT / "bench"), "PYTHONWARNINGS": "ignore", **more}
    processes = []
    with (place.folder / "log").open("ab") as log:
        for command in commands:
            processes.append(subprocess.Popen([sys.executable, *command], env=env, stdout=log, stderr=log))
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(150)


def spent_on(place: Place, pids: Sequence[int], feeds: int, work: Callable[[], None]) -> Spent:
    """Returns what these programs and the database spend on the work."""
    before, began = [cpu_seconds(pid) for pid in (*pids, place.server)], time.monotonic()
    work()
    wall = time.monotonic() - began
    after = [cpu_seconds(pid) for pid in (*pids, place.server)]
    return Spent(feeds, sum(after) - sum(before), wall)


def ours(urls: list[str], workers: int) -> Spent:
    """`headwater up`, alone or beside so many worker processes with a beat. Nothing is folded."""
    with fresh_place() as place:
        parts = wire.open_parts(load(place.environ))
        owner = wire.prepare_store(parts)
        commands = [UP, *(deployed(workers) if workers else ())]
        more = {"CELERY_BROKER_URL": place.environ["LOOP_BROKER"]} if workers else {}
        with started(place, commands, HEADWATER_PORT=str(_port()), **more) as pids:
            time.sleep(START_SECONDS)  # until all of them have started: that is no part of a visit

            def work() -> None:
                for url in urls:
                    parts.db.write_now(follow, owner, url, parts.now() - timedelta(seconds=1))
                wait_until(lambda: _count(place, CRAWLED) >= len(urls), LIMIT, 0.5)
                wait_until(lambda: not _count(place, UNINDEXED), LIMIT, 0.5)

            found = spent_on(place, pids, len(urls), work)
        parts.close()
        return found


def deployed(workers: int) -> list[list[str]]:
    """A beat and so many workers."""
    each = [[*CELERY, "worker", "-l", "ERROR", "-n", f"bench{n}@here"] for n in range(workers)]
    return [[*CELERY, "beat", "-l", "ERROR", "--pidfile="], *each]


def theirs(urls: list[str]) -> Spent:
    with fresh_place() as place:
        with psycopg.connect(place.database) as conn:
            conn.execute(celery_loop.TABLES)
        celery_loop.app.conf.broker_url = place.environ["LOOP_BROKER"]
        with started(place, [LOOP]) as pids:
            time.sleep(START_SECONDS)

            def work() -> None:
                for url in urls:
                    celery_loop.app.send_task("refresh", (url,))
                wait_until(lambda: _count(place, LOOPED) >= len(urls), LIMIT, 0.5)

            return spent_on(place, pids, len(urls), work)


def _count(place: Place, question: str) -> int:
    with psycopg.connect(place.database) as conn:
        row: Any = conn.execute(question).fetchone()
        return int(row[0])


def _port() -> int:
    from webserver import free_ports

    return free_ports(1)[0]


def compare(feeds: Corpus, workers: Sequence[int]) -> None:
    with serving(feeds.folder) as server:
        urls = feeds.urls(server.plain)
        say("headwater up")
        embedded = ours(urls, 0)
        rows = [("headwater up", embedded)]
        for count in workers:
            say(f"{count} Celery workers")
            rows.append((f"Celery, {count} worker{'s' * (count > 1)}", ours(urls, count)))
        say("a plain Celery loop")
        try:
            rows.append(("a Celery task for each feed, feedparser", theirs(urls)))
        except CannotBeHad as error:
            print(f"The plain loop did not finish: {error}")
    print(f"\n{len(urls)} feeds ({feeds.origin}), the first visit of each\n")
    print("| | CPU s | wall s | feeds per CPU s | of `headwater up` |\n|---|---|---|---|---|")
    for name, found in rows:
        share = found.rate / embedded.rate
        print(f"| {name} | {found.cpu:.1f} | {found.wall:.1f} | {found.rate:.1f} | {share:.0%} |")
    shares = [found.rate / embedded.rate for name, found in rows[1 : 1 + len(workers)]]
    print(f"\nGoal: Celery at {GOAL:.0%} or more: {'reached' if min(shares) >= GOAL else 'not reached'}")


def lateness(feeds: Corpus, due: int, minutes: float, first: float, workers: int) -> None:
    """Has so many sources come due over a time, and prints how late the visits of its first minutes were."""
    with serving(feeds.folder) as server, fresh_place() as place:
        wire.prepare_store(parts := wire.open_parts(load(place.environ)))
        parts.close()
        begins = datetime.now(UTC) + timedelta(seconds=60)  # until they are added, and the workers are there
        urls = feeds.urls(server.plain)
        say(f"adding {due} sources")
        with psycopg.connect(place.database) as conn:
            conn.cursor().executemany(
                """INSERT INTO sources (kind, address, host, created_at, next_check_at, active, settings, status)
                VALUES ('rss', %s, '127.0.0.1', %s, %s, TRUE, '{}', 'new')""",
                [
                    (f"{urls[n % len(urls)]}?{n}", begins, begins + timedelta(minutes=minutes * n / due))
                    for n in range(due)
                ],
            )
            conn.execute(
                "CREATE TABLE was_due AS SELECT id, next_check_at FROM sources WHERE next_check_at <= %s",
                (begins + timedelta(minutes=first),),
            )
            conn.execute("ANALYZE")
        wanted = _count(place, "SELECT count(*) FROM was_due")
        with started(place, deployed(workers), CELERY_BROKER_URL=place.environ["LOOP_BROKER"]) as pids:
            memory = []
            ends = time.monotonic() + 60 + first * 60 + LIMIT
            while _count(place, VISITED) < wanted and time.monotonic() < ends:
                time.sleep(5)
                memory.append(sum(memory_mb(pid) for pid in pids))
        with psycopg.connect(place.database) as conn:
            row: Any = conn.execute(
                """SELECT count(*), percentile_cont(ARRAY[0.5, 0.99, 1.0]) WITHIN GROUP
                    (ORDER BY EXTRACT(epoch FROM c.started_at - d.next_check_at)::float)
                FROM was_due d JOIN (SELECT source_id, min(started_at) AS started_at FROM crawls GROUP BY 1) c
                    ON c.source_id = d.id"""
            ).fetchone()
    half, nearly_all, worst = row[1]
    middle = memory[len(memory) // 2 :]
    print(f"\n{due} sources, due over {minutes:g} min; of these the first {first:g} min were run, by {workers} workers")
    print(f"{row[0]} of the {wanted} that came due were visited")
    print(f"late by: median {half:.2f} s, p99 {nearly_all:.2f} s, most {worst:.2f} s")
    print(f"memory of all: {max(memory):.0f} MB at most, {middle[0]:.0f} half way, {memory[-1]:.0f} at the end")


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
