"""Whose rows a transaction may touch on PostgreSQL, and the role that this binds.

Every table with `tenant_id` has two policies: `tenant` shows the rows of the tenant that the transaction was begun for,
and `system` shows all rows to the work of the instance itself, such as consumers and sign-in. Which of the two holds is
set for one transaction (`begin`), so a connection carries nothing over to the next one. Where nothing is set there are
no rows. The migrations make the policies; `grant` and `problems` are about the role that the application connects as.
SQLite has no such thing: there the conditions of the queries are the only wall, and the same tests hold for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy import Connection, text

from headwater.model import Reader
from headwater.store.sql import Prepared

POLICIES = {
    "tenant": "{column} = (SELECT headwater_tenant())",  # a sub-select is evaluated once, not for every row
    # The comparison is inside. Outside, the planner takes it for a rare match, and reads all rows to find a few.
    "system": "(SELECT current_setting('headwater.scope', true) = 'system')",
}
_SYSTEM = "system"
_INFO = "headwater_tenant"  # in the info of a connection: the tenant of its transaction, or None
APPEND_ONLY = ("audit_log",)  # what the application may add to and read, and never change
_FORGET = "headwater_forget_audit(timestamptz)"  # deletes what is old in it

_set = Prepared(postgresql="SELECT set_config('headwater.tenant', ?, true), set_config('headwater.scope', ?, true)")


class Role(NamedTuple):
    """The role that a connection acts as."""

    name: str
    bypasses: bool
    owns: list[str]  # tables whose rows belong to tenants


class Guarded(NamedTuple):
    """A table whose rows belong to tenants, and what guards it."""

    name: str
    enabled: bool
    forced: bool
    policies: list[str]
    grants: list[str]  # what the role may do


_TENANTS = "tenants"  # the one table that is a tenant's without a column tenant_id
_HAS_TENANT = f"""c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND c.relnamespace = current_schema()::regnamespace AND (
        c.relname = '{_TENANTS}' OR EXISTS (SELECT 1 FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped))"""
_role = Prepared(
    postgresql=f"""SELECT r.rolname::text, r.rolsuper OR r.rolbypassrls, ARRAY(
        SELECT c.relname::text FROM pg_class c WHERE {_HAS_TENANT}
            AND pg_has_role(r.oid, c.relowner, 'MEMBER') ORDER BY 1)
    FROM pg_roles r WHERE r.rolname = current_user""",
    row=Role,
)
_guarded = Prepared(
    postgresql=f"""SELECT c.relname::text, c.relrowsecurity, c.relforcerowsecurity,
        ARRAY(SELECT p.polname::text FROM pg_policy p WHERE p.polrelid = c.oid ORDER BY 1),
        ARRAY(SELECT g FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) g WHERE has_table_privilege(c.oid, g))
    FROM pg_class c WHERE {_HAS_TENANT} ORDER BY 1""",
    row=Guarded,
)


def begin(conn: Connection, given: Iterable[object]) -> None:
    """Sets whose rows the transaction may touch: of the tenant of the reader among its arguments, or everybody's."""
    if conn.dialect.name == "postgresql":
        _enter(conn, next((one.tenant_id for one in given if isinstance(one, Reader)), None))


@contextmanager
def of_everybody(conn: Connection) -> Iterator[None]:
    """Lets the rows of all tenants count within the block: what is shared depends on all who share it."""
    tenant_id: int | None = conn.info.get(_INFO)
    if tenant_id is None:
        yield
        return
    _enter(conn, None)
    yield  # after an error the transaction is over, and with it what was set
    _enter(conn, tenant_id)


def _enter(conn: Connection, tenant_id: int | None) -> None:
    conn.info[_INFO] = tenant_id
    _set.all(conn, "" if tenant_id is None else str(tenant_id), _SYSTEM if tenant_id is None else "")


def guarded(conn: Connection) -> list[Guarded]:
    """Returns every table whose rows belong to tenants."""
    return _guarded.all(conn)


def guard(conn: Connection) -> None:
    """Makes the policies of tables that have none yet. Called after every upgrade: no migration can forget a table."""
    if conn.dialect.name != "postgresql" or not _exists(conn, "regprocedure", "headwater_tenant()"):
        return
    for table in guarded(conn):
        name, column = _quoted(conn, table.name), "id" if table.name == _TENANTS else "tenant_id"
        if not (table.enabled and table.forced):
            conn.execute(text(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"))
        for policy, condition in POLICIES.items():
            if policy not in table.policies:
                may = condition.format(column=column)
                conn.execute(text(f"CREATE POLICY {policy} ON {name} USING ({may}) WITH CHECK ({may})"))


def grant(conn: Connection, role: str) -> None:
    """Lets a role read and write the tables, but not change them, nor what is append-only."""
    name, schema = _quoted(conn, role), _quoted(conn, str(conn.execute(text("SELECT current_schema()")).scalar_one()))
    for statement in (
        f"GRANT USAGE ON SCHEMA {schema} TO {name}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {name}",
        f"GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {name}",
        *(
            f"REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM {name}"
            for table in APPEND_ONLY
            if _exists(conn, "regclass", table)
        ),
        *([f"GRANT EXECUTE ON FUNCTION {_FORGET} TO {name}"] if _exists(conn, "regprocedure", _FORGET) else []),
    ):
        conn.execute(text(statement))


def make_role(conn: Connection, role: str, password: str | None) -> bool:
    """Creates a role that may log in and nothing else. Returns False if there is one of this name."""
    if conn.execute(text("SELECT 1 FROM pg_roles WHERE rolname = :role"), {"role": role}).first():
        return False
    given = f" PASSWORD {_literal(conn, password)}" if password else ""
    limits = "NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
    conn.execute(text(f"CREATE ROLE {_quoted(conn, role)} LOGIN {limits}{given}".replace(":", r"\:")))
    return True


def problems(conn: Connection) -> list[str]:
    """Returns what keeps row level security from holding for the role of this connection, in words."""
    if conn.dialect.name != "postgresql":
        return []
    [role] = _role.all(conn)
    found = []
    if role.bypasses:
        found.append(f"the role {role.name} is a superuser or bypasses row level security")
    elif role.owns:
        found.append(f"the role {role.name} owns the tables and could switch the policies off")
    for table in guarded(conn):
        if not (table.enabled and table.forced and table.policies == ["system", "tenant"]):
            found.append(f"the table {table.name} has no row level security")
        wanted = {"SELECT", "INSERT"} if table.name in APPEND_ONLY else {"SELECT", "INSERT", "UPDATE", "DELETE"}
        if missing := wanted - set(table.grants):
            found.append(f"the role may not {', '.join(sorted(missing))} {table.name}")
        if table.name in APPEND_ONLY and not role.bypasses and not role.owns and set(table.grants) - wanted:
            found.append(f"the role may change {table.name}, which is meant to be append-only")
    return found


def _exists(conn: Connection, kind: str, name: str) -> bool:
    return bool(conn.execute(text(f"SELECT to_{kind}(:name) IS NOT NULL"), {"name": name}).scalar_one())


def _quoted(conn: Connection, name: str) -> str:
    return conn.dialect.identifier_preparer.quote_identifier(name)


def _literal(conn: Connection, value: str) -> str:
    return str(conn.execute(text("SELECT quote_literal(:value)"), {"value": value}).scalar_one())
