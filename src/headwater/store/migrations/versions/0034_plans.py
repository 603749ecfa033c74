"""A tenant has a plan, which says how often its people may ask."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    op.add_column("tenants", sa.Column("plan", sa.Text))


def downgrade() -> None:
    op.drop_column("tenants", "plan")
