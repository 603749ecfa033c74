"""Events go out to webhooks; locks are kept in the store."""

import sqlalchemy as sa
from alembic import op

from headwater.store.tables.columns import BigId, Json, Moment

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

SENDING = sa.text("state = 'active'")
UNSENT = sa.text("state = 'waiting'")


def upgrade() -> None:
    _make_webhooks()
    _make_deliveries()
    op.create_table(
        "locks",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("token", BigId, nullable=False),
        sa.Column("until", Moment()),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_locks")),
    )


def downgrade() -> None:
    for table in ("locks", "webhook_deliveries", "webhooks"):
        op.drop_table(table)


def _make_webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", BigId, nullable=False),
        sa.Column("tenant_id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("kinds", Json, server_default="[]", nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.String(8), server_default="active", nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("next_try_at", Moment()),
        sa.Column("lease_owner", sa.Text()),
        sa.Column("lease_until", Moment()),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("slow", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("failing_since", Moment()),
        sa.Column("last_error", sa.Text()),
        sa.Column("last_delivered_at", Moment()),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.id"],
            name=op.f("fk_webhooks_tenant_id_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_webhooks_user", "webhooks", ["user_id", "tenant_id"])
    op.create_index("ix_webhooks_due", "webhooks", ["next_try_at"], sqlite_where=SENDING, postgresql_where=SENDING)


def _make_deliveries() -> None:
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", BigId, nullable=False),
        sa.Column("webhook_id", BigId, nullable=False),
        sa.Column("state", sa.String(10), server_default="waiting", nullable=False),
        sa.Column("xid", BigId, nullable=False),
        sa.Column("log_id", BigId, nullable=False),
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("tenant_id", BigId),
        sa.Column("user_id", BigId),
        sa.Column("traceparent", sa.Text()),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("payload", Json, nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("first_tried_at", Moment()),
        sa.Column("last_tried_at", Moment()),
        sa.Column("seconds", sa.Float()),
        sa.Column("http_status", sa.Integer()),
        sa.Column("error", sa.Text()),
        sa.Column("settled_at", Moment()),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_webhook_deliveries_webhook_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
        sa.UniqueConstraint("webhook_id", "event_id", name=op.f("uq_webhook_deliveries_webhook_id_event_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_webhook_deliveries_log", "webhook_deliveries", ["webhook_id", "id"])
    op.create_index(
        "ix_webhook_deliveries_waiting",
        "webhook_deliveries",
        ["webhook_id", "id"],
        sqlite_where=UNSENT,
        postgresql_where=UNSENT,
    )
    op.create_index("ix_webhook_deliveries_settled_at", "webhook_deliveries", ["settled_at"])
