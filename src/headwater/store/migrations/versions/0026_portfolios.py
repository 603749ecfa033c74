"""Portfolios know since when they are stale: those that wait longest are calculated first."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import partial_index
from headwater.store.tables.columns import Moment

revision = "0026"
down_revision = "0025"

_INDEX = "ix_user_portfolios_stale"
_STALE = "calculated < wanted"


def upgrade() -> None:
    op.add_column("user_portfolios", sa.Column("stale_since", Moment()))
    op.drop_index(_INDEX, "user_portfolios")
    partial_index(_INDEX, "user_portfolios", ["stale_since"], _STALE)


def downgrade() -> None:
    op.drop_index(_INDEX, "user_portfolios")
    op.drop_column("user_portfolios", "stale_since")
    partial_index(_INDEX, "user_portfolios", ["tenant_id", "user_id"], _STALE)
