"""Consumers read the outbox from cursors of their own, and posts can be searched."""

import sqlalchemy as sa
from alembic import op

from headwater.store import search
from headwater.store.types import BigId, Moment

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "consumer_cursors",
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("xid", BigId, nullable=False),
        sa.Column("id", BigId, nullable=False),
        sa.Column("moved_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("consumer", name=op.f("pk_consumer_cursors")),
    )
    op.add_column("event_outbox", sa.Column("xid", BigId, server_default="0", nullable=False))
    dialect = op.get_bind().dialect.name
    if dialect == "postgresql":
        op.create_index("ix_event_outbox_log", "event_outbox", ["xid", "id"], unique=False)
        op.alter_column("event_outbox", "xid", server_default=sa.text("(pg_current_xact_id()::text::bigint)"))
    for statement in search.CREATE[dialect]:
        op.execute(statement)


def downgrade() -> None:
    dialect = op.get_bind().dialect.name
    for statement in search.DROP[dialect]:
        op.execute(statement)
    if dialect == "postgresql":
        op.drop_index("ix_event_outbox_log", table_name="event_outbox")
    op.drop_column("event_outbox", "xid")
    op.drop_table("consumer_cursors")
