"""Readings of machines, by the month on PostgreSQL, with what they come to by the hour and by the day."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import primary_key
from headwater.store.tables.columns import BigId, Moment

revision = "0027"
down_revision = "0026"

# They run as the owner of the tables, so they name no table that somebody else could put in the way.
_MONTH = """CREATE FUNCTION headwater_telemetry_month(wanted timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    begins timestamptz := date_trunc('month', wanted);
    name text := 'miner_telemetry_' || to_char(begins, 'YYYY_MM');
BEGIN
    IF to_regclass(name) IS NULL THEN
        PERFORM pg_advisory_xact_lock(hashtext(name));
        EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF miner_telemetry FOR VALUES FROM (%L) TO (%L)',
            name, begins, begins + interval '1 month');
        -- Readings are reached through the table as a whole, whose policies hold then. By itself a month shows nothing.
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    END IF;
END $$"""
_FORGET = """CREATE FUNCTION headwater_forget_telemetry(before timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'miner_telemetry'::regclass
            AND c.relname <= 'miner_telemetry_' || to_char(before - interval '1 month', 'YYYY_MM')
    LOOP
        EXECUTE format('DROP TABLE %I', one.relname);
    END LOOP;
END $$"""


def _figures() -> list[sa.Column[Any]]:
    found: list[sa.Column[Any]] = []
    for name in ("hashrate", "power", "temperature"):
        found.append(sa.Column(f"{name}_count", sa.Integer(), nullable=False))
        found += [sa.Column(f"{name}_{what}", sa.Float()) for what in ("min", "sum", "max")]
    return found


def upgrade() -> None:
    is_postgres = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "miner_telemetry",
        sa.Column("tenant_id", BigId, nullable=False),
        sa.Column("miner_id", BigId, nullable=False),
        sa.Column("at", Moment(), nullable=False),
        sa.Column("hashrate_th", sa.Float(), nullable=False),
        sa.Column("power_w", sa.Float()),
        sa.Column("temperature_c", sa.Float()),
        primary_key("miner_telemetry", "miner_id", "at"),
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (at)",
    )
    for table in ("telemetry_hours", "telemetry_days"):
        op.create_table(
            table,
            sa.Column("tenant_id", BigId, nullable=False),
            sa.Column("miner_id", BigId, nullable=False),
            sa.Column("start", Moment(), nullable=False),
            *_figures(),
            primary_key(table, "miner_id", "start"),
            sqlite_with_rowid=False,
        )
    op.create_table(
        "telemetry_heard",
        sa.Column("tenant_id", BigId, nullable=False),
        sa.Column("miner_id", BigId, nullable=False),
        sa.Column("last_at", Moment(), nullable=False),
        sa.Column("received_at", Moment(), nullable=False),
        sa.Column("state", sa.String(10), server_default="ok", nullable=False),
        sa.Column("since", Moment()),
        sa.Column("doubts", sa.Integer(), server_default="0", nullable=False),
        primary_key("telemetry_heard", "miner_id"),
    )
    op.create_table(
        "telemetry_looks",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("looked_at", Moment(), nullable=False),
        sa.Column("watching_since", Moment(), nullable=False),
        primary_key("telemetry_looks", "id"),
    )
    if is_postgres:
        schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
        for function in (_MONTH, _FORGET):
            op.execute(sa.text(function.format(schema=schema).replace(":", r"\:")))


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION headwater_forget_telemetry(timestamptz)")
        op.execute("DROP FUNCTION headwater_telemetry_month(timestamptz)")
    for table in ("telemetry_looks", "telemetry_heard", "telemetry_days", "telemetry_hours", "miner_telemetry"):
        op.drop_table(table)
