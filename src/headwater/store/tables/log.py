"""Events, who has seen them, and what waits for whom."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from headwater.store.tables.columns import BigId, Json, Moment, metadata

event_outbox = Table(
    "event_outbox",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("event_id", String(36), nullable=False),
    Column("domain", Text, nullable=False, server_default=""),
    Column("kind", Text, nullable=False),
    Column("version", Integer, nullable=False, server_default="1"),
    Column("key", Text, nullable=False),
    Column("partition", Integer, nullable=False, server_default="0"),  # PostgreSQL: hash of the key; SQLite has one
    Column("tenant_id", BigId),
    Column("user_id", BigId),
    Column("payload", Json, nullable=False),
    Column("traceparent", Text),
    Column("idempotency_key", Text, nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
    Column("xid", BigId, nullable=False, server_default="0"),  # PostgreSQL: the transaction that wrote it
    sqlite_autoincrement=True,
)
Index("ix_event_outbox_log", event_outbox.c.xid, event_outbox.c.id).ddl_if(dialect="postgresql")
Index("ix_event_outbox_partition", event_outbox.c.partition, event_outbox.c.xid, event_outbox.c.id).ddl_if(
    dialect="postgresql"
)

consumer_trials = Table(
    "consumer_trials",
    metadata,
    Column("consumer", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("event_id", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("began_at", Moment, nullable=False),
    PrimaryKeyConstraint("consumer", "partition", "event_id"),
)
consumer_cursors = Table(
    "consumer_cursors",
    metadata,
    Column("consumer", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("xid", BigId, nullable=False),
    Column("id", BigId, nullable=False),
    Column("moved_at", Moment, nullable=False),
    PrimaryKeyConstraint("consumer", "partition"),
)

# What has had its effect. The ids are sorted by time, so old rows go by a range of the key.
consumer_inbox = Table(
    "consumer_inbox",
    metadata,
    Column("consumer", Text, nullable=False),
    Column("event_id", String(36), nullable=False),
    PrimaryKeyConstraint("consumer", "event_id"),
    sqlite_with_rowid=False,
)

# Events that failed in a consumer, and those of the same key that wait behind them: see store/log/dead_letters.py.
event_dlq = Table(
    "event_dlq",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("consumer", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("state", String(10), nullable=False),
    Column("event_id", String(36), nullable=False),
    Column("kind", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("key", Text, nullable=False),
    Column("tenant_id", BigId),
    Column("user_id", BigId),
    Column("payload", Json, nullable=False),
    Column("traceparent", Text),
    Column("created_at", Moment, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("error", Text),
    Column("first_failed_at", Moment),
    Column("last_failed_at", Moment),
    Column("next_try_at", Moment),
    Column("settled_at", Moment),
    UniqueConstraint("consumer", "event_id"),
    sqlite_autoincrement=True,
)
_open = text("state IN ('retrying', 'waiting', 'dead')")
Index(
    "ix_event_dlq_open",
    event_dlq.c.consumer,
    event_dlq.c.partition,
    event_dlq.c.key,
    event_dlq.c.id,
    sqlite_where=_open,
    postgresql_where=_open,
)
_retrying = text("state = 'retrying'")
Index(
    "ix_event_dlq_retrying",
    event_dlq.c.consumer,
    event_dlq.c.next_try_at,
    sqlite_where=_retrying,
    postgresql_where=_retrying,
)
Index("ix_event_dlq_state", event_dlq.c.state, event_dlq.c.id)

# Receivers of events: see store/people/webhooks.py and deliveries.py. A claim sets next_try_at to the lease's end,
# as for sources; it is NULL while nothing waits.
webhooks = Table(
    "webhooks",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("tenant_id", BigId, nullable=False),
    Column("user_id", BigId, nullable=False),
    Column("address", Text, nullable=False),
    Column("kinds", Json, nullable=False, server_default="[]"),  # empty: every kind
    Column("secret", LargeBinary, nullable=False),  # sealed
    Column("state", String(8), nullable=False, server_default="active"),
    Column("created_at", Moment, nullable=False),
    Column("next_try_at", Moment),
    Column("lease_owner", Text),
    Column("lease_until", Moment),
    # How it went.
    Column("failures", Integer, nullable=False, server_default="0"),  # in a row
    Column("slow", Boolean, nullable=False, server_default=false()),
    Column("failing_since", Moment),
    Column("last_error", Text),
    Column("last_delivered_at", Moment),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.id"], ondelete="CASCADE"),
    sqlite_autoincrement=True,
)
Index("ix_webhooks_user", webhooks.c.user_id, webhooks.c.tenant_id)
_sending = text("state = 'active'")
Index("ix_webhooks_due", webhooks.c.next_try_at, sqlite_where=_sending, postgresql_where=_sending)

webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("webhook_id", BigId, ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    Column("state", String(10), nullable=False, server_default="waiting"),
    # The event, whole: the log may have forgotten it when it is sent.
    Column("xid", BigId, nullable=False),
    Column("log_id", BigId, nullable=False),
    Column("event_id", String(36), nullable=False),
    Column("kind", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("key", Text, nullable=False),
    Column("tenant_id", BigId),
    Column("user_id", BigId),
    Column("traceparent", Text),
    Column("created_at", Moment, nullable=False),
    Column("payload", Json, nullable=False),
    # How it went.
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("first_tried_at", Moment),
    Column("last_tried_at", Moment),
    Column("seconds", Float),
    Column("http_status", Integer),
    Column("error", Text),
    Column("settled_at", Moment),
    UniqueConstraint("webhook_id", "event_id"),
    sqlite_autoincrement=True,
)
_unsent = text("state = 'waiting'")
Index("ix_webhook_deliveries_log", webhook_deliveries.c.webhook_id, webhook_deliveries.c.id)
Index(
    "ix_webhook_deliveries_waiting",
    webhook_deliveries.c.webhook_id,
    webhook_deliveries.c.id,
    sqlite_where=_unsent,
    postgresql_where=_unsent,
)
Index("ix_webhook_deliveries_settled_at", webhook_deliveries.c.settled_at)

# Who may do something that only one may do at a time: see store/log/locks.py.
locks = Table(
    "locks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text),
    Column("token", BigId, nullable=False),
    Column("until", Moment),
)
