"""Connections and transactions: `await db.read(f, ...)` and `db.write(f, ...)` run `f(conn, ...)` in one transaction.

SQLite has one writer thread, with BEGIN IMMEDIATE and WAL; readers have threads of their own and never wait for it.
PostgreSQL has a pool; deadlocks and serialization failures are tried again. What the drivers raise is translated here
into StoreUnavailable.
"""

from __future__ import annotations

import asyncio
import contextvars
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, exc, make_url

from headwater.errors import BadSetting, StoreUnavailable

P = ParamSpec("P")
T = TypeVar("T")

BUSY_SECONDS = 10
IDLE_SECONDS = 30.0
APPENDED = "headwater_appended"  # set by `store.log.outbox` in the info of a connection that appended events
READERS = 4
ATTEMPTS = 4
_TRY_AGAIN = ("40001", "40P01")  # serialization failure, deadlock
# PostgreSQL's classes: connection, rollback, resources, object state, operator intervention, system.
_TROUBLE = ("08", "40", "53", "55", "57", "58")
_ADVICE = {
    "database is locked": "Another process holds the database for longer than {busy} s. Try again in a moment.",
    "disk is full": "The disk is full. Free some space; nothing was written and nothing is lost.",
    "readonly database": "The database may not be written. Check the owner and mode of the data folder.",
    "unable to open database": "The database file cannot be opened. Check HEADWATER_DATABASE_URL and its folder.",
    "no such table": "The database has no schema yet. Run `headwater db upgrade`.",
    "does not exist": "The database or its schema is missing. Run `headwater db upgrade`.",
    "not a database": "The file is not a SQLite database. Check HEADWATER_DATABASE_URL.",
}


class Database:
    """`on_events` is called, in the writer's thread, after each transaction that appended events."""

    def __init__(self, url: str, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self.engine = _engine(url, idle_seconds)
        self.on_events: Callable[[], None] = lambda: None
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        writers = 1 if self.is_sqlite else READERS
        self._writers = ThreadPoolExecutor(writers, thread_name_prefix="headwater-write")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="headwater-read")

    async def read(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._in(self._readers, lambda: self.read_now(function, *args, **kwargs))

    async def write(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._in(self._writers, lambda: self.write_now(function, *args, **kwargs))

    async def _in(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        context = contextvars.copy_context()  # with the trace
        return await asyncio.get_running_loop().run_in_executor(threads, lambda: context.run(work))

    def read_now(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with _translated(), self.engine.connect() as conn, conn.begin():
            return function(conn, *args, **kwargs)

    def write_now(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with _translated(), self.engine.connect() as conn:
                    conn.execution_options(headwater_writes=True)
                    with conn.begin():
                        result = function(conn, *args, **kwargs)
                    if conn.info.pop(APPENDED, False):
                        self.on_events()
                    return result
            except StoreUnavailable as error:
                if attempt == ATTEMPTS or getattr(_root(error), "sqlstate", None) not in _TRY_AGAIN:
                    raise
        raise AssertionError("unreachable")

    def alter_now(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a change of the schema. On SQLite, a table that takes another's place must not take its rows along."""
        if not self.is_sqlite:
            return self.write_now(function, *args, **kwargs)
        with _translated(), self.engine.connect() as conn:
            conn.execution_options(headwater_writes=True)
            _set_foreign_keys(conn, "OFF")  # has no effect within a transaction
            try:
                with conn.begin():
                    result = function(conn, *args, **kwargs)
                    broken = conn.exec_driver_sql("PRAGMA foreign_key_check").all()
                    assert not broken, f"rows without what they refer to: {broken[:5]}"
            finally:
                _set_foreign_keys(conn, "ON")
            return result

    def shrink(self) -> None:
        """Frees what idle connections have cached. On SQLite each of them caches megabytes."""
        if not self.is_sqlite:
            return
        idle = [self.engine.raw_connection() for _ in range(self.engine.pool.checkedin())]  # type: ignore[attr-defined]
        for connection in idle:
            connection.cursor().execute("PRAGMA shrink_memory")
            connection.close()

    def close(self) -> None:
        """Waits for running transactions, then closes every connection."""
        self._writers.shutdown()
        self._readers.shutdown()
        self.engine.dispose()


def _engine(url: str, idle_seconds: float) -> Engine:
    try:
        parsed = make_url(url)
    except exc.ArgumentError as error:
        raise BadSetting("HEADWATER_DATABASE_URL is not a database URL (sqlite:///… or postgresql://…).") from error
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise BadSetting("HEADWATER_DATABASE_URL must name a file: sqlite:///path/to/headwater.db")
        _make_folder(Path(parsed.database).parent)
        engine = create_engine(
            parsed.set(drivername="sqlite+pysqlite"),
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False, "cached_statements": 256},
            pool_size=READERS + 1,
            # A connection that was just used has the pages in its cache. In turns, each would cache all of them.
            pool_use_lifo=True,
        )
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    if backend in ("postgresql", "postgres"):
        # A process that is stopped in a transaction holds locks and the log's horizon. The server ends its transaction.
        idle = f"idle_in_transaction_session_timeout={int(idle_seconds * 1000)}"
        return create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            connect_args={"options": f"-c timezone=UTC -c {idle}", "connect_timeout": BUSY_SECONDS},
            pool_size=READERS * 2,
            pool_pre_ping=True,
        )
    raise BadSetting(f"HEADWATER_DATABASE_URL: {backend} is not supported; use sqlite:///… or postgresql://…")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"The folder {folder} for the database cannot be created: {error.strerror}.") from error


def _configure_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # only _begin_sqlite begins transactions
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA cache_size = -4096")
    cursor.execute("PRAGMA wal_autocheckpoint = 8000")
    cursor.execute("PRAGMA temp_store = MEMORY")
    cursor.close()


def _begin_sqlite(conn: Connection) -> None:
    # A transaction that reads and then writes fails with BUSY_SNAPSHOT whatever the timeout: writers lock at the start.
    writes = conn.get_execution_options().get("headwater_writes")
    conn.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _set_foreign_keys(conn: Connection, state: str) -> None:
    cursor = conn.connection.cursor()
    cursor.execute(f"PRAGMA foreign_keys = {state}")
    cursor.close()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not _is_the_drivers(error) or _breaks_a_constraint(error):
            raise
        raise StoreUnavailable(_advice(error)) from error


def _is_the_drivers(error: Exception) -> bool:
    """Returns whether a driver or SQLAlchemy raised it. psycopg is compared by name: on SQLite it is not imported."""
    drivers = (exc.DBAPIError, exc.TimeoutError, sqlite3.Error)
    return isinstance(error, drivers) or type(error).__module__.startswith("psycopg")


def _breaks_a_constraint(error: Exception) -> bool:
    return any(kind.__name__ == "IntegrityError" for kind in type(_root(error)).__mro__)


def is_the_stores_fault(error: BaseException) -> bool:
    """Returns whether the database is busy, full or gone, rather than asked for something that it cannot do."""
    if isinstance(error, StoreUnavailable | exc.TimeoutError):
        return True
    below = _root(error)
    if state := getattr(below, "sqlstate", None):
        return state[:2] in _TROUBLE or state == "25P03"  # idle for too long in a transaction
    if isinstance(below, sqlite3.OperationalError):
        return getattr(below, "sqlite_errorcode", sqlite3.SQLITE_BUSY) != sqlite3.SQLITE_ERROR
    return any(kind.__name__ in ("OperationalError", "InterfaceError") for kind in type(below).__mro__)


def _advice(error: BaseException) -> str:
    words = str(_root(error)).strip().splitlines()[0]
    for part, advice in _ADVICE.items():
        if part in words:
            return f"{advice.format(busy=BUSY_SECONDS)} ({words})"
    return f"The database answered with an error: {words}"


def _root(error: BaseException) -> BaseException:
    """Returns the driver's own exception below SQLAlchemy's and ours."""
    while True:
        below = getattr(error, "orig", None) or error.__cause__
        if not isinstance(below, BaseException):
            return error
        error = below
