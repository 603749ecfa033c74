"""The audit log. On PostgreSQL the application may only add to it, so a function deletes what is old."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import own_id, primary_key
from headwater.store.tables.columns import BigId, Moment, optional, required

revision = "0029"
down_revision = "0028"

# It runs as the owner of the table, whoever calls it. So it never deletes what is younger than 30 days, and does not
# look for the table where the caller could put one.
_FORGET = """CREATE FUNCTION headwater_forget_audit(moment timestamptz) RETURNS bigint LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    DECLARE forgotten bigint;
    BEGIN
        DELETE FROM audit_log WHERE at < least(moment, pg_catalog.now() - interval '30 days');
        GET DIAGNOSTICS forgotten = ROW_COUNT;
        RETURN forgotten;
    END $$"""


def upgrade() -> None:
    op.create_table(
        "audit_log",
        own_id(),
        *required(tenant_id=BigId),
        *optional(user_id=BigId, user_name=sa.Text),
        *required(at=Moment, action=sa.Text, resource=sa.Text),
        *optional(resource_id=sa.Text, detail=sa.Text, address=sa.Text, agent=sa.Text),
        *required(request_id=sa.String(36)),
        primary_key("audit_log", "id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_log_tenant_id", "audit_log", ["tenant_id", "id"])
    op.create_index("ix_audit_log_at", "audit_log", ["at"])
    bind = op.get_bind()
    if bind.dialect.name == "postgresql":
        schema = bind.execute(sa.text("SELECT quote_ident(current_schema())")).scalar_one()
        op.execute(_FORGET.format(schema=schema))
        op.execute("REVOKE ALL ON FUNCTION headwater_forget_audit(timestamptz) FROM PUBLIC")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION headwater_forget_audit(timestamptz)")
    op.drop_table("audit_log")
