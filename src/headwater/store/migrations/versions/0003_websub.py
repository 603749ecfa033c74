"""Sources can be pushed by the hubs that their feeds offer."""

import sqlalchemy as sa
from alembic import op

from headwater.store.tables.columns import BigId, Moment

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "hub_subscriptions",
        sa.Column("source_id", BigId, nullable=False),
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
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_hub_subscriptions_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_hub_subscriptions")),
        sa.UniqueConstraint("callback_id", name=op.f("uq_hub_subscriptions_callback_id")),
    )
    op.create_index("ix_hub_subscriptions_next_try_at", "hub_subscriptions", ["next_try_at"], unique=False)
    op.create_index(
        "ix_sources_asleep",
        "sources",
        ["id"],
        unique=False,
        sqlite_where=sa.text("NOT active"),
        postgresql_where=sa.text("NOT active"),
    )


def downgrade() -> None:
    op.drop_index("ix_sources_asleep", table_name="sources")
    op.drop_table("hub_subscriptions")
