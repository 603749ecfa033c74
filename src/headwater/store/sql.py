"""How SQL is written and run, in one style throughout the store.

- A statement is SQL text. `portable` prepares it once, when its module is imported, for both databases; `Prepared`
  takes two texts where they must differ. Nothing is built when it runs: a query whose conditions vary is one statement
  for each combination, made by a cached function.
- Up to five parameters are `?`, in order. More are `:name`, passed by name. `IN (?)` and `IN (:name)` take a list.
- Rows have names: `row=` is a NamedTuple with a field for each column, and the rows are of that type. A field that is a
  datetime, a bool, a Decimal, a mapping, a list or a frozenset is converted from what the driver returns. `value` and
  `values` are for queries of one column; two or three columns may be unpacked where they are used.

Statements are run by the driver, not by SQLAlchemy, which provides connections, transactions and the schema.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property, partial
from operator import itemgetter
from types import UnionType
from typing import Any, Generic, NamedTuple, Union, get_args, get_origin, get_type_hints

import orjson
from sqlalchemy import Connection
from typing_extensions import TypeVar

R = TypeVar("R", default=tuple[Any, ...])

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LIST = re.compile(r"\bIN \((\?|:[a-z]\w*)\)")
_NAME = re.compile(r"(?<![:\w]):([a-z]\w*)")  # not the second colon of a cast


class _Text(NamedTuple):
    """A statement as a driver takes it. `bind` picks the values of its parameters, by name, in their order."""

    sql: str
    bind: Callable[[Any], tuple[Any, ...]] | None


class Prepared(Generic[R]):
    """A statement that differs between the databases. The module says how it is written.

    `order` is for statements that run for thousands of rows: `many` then takes tuples with their values in this order.
    """

    def __init__(
        self, *, sqlite: str = "", postgresql: str = "", row: type[R] | None = None, order: Sequence[str] = ()
    ) -> None:
        self._row = row
        self._texts = {
            "sqlite": _text(sqlite, in_list="IN (SELECT value FROM json_each({}))", mark="?", order=order),
            "postgresql": _text(postgresql, in_list="= ANY({})", mark="%s", order=order),
        }

    def sql(self, conn: Connection) -> str:
        return self._texts[conn.dialect.name].sql

    def all(self, conn: Connection, *given: Any, **named: Any) -> list[R]:
        """Returns every row."""
        rows = self._fetch(conn, given, named)
        if self._row is None or not rows:
            return rows
        fields = self._row._fields  # type: ignore[attr-defined]
        assert len(rows[0]) == len(fields), f"{self._row.__name__} has other fields: {self.sql(conn)}"
        return list(map(self._make, rows))

    def first(self, conn: Connection, *given: Any, **named: Any) -> R | None:
        """Returns the first row, or None if there is none."""
        rows = self.all(conn, *given, **named)
        return rows[0] if rows else None

    def values(self, conn: Connection, *given: Any, **named: Any) -> list[Any]:
        """Returns the only column of every row."""
        return [value for (value,) in self._fetch(conn, given, named)]

    def value(self, conn: Connection, *given: Any, **named: Any) -> Any:
        """Returns the only column of the first row, or None if there is no row."""
        found = self.values(conn, *given, **named)
        return found[0] if found else None

    def once(self, conn: Connection, *given: Any, **named: Any) -> int:
        """Executes the statement and returns how many rows it changed."""
        sql, bind = self._texts[conn.dialect.name]
        cursor = conn.connection.cursor()
        try:
            cursor.execute(sql, bind(named) if bind else given)
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def many(self, conn: Connection, rows: Iterable[Any]) -> None:
        """Executes the statement for each of these: tuples of values or, for named parameters, mappings."""
        sql, bind = self._texts[conn.dialect.name]
        given = [bind(row) for row in rows] if bind else list(rows)
        if not given:
            return
        cursor = conn.connection.cursor()
        try:
            cursor.executemany(sql, given)
        finally:
            cursor.close()

    def plan(self, conn: Connection, *given: Any, **named: Any) -> list[tuple[Any, ...]]:
        """Returns the database's plan for this statement."""
        explain = "EXPLAIN QUERY PLAN " if conn.dialect.name == "sqlite" else "EXPLAIN "
        sql, bind = self._texts[conn.dialect.name]
        return _fetched(conn, explain + sql, bind(named) if bind else given)

    def _fetch(self, conn: Connection, given: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        sql, bind = self._texts[conn.dialect.name]
        return _fetched(conn, sql, bind(named) if bind else given)

    @cached_property
    def _make(self) -> Callable[[Iterable[Any]], R]:
        assert self._row is not None
        return row_maker(self._row)


def portable(sql: str, *, postgresql: str = "", row: type[R] | None = None) -> Prepared[R]:
    """Prepares a statement that both databases understand; `postgresql` is added to it on PostgreSQL."""
    return Prepared(sqlite=sql, postgresql=sql + postgresql, row=row)


def columns(row: type, table: str = "") -> str:
    """Returns the columns that a row is named after, for a SELECT."""
    prefix = f"{table}." if table else ""
    return ", ".join(prefix + name for name in row._fields)  # type: ignore[attr-defined]


def picked(part: type[R], row: Any, **more: Any) -> R:
    """Returns a tuple of another type with the fields that a row has, too. `more` are the others."""
    return part(**{name: more[name] if name in more else getattr(row, name) for name in part._fields})  # type: ignore[attr-defined]


def insert_into(table: str, names: Iterable[str]) -> str:
    """Returns an INSERT of these columns, each a parameter of the same name."""
    names = list(names)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"


def row_maker(row: type[R]) -> Callable[[Iterable[Any]], R]:
    """Returns a function that makes such a row of what the driver returned."""
    hints = get_type_hints(row)
    names: tuple[str, ...] = row._fields  # type: ignore[attr-defined]
    make: Callable[[Iterable[Any]], R] = partial(tuple.__new__, row)  # type: ignore[type-var]  # `_make`, but in C
    conversions = [(place, convert) for place, name in enumerate(names) if (convert := _conversion(hints[name]))]
    if not conversions:
        return make

    def converted(values: Iterable[Any]) -> R:
        changed = list(values)
        for place, convert in conversions:
            value = changed[place]
            if value is not None:
                changed[place] = convert(value)
        return make(changed)

    return converted


def _conversion(hint: Any) -> Callable[[Any], Any] | None:
    """Returns what has to be done to a column of this type, if anything."""
    alternatives = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = {get_origin(one) or one for one in alternatives}
    if datetime in kinds:
        return moment
    if bool in kinds:
        return bool
    if Decimal in kinds:
        return Decimal
    if frozenset in kinds:
        return lambda value: frozenset(json_value(value))
    return json_value if kinds & {dict, list, Mapping, Sequence} else None


def _text(sql: str, *, in_list: str, mark: str, order: Sequence[str]) -> _Text:
    sql = _LIST.sub(lambda found: in_list.format(found[1]), sql)
    names = _NAME.findall(sql)
    assert not names or "?" not in sql, f"a statement has ? or :name, not both: {sql}"
    sql = _NAME.sub("?", sql).replace("?", mark)
    if not names or names == list(order):
        return _Text(sql, None)
    keys: list[Any] = [order.index(name) for name in names] if order else names
    return _Text(sql, itemgetter(*keys) if len(keys) > 1 else lambda given: (given[keys[0]],))


def _fetched(conn: Connection, sql: str, given: tuple[Any, ...]) -> list[Any]:
    cursor = conn.connection.cursor()
    try:
        cursor.execute(sql, given)
        return list(cursor.fetchall())
    finally:
        cursor.close()


def microseconds(moment: datetime) -> int:
    """Returns a time as SQLite stores it."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds  # dividing takes three times as long


def moment(value: Any) -> datetime:
    """Returns what the driver returned for a time as an aware datetime."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return _EPOCH + timedelta(microseconds=value)


def moment_or_none(value: Any) -> datetime | None:
    return None if value is None else moment(value)


def decimal_text(value: Decimal) -> str:
    """Returns a decimal as SQLite stores it: all its digits, and no exponent."""
    return format(value, "f")


def json_text(value: Any) -> str:
    return orjson.dumps(value).decode()


def json_value(value: Any) -> Any:
    """Returns a JSON column as Python values. PostgreSQL's driver has parsed it already; SQLite's returns text."""
    if value == "{}":
        return {}
    return orjson.loads(value) if isinstance(value, str | bytes) else value


# How sqlite3 passes values that SQLite has no type for: times as numbers, decimals as text, the list of an IN as JSON.
sqlite3.register_adapter(datetime, microseconds)
sqlite3.register_adapter(Decimal, decimal_text)
sqlite3.register_adapter(list, json_text)


_set_savepoint = portable("SAVEPOINT attempt")
_release_savepoint = portable("RELEASE SAVEPOINT attempt")
_roll_back = portable("ROLLBACK TO SAVEPOINT attempt")


def begin_savepoint(conn: Connection) -> None:
    _set_savepoint.once(conn)


def keep_savepoint(conn: Connection) -> None:
    """Keeps what was written since `begin_savepoint`. Fails if the transaction is broken."""
    _release_savepoint.once(conn)


def undo_savepoint(conn: Connection) -> None:
    """Rolls back to `begin_savepoint`. The transaction can be used again."""
    _roll_back.once(conn)
    _release_savepoint.once(conn)
