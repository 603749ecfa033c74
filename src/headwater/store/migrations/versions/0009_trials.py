"""Attempts at events are counted, so that a poison message does not end one process after the other."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import primary_key
from headwater.store.tables.columns import Moment, required

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "consumer_trials",
        *required(consumer=sa.Text, partition=sa.Integer, event_id=sa.Text, tries=sa.Integer, began_at=Moment),
        primary_key("consumer_trials", "consumer", "partition", "event_id"),
    )


def downgrade() -> None:
    op.drop_table("consumer_trials")
