"""The SQL statements that a database is asked to run, whoever sends them: SQLAlchemy or the store's own statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import event

from headwater.store.db import Database
from support.services import service_url, with_database


def analyze(db: Database) -> None:
    """Counts rows for the planner. On PostgreSQL only the owner of the tables can do that."""
    if db.is_sqlite:
        db.write_now(lambda conn: conn.exec_driver_sql("ANALYZE"))
        return
    name = db.engine.url.database or ""
    with psycopg.connect(with_database(service_url("postgres"), name), autocommit=True) as server:
        server.execute("ANALYZE")


@contextmanager
def recorded(db: Database) -> Iterator[list[str]]:
    """The statements run meanwhile. SQLite says them with the values in place, PostgreSQL with the marks."""
    asked: list[str] = []
    with watched(db, asked.append):
        yield asked


@contextmanager
def watched(db: Database, say: Callable[[str], None]) -> Iterator[None]:
    """Calls `say` with each statement before it runs."""
    watch, leave = (_watch_sqlite, _leave_sqlite) if db.is_sqlite else (_watch_postgres, _leave_postgres)

    def checked_out(connection: Any, *_: object) -> None:
        watch(connection, say)

    def checked_in(connection: Any, *_: object) -> None:
        leave(connection)

    event.listen(db.engine, "checkout", checked_out)
    event.listen(db.engine, "checkin", checked_in)
    try:
        yield
    finally:
        event.remove(db.engine, "checkout", checked_out)
        event.remove(db.engine, "checkin", checked_in)


def _watch_sqlite(connection: Any, say: Callable[[str], None]) -> None:
    connection.set_trace_callback(say)


def _leave_sqlite(connection: Any) -> None:
    connection.set_trace_callback(None)


def _watch_postgres(connection: Any, say: Callable[[str], None]) -> None:
    from psycopg import Cursor

    class SayingCursor(Cursor[Any]):
        def execute(self, query: Any, *args: Any, **options: Any) -> Any:
            say(str(query))
            return super().execute(query, *args, **options)

    connection.cursor_factory = SayingCursor


def _leave_postgres(connection: Any) -> None:
    from psycopg import Cursor

    connection.cursor_factory = Cursor
