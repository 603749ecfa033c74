"""Trades that were entered wrongly can be cancelled or corrected, with a record."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import of_user, own_id, primary_key, tenant_and_user, unique
from headwater.store.tables.columns import BigId, Moment

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    op.create_table(
        "trade_corrections",
        own_id(),
        *tenant_and_user(),
        sa.Column("trade_id", BigId, nullable=False),
        sa.Column("replaced_by", BigId),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "trade_id"],
            ["treasury_trades.tenant_id", "treasury_trades.id"],
            name=op.f("fk_trade_corrections_tenant_id_trade_id"),
            ondelete="CASCADE",
        ),
        of_user("trade_corrections"),
        primary_key("trade_corrections", "id"),
        unique("trade_corrections", "tenant_id", "trade_id"),
        unique("trade_corrections", "tenant_id", "user_id", "idempotency_key"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    op.drop_table("trade_corrections")
