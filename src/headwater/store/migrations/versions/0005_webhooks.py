"""Events are sent to webhooks; locks are in the store."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import (
    counters,
    event_facts,
    of_user,
    own_id,
    partial_index,
    primary_key,
    refers_to,
    tenant_and_user,
    unique,
)
from headwater.store.tables.columns import BigId, Json, Moment, optional, required

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    _make_webhooks()
    _make_deliveries()
    op.create_table(
        "locks",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("token", BigId, nullable=False),
        sa.Column("until", Moment()),
        primary_key("locks", "name"),
    )


def downgrade() -> None:
    for table in ("locks", "webhook_deliveries", "webhooks"):
        op.drop_table(table)


def _make_webhooks() -> None:
    op.create_table(
        "webhooks",
        own_id(),
        *tenant_and_user(),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("kinds", Json, server_default="[]", nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.String(8), server_default="active", nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        *optional(next_try_at=Moment, lease_owner=sa.Text, lease_until=Moment),
        *counters("failures"),
        sa.Column("slow", sa.Boolean(), server_default=sa.false(), nullable=False),
        *optional(failing_since=Moment, last_error=sa.Text, last_delivered_at=Moment),
        of_user("webhooks"),
        primary_key("webhooks", "id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_webhooks_user", "webhooks", ["user_id", "tenant_id"])
    partial_index("ix_webhooks_due", "webhooks", ["next_try_at"], "state = 'active'")


def _make_deliveries() -> None:
    op.create_table(
        "webhook_deliveries",
        own_id(),
        sa.Column("webhook_id", BigId, nullable=False),
        sa.Column("state", sa.String(10), server_default="waiting", nullable=False),
        *required(xid=BigId, log_id=BigId),
        *event_facts(),
        sa.Column("traceparent", sa.Text()),
        *required(created_at=Moment, payload=Json),
        *counters("attempts"),
        *optional(first_tried_at=Moment, last_tried_at=Moment, seconds=sa.Float),
        *optional(http_status=sa.Integer, error=sa.Text, settled_at=Moment),
        refers_to("webhook_deliveries", "webhook_id", "webhooks"),
        primary_key("webhook_deliveries", "id"),
        unique("webhook_deliveries", "webhook_id", "event_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_webhook_deliveries_log", "webhook_deliveries", ["webhook_id", "id"])
    partial_index("ix_webhook_deliveries_waiting", "webhook_deliveries", ["webhook_id", "id"], "state = 'waiting'")
    op.create_index("ix_webhook_deliveries_settled_at", "webhook_deliveries", ["settled_at"])
