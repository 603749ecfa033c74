"""Choosing who is due among many sources, as the posts in the store grow: milliseconds on SQLite and on PostgreSQL."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, text

from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.sources import leases
from headwater.store.sql import portable
from peers import CannotBeHad, say
from peers.postgres import fresh_database

NOW = datetime(2026, 11, 1, tzinfo=UTC)
DUE = 500  # at any time
BATCH = 192  # the room of a process that waits for nothing
ROUNDS = 25
GOAL_MS = 10.0

_add_source = portable(
    """INSERT INTO sources (id, kind, address, host, created_at, next_check_at, active)
    VALUES (?, 'reddit', ?, 'www.reddit.com', ?, ?, ?)"""
)
_add_posts = {
    "sqlite": """INSERT INTO posts
        (source_id, source_post_id, text_norm_hash, url, title, content, created_at, fetched_at, valid_from)
        WITH RECURSIVE numbers(n) AS (SELECT :low UNION ALL SELECT n + 1 FROM numbers WHERE n < :high)
        SELECT 1 + n % :sources, 'post ' || n, randomblob(16), NULL, 'Title ' || n, hex(randomblob(50)),
            n * 1000000, n * 1000000, n * 1000000 FROM numbers""",
    "postgresql": """INSERT INTO posts
        (source_id, source_post_id, text_norm_hash, url, title, content, created_at, fetched_at, valid_from)
        SELECT 1 + n % CAST(:sources AS integer), 'post ' || n, decode(md5(n::text), 'hex'), NULL, 'Title ' || n,
            md5(n::text), to_timestamp(n), to_timestamp(n), to_timestamp(n)
        FROM generate_series(CAST(:low AS integer), CAST(:high AS integer)) AS n""",
}


class Took(NamedTuple):
    """The milliseconds of each round."""

    choosing: list[float]
    claiming: list[float]


def curve(sources: int, sizes: Sequence[int]) -> None:
    print(f"\n{DUE} of {sources:,} sources are due; ms, the best of {ROUNDS} rounds and their median")
    print(f"{'posts in the store':<34}" + "".join(f"{size:>16,}" for size in sizes))
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        for name in ("SQLite", "PostgreSQL"):
            try:
                with database(name, Path(folder)) as db:
                    db.write_now(add_sources, sources)
                    took = [at_size(db, sources, low, high) for low, high in zip([0, *sizes], sizes, strict=False)]
            except CannotBeHad as reason:
                print(f"{name:<34} cannot be had here: {reason}")
                continue
            show(f"{name}: choosing them", [one.choosing for one in took])
            show(f"{name}: claiming {BATCH}, with commit", [one.claiming for one in took])


def show(name: str, took: Sequence[Sequence[float]]) -> None:
    cells = "".join(f"{f'{min(one):.2f} ({statistics.median(one):.1f})':>16}" for one in took)
    slowest = max(min(one) for one in took)
    print(f"{name:<34}{cells}  (goal {GOAL_MS:.0f}: {'reached' if slowest < GOAL_MS else 'MISSED'})", flush=True)


@contextmanager
def database(name: str, folder: Path) -> Iterator[Database]:
    if name == "SQLite":
        db = Database(f"sqlite:///{folder / 'due.db'}")
        migrate.upgrade(db)
        yield db
        db.close()
        return
    with fresh_database(folder) as server:
        db = Database(server.url)
        migrate.upgrade(db)
        yield db
        db.close()


def add_sources(conn: Connection, count: int) -> None:
    """Adds sources: the first ones are due now, the others within the next day."""
    rest = timedelta(days=1) / count
    due_at = [NOW - timedelta(hours=1) if number < DUE else NOW + number * rest for number in range(count)]
    rows = [(n + 1, f"https://www.reddit.com/r/c{n}", NOW, at, True) for n, at in enumerate(due_at)]
    _add_source.many(conn, rows)


def at_size(db: Database, sources: int, low: int, high: int) -> Took:
    say(f"{high:,} posts")
    fill, analyze = text(_add_posts[db.engine.dialect.name]), text("ANALYZE")
    db.write_now(lambda conn: conn.execute(fill, {"low": low + 1, "high": high, "sources": sources}))
    db.write_now(lambda conn: conn.execute(analyze))
    return Took([choose(db) for _ in range(ROUNDS)], [claim(db) for _ in range(ROUNDS)])


def choose(db: Database) -> float:
    began = time.perf_counter()
    due = db.read_now(leases.due_ids, NOW)
    took = time.perf_counter() - began
    assert len(due) == DUE
    return took * 1000


def claim(db: Database) -> float:
    """Returns the milliseconds of a claim. Gives the leases back, so that the next one finds as many."""
    began = time.perf_counter()
    granted = db.write_now(
        leases.claim_due, now=NOW, lease="bench", lease_for=timedelta(minutes=3), gap=timedelta(0), limit=BATCH
    )
    took = time.perf_counter() - began
    assert len(granted) == BATCH
    back = NOW - timedelta(hours=1)
    db.write_now(leases.release, [(due.source.id, due.lease) for due in granted], back)
    return took * 1000
