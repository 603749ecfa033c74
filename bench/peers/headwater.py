"""Headwater itself, as `headwater up` runs it for one person: SQLite, pages and crawl loop in one process tree."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

import corpus
from measure import Pass, measured
from peers import CannotBeHad, Job, Outcome, environment, last_words, wait_until
from webserver import free_ports

NAME = "headwater"
COMMAND = [sys.executable, "-m", "headwater"]
VISITED = "SELECT count(*) FROM (SELECT 1 FROM crawls GROUP BY source_id HAVING count(*) >= ?)"
STORED = """
    SELECT count(DISTINCT source_id), count(*)
    FROM posts JOIN sources ON sources.id = source_id WHERE sources.host <> 'filler.example'
"""
FILLER = """
    INSERT INTO sources (id, kind, address, host, created_at, next_check_at, active)
    VALUES (1000000, 'rss', 'http://filler.example/', 'filler.example', 0, 0, 0);
    INSERT INTO posts
        (source_id, source_post_id, text_norm_hash, url, title, content, created_at, fetched_at, valid_from)
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {posts})
    SELECT 1000000, 'post ' || n, randomblob(16), 'http://filler.example/' || n, 'Title ' || hex(randomblob(20)),
           '<p>' || hex(randomblob(500)) || '</p>', n * 1000000, n * 1000000, n * 1000000
    FROM numbers;
"""


class Running(NamedTuple):
    """`headwater up`, which goes on running, and the feeds that it is to read."""

    process: subprocess.Popen[bytes]
    job: Job
    address: str
    token: str
    store: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def visit_all(self, limit: float) -> Pass:
        """Follows all feeds and waits until each was visited and what follows from that is done."""
        document = corpus.opml(self.job.urls).encode()
        return self._pass(1, limit, lambda: _import(self.address, self.token, document))

    def visit_again(self, limit: float) -> Pass:
        return self._pass(2, limit, lambda: _make_due(self.store))

    def folded(self) -> int:
        """How many posts folding has decided about."""
        return _ask(self.store, "SELECT count(*) FROM story_members")[0]

    def _pass(self, number: int, limit: float, trigger: Callable[[], None]) -> Pass:
        def work() -> None:
            trigger()
            wait_until(lambda: _ask(self.store, VISITED, number)[0] >= len(self.job.urls), limit)

        spent = measured(self.pid, work)
        if self.process.poll() is not None:
            raise CannotBeHad(f"headwater ended: {last_words(self.job)}")
        return spent


@contextmanager
def running(job: Job, posts_before: int = 0, **settings: str) -> Iterator[Running]:
    """Runs `headwater up` in the folder of the job, until the block ends. It follows nothing yet."""
    (port,) = free_ports(1)
    address, store = f"http://127.0.0.1:{port}", job.folder / "data" / "headwater.db"
    env = environment(
        job,
        PYTHONPATH=str(corpus.ROOT / "src"),
        HEADWATER_DATA_DIR=str(store.parent),
        HEADWATER_PORT=str(port),
        HEADWATER_ALLOW_PRIVATE_NETWORKS="true",
        HEADWATER_HOST_GAP_SECONDS="0",
        HEADWATER_LOG_LEVEL="error",
        **settings,
    )
    _run(env, "db", "upgrade")
    token = json.loads(_run(env, "token", "--json"))["token"]
    if posts_before:
        _fill(store, posts_before)
    with (job.folder / "log").open("wb") as log:
        process = subprocess.Popen([*COMMAND, "up"], env=env, cwd=job.folder, stdout=log, stderr=log)
    try:
        wait_until(lambda: _ready(address), 30)
        yield Running(process, job, address, token, store)
    finally:
        process.terminate()
        process.wait(300)


def poll(job: Job, posts_before: int = 0) -> Outcome:
    """`posts_before` others are in the store already, from a source that is never visited."""
    fold = os.environ.get("HEADWATER_BENCH_FOLD", "off")  # the others fold nothing
    with running(job, posts_before, HEADWATER_FOLD=fold) as ours:
        first, unchanged = ours.visit_all(job.limit), ours.visit_again(job.limit)
    feeds, entries = _ask(ours.store, STORED)
    return Outcome(_run(dict(os.environ), "--version").split()[-1], first, unchanged, feeds, entries)


def _run(env: dict[str, str], *words: str) -> str:
    answer = subprocess.run([*COMMAND, *words], env=env, capture_output=True, text=True)
    if answer.returncode != 0:
        raise CannotBeHad(answer.stderr.strip())
    return answer.stdout


def _ready(address: str) -> bool:
    try:
        with urlopen(f"{address}/readyz", timeout=5):
            return True
    except OSError:
        return False


def _import(address: str, token: str, document: bytes) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/x-opml"}
    with urlopen(Request(f"{address}/api/opml", document, headers), timeout=300) as answer:
        answer.read()


def _fill(store: Path, posts: int) -> None:
    with sqlite3.connect(store) as connection:
        connection.executescript(FILLER.format(posts=posts))


def _make_due(store: Path) -> None:
    with sqlite3.connect(store, timeout=30) as connection:
        connection.execute("UPDATE sources SET next_check_at = created_at WHERE active")


def _ask(store: Path, question: str, *values: int) -> tuple[int, ...]:
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=30) as connection:
        row: tuple[int, ...] = connection.execute(question, values).fetchone()
        return row
