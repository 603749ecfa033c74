"""Sources, posts with their versions, visits, the outbox, and who follows what."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import (
    of_user,
    own_id,
    partial_index,
    primary_key,
    refers_to,
    source_id,
    tenant_and_user,
    unique,
)
from headwater.store.tables.columns import BigId, Json, Moment

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "event_outbox",
        own_id(),
        sa.Column("event_id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("tenant_id", BigId, nullable=True),
        sa.Column("user_id", BigId, nullable=True),
        sa.Column("payload", Json, nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        primary_key("event_outbox", "id"),
        unique("event_outbox", "idempotency_key"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "hosts",
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("next_at", Moment(), nullable=False),
        sa.Column("held_until", Moment(), nullable=True),
        primary_key("hosts", "host"),
    )
    op.create_table(
        "sources",
        own_id(),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("site_url", sa.Text(), nullable=True),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("settings", Json, server_default="{}", nullable=False),
        sa.Column("credential", sa.LargeBinary(), nullable=True),
        sa.Column("active", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("body_hash", sa.LargeBinary(), nullable=True),
        sa.Column("validated_at", Moment(), nullable=True),
        sa.Column("last_crawled_at", Moment(), nullable=True),
        sa.Column("last_seen_post_id", sa.Text(), nullable=True),
        sa.Column("last_seen_created_at", Moment(), nullable=True),
        sa.Column("interval_seconds", sa.Integer(), nullable=True),
        sa.Column("next_check_at", Moment(), nullable=False),
        sa.Column("turn_at", Moment(), nullable=True),
        sa.Column("waits_for", sa.Text(), nullable=True),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_until", Moment(), nullable=True),
        sa.Column("status", sa.String(length=20), server_default="new", nullable=False),
        sa.Column("success_hit", sa.Integer(), server_default="0", nullable=False),
        sa.Column("empty_hit", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failure_hit", sa.Integer(), server_default="0", nullable=False),
        sa.Column("consecutive_failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failing_since", Moment(), nullable=True),
        sa.Column("last_error_code", sa.Text(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("truncated", sa.Boolean(), server_default=sa.false(), nullable=False),
        primary_key("sources", "id"),
        unique("sources", "address"),
        sqlite_autoincrement=True,
    )
    partial_index("ix_sources_due", "sources", ["next_check_at"], "active")
    op.create_index("ix_sources_host", "sources", ["host"], unique=False)
    op.create_table(
        "tenants",
        own_id(),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        primary_key("tenants", "id"),
        unique("tenants", "name"),
    )
    op.create_table(
        "crawls",
        own_id(),
        source_id(),
        sa.Column("started_at", Moment(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("outcome", sa.String(length=12), nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("bytes", sa.Integer(), server_default="0", nullable=False),
        sa.Column("new", sa.Integer(), server_default="0", nullable=False),
        sa.Column("updated", sa.Integer(), server_default="0", nullable=False),
        sa.Column("duplicates", sa.Integer(), server_default="0", nullable=False),
        sa.Column("watermark_updated", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("truncated", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        refers_to("crawls", "source_id", "sources"),
        primary_key("crawls", "id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_crawls_source", "crawls", ["source_id", "id"], unique=False)
    op.create_table(
        "posts",
        own_id(),
        source_id(),
        sa.Column("source_post_id", sa.Text(), nullable=False),
        sa.Column("text_norm_hash", sa.LargeBinary(), nullable=False),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("url_key", BigId, nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("dated", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("fetched_at", Moment(), nullable=False),
        sa.Column("valid_from", Moment(), nullable=False),
        sa.Column("score", sa.Integer(), nullable=True),
        sa.Column("num_comments", sa.Integer(), nullable=True),
        sa.Column("lang", sa.Text(), nullable=True),
        sa.Column("reference_kind", sa.Text(), nullable=True),
        sa.Column("reference_id", sa.Text(), nullable=True),
        sa.Column("extra", Json, server_default="{}", nullable=False),
        refers_to("posts", "source_id", "sources"),
        primary_key("posts", "id"),
        unique("posts", "source_id", "source_post_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_posts_source_stream", "posts", ["source_id", "created_at", "id"], unique=False)
    op.create_index("ix_posts_stream", "posts", ["created_at", "id"], unique=False)
    op.create_index("ix_posts_url_key", "posts", ["source_id", "url_key"], unique=False)
    op.create_table(
        "source_aliases",
        sa.Column("address", sa.Text(), nullable=False),
        source_id(),
        refers_to("source_aliases", "source_id", "sources"),
        primary_key("source_aliases", "address"),
    )
    op.create_index("ix_source_aliases_source_id", "source_aliases", ["source_id"], unique=False)
    op.create_table(
        "users",
        own_id(),
        sa.Column("tenant_id", BigId, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        refers_to("users", "tenant_id", "tenants"),
        primary_key("users", "id"),
        unique("users", "tenant_id", "id"),
        unique("users", "tenant_id", "name"),
    )
    op.create_table(
        "api_tokens",
        own_id(),
        *tenant_and_user(),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("expires_at", Moment(), nullable=True),
        of_user("api_tokens"),
        primary_key("api_tokens", "id"),
        unique("api_tokens", "token_hash"),
    )
    op.create_table(
        "post_states",
        *tenant_and_user(),
        sa.Column("post_id", BigId, nullable=False),
        sa.Column("read_at", Moment(), nullable=True),
        sa.Column("starred_at", Moment(), nullable=True),
        refers_to("post_states", "post_id", "posts"),
        of_user("post_states"),
        primary_key("post_states", "tenant_id", "user_id", "post_id"),
    )
    partial_index(
        "ix_post_states_starred", "post_states", ["tenant_id", "user_id", "post_id"], "starred_at IS NOT NULL"
    )
    op.create_table(
        "post_versions",
        sa.Column("post_id", BigId, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("text_norm_hash", sa.LargeBinary(), nullable=False),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("extra", Json, server_default="{}", nullable=False),
        sa.Column("valid_from", Moment(), nullable=False),
        sa.Column("valid_to", Moment(), nullable=False),
        refers_to("post_versions", "post_id", "posts"),
        primary_key("post_versions", "post_id", "version"),
    )
    op.create_table(
        "subscriptions",
        *tenant_and_user(),
        source_id(),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("folder", sa.Text(), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        refers_to("subscriptions", "source_id", "sources"),
        of_user("subscriptions"),
        primary_key("subscriptions", "tenant_id", "user_id", "source_id"),
    )
    op.create_index("ix_subscriptions_source_id", "subscriptions", ["source_id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_subscriptions_source_id", table_name="subscriptions")
    op.drop_table("subscriptions")
    op.drop_table("post_versions")
    op.drop_index(
        "ix_post_states_starred",
        table_name="post_states",
        sqlite_where=sa.text("starred_at IS NOT NULL"),
        postgresql_where=sa.text("starred_at IS NOT NULL"),
    )
    op.drop_table("post_states")
    op.drop_table("api_tokens")
    op.drop_table("users")
    op.drop_index("ix_source_aliases_source_id", table_name="source_aliases")
    op.drop_table("source_aliases")
    op.drop_index("ix_posts_url_key", table_name="posts")
    op.drop_index("ix_posts_stream", table_name="posts")
    op.drop_index("ix_posts_source_stream", table_name="posts")
    op.drop_table("posts")
    op.drop_index("ix_crawls_source", table_name="crawls")
    op.drop_table("crawls")
    op.drop_table("tenants")
    op.drop_index("ix_sources_host", table_name="sources")
    op.drop_index(
        "ix_sources_due", table_name="sources", sqlite_where=sa.text("active"), postgresql_where=sa.text("active")
    )
    op.drop_table("sources")
    op.drop_table("hosts")
    op.drop_table("event_outbox")
