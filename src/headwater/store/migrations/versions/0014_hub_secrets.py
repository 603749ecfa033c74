"""Secrets of hubs are derived from a key that is not in the database. Hubs get new ones at once."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

from headwater.store.tables.columns import Moment

revision = "0014"
down_revision = "0013"

_subscriptions = sa.table("hub_subscriptions", sa.column("next_try_at", Moment()), sa.column("state", sa.Text()))


def upgrade() -> None:
    op.drop_column("hub_subscriptions", "secret")
    due = sa.update(_subscriptions).where(_subscriptions.c.state.in_(["active", "requested"]))
    op.execute(due.values(next_try_at=datetime.now(UTC)))


def downgrade() -> None:
    op.add_column("hub_subscriptions", sa.Column("secret", sa.Text(), server_default="", nullable=False))
