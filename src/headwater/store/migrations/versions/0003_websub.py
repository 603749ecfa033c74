"""Hubs that feeds name can push sources."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import partial_index, primary_key, refers_to, source_id, unique
from headwater.store.tables.columns import Moment

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "hub_subscriptions",
        source_id(),
        sa.Column("hub", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("callback_id", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("active_since", Moment(), nullable=True),
        sa.Column("lease_until", Moment(), nullable=True),
        sa.Column("next_try_at", Moment(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("trust", sa.Integer(), server_default="1", nullable=False),
        sa.Column("last_push_at", Moment(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        refers_to("hub_subscriptions", "source_id", "sources"),
        primary_key("hub_subscriptions", "source_id"),
        unique("hub_subscriptions", "callback_id"),
    )
    op.create_index("ix_hub_subscriptions_next_try_at", "hub_subscriptions", ["next_try_at"], unique=False)
    partial_index("ix_sources_asleep", "sources", ["id"], "NOT active")


def downgrade() -> None:
    op.drop_index("ix_sources_asleep", table_name="sources")
    op.drop_table("hub_subscriptions")
