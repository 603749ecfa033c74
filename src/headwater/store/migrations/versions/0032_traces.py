"""A visit has a trace, which its events have as well."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    op.add_column("crawls", sa.Column("trace", sa.String(32)))
    op.create_index("ix_crawls_trace", "crawls", ["trace"])


def downgrade() -> None:
    op.drop_index("ix_crawls_trace", "crawls")
    op.drop_column("crawls", "trace")
