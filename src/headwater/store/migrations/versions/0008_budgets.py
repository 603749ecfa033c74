"""Requests have budgets over all processes; visits report gaps; a source has a note about how it is read."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import primary_key
from headwater.store.tables.columns import Moment, optional, required

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "request_budgets",
        *required(name=sa.Text),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        *optional(used_at=Moment),
        *required(free_at=Moment),
        primary_key("request_budgets", "name", "place"),
    )
    op.add_column("crawls", sa.Column("gap", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("sources", sa.Column("gap_at", Moment(), nullable=True))
    op.add_column("sources", sa.Column("note", sa.Text(), server_default="", nullable=False))


def downgrade() -> None:
    op.drop_column("sources", "note")
    op.drop_column("sources", "gap_at")
    op.drop_column("crawls", "gap")
    op.drop_table("request_budgets")
