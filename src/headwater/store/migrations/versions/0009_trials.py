"""What a process had begun when it died is counted, so that no event ends one process after the other."""

import sqlalchemy as sa
from alembic import op

from headwater.store.tables.columns import Moment

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "consumer_trials",
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("began_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("consumer", "partition", "event_id", name=op.f("pk_consumer_trials")),
    )


def downgrade() -> None:
    op.drop_table("consumer_trials")
