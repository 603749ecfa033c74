"""Everything that is encrypted in the store: passwords of sources, secrets of webhooks, tokens and keys."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.sql import portable


class Sealed(NamedTuple):
    """One encrypted secret. `id` is the id of its row; of the table `secrets`, its name."""

    what: str
    id: int | str
    sealed: bytes


class _Column(NamedTuple):
    table: str
    id: str
    column: str


_COLUMNS = {
    "password of a source": _Column("sources", "id", "credential"),
    "secret of a webhook": _Column("webhooks", "id", "secret"),
    "token or key": _Column("secrets", "name", "sealed"),
}
_select = {
    what: portable(f"SELECT {one.id}, {one.column} FROM {one.table} WHERE {one.column} IS NOT NULL ORDER BY {one.id}")
    for what, one in _COLUMNS.items()
}
_update = {
    what: portable(f"UPDATE {one.table} SET {one.column} = ? WHERE {one.id} = ? AND {one.column} = ?")
    for what, one in _COLUMNS.items()
}
_any = [portable(f"SELECT 1 FROM {one.table} WHERE {one.column} IS NOT NULL LIMIT 1") for one in _COLUMNS.values()]


def all_sealed(conn: Connection) -> list[Sealed]:
    return [Sealed(what, row[0], bytes(row[1])) for what, select in _select.items() for row in select.all(conn)]


def has_sealed(conn: Connection) -> bool:
    """Whether anything is encrypted."""
    return any(one.value(conn) is not None for one in _any)


def replace(conn: Connection, one: Sealed, sealed: bytes) -> bool:
    """Stores a secret that was encrypted anew. Returns False if it was changed or deleted meanwhile."""
    return bool(_update[one.what].once(conn, sealed, one.id, one.sealed))


def is_of_source(one: Sealed) -> bool:
    return _COLUMNS[one.what].table == "sources"
