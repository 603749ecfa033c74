"""What a response costs the server: CPU milliseconds per request, from a store with folded stories.

    python bench/serve.py [--posts 572] [--requests 300]

The server is `headwater up --no-crawl` on SQLite. This process sends it requests over one connection, and reads its CPU
time from /proc before and after. `/healthz` reads no table: it shows what HTTP alone costs. Each path is asked of a
server with a cache and of one without. The figure of yarr is quoted, not measured here: it answered with its newest 40
items, of 572, in 0.47 ms of CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.accounts import tokens
from headwater.model import Decision, Post, Reader, SourceState, Visit
from headwater.settings import load
from headwater.store import migrate, sources, stories, visits
from headwater.store.db import Database
from headwater.store.people import accounts
from headwater.store.people import tokens as stored_tokens
from headwater.store.posts import hot
from headwater.store.sources import leases
from headwater.wire import open_parts
from measure import cpu_seconds
from peers import wait_until
from webserver import free_ports

SOURCES = 40
STORY = 5  # every fifth post begins a story that the next source repeats and a third one tells in other words
YARR_MS = 0.47
WARM_UP = 30
NEWEST = "/api/stream?limit=40"
NOT_CACHED, UNCHANGED = " (not cached)", " (304)"
PATHS = [
    "/healthz",
    NEWEST,
    "/api/stream?limit=40&unread=1",
    "/api/posts?limit=40",
    "/api/sources?limit=40",
    "/",
]


class Answers(NamedTuple):
    """The cost of many requests to one path."""

    path: str
    milliseconds: float  # of CPU, per request
    bytes: int
    is_cached: bool = True


def fill(db: Database, count: int) -> str:
    """Stores so many posts of the last hours; returns a token for the API."""
    now = datetime.now(UTC)
    migrate.upgrade(db)
    db.write_now(hot.clean, timedelta(hours=24), now)
    owner = db.write_now(accounts.make_owner, now)
    ids: list[int] = []
    for number in range(SOURCES):
        ids += db.write_now(_publish, owner, number, range(number, count, SOURCES), now)
    db.write_now(stories.save, _decisions(sorted(ids)), now)
    return db.write_now(tokens.issue, owner, "api", "bench", now)


def _publish(conn: Connection, owner: Reader, number: int, places: range, now: datetime) -> list[int]:
    host = f"news{number}.example"
    address, title = f"https://{host}/feed", f"News {number}"
    added = sources.add(conn, owner, kind="rss", address=address, host=host, now=now, title=title)
    lease_for, gap = timedelta(minutes=3), timedelta(0)
    leases.claim_named(conn, [added.source_id], now=now, lease="bench", lease_for=lease_for, gap=gap)
    posts = [_post(host, place, now - timedelta(minutes=place)) for place in places]
    visit = Visit(added.source_id, "bench", now, 0.1, "ok", "ok", now + timedelta(hours=1), SourceState(), posts)
    [saved] = visits.save(conn, [visit], now)
    return [post.id for post in saved.posts]


def _post(host: str, place: int, created_at: datetime) -> Post:
    title = f"What happened at place {place // STORY}, as {host} tells it"
    content = f"<p>{'A sentence about what happened there and what people said. ' * 12}</p>"
    text_hash = blake2b(f"{place}".encode(), digest_size=16).digest()
    return Post(f"post-{place}", f"https://{host}/{place}", title, content, "A. Writer", created_at, text_hash)


def _decisions(ids: list[int]) -> Iterator[Decision]:
    for start in range(0, len(ids), STORY):
        first, *rest = ids[start : start + STORY]
        yield Decision(first, first, first, "first", 1.0, "")
        for place, post_id in enumerate(rest):
            if place == 0:
                yield Decision(post_id, first, first, "exact", 1.0, "The same text.")
            elif place == 1:
                yield Decision(post_id, first, post_id, "story", 0.8, "The same names and numbers.")
            else:
                yield Decision(post_id, post_id, post_id, "first", 1.0, "")


@contextmanager
def served(folder: Path, *, cached: bool = True, **settings: str) -> Iterator[tuple[int, int]]:
    """Yields a server on this folder's store, or as these settings say: its process and its port."""
    (port,) = free_ports(1)
    given = settings | {"HEADWATER_DATA_DIR": str(folder), "HEADWATER_PORT": str(port), "HEADWATER_LOG_LEVEL": "error"}
    given |= {} if cached else {"HEADWATER_CACHE_MB": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", "headwater", "up", "--no-crawl"], env={**os.environ, **given}, stdout=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: _is_ready(port), 30)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(30)


def _is_ready(port: int) -> bool:
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            return ask(connection, "/readyz", "")[0] > 0
    except OSError:
        return False


def ask(
    connection: http.client.HTTPConnection, path: str, token: str, tag: str | None = None
) -> tuple[int, str | None]:
    """Returns the length of the response, and its ETag. With the tag of an earlier one, it has to be a 304."""
    given = {"Authorization": f"Bearer {token}"} if token else {}
    connection.request("GET", path, headers=given | ({"If-None-Match": tag} if tag else {}))
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != (304 if tag else 200):
        raise SystemExit(f"{path} answered {answer.status}: {body[:200]!r}")
    return len(body), answer.headers.get("ETag")


def measure(process: int, port: int, path: str, token: str, requests: int, *, unchanged: bool = False) -> Answers:
    """Measures requests to one path; with `unchanged`, by a client that has the response already."""
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        tag: str | None = None
        for _ in range(WARM_UP):
            _, tag = ask(connection, path, token)
        before = cpu_seconds(process)
        lengths = [ask(connection, path, token, tag if unchanged else None)[0] for _ in range(requests)]
        spent = cpu_seconds(process) - before
    return Answers(path + UNCHANGED * unchanged, spent * 1000 / requests, sum(lengths) // requests)


def measure_all(folder: Path, token: str, requests: int) -> list[Answers]:
    """Measures every path with and without the cache, and the newest stories for a client that has them already."""
    found = []
    with served(folder) as (process, port):
        found += [measure(process, port, path, token, requests) for path in PATHS]
        found.append(measure(process, port, NEWEST, token, requests, unchanged=True))
    with served(folder, cached=False) as (process, port):
        found += [measure(process, port, path, token, requests)._replace(is_cached=False) for path in PATHS]
    return found


def measure_jwt(folder: Path, checks: int) -> float:
    """Returns how many milliseconds of CPU it takes to check an access token, by the best of five rounds."""
    parts = open_parts(load({"HEADWATER_CONFIG": "", "HEADWATER_DATA_DIR": str(folder)}))

    async def spent(token: str) -> float:
        before = time.process_time()
        for _ in range(checks):
            await parts.access_tokens.check(token)
        return time.process_time() - before

    async def best() -> float:
        owner = parts.db.write_now(accounts.make_owner, parts.now())
        secret = parts.db.write_now(tokens.issue, owner, "api", "bench", parts.now())
        api_token = parts.db.read_now(stored_tokens.bearer, "api", tokens.fingerprint(secret), parts.now())
        assert api_token is not None
        token = await parts.access_tokens.issue(api_token, frozenset({"posts:read"}))
        return min([await spent(token) for _ in range(5)])

    try:
        return asyncio.run(best()) * 1000 / checks
    finally:
        parts.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posts", type=int, default=572)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headwater-serve-") as name:
        db = Database(f"sqlite:///{name}/headwater.db")
        token = fill(db, given.posts)
        db.close()
        found = measure_all(Path(name), token, given.requests)
        jwt = measure_jwt(Path(name), given.requests)
    if given.json:
        costs = {one.path + NOT_CACHED * (not one.is_cached): one.milliseconds for one in found}
        print(json.dumps(costs | {"jwt": jwt}))
        return
    print(f"{given.posts} posts of {SOURCES} sources, {given.requests} requests each\n")
    print(f"{'':44}{'CPU ms':>8}{'bytes':>10}")
    for one in found:
        path = one.path + NOT_CACHED * (not one.is_cached)
        print(f"{path:44}{one.milliseconds:8.2f}{one.bytes:10,}")
    print(f"{'checking a JWT (goal: 0.1)':44}{jwt:8.3f}")
    print(f"{'yarr, newest 40 items (quoted)':44}{YARR_MS:8.2f}")


if __name__ == "__main__":
    main()
