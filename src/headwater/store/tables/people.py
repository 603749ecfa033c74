"""People, and what is theirs: every table that has tenant_id and user_id."""

from __future__ import annotations

import sqlalchemy as sa

from headwater.store.tables.columns import Moment, metadata, of_user, own_id, partial_index, refers_to, tenant_and_user

tenants = sa.Table(
    "tenants",
    metadata,
    own_id(),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("created_at", Moment, nullable=False),
)

users = sa.Table(
    "users",
    metadata,
    own_id(),
    refers_to("tenants"),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.UniqueConstraint("tenant_id", "name"),
    sa.UniqueConstraint("tenant_id", "id"),
)

api_tokens = sa.Table(
    "api_tokens",
    metadata,
    own_id(),
    *tenant_and_user(),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("token_hash", sa.LargeBinary, nullable=False, unique=True),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("expires_at", Moment),
    of_user(),
)

subscriptions = sa.Table(
    "subscriptions",
    metadata,
    *tenant_and_user(),
    refers_to("sources"),
    sa.Column("title", sa.Text),
    sa.Column("folder", sa.Text),
    sa.Column("fold", sa.Boolean, nullable=False, server_default=sa.true()),  # False: its posts are never folded
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("interval_seconds", sa.Integer),  # how often the reader wants it to be visited; None: no wish
    sa.PrimaryKeyConstraint("tenant_id", "user_id", "source_id"),
    of_user(),
)
sa.Index("ix_subscriptions_source_id", subscriptions.c.source_id)

fold_settings = sa.Table(
    "fold_settings",
    metadata,
    *tenant_and_user(),
    sa.Column("level", sa.String(10), nullable=False),  # off, repeats or stories
    sa.Column("threshold", sa.Float, nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "user_id"),
    of_user(),
)

post_states = sa.Table(
    "post_states",
    metadata,
    *tenant_and_user(),
    refers_to("posts"),
    sa.Column("read_at", Moment),
    sa.Column("starred_at", Moment),
    sa.PrimaryKeyConstraint("tenant_id", "user_id", "post_id"),
    of_user(),
)
partial_index(
    "ix_post_states_starred",
    post_states.c.tenant_id,
    post_states.c.user_id,
    post_states.c.post_id,
    where="starred_at IS NOT NULL",
)

# Secrets that have to be used again, encrypted: see store/people/accounts.py.
secrets = sa.Table(
    "secrets",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("changed_at", Moment, nullable=False),
)
