"""How long a search takes as the store grows: ours beside an index that ranks and sorts every match by its date.

    python bench/search.py [--posts 10000,100000,1000000] [--stores sqlite,postgres]

Posts are made up: words by Zipf's law, every tenth post Chinese, published over three years. Three fifths are stored as
they are published; the rest are archives, stored last and in any order. The peer is what readers on SQLite commonly do:
FTS5 with positions over title and text, joined with the posts and ordered by their time. Wall milliseconds per question
(the machine may be shared), CPU seconds of this process and size for building the index. PostgreSQL is a private one,
started for this and removed afterwards.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.people import accounts
from headwater.store.posts import search
from headwater.store.sources import add
from headwater.store.sql import portable
from peers.postgres import fresh_database

NOW = datetime(2026, 11, 1, tzinfo=UTC)
SIGNS = [chr(0x4E00 + number) for number in range(3000)]
WORDS = [f"w{number:05}" for number in range(50_000)]
ROUNDS = 200
SPAN = 3 * 365 * 86_400  # seconds in which the posts were published
TIMELY = 0.6  # of the posts: stored in the order in which they were published


def texts(count: int, chance: random.Random) -> Iterator[tuple[str, str]]:
    weights = [1 / (place + 1) for place in range(len(WORDS))]
    total = 0.0
    cumulative = [total := total + weight for weight in weights]
    for number in range(count):
        if number % 10 == 0:
            signs = chance.choices(SIGNS, k=120)
            yield "".join(signs[:20]), "<p>" + "".join(signs[20:]) + "</p>"
        else:
            words = chance.choices(WORDS, cum_weights=cumulative, k=80)
            yield " ".join(words[:8]), "<p>" + " ".join(words[8:]) + "</p>"


def questions(chance: random.Random) -> list[tuple[str, str]]:
    """Returns pairs of our words and the peer's query, from common to rare: one word, two words, Chinese pairs."""
    found = []
    for _ in range(ROUNDS):
        place = int(len(WORDS) ** chance.random())
        words = [WORDS[place - 1]] + ([WORDS[chance.randrange(200)]] if chance.random() < 0.5 else [])
        found.append((" ".join(words), " AND ".join(words)))
    return found


def published(count: int) -> list[datetime]:
    """Returns when each post was published, in the order in which they are stored."""
    chance = random.Random(5)
    times = [chance.randrange(SPAN) for _ in range(count)]
    timely = int(TIMELY * count)
    return [NOW - timedelta(seconds=SPAN - time) for time in [*sorted(times[:timely]), *times[timely:]]]


def fill(db: Database, count: int) -> Reader:
    reader = db.write_now(accounts.make_owner, NOW)
    source = db.write_now(add, reader, kind="rss", address="https://news.example/", host="news.example", now=NOW)
    told = zip(published(count), texts(count, random.Random(7)), strict=True)
    rows = (
        (number, source.source_id, str(number), b"", title, content, time, NOW, NOW)
        for number, (time, (title, content)) in enumerate(told, 1)
    )
    insert = portable(
        """INSERT INTO posts (id, source_id, source_post_id, text_norm_hash, title, content, created_at,
        fetched_at, valid_from) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
    )
    while batch := list(islice(rows, 20_000)):
        db.write_now(insert.many, batch)
    return reader


def build_ours(db: Database, count: int) -> None:
    for start in range(1, count + 1, 4000):
        db.write_now(search.index, list(range(start, min(start + 4000, count + 1))))
    db.write_now(lambda conn: conn.exec_driver_sql("ANALYZE"))


def build_peer(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE VIRTUAL TABLE peer USING fts5 (title, content, content='posts', content_rowid='id')")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO peer (rowid, title, content) SELECT id, title, content FROM posts")
    connection.execute("COMMIT")


def spent(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def milliseconds(ask: Callable[[str], object], asked: list[str]) -> tuple[float, float]:
    times = []
    for words in asked:
        start = time.perf_counter()
        ask(words)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description="How long a search takes as the store grows.")
    parser.add_argument("--posts", default="10000,100000,1000000")
    parser.add_argument("--stores", default="sqlite,postgres")
    given = parser.parse_args()
    print(f"SQLite {sqlite3.sqlite_version}, {ROUNDS} questions each, newest 50 posts\n")
    print("    posts               build CPU  index MB   median ms     p95 ms")
    for count in map(int, given.posts.split(",")):
        measure(count, given.stores.split(","))


def measure(count: int, stores: Sequence[str]) -> None:
    asked = questions(random.Random(11))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headwater-search-")))
        if "sqlite" in stores:
            measure_ours(f"sqlite:///{folder / 'headwater.db'}", "headwater", count, asked)
            measure_peer(folder / "headwater.db", count, asked)
        if "postgres" in stores:
            server = stack.enter_context(fresh_database(folder))
            measure_ours(server.url, "... PostgreSQL", count, asked)


def measure_ours(url: str, name: str, count: int, asked: Sequence[tuple[str, str]]) -> None:
    db = Database(url)
    migrate.upgrade(db)
    reader = fill(db, count)
    build = spent(lambda: build_ours(db, count))
    median, p95 = milliseconds(lambda words: db.read_now(search.find, reader, words), [ours for ours, _ in asked])
    report(count, name, build, db.read_now(_size), median, p95)
    db.close()


def measure_peer(path: Path, count: int, asked: Sequence[tuple[str, str]]) -> None:
    query = """SELECT posts.id FROM peer JOIN posts ON posts.id = peer.rowid WHERE peer MATCH ?
        ORDER BY posts.created_at DESC LIMIT 50"""
    peer = sqlite3.connect(path, isolation_level=None)
    build = spent(lambda: build_peer(peer))
    median, p95 = milliseconds(lambda words: peer.execute(query, (words,)).fetchall(), [two for _, two in asked])
    size = peer.execute("SELECT sum(length(block)) FROM peer_data").fetchone()[0]
    report(count, "fts5, sorted", build, size / 1e6, median, p95)
    peer.close()


def _size(conn: Connection) -> float:
    """Returns the megabytes of the index."""
    if conn.dialect.name == "sqlite":
        sql = "SELECT sum(length(block)) FROM post_words_data"
    else:
        sql = "SELECT pg_total_relation_size('post_words')"
    return float(conn.exec_driver_sql(sql).scalar_one()) / 1e6


def report(count: int, name: str, build: float, size: float, median: float, p95: float) -> None:
    print(f"{count:9,}  {name:14} {build:9.1f} s {size:9.0f} {median:11.2f} {p95:10.2f}", flush=True)


if __name__ == "__main__":
    main()
