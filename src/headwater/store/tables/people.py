"""Who reads, and what is theirs: whatever carries tenant_id and user_id."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
    true,
)

from headwater.store.tables.columns import BigId, Moment, metadata

tenants = Table(
    "tenants",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("tenant_id", BigId, ForeignKey("tenants.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("role", String(20), nullable=False),
    Column("created_at", Moment, nullable=False),
    UniqueConstraint("tenant_id", "name"),
    UniqueConstraint("tenant_id", "id"),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("tenant_id", BigId, nullable=False),
    Column("user_id", BigId, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("name", Text, nullable=False),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.id"], ondelete="CASCADE"),
)

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("tenant_id", BigId, nullable=False),
    Column("user_id", BigId, nullable=False),
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("title", Text),
    Column("folder", Text),
    Column("fold", Boolean, nullable=False, server_default=true()),  # False: its posts always stand alone
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("tenant_id", "user_id", "source_id"),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.id"], ondelete="CASCADE"),
)
Index("ix_subscriptions_source_id", subscriptions.c.source_id)

fold_settings = Table(
    "fold_settings",
    metadata,
    Column("tenant_id", BigId, nullable=False),
    Column("user_id", BigId, nullable=False),
    Column("level", String(10), nullable=False),  # off, repeats or stories
    Column("threshold", Float, nullable=False),
    PrimaryKeyConstraint("tenant_id", "user_id"),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.id"], ondelete="CASCADE"),
)

post_states = Table(
    "post_states",
    metadata,
    Column("tenant_id", BigId, nullable=False),
    Column("user_id", BigId, nullable=False),
    Column("post_id", BigId, ForeignKey("posts.id", ondelete="CASCADE"), nullable=False),
    Column("read_at", Moment),
    Column("starred_at", Moment),
    PrimaryKeyConstraint("tenant_id", "user_id", "post_id"),
    ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.id"], ondelete="CASCADE"),
)
Index(
    "ix_post_states_starred",
    post_states.c.tenant_id,
    post_states.c.user_id,
    post_states.c.post_id,
    sqlite_where=text("starred_at IS NOT NULL"),
    postgresql_where=text("starred_at IS NOT NULL"),
)

# Secrets that have to be used again, sealed: see store/people/secrets.py.
secrets = Table(
    "secrets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("changed_at", Moment, nullable=False),
)
