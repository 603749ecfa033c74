"""Row level security on PostgreSQL, and deliveries of webhooks that belong to the tenant of their webhook.

The function says whose rows a transaction may touch. The policies that use it are made after every upgrade, for each
table that has a tenant (`store/row_security.py`).
"""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import counters, own_id, partial_index, primary_key, refers_to, unique
from headwater.store.tables.columns import BigId, Json, Moment, optional, required

revision = "0020"
down_revision = "0019"

_DELIVERIES = "webhook_deliveries"
_FUNCTION = """CREATE FUNCTION headwater_tenant() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT nullif(pg_catalog.current_setting('headwater.tenant', true), '')::bigint $$"""
_UNGUARD = """DO $$ DECLARE one record; BEGIN
    FOR one IN SELECT c.oid::regclass AS name FROM pg_class c
        WHERE c.relrowsecurity AND c.relnamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('DROP POLICY IF EXISTS tenant ON %s', one.name);
        EXECUTE format('DROP POLICY IF EXISTS system ON %s', one.name);
        EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY', one.name);
    END LOOP;
END $$"""


def upgrade() -> None:
    op.create_index("ux_webhooks_tenant_id_id", "webhooks", ["tenant_id", "id"], unique=True)
    tenant = "(SELECT w.tenant_id FROM webhooks w WHERE w.id = webhook_id)"
    if _is_sqlite():
        _rebuild(tenant, of_tenant=True)
        return
    op.execute(f"UPDATE {_DELIVERIES} SET tenant_id = {tenant}")
    op.alter_column(_DELIVERIES, "tenant_id", nullable=False)
    op.drop_constraint("fk_webhook_deliveries_webhook_id", _DELIVERIES)
    op.create_foreign_key(
        "fk_webhook_deliveries_tenant_id_webhook_id",
        _DELIVERIES,
        "webhooks",
        ["tenant_id", "webhook_id"],
        ["tenant_id", "id"],
        ondelete="CASCADE",
    )
    op.execute(_FUNCTION)


def downgrade() -> None:
    # Events that are shared had no tenant.
    tenant = "CASE WHEN user_id IS NOT NULL THEN tenant_id END"
    if _is_sqlite():
        _rebuild(tenant, of_tenant=False)
    else:
        op.execute(_UNGUARD)
        op.execute("DROP FUNCTION headwater_tenant()")
        op.drop_constraint("fk_webhook_deliveries_tenant_id_webhook_id", _DELIVERIES)
        op.create_foreign_key(
            "fk_webhook_deliveries_webhook_id", _DELIVERIES, "webhooks", ["webhook_id"], ["id"], ondelete="CASCADE"
        )
        op.alter_column(_DELIVERIES, "tenant_id", nullable=True)
        op.execute(f"UPDATE {_DELIVERIES} SET tenant_id = {tenant}")
    op.drop_index("ux_webhooks_tenant_id_id", "webhooks")


def _rebuild(tenant: str, *, of_tenant: bool) -> None:
    """Makes the table again: SQLite cannot change a constraint."""
    op.rename_table(_DELIVERIES, "old_deliveries")
    columns = [
        own_id(),
        sa.Column("webhook_id", BigId, nullable=False),
        sa.Column("state", sa.String(10), server_default="waiting", nullable=False),
        *required(xid=BigId, log_id=BigId, event_id=sa.String(36), kind=sa.Text, version=sa.Integer, key=sa.Text),
        sa.Column("tenant_id", BigId, nullable=not of_tenant),
        sa.Column("user_id", BigId),
        sa.Column("payload", Json, nullable=False),
        sa.Column("traceparent", sa.Text()),
        sa.Column("created_at", Moment(), nullable=False),
        *counters("attempts"),
        *optional(first_tried_at=Moment, last_tried_at=Moment, seconds=sa.Float),
        *optional(http_status=sa.Integer, error=sa.Text, settled_at=Moment),
    ]
    of_webhook = (
        sa.ForeignKeyConstraint(
            ["tenant_id", "webhook_id"],
            ["webhooks.tenant_id", "webhooks.id"],
            name=op.f("fk_webhook_deliveries_tenant_id_webhook_id"),
            ondelete="CASCADE",
        )
        if of_tenant
        else refers_to(_DELIVERIES, "webhook_id", "webhooks")
    )
    names = [column.name for column in columns]
    op.create_table(
        _DELIVERIES,
        *columns,
        of_webhook,
        primary_key(_DELIVERIES, "id"),
        unique(_DELIVERIES, "webhook_id", "event_id"),
        sqlite_autoincrement=True,
    )
    values = ", ".join(tenant if name == "tenant_id" else name for name in names)
    op.execute(f"INSERT INTO {_DELIVERIES} ({', '.join(names)}) SELECT {values} FROM old_deliveries")
    op.drop_table("old_deliveries")
    op.create_index("ix_webhook_deliveries_log", _DELIVERIES, ["webhook_id", "id"])
    partial_index("ix_webhook_deliveries_waiting", _DELIVERIES, ["webhook_id", "id"], "state = 'waiting'")
    op.create_index("ix_webhook_deliveries_settled_at", _DELIVERIES, ["settled_at"])


def _is_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"
