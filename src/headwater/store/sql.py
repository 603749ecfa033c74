"""How statements are written and run: prepared once per database, with values in one Python form."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import JSON, BigInteger, Connection, DateTime, Dialect, Executable, Integer
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator, TypeEngine

_DIALECTS: dict[str, Dialect] = {
    "sqlite": sqlite.dialect(paramstyle="qmark"),
    "postgresql": postgresql.psycopg.dialect(paramstyle="format"),  # type: ignore[no-untyped-call]
}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

BigId = BigInteger().with_variant(Integer(), "sqlite")
Json = JSON().with_variant(JSONB(), "postgresql")


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


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def moment(value: Any) -> datetime:
    """What the driver gave back for a time, as an aware datetime."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return _EPOCH + timedelta(microseconds=value)


def moment_or_none(value: Any) -> datetime | None:
    return None if value is None else moment(value)


def json_text(value: Any) -> str:
    return orjson.dumps(value).decode()


def json_value(value: Any) -> Any:
    """A JSON column as the driver gave it: SQLite has text, PostgreSQL has parsed it already."""
    if value == "{}":
        return {}
    return orjson.loads(value) if isinstance(value, str | bytes) else value


class Moment(TypeDecorator[datetime]):
    """An aware UTC time: timestamptz on PostgreSQL, microseconds since 1970 on SQLite (8 bytes, sorted, no parsing)."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(DateTime(timezone=True))
        return dialect.type_descriptor(BigInteger())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return microseconds(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return moment_or_none(value)


# Statements executed by the driver itself bypass Moment; sqlite3 then asks this.
sqlite3.register_adapter(datetime, microseconds)


_set = portable("SAVEPOINT attempt")
_drop = portable("RELEASE SAVEPOINT attempt")
_undo = portable("ROLLBACK TO SAVEPOINT attempt")


def begin_savepoint(conn: Connection) -> None:
    _set.once(conn)


def keep_savepoint(conn: Connection) -> None:
    """What was written since `begin` is part of the transaction. Fails if the transaction is broken."""
    _drop.once(conn)


def undo_savepoint(conn: Connection) -> None:
    """What was written since `begin` is gone, and the transaction is whole again."""
    _undo.once(conn)
    _drop.once(conn)
