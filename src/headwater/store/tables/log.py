"""Events, what consumers have done with them, and the queues of webhooks."""

from __future__ import annotations

import sqlalchemy as sa

from headwater.store.tables import columns as col

event_outbox = col.table(
    "event_outbox",
    col.own_id(),
    sa.Column("event_id", sa.String(36), nullable=False),
    sa.Column("domain", sa.Text, nullable=False, server_default=""),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False, server_default="1"),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("partition", sa.Integer, nullable=False, server_default="0"),  # 0 on SQLite
    *col.tenant_and_user(nullable=True),
    sa.Column("payload", col.Json, nullable=False),
    sa.Column("traceparent", sa.Text),
    sa.Column("idempotency_key", sa.Text, nullable=False, unique=True),
    sa.Column("created_at", col.Moment, nullable=False),
    sa.Column("xid", col.BigId, nullable=False, server_default="0"),  # PostgreSQL: the transaction that wrote it
    sqlite_autoincrement=True,
)
sa.Index("ix_event_outbox_log", event_outbox.c.xid, event_outbox.c.id).ddl_if(dialect="postgresql")
sa.Index("ix_event_outbox_partition", event_outbox.c.partition, event_outbox.c.xid, event_outbox.c.id).ddl_if(
    dialect="postgresql"
)

consumer_trials = col.table(
    "consumer_trials",
    *col.required(consumer=sa.Text, partition=sa.Integer, event_id=sa.Text, tries=sa.Integer, began_at=col.Moment),
    sa.PrimaryKeyConstraint("consumer", "partition", "event_id"),
)
consumer_cursors = col.table(
    "consumer_cursors",
    *col.required(consumer=sa.Text, partition=sa.Integer, xid=col.BigId, id=col.BigId, moved_at=col.Moment),
    sa.PrimaryKeyConstraint("consumer", "partition"),
)

# Which events have had their effect, when, and how long it took. The ids are sorted by time, so old rows are a range of
# the key.
consumer_inbox = col.table(
    "consumer_inbox",
    *col.required(consumer=sa.Text, event_id=sa.String(36)),
    *col.optional(kind=sa.Text, user_id=col.BigId, consumed_at=col.Moment, milliseconds=sa.Float),
    sa.PrimaryKeyConstraint("consumer", "event_id"),
    sqlite_with_rowid=False,
)

# Events that failed in a consumer, and those of the same key that wait behind them: see store/log/dead_letters.py.
event_dlq = col.table(
    "event_dlq",
    col.own_id(),
    *col.required(consumer=sa.Text, partition=sa.Integer, state=sa.String(10)),
    *col.event_columns(),
    col.counter("attempts"),
    *col.optional(
        error=sa.Text,
        first_failed_at=col.Moment,
        last_failed_at=col.Moment,
        next_try_at=col.Moment,
        settled_at=col.Moment,
    ),
    sa.Column("resolved", sa.Boolean, sa.Computed("state IN ('replayed', 'skipped')")),
    sa.UniqueConstraint("consumer", "event_id"),
    sqlite_autoincrement=True,
)
col.partial_index(
    "ix_event_dlq_open",
    event_dlq.c.consumer,
    event_dlq.c.partition,
    event_dlq.c.key,
    event_dlq.c.id,
    where="state IN ('retrying', 'waiting', 'dead')",
)
col.partial_index("ix_event_dlq_retrying", event_dlq.c.consumer, event_dlq.c.next_try_at, where="state = 'retrying'")
sa.Index("ix_event_dlq_state", event_dlq.c.state, event_dlq.c.id)

# Receivers of events: see store/people/webhooks.py and deliveries.py. next_try_at is NULL while nothing waits.
webhooks = col.table(
    "webhooks",
    col.own_id(),
    *col.tenant_and_user(),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("kinds", col.Json, nullable=False, server_default="[]"),  # empty: every kind
    sa.Column("secret", sa.LargeBinary, nullable=False),  # encrypted
    sa.Column("state", sa.String(8), nullable=False, server_default="active"),
    sa.Column("created_at", col.Moment, nullable=False),
    sa.Column("next_try_at", col.Moment),
    *col.lease(),
    # How it went.
    col.counter("failures"),  # in a row
    sa.Column("slow", sa.Boolean, nullable=False, server_default=sa.false()),
    *col.optional(failing_since=col.Moment, last_error=sa.Text, last_delivered_at=col.Moment),
    col.of_user(),
    sqlite_autoincrement=True,
)
sa.Index("ux_webhooks_tenant_id_id", webhooks.c.tenant_id, webhooks.c.id, unique=True)
sa.Index("ix_webhooks_user", webhooks.c.user_id, webhooks.c.tenant_id)
col.partial_index("ix_webhooks_due", webhooks.c.next_try_at, where="state = 'active'")

webhook_deliveries = col.table(
    "webhook_deliveries",
    col.own_id(),
    sa.Column("webhook_id", col.BigId, nullable=False),
    sa.Column("state", sa.String(10), nullable=False, server_default="waiting"),
    *col.required(xid=col.BigId, log_id=col.BigId),
    *col.event_columns(of_tenant=True),
    # How it went.
    col.counter("attempts"),
    *col.optional(first_tried_at=col.Moment, last_tried_at=col.Moment, seconds=sa.Float),
    *col.optional(http_status=sa.Integer, error=sa.Text, settled_at=col.Moment),
    sa.UniqueConstraint("webhook_id", "event_id"),
    sa.ForeignKeyConstraint(["tenant_id", "webhook_id"], ["webhooks.tenant_id", "webhooks.id"], ondelete="CASCADE"),
    sqlite_autoincrement=True,
)
sa.Index("ix_webhook_deliveries_log", webhook_deliveries.c.webhook_id, webhook_deliveries.c.id)
col.partial_index(
    "ix_webhook_deliveries_waiting", webhook_deliveries.c.webhook_id, webhook_deliveries.c.id, where="state = 'waiting'"
)
sa.Index("ix_webhook_deliveries_settled_at", webhook_deliveries.c.settled_at)

# Locks that only one process holds at a time: see store/log/locks.py.
locks = col.table(
    "locks",
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text),
    sa.Column("token", col.BigId, nullable=False),
    sa.Column("until", col.Moment),
)
