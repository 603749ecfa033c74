"""Tokens that let people and programs in: login links, sessions, API tokens, refresh tokens. Only hashes are stored.

`bearer`, `client`, `spend` and the functions of refresh tokens find out who somebody is, so they look at all tenants.
Everything else takes the reader whose tokens they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.db import ACCOUNTS_CHANGED
from headwater.store.sql import insert_into, json_text, portable


class Token(NamedTuple):
    """A token and whose it is. `scopes` is None if it has all that its user has."""

    id: int
    kind: str
    name: str
    tenant_id: int
    user_id: int
    user_name: str
    role: str
    scopes: frozenset[str] | None
    runs_instance: bool
    plan: str | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    address: str | None
    agent: str | None
    time_zone: str | None
    theme: str | None
    language: str | None

    @property
    def reader(self) -> Reader:
        who = (self.tenant_id, self.user_id, self.user_name, self.role)
        return Reader(*who, self.scopes, self.runs_instance, self.plan)


class RefreshToken(NamedTuple):
    """A refresh token, and the API token that it was made with."""

    id: int
    family: str
    client_id: int
    tenant_id: int
    user_id: int
    scopes: frozenset[str]
    expires_at: datetime
    spent_at: datetime | None


_TOKEN = """t.id, t.kind, t.name, t.tenant_id, t.user_id, u.name, u.role, t.scopes, n.runs_instance, n.plan,
    t.created_at, t.expires_at, t.last_used_at, t.address, t.agent, u.time_zone, u.theme, u.language
    FROM api_tokens t JOIN users u ON u.id = t.user_id JOIN tenants n ON n.id = t.tenant_id"""
_VALID = "(t.expires_at IS NULL OR t.expires_at > ?)"
_bearer = portable(f"SELECT {_TOKEN} WHERE t.kind = ? AND t.token_hash = ? AND {_VALID}", row=Token)
_client = portable(f"SELECT {_TOKEN} WHERE t.kind = 'api' AND t.id = ? AND {_VALID}", row=Token)
_of_reader = portable(
    f"SELECT {_TOKEN} WHERE t.tenant_id = ? AND t.user_id = ? AND t.kind = ? AND {_VALID} ORDER BY t.id DESC", row=Token
)
_add = portable(
    insert_into(
        "api_tokens",
        (
            "tenant_id",
            "user_id",
            "kind",
            "name",
            "token_hash",
            "created_at",
            "expires_at",
            "scopes",
            "address",
            "agent",
        ),
    )
    + " RETURNING id"
)
_spend = portable("DELETE FROM api_tokens WHERE kind = ? AND token_hash = ?")
_revoke = portable("DELETE FROM api_tokens WHERE tenant_id = ? AND user_id = ? AND kind = ? AND id = ?")
_revoke_all = portable(
    "DELETE FROM api_tokens WHERE tenant_id = :tenant_id AND user_id = :user_id AND kind IN (:kinds) AND id <> :but"
)
_note_use = portable("UPDATE api_tokens SET last_used_at = ? WHERE id = ?")
_drop_expired = [
    portable(f"DELETE FROM {table} WHERE expires_at <= ?") for table in ("api_tokens", "refresh_tokens", "invitations")
]
_change = portable("UPDATE account_changes SET number = number + 1")
_changes = portable("SELECT number FROM account_changes")

_add_refresh = portable(
    insert_into(
        "refresh_tokens",
        ("tenant_id", "user_id", "client_id", "family", "token_hash", "scopes", "created_at", "expires_at"),
    )
)
_refresh = portable(
    """SELECT id, family, client_id, tenant_id, user_id, scopes, expires_at, spent_at
    FROM refresh_tokens WHERE token_hash = ?""",
    postgresql=" FOR UPDATE",
    row=RefreshToken,
)
_spend_refresh = portable("UPDATE refresh_tokens SET spent_at = ? WHERE id = ? AND spent_at IS NULL")
_end_family = portable("DELETE FROM refresh_tokens WHERE family = ?")


def note_change(conn: Connection) -> None:
    """Notes that somebody may do less or more than before. Every process then forgets what it knew of tokens."""
    _change.once(conn)
    conn.info[ACCOUNTS_CHANGED] = True


def changes(conn: Connection) -> int:
    """Returns a number that grows with every such change."""
    return int(_changes.value(conn))


def save(
    conn: Connection,
    reader: Reader,
    *,
    kind: str,
    name: str,
    token_hash: bytes,
    now: datetime,
    expires_at: datetime | None = None,
    scopes: frozenset[str] | None = None,
    address: str | None = None,
    agent: str | None = None,
) -> int:
    """Stores a token. Returns its id."""
    return int(
        _add.value(
            conn,
            **reader.key,
            kind=kind,
            name=name,
            token_hash=token_hash,
            created_at=now,
            expires_at=expires_at,
            scopes=None if scopes is None else json_text(sorted(scopes)),
            address=address,
            agent=agent,
        )
    )


def bearer(conn: Connection, kind: str, token_hash: bytes, now: datetime) -> Token | None:
    """Returns the token, unless it has expired."""
    return _bearer.first(conn, kind, token_hash, now)


def client(conn: Connection, token_id: int, now: datetime) -> Token | None:
    """Returns the API token by its id, unless it has expired."""
    return _client.first(conn, token_id, now)


def spend(conn: Connection, kind: str, token_hash: bytes, now: datetime) -> Token | None:
    """Uses a token that is valid once. Returns it."""
    token = bearer(conn, kind, token_hash, now)
    return token if _spend.once(conn, kind, token_hash) else None


def of_reader(conn: Connection, reader: Reader, kind: str, now: datetime) -> list[Token]:
    """Returns a reader's valid tokens of one kind, the newest first."""
    return _of_reader.all(conn, reader.tenant_id, reader.user_id, kind, now)


def revoke(conn: Connection, reader: Reader, kind: str, token_id: int) -> bool:
    """Deletes a token. Returns whether the reader had it."""
    if not _revoke.once(conn, reader.tenant_id, reader.user_id, kind, token_id):
        return False
    note_change(conn)
    return True


def revoke_all(conn: Connection, reader: Reader, kinds: Sequence[str], *, but: int | None = None) -> int:
    """Deletes a reader's tokens of these kinds, `but` one. Returns how many there were."""
    count = _revoke_all.once(conn, **reader.key, kinds=list(kinds), but=but or 0)
    note_change(conn)
    return count


def note_use(conn: Connection, token_id: int, now: datetime) -> None:
    _note_use.once(conn, now, token_id)


def drop_expired(conn: Connection, now: datetime) -> int:
    """Deletes tokens and invitations that have expired. Returns how many."""
    return sum(statement.once(conn, now) for statement in _drop_expired)


def save_refresh(
    conn: Connection,
    token: Token,
    *,
    family: str,
    token_hash: bytes,
    scopes: frozenset[str],
    now: datetime,
    expires_at: datetime,
) -> None:
    _add_refresh.once(
        conn,
        tenant_id=token.tenant_id,
        user_id=token.user_id,
        client_id=token.id,
        family=family,
        token_hash=token_hash,
        scopes=json_text(sorted(scopes)),
        created_at=now,
        expires_at=expires_at,
    )


def find_refresh(conn: Connection, token_hash: bytes) -> RefreshToken | None:
    """Returns a refresh token, used or not, and keeps others from using it before this transaction ends."""
    return _refresh.first(conn, token_hash)


def spend_refresh(conn: Connection, token: RefreshToken, now: datetime) -> bool:
    """Marks a refresh token as used. Returns whether it was not used before."""
    return bool(_spend_refresh.once(conn, now, token.id))


def end_family(conn: Connection, family: str) -> None:
    """Deletes a refresh token with all that came before and after it."""
    _end_family.once(conn, family)
