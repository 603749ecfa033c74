"""Hubs that feeds name can push sources."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import counters, partial_index, primary_key, refers_to, source_id, unique
from headwater.store.tables.columns import Moment, optional, required

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "hub_subscriptions",
        source_id(),
        *required(hub=sa.Text, topic=sa.Text, callback_id=sa.Text, secret=sa.Text, state=sa.String(12)),
        *optional(active_since=Moment, lease_until=Moment),
        sa.Column("next_try_at", Moment(), nullable=False),
        *counters("failures"),
        sa.Column("trust", sa.Integer(), server_default="1", nullable=False),
        *optional(last_push_at=Moment, last_error=sa.Text),
        refers_to("hub_subscriptions", "source_id", "sources"),
        primary_key("hub_subscriptions", "source_id"),
        unique("hub_subscriptions", "callback_id"),
    )
    op.create_index("ix_hub_subscriptions_next_try_at", "hub_subscriptions", ["next_try_at"], unique=False)
    partial_index("ix_sources_asleep", "sources", ["id"], "NOT active")


def downgrade() -> None:
    op.drop_index("ix_sources_asleep", table_name="sources")
    op.drop_table("hub_subscriptions")
