"""People choose the language of their pages."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    op.add_column("users", sa.Column("language", sa.String(10)))


def downgrade() -> None:
    op.drop_column("users", "language")
