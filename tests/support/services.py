"""The real servers that tests use: their addresses, and a fresh database on them for one test."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import redis
from psycopg import sql

from headwater.store.db import Database

_DISCONNECT_READERS = """SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots
    WHERE database = %s AND active_pid IS NOT NULL"""


APP_ROLE = "headwater_app"  # neither owns the tables nor bypasses row level security


def worker() -> int:
    """Returns the number of this test process among those that run in parallel, from 0."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def service_url(name: str) -> str:
    """Returns the address of a server that `scripts/services` started; skips the test if there is none.

    Where there are several, each test process has its own.
    """
    variable = f"HEADWATER_TEST_{name.upper()}_URL"
    own = f"HEADWATER_TEST_{name.upper()}_{worker() + 1}_URL"
    url = os.environ.get(own) or os.environ.get(variable)
    if not url:
        pytest.skip(f'no {name}: {variable} is not set (scripts/services up; eval "$(scripts/services env)")')
    return url


@contextmanager
def fresh_postgres_database(server_url: str, template: str = "template1") -> Iterator[str]:
    """Makes a database for the block. Whoever is still connected at the end is disconnected."""
    name = sql.Identifier(f"test_{uuid.uuid4().hex}")
    with psycopg.connect(server_url, autocommit=True) as server:
        # Copying files takes half the CPU of writing every page to the log, which is what PostgreSQL does by default.
        copy = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        server.execute(copy.format(name, sql.Identifier(template)))
    try:
        yield with_database(server_url, name.as_string(None).strip('"'))
    finally:
        with psycopg.connect(server_url, autocommit=True) as server:
            _drop(server, name)


def make_app_role(server_url: str) -> None:
    """Makes the role that the application connects as, with the password of the server's own role."""
    password = sql.Literal(urlsplit(server_url).password)
    with psycopg.connect(server_url, autocommit=True) as server, contextlib.suppress(psycopg.errors.DuplicateObject):
        server.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(APP_ROLE), password))


def as_app_role(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{APP_ROLE}:{parts.password}@{parts.hostname}:{parts.port}"))


@contextmanager
def as_owner(db: Database) -> Iterator[Database]:
    """Opens the same store as the role that owns its tables."""
    if db.is_sqlite:
        yield db
        return
    owners = Database(with_database(service_url("postgres"), db.engine.url.database or ""))
    try:
        yield owners
    finally:
        owners.close()


def _drop(server: psycopg.Connection, name: sql.Identifier) -> None:
    """Drops the slots first: a connector that is being deleted may make its slot once more."""
    deadline = time.monotonic() + 120
    while True:
        try:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
        except psycopg.errors.ObjectInUse:
            if time.monotonic() > deadline:
                raise
            server.execute(_DISCONNECT_READERS, [name.as_string(None).strip('"')])
            time.sleep(0.1)
        else:
            return


def empty_redis_database(server_url: str, number: int) -> str:
    url = with_database(server_url, str(number))
    with redis.Redis.from_url(url) as server:
        server.flushdb()
    return url


def with_database(server_url: str, name: str) -> str:
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
