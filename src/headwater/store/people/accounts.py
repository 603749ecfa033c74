"""People and the secrets that let them in. Only hashes of secrets are kept."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from headwater.model import Reader
from headwater.store.tables import api_tokens, tenants, users


def owner(conn: Connection) -> Reader | None:
    row = conn.execute(select(users).where(users.c.role == "owner").order_by(users.c.id).limit(1)).first()
    return Reader(row.tenant_id, row.id, row.name, row.role) if row else None


def make_owner(conn: Connection, now: datetime) -> Reader:
    """The first user of the first tenant; the same one when called again."""
    found = owner(conn)
    if found:
        return found
    tenant_id = conn.execute(
        insert(tenants).values(name="default", created_at=now).returning(tenants.c.id)
    ).scalar_one()
    user = {"tenant_id": tenant_id, "name": "owner", "role": "owner", "created_at": now}
    user_id = conn.execute(insert(users).values(**user).returning(users.c.id)).scalar_one()
    return Reader(tenant_id, user_id, "owner", "owner")


def save_token(
    conn: Connection,
    reader: Reader,
    *,
    kind: str,
    name: str,
    token_hash: bytes,
    now: datetime,
    expires_at: datetime | None,
) -> None:
    conn.execute(
        insert(api_tokens).values(
            tenant_id=reader.tenant_id,
            user_id=reader.user_id,
            kind=kind,
            name=name,
            token_hash=token_hash,
            created_at=now,
            expires_at=expires_at,
        )
    )


def bearer_of(conn: Connection, kind: str, token_hash: bytes, now: datetime) -> Reader | None:
    """Whose token this is, if it is still good."""
    query = (
        select(users.c.tenant_id, users.c.id, users.c.name, users.c.role)
        .join(api_tokens, api_tokens.c.user_id == users.c.id)
        .where(api_tokens.c.kind == kind, api_tokens.c.token_hash == token_hash)
        .where(api_tokens.c.expires_at.is_(None) | (api_tokens.c.expires_at > now))
    )
    row = conn.execute(query).first()
    return Reader(*row) if row else None


def spend_token(conn: Connection, kind: str, token_hash: bytes, now: datetime) -> Reader | None:
    """Use a token that is good for one time."""
    reader = bearer_of(conn, kind, token_hash, now)
    gone = conn.execute(
        delete(api_tokens).where(api_tokens.c.kind == kind, api_tokens.c.token_hash == token_hash)
    ).rowcount
    return reader if gone else None


def delete_token(conn: Connection, kind: str, token_hash: bytes) -> None:
    conn.execute(delete(api_tokens).where(api_tokens.c.kind == kind, api_tokens.c.token_hash == token_hash))


def drop_expired(conn: Connection, now: datetime) -> int:
    return conn.execute(delete(api_tokens).where(api_tokens.c.expires_at <= now)).rowcount
