"""Short ways to make tenants and their readers for tests."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, insert

from api.running import Client, Running
from headwater.accounts import passwords, tokens
from headwater.model import Reader
from headwater.store.people import accounts
from headwater.store.tables import tenants, users
from support.posts import NOON

PASSWORD = "correct horse battery"


def a_tenant(conn: Connection, name: str = "other", now: datetime = NOON) -> Reader:
    """A new tenant; returns its owner."""
    [tenant_id] = conn.execute(insert(tenants).values(name=name, created_at=now).returning(tenants.c.id)).one()
    return a_user(conn, tenant_id, f"{name} owner", "owner", now)


def a_user(conn: Connection, tenant_id: int, name: str, role: str = "member", now: datetime = NOON) -> Reader:
    values = {"tenant_id": tenant_id, "name": name, "role": role, "created_at": now}
    [user_id] = conn.execute(insert(users).values(**values).returning(users.c.id)).one()
    return Reader(tenant_id, user_id, name, role)


def a_person(
    headwater: Running, name: str, role: str = "member", *, tenant: str | None = None, password: str | None = None
) -> Reader:
    """Somebody in the first tenant, or in one with this name, who signs in as name@example.org."""
    password_hash = passwords.hashed(password) if password else None

    def add(conn: Connection) -> Reader:
        tenant_id = headwater.owner.tenant_id
        if tenant is not None:
            tenant_id = accounts.tenant_named(conn, tenant) or accounts.add_tenant(conn, tenant, headwater.parts.now())
        user_id = accounts.add_user(
            conn,
            tenant_id,
            name=name,
            role=role,
            now=headwater.parts.now(),
            email=f"{name}@example.org",
            password_hash=password_hash,
        )
        found = accounts.person(conn, tenant_id, user_id)
        assert found is not None
        return found.reader

    return headwater.parts.db.write_now(add)


def program_of(headwater: Running, reader: Reader, scopes: frozenset[str] | None = None) -> Client:
    """A client with an API token of this person."""
    db, now = headwater.parts.db, headwater.parts.now()
    secret = db.write_now(tokens.issue, reader, "api", "test", now, scopes=scopes)
    return Client(headwater.port, {"Authorization": f"Bearer {secret}"})


def browser_of(headwater: Running, reader: Reader) -> Client:
    """A client with a session of this person, and the key that its forms need."""
    session = headwater.parts.db.write_now(tokens.issue, reader, "session", "test", headwater.parts.now())
    return Client(headwater.port, {"Cookie": f"headwater_session={session}", "X-Form-Key": tokens.form_key(session)})
