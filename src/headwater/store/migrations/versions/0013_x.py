"""Requests that are paid by the month are counted; secrets that a person gave are stored encrypted."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import primary_key
from headwater.store.tables.columns import Moment

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "meters",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("month", sa.String(7), nullable=False),
        sa.Column("requests", sa.Integer(), server_default="0", nullable=False),
        sa.Column("posts", sa.Integer(), server_default="0", nullable=False),
        primary_key("meters", "name", "month"),
    )
    op.create_table(
        "secrets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("changed_at", Moment(), nullable=False),
        primary_key("secrets", "name"),
    )

    op.create_index("ix_sources_kind", "sources", ["kind"])


def downgrade() -> None:
    op.drop_index("ix_sources_kind", table_name="sources")
    op.drop_table("secrets")
    op.drop_table("meters")
