"""Events, what consumers have done with them, and the queues of webhooks."""

from __future__ import annotations

import sqlalchemy as sa

from headwater.store.tables.columns import (
    BigId,
    Json,
    Moment,
    counter,
    event_columns,
    lease,
    of_user,
    optional,
    own_id,
    partial_index,
    required,
    table,
    tenant_and_user,
)

event_outbox = table(
    "event_outbox",
    own_id(),
    sa.Column("event_id", sa.String(36), nullable=False),
    sa.Column("domain", sa.Text, nullable=False, server_default=""),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False, server_default="1"),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("partition", sa.Integer, nullable=False, server_default="0"),  # 0 on SQLite
    *tenant_and_user(nullable=True),
    sa.Column("payload", Json, nullable=False),
    sa.Column("traceparent", sa.Text),
    sa.Column("idempotency_key", sa.Text, nullable=False, unique=True),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("xid", BigId, nullable=False, server_default="0"),  # PostgreSQL: the transaction that wrote it
    sqlite_autoincrement=True,
)
sa.Index("ix_event_outbox_log", event_outbox.c.xid, event_outbox.c.id).ddl_if(dialect="postgresql")
sa.Index("ix_event_outbox_partition", event_outbox.c.partition, event_outbox.c.xid, event_outbox.c.id).ddl_if(
    dialect="postgresql"
)

consumer_trials = table(
    "consumer_trials",
    *required(consumer=sa.Text, partition=sa.Integer, event_id=sa.Text, tries=sa.Integer, began_at=Moment),
    sa.PrimaryKeyConstraint("consumer", "partition", "event_id"),
)
consumer_cursors = table(
    "consumer_cursors",
    *required(consumer=sa.Text, partition=sa.Integer, xid=BigId, id=BigId, moved_at=Moment),
    sa.PrimaryKeyConstraint("consumer", "partition"),
)

# Which events have had their effect, when, and how long it took. The ids are sorted by time, so old rows are a range of
# the key.
consumer_inbox = table(
    "consumer_inbox",
    *required(consumer=sa.Text, event_id=sa.String(36)),
    *optional(kind=sa.Text, user_id=BigId, consumed_at=Moment, milliseconds=sa.Float),
    sa.PrimaryKeyConstraint("consumer", "event_id"),
    sqlite_with_rowid=False,
)

# Events that failed in a consumer, and those of the same key that wait behind them: see store/log/dead_letters.py.
event_dlq = table(
    "event_dlq",
    own_id(),
    *required(consumer=sa.Text, partition=sa.Integer, state=sa.String(10)),
    *event_columns(),
    counter("attempts"),
    *optional(error=sa.Text, first_failed_at=Moment, last_failed_at=Moment, next_try_at=Moment, settled_at=Moment),
    sa.Column("resolved", sa.Boolean, sa.Computed("state IN ('replayed', 'skipped')")),
    sa.UniqueConstraint("consumer", "event_id"),
    sqlite_autoincrement=True,
)
partial_index(
    "ix_event_dlq_open",
    event_dlq.c.consumer,
    event_dlq.c.partition,
    event_dlq.c.key,
    event_dlq.c.id,
    where="state IN ('retrying', 'waiting', 'dead')",
)
partial_index("ix_event_dlq_retrying", event_dlq.c.consumer, event_dlq.c.next_try_at, where="state = 'retrying'")
sa.Index("ix_event_dlq_state", event_dlq.c.state, event_dlq.c.id)

# Receivers of events: see store/people/webhooks.py and deliveries.py. next_try_at is NULL while nothing waits.
webhooks = table(
    "webhooks",
    own_id(),
    *tenant_and_user(),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("kinds", Json, nullable=False, server_default="[]"),  # empty: every kind
    sa.Column("secret", sa.LargeBinary, nullable=False),  # encrypted
    sa.Column("state", sa.String(8), nullable=False, server_default="active"),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("next_try_at", Moment),
    *lease(),
    # How it went.
    counter("failures"),  # in a row
    sa.Column("slow", sa.Boolean, nullable=False, server_default=sa.false()),
    *optional(failing_since=Moment, last_error=sa.Text, last_delivered_at=Moment),
    of_user(),
    sqlite_autoincrement=True,
)
sa.Index("ux_webhooks_tenant_id_id", webhooks.c.tenant_id, webhooks.c.id, unique=True)
sa.Index("ix_webhooks_user", webhooks.c.user_id, webhooks.c.tenant_id)
partial_index("ix_webhooks_due", webhooks.c.next_try_at, where="state = 'active'")

webhook_deliveries = table(
    "webhook_deliveries",
    own_id(),
    sa.Column("webhook_id", BigId, nullable=False),
    sa.Column("state", sa.String(10), nullable=False, server_default="waiting"),
    *required(xid=BigId, log_id=BigId),
    *event_columns(of_tenant=True),
    # How it went.
    counter("attempts"),
    *optional(first_tried_at=Moment, last_tried_at=Moment, seconds=sa.Float),
    *optional(http_status=sa.Integer, error=sa.Text, settled_at=Moment),
    sa.UniqueConstraint("webhook_id", "event_id"),
    sa.ForeignKeyConstraint(["tenant_id", "webhook_id"], ["webhooks.tenant_id", "webhooks.id"], ondelete="CASCADE"),
    sqlite_autoincrement=True,
)
sa.Index("ix_webhook_deliveries_log", webhook_deliveries.c.webhook_id, webhook_deliveries.c.id)
partial_index(
    "ix_webhook_deliveries_waiting", webhook_deliveries.c.webhook_id, webhook_deliveries.c.id, where="state = 'waiting'"
)
sa.Index("ix_webhook_deliveries_settled_at", webhook_deliveries.c.settled_at)

# Locks that only one process holds at a time: see store/log/locks.py.
locks = table(
    "locks",
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text),
    sa.Column("token", BigId, nullable=False),
    sa.Column("until", Moment),
)
