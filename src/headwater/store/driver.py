"""Statements of the hot paths: written with SQLAlchemy Core, compiled once per database, executed by the driver itself.

Executing through SQLAlchemy costs 7 to 18 times the driver's CPU per statement. Parameters are given by position, in
the order in which the statement names them; times, bytes and JSON text go to the driver as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Executable
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect

from headwater.store.types import json_text

_DIALECTS: dict[str, Dialect] = {
    "sqlite": sqlite.dialect(paramstyle="qmark"),
    "postgresql": postgresql.psycopg.dialect(paramstyle="format"),  # type: ignore[no-untyped-call]
}


class Prepared:
    """One statement, or one per database where their SQL must differ."""

    def __init__(self, statement: Executable | None = None, *, sqlite: str = "", postgresql: str = "") -> None:
        self._statement = statement
        self._sql = {"sqlite": sqlite, "postgresql": postgresql} if statement is None else {}

    def sql(self, conn: Connection) -> str:
        name = conn.dialect.name
        if name not in self._sql:
            assert self._statement is not None
            self._sql[name] = str(self._statement.compile(dialect=_DIALECTS[name]))  # type: ignore[attr-defined]
        return self._sql[name]

    def all(self, conn: Connection, *parameters: Any) -> list[tuple[Any, ...]]:
        cursor = conn.connection.cursor()
        try:
            cursor.execute(self.sql(conn), parameters)
            return list(cursor.fetchall())
        finally:
            cursor.close()

    def once(self, conn: Connection, *parameters: Any) -> int:
        """Execute and return how many rows were touched."""
        cursor = conn.connection.cursor()
        try:
            cursor.execute(self.sql(conn), parameters)
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def many(self, conn: Connection, rows: Iterable[Sequence[Any]]) -> None:
        rows = list(rows)
        if not rows:
            return
        cursor = conn.connection.cursor()
        try:
            cursor.executemany(self.sql(conn), rows)
        finally:
            cursor.close()


def portable(sql: str, *, postgresql: str = "") -> Prepared:
    """SQL for both databases: `?` is a parameter, `IN ??` takes what `listed` makes; with a suffix for PostgreSQL."""
    return Prepared(
        sqlite=sql.replace("IN ??", "IN (SELECT value FROM json_each(?))"),
        postgresql=sql.replace("IN ??", "= ANY(?)").replace("?", "%s") + postgresql,
    )


def listed(conn: Connection, values: Sequence[int] | Sequence[str]) -> Any:
    return list(values) if conn.dialect.name == "postgresql" else json_text(list(values))
