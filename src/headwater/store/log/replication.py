"""What PostgreSQL needs so that Debezium can read the outbox from its write-ahead log: a publication and a slot.

The publication tells of inserts alone: that old events are deleted is nobody's business. The slot is made by Debezium
and keeps the write-ahead log until Debezium has read it: a connector that is gone for good would fill the disk.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, text

TABLE = "event_outbox"

_publication = text(
    """SELECT p.pubinsert AND NOT (p.pubupdate OR p.pubdelete OR p.pubtruncate), array_agg(t.tablename::text)
    FROM pg_publication p LEFT JOIN pg_publication_tables t ON t.pubname = p.pubname
    WHERE p.pubname = :name GROUP BY p.oid, 1"""
)
_slot = text(
    """SELECT active, wal_status, pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)
    FROM pg_replication_slots WHERE slot_name = :name AND database = current_database()"""
)
_wal_level = text("SHOW wal_level")
_drop_slot = text(
    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = :name AND NOT active"
)


class Publication(NamedTuple):
    inserts_only: bool
    tables: tuple[str, ...]


class Slot(NamedTuple):
    """`behind` is how many bytes of the log are not confirmed yet; `kept` is false once the server gave them up."""

    active: bool
    kept: bool
    behind: int


def wal_level(conn: Connection) -> str:
    """`logical` is needed; a change takes a restart of the server."""
    return str(conn.execute(_wal_level).scalar_one())


def publication(conn: Connection, name: str) -> Publication | None:
    row = conn.execute(_publication, {"name": name}).one_or_none()
    return Publication(bool(row[0]), tuple(filter(None, row[1]))) if row else None


def publication_sql(name: str) -> str:
    return f"CREATE PUBLICATION {name} FOR TABLE {TABLE} WITH (publish = 'insert')"


def make_publication(conn: Connection, name: str) -> bool:
    """Publish the outbox under this name, unless that is done; returns whether it was new."""
    if publication(conn, name) is not None:
        return False
    conn.execute(text(publication_sql(_quoted(conn, name))))
    return True


def drop_publication(conn: Connection, name: str) -> None:
    conn.execute(text(f"DROP PUBLICATION IF EXISTS {_quoted(conn, name)}"))


def slot(conn: Connection, name: str) -> Slot | None:
    row = conn.execute(_slot, {"name": name}).one_or_none()
    return Slot(row[0], row[1] != "lost", int(row[2] or 0)) if row else None


def drop_slot(conn: Connection, name: str) -> bool:
    """Let go of the log that is kept for this slot; returns whether there was one that nobody reads."""
    return conn.execute(_drop_slot, {"name": name}).first() is not None


def _quoted(conn: Connection, name: str) -> str:
    return conn.dialect.identifier_preparer.quote(name)
