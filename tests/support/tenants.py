"""A second tenant beside the owner's, for tests that show that neither sees or changes what is the other's."""

from __future__ import annotations

from sqlalchemy import Connection, insert

from headwater.model import Reader
from headwater.store.tables import tenants, users
from support.posts import NOON


def another_tenant(conn: Connection, name: str = "other", role: str = "owner") -> Reader:
    tenant_id = conn.execute(insert(tenants).values(name=name, created_at=NOON).returning(tenants.c.id)).scalar_one()
    values = {"tenant_id": tenant_id, "name": name, "role": role, "created_at": NOON}
    user_id = conn.execute(insert(users).values(values).returning(users.c.id)).scalar_one()
    return Reader(tenant_id, user_id, name, role)
