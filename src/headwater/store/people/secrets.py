"""Secrets that a person has given and that have to be used again, such as the token for X. They are kept sealed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from headwater.store.sql import portable

_keep = portable(
    """INSERT INTO secrets (name, sealed, changed_at) VALUES (?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, changed_at = excluded.changed_at"""
)
_sealed = portable("SELECT sealed FROM secrets WHERE name = ?")
_forget = portable("DELETE FROM secrets WHERE name = ?")


def save(conn: Connection, name: str, sealed: bytes, now: datetime) -> None:
    _keep.once(conn, name, sealed, now)


def find(conn: Connection, name: str) -> bytes | None:
    rows = _sealed.all(conn, name)
    return bytes(rows[0][0]) if rows else None


def delete(conn: Connection, name: str) -> bool:
    return bool(_forget.once(conn, name))
