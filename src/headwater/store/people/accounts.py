"""People, the tokens that let them in, and secrets that they gave us. Of tokens only hashes are stored.

A secret, such as the token for X, has to be used again, so it is stored encrypted.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.sql import json_text, portable

_USERS = "users u JOIN tenants n ON n.id = u.tenant_id"
_owner = portable(
    f"""SELECT u.tenant_id, u.id, u.name, u.role, NULL, n.runs_instance FROM {_USERS}
    WHERE u.role = 'owner' AND n.runs_instance ORDER BY u.id LIMIT 1""",
    row=Reader,
)
_more_tenants = portable("SELECT 1 FROM tenants ORDER BY id LIMIT 1 OFFSET 1")
_add_tenant = portable("INSERT INTO tenants (name, runs_instance, created_at) VALUES (?, ?, ?) RETURNING id")
_add_user = portable("INSERT INTO users (tenant_id, name, role, created_at) VALUES (?, ?, ?, ?) RETURNING id")
_add_token = portable(
    """INSERT INTO api_tokens (tenant_id, user_id, kind, name, token_hash, created_at, expires_at, scopes)
    VALUES (:tenant_id, :user_id, :kind, :name, :token_hash, :created_at, :expires_at, :scopes)"""
)
_bearer = portable(
    f"""SELECT u.tenant_id, u.id, u.name, u.role, t.scopes, n.runs_instance
    FROM {_USERS} JOIN api_tokens t ON t.user_id = u.id
    WHERE t.kind = ? AND t.token_hash = ? AND (t.expires_at IS NULL OR t.expires_at > ?)""",
    row=Reader,
)
_drop_token = portable("DELETE FROM api_tokens WHERE kind = ? AND token_hash = ?")
_drop_expired = portable("DELETE FROM api_tokens WHERE expires_at <= ?")
_save_secret = portable(
    """INSERT INTO secrets (name, sealed, changed_at) VALUES (?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, changed_at = excluded.changed_at"""
)
_find_secret = portable("SELECT sealed FROM secrets WHERE name = ?")
_drop_secret = portable("DELETE FROM secrets WHERE name = ?")


def owner(conn: Connection) -> Reader | None:
    return _owner.first(conn)


def has_guests(conn: Connection) -> bool:
    """Whether there are other tenants beside the first."""
    return _more_tenants.value(conn) is not None


def make_owner(conn: Connection, now: datetime) -> Reader:
    """Returns the first owner of the tenant that runs the instance. The first call creates both."""
    found = owner(conn)
    if found:
        return found
    tenant_id = _add_tenant.value(conn, "default", True, now)
    user_id = _add_user.value(conn, tenant_id, "owner", "owner", now)
    return Reader(tenant_id, user_id, "owner", "owner", runs_instance=True)


def save_token(
    conn: Connection,
    reader: Reader,
    *,
    kind: str,
    name: str,
    token_hash: bytes,
    now: datetime,
    expires_at: datetime | None,
    scopes: frozenset[str] | None = None,
) -> None:
    _add_token.once(
        conn,
        tenant_id=reader.tenant_id,
        user_id=reader.user_id,
        kind=kind,
        name=name,
        token_hash=token_hash,
        created_at=now,
        expires_at=expires_at,
        scopes=None if scopes is None else json_text(sorted(scopes)),
    )


def bearer_of(conn: Connection, kind: str, token_hash: bytes, now: datetime) -> Reader | None:
    """Returns whose token this is, unless it has expired."""
    return _bearer.first(conn, kind, token_hash, now)


def spend_token(conn: Connection, kind: str, token_hash: bytes, now: datetime) -> Reader | None:
    """Uses a token that is valid once. Returns whose it was."""
    reader = bearer_of(conn, kind, token_hash, now)
    return reader if _drop_token.once(conn, kind, token_hash) else None


def delete_token(conn: Connection, kind: str, token_hash: bytes) -> None:
    _drop_token.once(conn, kind, token_hash)


def drop_expired(conn: Connection, now: datetime) -> int:
    return _drop_expired.once(conn, now)


def save_secret(conn: Connection, name: str, sealed: bytes, now: datetime) -> None:
    _save_secret.once(conn, name, sealed, now)


def find_secret(conn: Connection, name: str) -> bytes | None:
    sealed = _find_secret.value(conn, name)
    return None if sealed is None else bytes(sealed)


def delete_secret(conn: Connection, name: str) -> bool:
    return bool(_drop_secret.once(conn, name))
