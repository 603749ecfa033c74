"""Trades that were entered wrongly can be cancelled or corrected, with a record."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import of_user, own_id, primary_key, tenant_and_user, unique
from headwater.store.tables.columns import BigId, Moment, optional, required

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    op.create_table(
        "trade_corrections",
        own_id(),
        *tenant_and_user(),
        *required(trade_id=BigId),
        *optional(replaced_by=BigId),
        *required(reason=sa.Text, idempotency_key=sa.Text, created_at=Moment),
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
