"""Events have domains, versions and partitions; consumers have inboxes and dead letters."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import counters, cursors, event_facts, own_id, partial_index, primary_key, unique
from headwater.store.tables.columns import Json, Moment, optional, required

revision = "0004"
down_revision = "0003"

PARTITIONS = 8
XID = """(greatest(pg_current_xact_id()::text::bigint,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1))"""
DOMAIN = {"sqlite": "substr(kind, 1, instr(kind, '.') - 1)", "postgresql": "split_part(kind, '.', 1)"}


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    _widen_outbox(dialect)
    _partition_cursors(dialect)
    op.create_table(
        "consumer_inbox",
        *required(consumer=sa.Text, event_id=sa.String(36)),
        primary_key("consumer_inbox", "consumer", "event_id"),
        sqlite_with_rowid=False,
    )
    _make_dead_letters()


def downgrade() -> None:
    dialect = op.get_bind().dialect.name
    op.drop_table("event_dlq")
    op.drop_table("consumer_inbox")
    _put_cursors_aside(dialect)
    cursors("consumer")
    op.execute(
        """INSERT INTO consumer_cursors (consumer, xid, id, moved_at)
        SELECT consumer, xid, id, moved_at FROM old_cursors c WHERE NOT EXISTS (
            SELECT 1 FROM old_cursors o WHERE o.consumer = c.consumer
            AND (o.xid < c.xid OR (o.xid = c.xid AND o.id < c.id)
                OR (o.xid = c.xid AND o.id = c.id AND o.partition < c.partition)))"""
    )
    op.drop_table("old_cursors")
    if dialect == "postgresql":
        op.drop_index("ix_event_outbox_partition", table_name="event_outbox")
        op.alter_column("event_outbox", "xid", server_default=sa.text("(pg_current_xact_id()::text::bigint)"))
    op.execute("UPDATE event_outbox SET key = substr(key, CASE domain WHEN 'subscription' THEN 6 ELSE 8 END)")
    for column in ("domain", "version", "partition", "traceparent"):
        op.drop_column("event_outbox", column)


def _widen_outbox(dialect: str) -> None:
    op.add_column("event_outbox", sa.Column("domain", sa.Text(), server_default="", nullable=False))
    op.add_column("event_outbox", sa.Column("version", sa.Integer(), server_default="1", nullable=False))
    op.add_column("event_outbox", sa.Column("partition", sa.Integer(), server_default="0", nullable=False))
    op.add_column("event_outbox", sa.Column("traceparent", sa.Text()))
    op.execute(
        f"""UPDATE event_outbox SET domain = {DOMAIN[dialect]},
        key = CASE {DOMAIN[dialect]} WHEN 'subscription' THEN 'user:' ELSE 'source:' END || key"""
    )
    if dialect == "postgresql":
        op.execute(f"UPDATE event_outbox SET partition = hashtext(key) & {PARTITIONS - 1}")
        op.alter_column("event_outbox", "xid", server_default=sa.text(XID))
        op.create_index("ix_event_outbox_partition", "event_outbox", ["partition", "xid", "id"], unique=False)


def _partition_cursors(dialect: str) -> None:
    _put_cursors_aside(dialect)
    cursors("consumer", "partition")
    for partition in range(PARTITIONS if dialect == "postgresql" else 1):
        op.execute(
            f"""INSERT INTO consumer_cursors (consumer, partition, xid, id, moved_at)
            SELECT consumer, {partition}, xid, id, moved_at FROM old_cursors"""
        )
    op.drop_table("old_cursors")


def _put_cursors_aside(dialect: str) -> None:
    op.rename_table("consumer_cursors", "old_cursors")
    if dialect == "postgresql":
        op.execute("ALTER TABLE old_cursors RENAME CONSTRAINT pk_consumer_cursors TO pk_old_cursors")


def _make_dead_letters() -> None:
    op.create_table(
        "event_dlq",
        own_id(),
        *required(consumer=sa.Text, partition=sa.Integer, state=sa.String(10)),
        *event_facts(),
        sa.Column("payload", Json, nullable=False),
        sa.Column("traceparent", sa.Text()),
        sa.Column("created_at", Moment(), nullable=False),
        *counters("attempts"),
        *optional(error=sa.Text, first_failed_at=Moment, last_failed_at=Moment, next_try_at=Moment, settled_at=Moment),
        primary_key("event_dlq", "id"),
        unique("event_dlq", "consumer", "event_id"),
        sqlite_autoincrement=True,
    )
    partial_index(
        "ix_event_dlq_open",
        "event_dlq",
        ["consumer", "partition", "key", "id"],
        "state IN ('retrying', 'waiting', 'dead')",
    )
    partial_index("ix_event_dlq_retrying", "event_dlq", ["consumer", "next_try_at"], "state = 'retrying'")
    op.create_index("ix_event_dlq_state", "event_dlq", ["state", "id"])
