"""Requests that are paid by the month are counted; secrets that a person gave are stored encrypted."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import counters, primary_key
from headwater.store.tables.columns import Moment, required

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "meters",
        *required(name=sa.Text, month=sa.String(7)),
        *counters("requests", "posts"),
        primary_key("meters", "name", "month"),
    )
    op.create_table(
        "secrets",
        *required(name=sa.Text, sealed=sa.LargeBinary, changed_at=Moment),
        primary_key("secrets", "name"),
    )

    op.create_index("ix_sources_kind", "sources", ["kind"])


def downgrade() -> None:
    op.drop_index("ix_sources_kind", table_name="sources")
    op.drop_table("secrets")
    op.drop_table("meters")
