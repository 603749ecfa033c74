"""Connections and transactions: `await db.read(f, ...)` and `db.write(f, ...)` run `f(conn, ...)` in one transaction.

SQLite has one writer thread, with BEGIN IMMEDIATE and WAL; readers have threads of their own and never wait for it.
PostgreSQL has a pool; deadlocks and serialization failures are tried again. Its statements have time limits, and one
function has only some of the threads: whoever waits for a locked table does not keep others from using the rest.
A function that is called with a reader runs in that reader's tenant, and sees no rows of others; one without a reader
is the instance's own work (`store/row_security.py`).
`db.write_grouped` is for small writes. On SQLite those that wait together share a transaction, and so one wait for the
disk (`store/group_commit.py`); PostgreSQL does this by itself.
What the drivers raise is translated here into StoreUnavailable.
"""

from __future__ import annotations

import asyncio
import contextvars
import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import structlog
from sqlalchemy import Connection, Engine, create_engine, event, exc, make_url

from headwater.errors import BadSetting, StoreDamaged, StoreUnavailable
from headwater.store import row_security
from headwater.store.condition import FULL_DISK, Condition, is_damage, is_full_disk
from headwater.store.group_commit import GroupedWrite, WriteQueue

log = structlog.get_logger()
P = ParamSpec("P")
T = TypeVar("T")

OLDEST_SQLITE = (3, 35)  # the first with RETURNING
BUSY_SECONDS = 10
IDLE_SECONDS = 30.0
MAX_WORDS = 200  # of what a driver says: SQLite quotes text that it cannot read
APPENDED = "headwater_appended"  # in the info of a connection: the kinds of events that `store.log.outbox` appended
AFTER_COMMIT = "headwater_after_commit"  # what to call once the transaction of a connection is committed
ACCOUNTS_CHANGED = "headwater_accounts_changed"  # the same, by `store.people.tokens`: somebody may do less or more
LOCK_SECONDS = 5.0
STATEMENT_SECONDS = 60.0
TURN_SECONDS = 15.0  # how long a reader waits for a thread
READERS = 4
POSTGRES_READERS = 12
POSTGRES_WRITERS = 6
THREADS_FOR_ONE = 3  # how many threads may do the same at once, on PostgreSQL
ATTEMPTS = 4
_TRY_AGAIN = ("40001", "40P01")  # serialization failure, deadlock
# PostgreSQL's classes: connection, rollback, resources, object state, operator intervention, system.
_TROUBLE = ("08", "40", "53", "55", "57", "58")
_BUSY = "The database is busy: other requests of this kind wait for it. Try again in a moment."
_DAMAGED = "The database file is damaged. Stop Headwater and put back a backup; `headwater doctor` checks it."
_ADVICE = {
    "due to lock timeout": "Another program holds a lock on what is needed. Try again in a moment.",
    "due to statement timeout": "The database took too long. Try again in a moment.",
    "malformed": _DAMAGED,
    "Could not decode to UTF-8": _DAMAGED,
    "database is locked": "Another process holds the database for longer than {busy} s. Try again in a moment.",
    "disk is full": "The disk is full. Free some space; nothing was written and nothing is lost.",
    "readonly database": "The database may not be written. Check the owner and mode of the data folder.",
    "unable to open database": "The database file cannot be opened. Check HEADWATER_DATABASE_URL and its folder.",
    "permission denied": "The role in HEADWATER_DATABASE_URL may not do this. Run `headwater db roles`.",
    "no such table": "The database has no schema yet. Run `headwater db upgrade`.",
    "does not exist": "The database or its schema is missing. Run `headwater db upgrade`.",
    "not a database": "The file is not a SQLite database. Check HEADWATER_DATABASE_URL.",
}


class Database:
    """`on_events` is called, in the writer's thread, after each transaction that appended events, with their kinds, and
    `on_account_changes` after one that changed what somebody may do."""

    def __init__(
        self,
        url: str,
        *,
        idle_seconds: float = IDLE_SECONDS,
        lock_seconds: float = LOCK_SECONDS,
        statement_seconds: float = STATEMENT_SECONDS,
    ) -> None:
        limits = {
            # A process that is stopped in a transaction holds locks and the log's horizon. The server ends its
            # transaction.
            "idle_in_transaction_session_timeout": idle_seconds,
            "lock_timeout": lock_seconds,
            "statement_timeout": statement_seconds,
        }
        self.engine = _engine(url, limits)
        self.on_events: Callable[[Set[str]], None] = lambda _: None
        self.on_account_changes: Callable[[], None] = lambda: None
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        self.condition = Condition(Path(self.engine.url.database or "") if self.is_sqlite else None)
        if self.is_sqlite:
            event.listen(self.engine, "do_connect", self.condition.before_connecting)
            event.listen(self.engine, "connect", self.condition.after_connecting)
        writers, readers = (1, READERS) if self.is_sqlite else (POSTGRES_WRITERS, POSTGRES_READERS)
        self._writers = Threads(writers, "headwater-write", limited=not self.is_sqlite)
        self._readers = Threads(readers, "headwater-read", limited=not self.is_sqlite, patience=TURN_SECONDS)
        self._waiting = WriteQueue(self._writers.submit, self._write_group)

    async def read(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._in(self._readers, _name(function), lambda: self.read_now(function, *args, **kwargs))

    async def write(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._in(self._writers, _name(function), lambda: self.write_now(function, *args, **kwargs))

    async def write_grouped(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Writes as `write` does. On SQLite it may share its transaction with others that wait at the same time.

        It returns once that is committed. If one of them fails, the others do not. For functions that take milliseconds
        and remember nothing between calls: all of a group wait for each other.
        """
        if not self.is_sqlite:
            return await self.write(function, *args, **kwargs)
        return await self._waiting.run(GroupedWrite(function, args, kwargs))

    async def _in(self, threads: Threads, what: str, work: Callable[[], T]) -> T:
        return await threads.run(what, work)

    def read_now(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._noted(function), _translated(), self.engine.connect() as conn, conn.begin():
            row_security.begin(conn, _given(function, args, kwargs))
            return function(conn, *args, **kwargs)

    def snapshot_now(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a long read that sees the store as it is now, whatever is written meanwhile."""
        with self._noted(function), _translated(), self.engine.connect() as conn:
            if not self.is_sqlite:
                conn.execution_options(isolation_level="REPEATABLE READ")
            with conn.begin():
                row_security.begin(conn, _given(function, args, kwargs))
                return function(conn, *args, **kwargs)

    def write_now(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self._noted(function, writes=True), _translated(), self.engine.connect() as conn:
                    with self._begun(conn):
                        row_security.begin(conn, _given(function, args, kwargs))
                        result = function(conn, *args, **kwargs)
                    self._tell(_to_tell(conn))
                    return result
            except StoreUnavailable as error:
                if attempt == ATTEMPTS or getattr(_root(error), "sqlstate", None) not in _TRY_AGAIN:
                    raise
        raise AssertionError("unreachable")

    def _write_group(self, group: Sequence[GroupedWrite[Any]]) -> None:
        """Writes these in one transaction; if there is but one, or the transaction is lost, each in one of its own."""
        if len(group) < 2 or not self._write_together(group):
            for one in group:
                one.settle(partial(self.write_now, one.function, *one.args, **one.kwargs))

    def _write_together(self, group: Sequence[GroupedWrite[Any]]) -> bool:
        """Returns False if the transaction was lost, and with it what all of them wrote."""
        try:
            with _translated(), self.engine.connect() as conn, self._begun(conn):
                outcomes = []
                for one in group:
                    with one.attempted(conn):
                        one.write(conn)
                    outcomes.append(_to_tell(conn))
        except Exception as error:  # noqa: BLE001 - each of them finds out by itself what is wrong
            log.warning("writes.separated", number=len(group), error=str(error))
            return False
        for one, told in zip(group, outcomes, strict=True):
            one.settle(partial(self._finish, one, told))
        return True

    def _finish(self, one: GroupedWrite[T], told: _Told) -> T:
        with self._noted(one.function, writes=True), _translated():
            result = one.outcome()
        self._tell(told)
        return result

    @contextmanager
    def _begun(self, conn: Connection) -> Iterator[None]:
        """Begins a transaction that writes."""
        self.condition.check_file()
        conn.execution_options(headwater_writes=True)
        _to_tell(conn)  # of a transaction that failed
        with conn.begin():
            yield

    def _tell(self, told: _Told) -> None:
        """Tells others of what is committed now."""
        if told.kinds:
            self.on_events(told.kinds)
        if told.accounts_changed:
            self.on_account_changes()
        for call in told.calls:
            call()

    @contextmanager
    def _noted(self, function: Callable[..., Any], *, writes: bool = False) -> Iterator[None]:
        """Remembers whether it worked, for whoever asks about the condition of the store."""
        what = _name(function)
        try:
            yield
        except StoreUnavailable as error:
            self.condition.note_failure(FULL_DISK if is_full_disk(_root(error)) else what, error)
            raise
        self.condition.note_success(what)
        if writes:  # there is space again, even if nobody tries again what failed
            self.condition.note_success(FULL_DISK)

    def quick_check(self) -> None:
        """Reads the whole file. Raises StoreDamaged if parts of it cannot be read, and StoreLost if it is gone."""
        if self.is_sqlite:
            self.condition.check_file()
            self.read_now(_quick_check)

    def exists(self) -> bool:
        """Whether the file of a SQLite database is there. A server, or a `file:` address, answers when it is opened.

        Raises StoreLost if there was a file.
        """
        name = self.engine.url.database or ""
        if not self.is_sqlite or name.startswith("file:"):
            return True
        self.condition.check_is_not_lost()
        return Path(name).exists()

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


class _Told(NamedTuple):
    """Of what others are told after a commit: the kinds of events, whether accounts changed, and what else to call."""

    kinds: Set[str]
    accounts_changed: bool
    calls: Sequence[Callable[[], None]]


def _to_tell(conn: Connection) -> _Told:
    """Takes what was noted on a connection since it was last asked."""
    info = conn.info
    return _Told(info.pop(APPENDED, frozenset()), info.pop(ACCOUNTS_CHANGED, False), info.pop(AFTER_COMMIT, ()))


def after_commit(conn: Connection, call: Callable[[], None]) -> None:
    """Calls this, in the writer's thread, once the transaction of a write is committed."""
    conn.info.setdefault(AFTER_COMMIT, []).append(call)


class Threads:
    """Threads of which one kind of work gets only some, if `limited`. Whoever has no turn after `patience` is told."""

    def __init__(self, size: int, name: str, *, limited: bool, patience: float | None = None) -> None:
        self._pool = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._limited = limited
        self._patience = patience
        self._semaphores: WeakKeyDictionary[asyncio.AbstractEventLoop, defaultdict[str, asyncio.Semaphore]]
        self._semaphores = WeakKeyDictionary()

    async def run(self, what: str, work: Callable[[], T]) -> T:
        context = contextvars.copy_context()  # with the trace
        async with self._within_limit(what):
            return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: context.run(work))

    @asynccontextmanager
    async def _within_limit(self, what: str) -> AsyncIterator[None]:
        if not self._limited:
            yield
            return
        semaphore = self._semaphores.setdefault(
            asyncio.get_running_loop(), defaultdict(partial(asyncio.Semaphore, THREADS_FOR_ONE))
        )[what]
        try:
            async with asyncio.timeout(self._patience):
                await semaphore.acquire()
        except TimeoutError as error:
            raise StoreUnavailable(_BUSY) from error
        try:
            yield
        finally:
            semaphore.release()

    def submit(self, work: Callable[[], None]) -> None:
        """Has it done when it is its turn, without waiting for it."""
        self._pool.submit(work)

    def shutdown(self) -> None:
        self._pool.shutdown()


def _name(function: Callable[..., Any]) -> str:
    """Returns the name of what is done. The same work has the same name, whatever its arguments are."""
    plain = function.func if isinstance(function, partial) else function
    return f"{plain.__module__}.{getattr(plain, '__qualname__', type(plain).__qualname__)}"


def _given(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[object]:
    """Returns everything that a function is called with."""
    if isinstance(function, partial):
        yield from _given(function.func, function.args, function.keywords)
    yield from args
    yield from kwargs.values()


def _quick_check(conn: Connection) -> None:
    found = conn.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
    if found != "ok":
        raise StoreDamaged(f"{_DAMAGED} ({str(found).splitlines()[-1]})")


def _engine(url: str, limits: Mapping[str, float]) -> Engine:
    try:
        parsed = make_url(url)
    except exc.ArgumentError as error:
        raise BadSetting("HEADWATER_DATABASE_URL is not a database URL (sqlite:///… or postgresql://…).") from error
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise BadSetting("HEADWATER_DATABASE_URL must name a file: sqlite:///path/to/headwater.db")
        engine = create_engine(
            parsed.set(drivername="sqlite+pysqlite"),
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False, "cached_statements": 256},
            pool_size=READERS + 1,
            # A connection that was just used has the pages in its cache. In turns, each would cache all of them.
            pool_use_lifo=True,
        )
        event.listen(engine, "do_connect", _make_folder)
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    if backend in ("postgresql", "postgres"):
        options = " ".join(f"-c {name}={int(seconds * 1000)}" for name, seconds in limits.items())
        engine = create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            connect_args={"options": f"-c timezone=UTC {options}", "connect_timeout": BUSY_SECONDS},
            pool_size=READERS * 2,
            max_overflow=POSTGRES_READERS + POSTGRES_WRITERS - READERS,
            pool_timeout=BUSY_SECONDS,
            pool_use_lifo=True,
            pool_pre_ping=True,
        )
        event.listen(engine, "connect", _keep_commits)
        return engine
    raise BadSetting(f"HEADWATER_DATABASE_URL: {backend} is not supported; use sqlite:///… or postgresql://…")


def _keep_commits(connection: Any, _record: object) -> None:
    """Has commits written before they are answered, also where the server is set to lose the latest ones in a crash.

    A consumer tells Kafka how far it is once its effects are committed. If they were lost after that, they would be
    lost for good.
    """
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
    )
    connection.commit()


def _make_folder(_dialect: object, _record: object, arguments: list[Any], _options: object) -> None:
    """Makes the folder of a SQLite database when it is first opened, not by whoever only asks whether it is there."""
    folder = Path(arguments[0]).parent
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
        raise (StoreDamaged if is_damage(_root(error)) else StoreUnavailable)(_advice(error)) from error


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
    words = str(_root(error)).strip().splitlines()[0][:MAX_WORDS]
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


def sqlite_version() -> tuple[str, bool]:
    """Returns the version of the SQLite library here, and whether it is new enough."""
    return sqlite3.sqlite_version, sqlite3.sqlite_version_info >= OLDEST_SQLITE
