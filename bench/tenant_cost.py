"""What isolation costs on PostgreSQL: the same work on the same data, with row level security and without.

    python bench/tenant_cost.py [--tenants 200] [--posts 1000000] [--calls 400] [--server postgresql://…]

With it, the store is opened as the application opens it: by a role that the policies bind, with the tenant set at the
start of each transaction. Without it, by a role that bypasses them, with nothing set. The two take turns call by call,
each asks for the same readers and words, and what they return is compared. CPU is that of this process and of the
server's process behind its connection, in milliseconds for each call, so a busy machine does not change the ratio much.
The goal is at most 1.15.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql
from sqlalchemy import Connection, text

from headwater.model import Reader
from headwater.store import migrate, row_security
from headwater.store.db import Database
from headwater.store.log import outbox
from headwater.store.people import deliveries
from headwater.store.posts import search, stream
from headwater.store.posts.stream import Filter
from headwater.store.sources import leases
from measure import own_memory_mb

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
SOURCES = 2000
FOLLOWED = 60  # by each tenant
GOAL = 1.15
ROLE = "headwater_bench"
WORDS = 20_000
LONGEST_SECONDS = 30

# What a store has. Everything is made by the server itself, which is faster than sending it.
_FILL = """
INSERT INTO tenants (id, name, runs_instance, created_at)
    SELECT g, 'tenant ' || g, g = 1, %(now)s FROM generate_series(1, %(tenants)s) g;
INSERT INTO users (id, tenant_id, name, role, created_at)
    SELECT g, g, 'reader ' || g, 'owner', %(now)s FROM generate_series(1, %(tenants)s) g;
INSERT INTO sources (id, kind, address, host, title, created_at, next_check_at)
    SELECT g, 'rss', 'https://host' || g %% 500 || '.example/' || g, 'host' || g %% 500 || '.example', 'Source ' || g,
        %(now)s, %(now)s - g * interval '1 second' FROM generate_series(1, %(sources)s) g;
INSERT INTO subscriptions (tenant_id, user_id, source_id, created_at)
    SELECT t, t, 1 + (t * 7 + n * 31) %% %(sources)s, %(now)s
    FROM generate_series(1, %(tenants)s) t, generate_series(1, %(followed)s) n ON CONFLICT DO NOTHING;
INSERT INTO posts (id, source_id, source_post_id, text_norm_hash, title, content, url, created_at, fetched_at,
        valid_from)
    SELECT g, 1 + (g::bigint * 7919) %% %(sources)s, g::text, ''::bytea,
        'w' || (%(words)s * power(random(), 3))::int || ' w' || (%(words)s * power(random(), 3))::int
            || ' w' || (%(words)s * power(random(), 3))::int || ' w' || (%(words)s * power(random(), 3))::int,
        '<p>' || repeat('some text of a post ', 20) || '</p>', 'https://host.example/' || g,
        %(now)s - (%(posts)s - g) * interval '3 seconds', %(now)s, %(now)s FROM generate_series(1, %(posts)s) g;
INSERT INTO post_words (post_id, words) SELECT id, to_tsvector('simple', title) || array_to_tsvector(ARRAY(
        SELECT '#' || bits || '/' || floor(extract(epoch FROM created_at) / (1::bigint << bits))::bigint
        FROM unnest(%(bits)s::int[]) bits)) FROM posts;
INSERT INTO hot_posts (id, source_id, source_post_id, version, url, title, content, created_at, fetched_at, extra,
        expires_at)
    SELECT id, source_id, source_post_id, version, url, title, content, created_at, fetched_at, extra,
        created_at + interval '24 hours'
    FROM posts WHERE created_at > %(now)s - interval '24 hours';
UPDATE hot_window SET since = %(now)s - interval '24 hours';
INSERT INTO story_members (seq, post_id, source_id, created_at, story_id, repeat_id, rule, score, why, decided_at)
    SELECT id, id, source_id, created_at, id - (id %% 5 = 0)::int, id - (id %% 5 = 0)::int,
        CASE WHEN id %% 5 = 0 THEN 'exact' ELSE 'first' END, 1, '', %(now)s FROM posts;
INSERT INTO post_states (tenant_id, user_id, post_id, read_at)
    SELECT s.tenant_id, s.user_id, p.id, %(now)s FROM posts p JOIN subscriptions s ON s.source_id = p.source_id
    WHERE p.id > %(posts)s - 40000 AND p.id %% 3 = 0;
INSERT INTO webhooks (id, tenant_id, user_id, address, secret, created_at, next_try_at)
    SELECT g, g, g, 'https://hooks.example/' || g, ''::bytea, %(now)s, %(now)s FROM generate_series(1, %(tenants)s) g;
INSERT INTO webhook_deliveries (webhook_id, tenant_id, xid, log_id, event_id, kind, version, key, payload, created_at)
    SELECT w, w, 0, n, md5(w || ' ' || n), 'post.stored', 1, 'source:1', '{{}}', %(now)s
    FROM generate_series(1, %(tenants)s) w, generate_series(1, 20) n;
INSERT INTO event_outbox (event_id, kind, key, payload, idempotency_key, created_at, partition, tenant_id, user_id)
    SELECT md5(g::text), 'post.stored', 'source:' || g, '{{}}', g::text, %(now)s, g %% 16,
        CASE WHEN g %% 4 = 0 THEN 1 + g %% %(tenants)s END, CASE WHEN g %% 4 = 0 THEN 1 + g %% %(tenants)s END
    FROM generate_series(1, 50000) g;
"""


class Way(NamedTuple):
    """A store that is opened in one of the two ways."""

    name: str
    db: Database
    backend: int  # the process of the server


class Undone(Exception):
    """Ends a transaction whose effect is not wanted."""


@dataclass
class Spent:
    """CPU seconds of each call, by the way."""

    calls: dict[str, list[float]] = field(default_factory=dict)

    def milliseconds(self, way: str) -> float:
        """The mean without the slowest tenth, in which something else was measured as well."""
        times = sorted(self.calls[way])
        return 1000 * statistics.fmean(times[: max(1, len(times) * 9 // 10)])


@contextmanager
def database(server: str) -> Iterator[str]:
    """Makes a database for the block, and the role that the policies bind."""
    name = f"bench_{uuid.uuid4().hex}"
    password = urlsplit(server).password or ""
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        if not admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE]).fetchone():
            admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(ROLE), password))
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def fill(url: str, tenants: int, posts: int) -> None:
    """Fills a database as its owner, without checking keys row by row."""
    with closing(Database(url, statement_seconds=3600)) as db:
        migrate.upgrade(db, app_role=ROLE)
    given = {"now": NOW, "tenants": tenants, "posts": posts, "sources": SOURCES, "followed": FOLLOWED, "words": WORDS}
    given["bits"] = list(search.SPAN_BITS)
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as server:
        server.execute("SET session_replication_role = replica; SET synchronous_commit = off")
        for statement in _FILL.replace("{{}}", "{}").strip().split(";\n"):
            server.execute(statement.rstrip(";"), given)
        server.execute("VACUUM ANALYZE")


def bound(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{ROLE}:{parts.password}@{parts.hostname}:{parts.port}"))


@contextmanager
def ways(url: str) -> Iterator[tuple[Way, Way]]:
    with ExitStack() as stack:
        opened = [stack.enter_context(closing(Database(one))) for one in (bound(url), url)]
        pids = [db.read_now(lambda conn: conn.execute(text("SELECT pg_backend_pid()")).scalar_one()) for db in opened]
        yield Way("with", opened[0], pids[0]), Way("without", opened[1], pids[1])


@contextmanager
def without_tenants(way: Way) -> Iterator[None]:
    """Sets nothing at the start of a transaction, where there are no policies to read it."""
    begin = row_security.begin
    if way.name == "without":
        row_security.begin = lambda conn, given: None
    try:
        yield
    finally:
        row_security.begin = begin


def cpu(way: Way) -> float:
    return time.thread_time() + int(Path(f"/proc/{way.backend}/schedstat").read_text().split()[0]) / 1e9


def reader_of(number: int) -> Reader:
    return Reader(number, number, f"reader {number}", "owner")


def stream_page(db: Database, reader: Reader, _word: str) -> Any:
    return db.read_now(stream.page, reader, limit=40)


def older_page(db: Database, reader: Reader, _word: str) -> Any:
    after = stream.StreamPosition(NOW - timedelta(hours=36), 2**62)
    return db.read_now(stream.page, reader, after=after, limit=40)


def unread_page(db: Database, reader: Reader, _word: str) -> Any:
    return db.read_now(stream.page, reader, Filter(unread=True), limit=40)


def search_page(db: Database, reader: Reader, word: str) -> Any:
    return db.read_now(stream.page, reader, Filter(words=word), limit=40)


def claim(db: Database, _reader: Reader, _word: str) -> Any:
    terms: dict[str, Any] = {
        "now": NOW,
        "lease": "bench",
        "lease_for": timedelta(minutes=3),
        "gap": timedelta(seconds=1),
    }
    return undone(db, lambda conn: leases.claim_due(conn, **terms, limit=20))


def claim_webhooks(db: Database, _reader: Reader, _word: str) -> Any:
    terms: dict[str, Any] = {"now": NOW, "lease": "bench", "lease_for": timedelta(minutes=3), "well": 20, "troubled": 5}
    return undone(db, lambda conn: deliveries.claim_due(conn, **terms))


def next_events(db: Database, reader: Reader, _word: str) -> Any:
    return db.read_now(outbox.after, reader.user_id % 16, outbox.START, limit=500)


def undone(db: Database, work: Callable[[Connection], Any]) -> Any:
    found = []

    def run(conn: Connection) -> None:
        found.append(work(conn))
        raise Undone

    try:
        db.write_now(run)
    except Undone:
        return found[0]


WORK: dict[str, Callable[[Database, Reader, str], Any]] = {
    "stream page": stream_page,
    "older page": older_page,
    "unread page": unread_page,
    "search": search_page,
    "claim": claim,
    "claim webhooks": claim_webhooks,
    "next 500 events": next_events,
}


def measure(both: tuple[Way, Way], work: Callable[[Database, Reader, str], Any], tenants: int, calls: int) -> Spent:
    """Makes so many calls in both ways or, if they take long, as many as fit into half a minute."""
    chance, spent, until = random.Random(5), Spent({way.name: [] for way in both}), time.monotonic() + LONGEST_SECONDS
    for number in range(calls + 5):
        if number > 20 and time.monotonic() > until:
            break
        reader, word = reader_of(1 + chance.randrange(tenants)), f"w{int(WORDS * chance.random() ** 3)}"
        found = []
        for way in both if number % 2 else both[::-1]:
            with without_tenants(way):
                before = cpu(way)
                found.append(work(way.db, reader, word))
                if number >= 5:  # the first calls fill the caches
                    spent.calls[way.name].append(cpu(way) - before)
        assert repr(found[0]) == repr(found[1]), "row level security changed what is found"
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description="What isolation costs on PostgreSQL.")
    parser.add_argument("--tenants", type=int, default=200)
    parser.add_argument("--posts", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--server", default=os.environ.get("HEADWATER_TEST_POSTGRES_URL"))
    given = parser.parse_args()
    if not given.server:
        parser.error('no PostgreSQL: scripts/services up postgres; eval "$(scripts/services env)", or give --server')
    with database(given.server) as url:
        began = time.monotonic()
        fill(url, given.tenants, given.posts)
        print(f"{given.tenants} tenants, {given.posts:,} posts, filled in {time.monotonic() - began:.0f} s\n")
        print(f"{'CPU ms for each call':20} {'with':>9} {'without':>9} {'ratio':>7}")
        with ways(url) as both:
            for name, work in WORK.items():
                spent = measure(both, work, given.tenants, given.calls)
                with_it, without = spent.milliseconds("with"), spent.milliseconds("without")
                ratio = with_it / without
                over = "" if ratio <= GOAL else f"  over {GOAL}"
                print(f"{name:20} {with_it:9.2f} {without:9.2f} {ratio:7.2f}{over}", flush=True)
            own, server = own_memory_mb(os.getpid()), [own_memory_mb(way.backend) for way in both]
            print(f"\nmemory: {own:.0f} MB here, {server[0]:.0f} MB with and {server[1]:.0f} MB without in the server")


if __name__ == "__main__":
    main()
