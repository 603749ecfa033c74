"""Headwater itself, as `headwater up` runs it for one person: SQLite, pages and crawl loop in one process tree."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError
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


def poll(job: Job, posts_before: int = 0) -> Outcome:
    """`posts_before` others are in the store already, from a source that is never visited."""
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
        HEADWATER_FOLD=os.environ.get("HEADWATER_BENCH_FOLD", "off"),  # the others fold nothing
    )
    token = json.loads(_run(env, "token", "--json"))["token"]
    if posts_before:
        _fill(store, posts_before)
    with (job.folder / "log").open("wb") as log:
        process = subprocess.Popen([*COMMAND, "up"], env=env, cwd=job.folder, stdout=log, stderr=log)
    try:
        wait_until(lambda: _ready(address), 30)
        document = corpus.opml(job.urls).encode()
        first = _pass(process, store, job, 1, lambda: _import(address, token, document))
        unchanged = _pass(process, store, job, 2, lambda: _make_due(store))
    finally:
        process.terminate()
        process.wait(60)
    feeds, entries = _ask(store, STORED)
    return Outcome(_run(env, "--version").split()[-1], first, unchanged, feeds, entries)


def _pass(process: subprocess.Popen[bytes], store: Path, job: Job, number: int, trigger: Callable[[], None]) -> Pass:
    def work() -> None:
        trigger()
        wait_until(lambda: _ask(store, VISITED, number)[0] >= len(job.urls), job.limit)

    spent = measured(process.pid, work)
    if process.poll() is not None:
        raise CannotBeHad(f"headwater ended: {last_words(job)}")
    return spent


def _run(env: dict[str, str], *words: str) -> str:
    answer = subprocess.run([*COMMAND, *words], env=env, capture_output=True, text=True)
    if answer.returncode != 0:
        raise CannotBeHad(answer.stderr.strip())
    return answer.stdout


def _ready(address: str) -> bool:
    try:
        with urlopen(f"{address}/readyz", timeout=5):
            return True
    except URLError:
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
