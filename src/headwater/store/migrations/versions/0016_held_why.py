"""A host that is held back says why: it asked for a pause, or our own request budget is spent."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("hosts", sa.Column("held_why", sa.Text()))


def downgrade() -> None:
    op.drop_column("hosts", "held_why")
