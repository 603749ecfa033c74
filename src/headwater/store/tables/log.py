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
    metadata,
    of_user,
    own_id,
    partial_index,
    tenant_and_user,
)

event_outbox = sa.Table(
    "event_outbox",
    metadata,
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

consumer_trials = sa.Table(
    "consumer_trials",
    metadata,
    sa.Column("consumer", sa.Text, nullable=False),
    sa.Column("partition", sa.Integer, nullable=False),
    sa.Column("event_id", sa.Text, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("began_at", Moment, nullable=False),
    sa.PrimaryKeyConstraint("consumer", "partition", "event_id"),
)
consumer_cursors = sa.Table(
    "consumer_cursors",
    metadata,
    sa.Column("consumer", sa.Text, nullable=False),
    sa.Column("partition", sa.Integer, nullable=False),
    sa.Column("xid", BigId, nullable=False),
    sa.Column("id", BigId, nullable=False),
    sa.Column("moved_at", Moment, nullable=False),
    sa.PrimaryKeyConstraint("consumer", "partition"),
)

# Which events have had their effect, when, and how long it took. The ids are sorted by time, so old rows are a range of
# the key.
consumer_inbox = sa.Table(
    "consumer_inbox",
    metadata,
    sa.Column("consumer", sa.Text, nullable=False),
    sa.Column("event_id", sa.String(36), nullable=False),
    sa.Column("kind", sa.Text),
    sa.Column("user_id", BigId),
    sa.Column("consumed_at", Moment),
    sa.Column("milliseconds", sa.Float),
    sa.PrimaryKeyConstraint("consumer", "event_id"),
    sqlite_with_rowid=False,
)

# Events that failed in a consumer, and those of the same key that wait behind them: see store/log/dead_letters.py.
event_dlq = sa.Table(
    "event_dlq",
    metadata,
    own_id(),
    sa.Column("consumer", sa.Text, nullable=False),
    sa.Column("partition", sa.Integer, nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    *event_columns(),
    counter("attempts"),
    sa.Column("error", sa.Text),
    sa.Column("first_failed_at", Moment),
    sa.Column("last_failed_at", Moment),
    sa.Column("next_try_at", Moment),
    sa.Column("settled_at", Moment),
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
webhooks = sa.Table(
    "webhooks",
    metadata,
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
    sa.Column("failing_since", Moment),
    sa.Column("last_error", sa.Text),
    sa.Column("last_delivered_at", Moment),
    of_user(),
    sqlite_autoincrement=True,
)
sa.Index("ux_webhooks_tenant_id_id", webhooks.c.tenant_id, webhooks.c.id, unique=True)
sa.Index("ix_webhooks_user", webhooks.c.user_id, webhooks.c.tenant_id)
partial_index("ix_webhooks_due", webhooks.c.next_try_at, where="state = 'active'")

webhook_deliveries = sa.Table(
    "webhook_deliveries",
    metadata,
    own_id(),
    sa.Column("webhook_id", BigId, nullable=False),
    sa.Column("state", sa.String(10), nullable=False, server_default="waiting"),
    sa.Column("xid", BigId, nullable=False),
    sa.Column("log_id", BigId, nullable=False),
    *event_columns(of_tenant=True),
    # How it went.
    counter("attempts"),
    sa.Column("first_tried_at", Moment),
    sa.Column("last_tried_at", Moment),
    sa.Column("seconds", sa.Float),
    sa.Column("http_status", sa.Integer),
    sa.Column("error", sa.Text),
    sa.Column("settled_at", Moment),
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
locks = sa.Table(
    "locks",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text),
    sa.Column("token", BigId, nullable=False),
    sa.Column("until", Moment),
)
