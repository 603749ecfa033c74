"""What PostgreSQL needs so that Debezium can read the outbox from its write-ahead log: a publication and a slot.

The publication holds inserts only: consumers do not need to know that old events are deleted. Debezium creates the
slot, which keeps the write-ahead log until Debezium has read it. The slot of a connector that is gone fills the disk.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.sql import Prepared

TABLE = "event_outbox"


class Publication(NamedTuple):
    inserts_only: bool
    tables: tuple[str, ...]


class ReplicationSlot(NamedTuple):
    """`behind` is how many bytes of the log are not confirmed yet. `kept` is false once the server has dropped them."""

    active: bool
    kept: bool
    behind: int


class LogKeeper(NamedTuple):
    """A slot of the server, ours or not, for which it keeps write-ahead log: `bytes` of it at present.

    `status` is PostgreSQL's: reserved, extended, unreserved or lost. `left` is how much may still be written before the
    log is dropped; None: there is no limit (max_slot_wal_keep_size), and the disk fills. `ours`: of this database.
    """

    name: str
    active: bool
    status: str | None
    bytes: int
    left: int | None
    ours: bool


_publication = Prepared(
    postgresql="""SELECT p.pubinsert AND NOT (p.pubupdate OR p.pubdelete OR p.pubtruncate),
        array_remove(array_agg(t.tablename::text), NULL)
    FROM pg_publication p LEFT JOIN pg_publication_tables t ON t.pubname = p.pubname
    WHERE p.pubname = ? GROUP BY p.oid, 1"""
)
_slot = Prepared(
    postgresql="""SELECT active, wal_status <> 'lost',
        COALESCE(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn), 0)::bigint
    FROM pg_replication_slots WHERE slot_name = ? AND database = current_database()""",
    row=ReplicationSlot,
)
_keepers = Prepared(
    postgresql="""SELECT slot_name::text, active, wal_status,
        COALESCE(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint, safe_wal_size,
        COALESCE(database = current_database(), FALSE)
    FROM pg_replication_slots ORDER BY 4 DESC, 1""",
    row=LogKeeper,
)
_wal_level = Prepared(postgresql="SHOW wal_level")
_drop_slot = Prepared(
    postgresql="""SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
    WHERE slot_name = ? AND NOT active"""
)


def wal_level(conn: Connection) -> str:
    """Returns the level, which has to be `logical`. Changing it takes a restart of the server."""
    return str(_wal_level.value(conn))


def publication(conn: Connection, name: str) -> Publication | None:
    for inserts_only, tables in _publication.all(conn, name):
        return Publication(inserts_only, tuple(tables))
    return None


def publication_sql(name: str) -> str:
    return f"CREATE PUBLICATION {name} FOR TABLE {TABLE} WITH (publish = 'insert')"


def make_publication(conn: Connection, name: str) -> bool:
    """Publishes the outbox under this name. Returns False if it is published already."""
    if publication(conn, name) is not None:
        return False
    conn.exec_driver_sql(publication_sql(_quoted(conn, name)))
    return True


def drop_publication(conn: Connection, name: str) -> None:
    conn.exec_driver_sql(f"DROP PUBLICATION IF EXISTS {_quoted(conn, name)}")


def slot(conn: Connection, name: str) -> ReplicationSlot | None:
    return _slot.first(conn, name)


def keepers(conn: Connection) -> list[LogKeeper]:
    """Returns the slots that keep log, the one that keeps most first."""
    return _keepers.all(conn)


def drop_slot(conn: Connection, name: str) -> bool:
    """Drops a slot that nobody reads, and with it the log that is kept for it. Returns whether there was one."""
    return bool(_drop_slot.all(conn, name))


def _quoted(conn: Connection, name: str) -> str:
    return conn.dialect.identifier_preparer.quote(name)
