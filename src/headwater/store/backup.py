"""All rows of the store, out and in, in a form that both databases understand. `app/backup.py` keeps them in a file.

A row is a list of JSON values in the order of its table's columns: a moment is microseconds since 1970, bytes are
base64, and decimals and JSON are text. The log is written as SQLite has it, in one partition and numbered in its order.
On PostgreSQL its position has a transaction id, which means nothing to another server. So events keep their order but
get the transaction that restores them, and a consumer begins at the first event that it had not handled in every
partition. Its inbox knows the rest.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection, inspect, text

from headwater.errors import BadDocument, StoreUnavailable
from headwater.store import migrate
from headwater.store.fleet import telemetry
from headwater.store.log import outbox
from headwater.store.people import audit, sealed
from headwater.store.posts import search
from headwater.store.sql import microseconds, moment, portable
from headwater.store.tables import (
    consumer_cursors,
    consumer_trials,
    event_outbox,
    hot_posts,
    hot_window,
    images,
    locks,
    metadata,
    miner_telemetry,
)
from headwater.store.tables.columns import Exact, Moment

AT_ONCE = 500  # rows that are read, or inserted, together
LEFT_OUT = (hot_posts, hot_window, locks, consumer_trials)  # copies, and what only running processes know
MADE_WITH_THE_SCHEMA = {"tenants", "users", "account_changes", "hot_window", "miner_models", "alembic_version"}

_KINDS: dict[str, tuple[type[sa.types.TypeEngine[Any]], ...]] = {
    "moment": (Moment,),
    "decimal": (Exact,),
    "json": (sa.JSON,),
    "bytes": (sa.LargeBinary,),
    "bool": (sa.Boolean,),
    "int": (sa.Integer,),
    "float": (sa.Float,),
    "text": (sa.String,),
}
_POSTGRES_TYPES = {
    "moment": "timestamptz",
    "decimal": "numeric",
    "json": "jsonb",
    "bytes": "bytea",
    "bool": "boolean",
    "int": "bigint",
    "float": "float8",
    "text": "text",
}
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "moment": (int,),
    "decimal": (str,),
    "json": (str,),
    "bytes": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "text": (str,),
}
_post_ids = portable("SELECT id FROM posts WHERE id > ? ORDER BY id LIMIT ?")
_cursors = portable("SELECT consumer, partition, xid, id, moved_at FROM consumer_cursors ORDER BY consumer, partition")
_first_after = portable(
    "SELECT xid, id FROM event_outbox WHERE partition = ? AND (xid, id) > (?, ?) ORDER BY xid, id LIMIT 1",
    row=outbox.LogPosition,
)

Row = list[Any]


class Columns(NamedTuple):
    """A table, and its columns as (name, kind) each. What the database computes is left out."""

    table: str
    columns: tuple[tuple[str, str], ...]

    def place(self, column: sa.Column[Any]) -> int:
        return [name for name, _ in self.columns].index(column.name)


def kept_tables() -> list[Columns]:
    """Returns every table whose rows are kept, those that others refer to first."""
    return [
        Columns(str(table.name), tuple((str(one.name), _kind(one)) for one in table.columns if one.computed is None))
        for table in sorted(metadata.sorted_tables, key=lambda one: one is consumer_cursors)  # numbered by the log
        if table not in LEFT_OUT
    ]


def _kind(column: sa.Column[Any]) -> str:
    return next(kind for kind, types in _KINDS.items() if isinstance(column.type, types))


class Reading:
    """Reads all tables within one transaction. The log is read before the cursors, which it numbers."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._is_sqlite = conn.dialect.name == "sqlite"
        self._log_end = 0
        self._pending: dict[outbox.LogPosition, int] = {}
        if not self._is_sqlite:
            conn.execute(text("SET LOCAL statement_timeout = 0"))

    def rows(self, columns: Columns) -> Iterator[Row]:
        if columns.table == consumer_cursors.name:
            return self._cursors(columns)
        found = self._all(columns)
        return self._numbered(columns, found) if columns.table == event_outbox.name else found

    def sequences(self) -> dict[str, int]:
        """Returns the last id that each table has given out. An id of something deleted is never given out again."""
        if self._is_sqlite:
            found: dict[str, int] = {}
            for name, last in self._conn.execute(text("SELECT name, seq FROM sqlite_sequence")):
                found[name] = last or 0
        else:
            found = {
                table: self._conn.execute(text(f"SELECT last_value FROM {sequence} WHERE is_called")).scalar() or 0
                for table, _, sequence in _postgres_sequences(self._conn)
            }
        if event_outbox.name in found:
            found[event_outbox.name] = max(found[event_outbox.name], self._log_end)
        kept = {one.table for one in kept_tables()}
        return {table: last for table, last in found.items() if table in kept}

    def encrypted(self) -> list[bytes]:
        """Returns the secrets of the store as they are encrypted."""
        return [one.sealed for one in sealed.all_sealed(self._conn)]

    def image_paths(self) -> Iterator[str]:
        """Returns the files of saved images, each once."""
        wanted = sa.select(images.c.path).where(images.c.path.is_not(None)).distinct()
        with self._conn.execution_options(stream_results=True).execute(wanted) as found:
            yield from found.scalars()

    def _all(self, columns: Columns) -> Iterator[Row]:
        wanted = ", ".join(self._expression(name, kind) for name, kind in columns.columns)
        order = " ORDER BY xid, id" if columns.table == event_outbox.name else ""
        converted = [(place, _WRITTEN[kind]) for place, (_, kind) in enumerate(columns.columns) if kind in _WRITTEN]
        cursor = self._conn.connection.cursor() if self._is_sqlite else _server_side(self._conn)
        try:
            cursor.execute(f"SELECT {wanted} FROM {columns.table}{order}")
            while rows := cursor.fetchmany(AT_ONCE):
                for found in rows:
                    row = list(found)
                    for place, convert in converted:
                        if row[place] is not None:
                            row[place] = convert(row[place])
                    yield row
        finally:
            cursor.close()

    def _expression(self, name: str, kind: str) -> str:
        name = f'"{name}"'
        if kind in ("json", "decimal"):
            return f"CAST({name} AS TEXT)"
        if kind == "moment" and not self._is_sqlite:
            return f"(extract(epoch FROM {name}) * 1000000)::bigint"
        return name

    def _numbered(self, columns: Columns, rows: Iterable[Row]) -> Iterator[Row]:
        """Writes the log as SQLite has it. An id stays what it was, unless that would change the order."""
        places = [columns.place(event_outbox.c[name]) for name in ("xid", "id", "partition")]
        waited_for = self._waited_for()
        for row in rows:
            xid, id, _ = (row[place] for place in places)
            self._log_end = max(self._log_end + 1, id)
            if (xid, id) in waited_for:
                self._pending[outbox.LogPosition(xid, id)] = self._log_end
            row[places[0]], row[places[1]], row[places[2]] = 0, self._log_end, 0
            yield row

    def _waited_for(self) -> set[outbox.LogPosition]:
        firsts = (self._first_after(partition, xid, id) for _, partition, xid, id, _ in _cursors.all(self._conn))
        return {first for first in firsts if first}

    def _first_after(self, partition: int, xid: int, id: int) -> outbox.LogPosition | None:
        return _first_after.first(self._conn, partition, xid, id)

    def _cursors(self, columns: Columns) -> Iterator[Row]:
        """Returns one cursor for each consumer: before the first event that it has not handled."""
        found: dict[str, tuple[int, int]] = {}
        for consumer, partition, xid, id, moved_at in _cursors.all(self._conn):
            first = self._first_after(partition, xid, id)
            reached = self._pending[first] - 1 if first else max(self._log_end, id if self._is_sqlite else 0)
            before, at = found.get(consumer, (reached, 0))
            found[consumer] = min(before, reached), max(at, microseconds(moment(moved_at)))
        for consumer, (reached, at) in found.items():
            values = {"consumer": consumer, "partition": 0, "xid": 0, "id": reached, "moved_at": at}
            yield [values[name] for name, _ in columns.columns]


def _server_side(conn: Connection) -> Any:
    """A cursor that does not fetch everything at once."""
    cursor: Any = conn.connection.driver_connection.cursor(name="headwater_backup")  # type: ignore[union-attr]
    return cursor


_WRITTEN: dict[str, Callable[[Any], Any]] = {
    "bytes": lambda value: b64encode(value).decode(),
    "bool": bool,
    "json": lambda value: value if isinstance(value, str) else bytes(value).decode(),
}
_READ: dict[str, Callable[[Any], Any]] = {"bytes": lambda value: b64decode(value, validate=True)}


def is_empty(conn: Connection) -> bool:
    """Whether nothing would be lost: there is no schema, or only what is made with it."""
    there = set(inspect(conn).get_table_names())
    if "alembic_version" not in there:
        return True
    ours = {table.name for table in metadata.sorted_tables}
    return not any(
        conn.execute(text(f"SELECT 1 FROM {name} LIMIT 1")).first() for name in (there & ours) - MADE_WITH_THE_SCHEMA
    )


def fill(
    conn: Connection,
    revision: str,
    tables: Sequence[Columns],
    rows: Callable[[Columns], Iterable[Row]],
    sequences: dict[str, int],
    app_role: str | None = None,
) -> None:
    """Makes the schema of a revision, inserts these rows, upgrades, and builds what is derived from them.

    `app_role` may use the tables afterwards, if another role owns them.

    Raises BadDocument if the rows are not what the schema asks for, and StoreUnavailable if the store is not empty.
    All of it is one transaction of the caller.
    """
    migrate.lock(conn)
    if not is_empty(conn):
        raise StoreUnavailable("The store is no longer empty. Nothing was restored.")
    migrate.make(conn, revision)
    for columns in tables:
        _check_columns(conn, columns)
    for columns in reversed(tables):  # what migrations have put there
        conn.execute(text(f"DELETE FROM {columns.table}"))
    for columns in tables:
        with _refused(columns.table):
            _insert(conn, columns, rows(columns))
    _place_log(conn)
    _set_sequences(conn, sequences)
    if conn.dialect.name == "sqlite" and (broken := conn.exec_driver_sql("PRAGMA foreign_key_check").first()):
        raise BadDocument(
            f"This backup cannot be restored: a row of {broken[0]} refers to one of {broken[2]} that is missing."
        )
    migrate.finish(conn, app_role)
    _index_words(conn)
    audit.record(conn, None, "backup.restore")


def _check_columns(conn: Connection, columns: Columns) -> None:
    there = inspect(conn)
    usable = columns.table != "alembic_version" and there.has_table(columns.table)
    known = {one["name"] for one in there.get_columns(columns.table)} if usable else set()
    unknown = [f"{columns.table}.{name}" for name, _ in columns.columns if name not in known]
    if unknown or not all(kind in _POSTGRES_TYPES for _, kind in columns.columns):
        raise BadDocument(f"This backup cannot be restored: it has columns that its schema does not have ({unknown}).")


@contextmanager
def _refused(table: str) -> Iterator[None]:
    """Says that rows are not as the schema wants them. What the drivers raise then is of one of these names."""
    try:
        yield
    except Exception as error:
        names = {kind.__name__ for kind in type(error).__mro__}
        if not names & {"IntegrityError", "DataError", "OverflowError", "ValueError"}:
            raise
        words = str(error).splitlines()[0][:200]
        raise BadDocument(f"This backup cannot be restored: a row of {table} is not valid ({words}).") from error


def _insert(conn: Connection, columns: Columns, rows: Iterable[Row]) -> None:
    names = ", ".join(f'"{name}"' for name, _ in columns.columns)
    kinds = [kind for _, kind in columns.columns]
    is_sqlite = conn.dialect.name == "sqlite"
    if is_sqlite:
        statement = f"INSERT INTO {columns.table} ({names}) VALUES ({', '.join('?' * len(kinds))})"
    else:  # COPY is not allowed where row level security applies
        arrays = ", ".join(f"%s::{_POSTGRES_TYPES[kind]}[]" for kind in kinds)
        statement = f"INSERT INTO {columns.table} ({names}) SELECT * FROM unnest({arrays})"
    converted = {place: _READ[kind] for place, kind in enumerate(kinds) if kind in _READ}
    if not is_sqlite:
        converted |= {place: moment for place, kind in enumerate(kinds) if kind == "moment"}
    cursor = conn.connection.cursor()
    try:
        for batch in _batches(_valid(row, kinds, converted) for row in rows):
            if columns.table == miner_telemetry.name and not is_sqlite:
                times = [row[columns.place(miner_telemetry.c.at)] for row in batch]
                telemetry.make_months(conn, min(times), max(times))
            if is_sqlite:
                cursor.executemany(statement, batch)
            else:
                cursor.execute(statement, [list(values) for values in zip(*batch, strict=True)])
    finally:
        cursor.close()


def _valid(row: Any, kinds: Sequence[str], converted: dict[int, Callable[[Any], Any]]) -> Row:
    """Returns a row of a file as the driver takes it. Raises ValueError if it is not one of these kinds."""
    if not isinstance(row, list) or len(row) != len(kinds):
        raise ValueError("it has other columns")
    for place, (value, kind) in enumerate(zip(row, kinds, strict=True)):
        if value is None:
            continue
        if not isinstance(value, _PYTHON_TYPES[kind]) or (kind != "bool" and isinstance(value, bool)):
            raise ValueError(f"column {place + 1} is not {kind}")
        if place in converted:
            row[place] = converted[place](value)
    return row


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Returns rows in batches of a bounded size: some texts are long."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(batch) == AT_ONCE or size > 4 * 1024 * 1024:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _place_log(conn: Connection) -> None:
    """Gives the log the partitions and the transaction of this database."""
    if conn.dialect.name == "sqlite":
        for table in ("event_outbox", "event_dlq"):
            conn.execute(text(f"UPDATE {table} SET partition = 0 WHERE partition <> 0"))
        return
    partition = f"hashtext(key) & {outbox.PARTITIONS - 1}"
    now = "pg_current_xact_id()::text::bigint"
    conn.execute(text(f"UPDATE event_outbox SET partition = {partition}, xid = {now}"))
    conn.execute(text(f"UPDATE event_dlq SET partition = {partition}"))
    conn.execute(text(f"UPDATE consumer_cursors SET xid = {now}"))
    conn.execute(
        text(
            f"""INSERT INTO consumer_cursors (consumer, partition, xid, id, moved_at)
            SELECT consumer, p, xid, id, moved_at
            FROM consumer_cursors, generate_series(1, {outbox.PARTITIONS - 1}) p"""
        )
    )


def _set_sequences(conn: Connection, last: dict[str, int]) -> None:
    if conn.dialect.name == "sqlite":
        for table, id in last.items():
            done = conn.execute(
                text("UPDATE sqlite_sequence SET seq = max(seq, :id) WHERE name = :table"), {"id": id, "table": table}
            )
            if not done.rowcount and id:
                conn.execute(
                    text("INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :id)"), {"id": id, "table": table}
                )
        return
    for table, column, sequence in _postgres_sequences(conn):
        highest = conn.execute(text(f"SELECT max({column}) FROM {table}")).scalar() or 0
        if reached := max(highest, last.get(table, 0)):
            conn.execute(text("SELECT setval(CAST(:sequence AS regclass), :id)"), {"sequence": sequence, "id": reached})


def _postgres_sequences(conn: Connection) -> list[tuple[str, str, str]]:
    """Returns (table, column, sequence) for every id that PostgreSQL gives out."""
    found = conn.execute(
        text(
            """SELECT t.relname::text, a.attname::text, pg_get_serial_sequence(quote_ident(t.relname), a.attname)
            FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
            WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace
                AND pg_get_serial_sequence(quote_ident(t.relname), a.attname) IS NOT NULL"""
        )
    )
    return [(table, column, sequence) for table, column, sequence in found]


def _index_words(conn: Connection) -> None:
    last = 0
    while ids := _post_ids.values(conn, last, AT_ONCE):
        search.index(conn, ids)
        last = ids[-1]
