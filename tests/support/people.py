"""Short ways to make tenants and their readers for tests."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, insert

from headwater.model import Reader
from headwater.store.tables import tenants, users
from support.posts import NOON


def a_tenant(conn: Connection, name: str = "other", now: datetime = NOON) -> Reader:
    """A new tenant; returns its owner."""
    [tenant_id] = conn.execute(insert(tenants).values(name=name, created_at=now).returning(tenants.c.id)).one()
    return a_user(conn, tenant_id, f"{name} owner", "owner", now)


def a_user(conn: Connection, tenant_id: int, name: str, role: str = "member", now: datetime = NOON) -> Reader:
    values = {"tenant_id": tenant_id, "name": name, "role": role, "created_at": now}
    [user_id] = conn.execute(insert(users).values(**values).returning(users.c.id)).one()
    return Reader(tenant_id, user_id, name, role)
