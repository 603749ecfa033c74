"""Sources, posts with their versions, visits, the outbox, and who follows what."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import (
    counters,
    of_user,
    own_id,
    partial_index,
    primary_key,
    refers_to,
    source_aliases,
    source_id,
    tenant_and_user,
    unique,
)
from headwater.store.tables.columns import BigId, Json, Moment, optional, required

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "event_outbox",
        own_id(),
        *required(event_id=sa.String(36), kind=sa.Text, key=sa.Text),
        *optional(tenant_id=BigId, user_id=BigId),
        *required(payload=Json, idempotency_key=sa.Text, created_at=Moment),
        primary_key("event_outbox", "id"),
        unique("event_outbox", "idempotency_key"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "hosts",
        *required(host=sa.Text, next_at=Moment),
        sa.Column("held_until", Moment(), nullable=True),
        primary_key("hosts", "host"),
    )
    op.create_table(
        "sources",
        own_id(),
        *required(kind=sa.String(20), address=sa.Text, host=sa.Text),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        *optional(site_url=sa.Text, language=sa.Text),
        sa.Column("settings", Json, server_default="{}", nullable=False),
        sa.Column("credential", sa.LargeBinary(), nullable=True),
        sa.Column("active", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        *optional(etag=sa.Text, last_modified=sa.Text, body_hash=sa.LargeBinary, validated_at=Moment),
        *optional(last_crawled_at=Moment, last_seen_post_id=sa.Text, last_seen_created_at=Moment),
        *optional(interval_seconds=sa.Integer),
        sa.Column("next_check_at", Moment(), nullable=False),
        *optional(turn_at=Moment, waits_for=sa.Text, lease_owner=sa.Text, lease_until=Moment),
        sa.Column("status", sa.String(length=20), server_default="new", nullable=False),
        *counters("success_hit", "empty_hit", "failure_hit", "consecutive_failures"),
        *optional(failing_since=Moment, last_error_code=sa.Text, last_error=sa.Text),
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
        *required(name=sa.Text, created_at=Moment),
        primary_key("tenants", "id"),
        unique("tenants", "name"),
    )
    op.create_table(
        "crawls",
        own_id(),
        source_id(),
        *required(started_at=Moment, seconds=sa.Float, outcome=sa.String(12)),
        sa.Column("http_status", sa.Integer(), nullable=True),
        *counters("bytes", "new", "updated", "duplicates"),
        sa.Column("watermark_updated", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("truncated", sa.Boolean(), server_default=sa.false(), nullable=False),
        *optional(error_code=sa.Text, error=sa.Text),
        refers_to("crawls", "source_id", "sources"),
        primary_key("crawls", "id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_crawls_source", "crawls", ["source_id", "id"], unique=False)
    op.create_table(
        "posts",
        own_id(),
        source_id(),
        *required(source_post_id=sa.Text, text_norm_hash=sa.LargeBinary),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        *optional(url=sa.Text, url_key=BigId),
        *required(title=sa.Text, content=sa.Text),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("dated", sa.Boolean(), server_default=sa.true(), nullable=False),
        *required(fetched_at=Moment, valid_from=Moment),
        *optional(score=sa.Integer, num_comments=sa.Integer, lang=sa.Text),
        *optional(reference_kind=sa.Text, reference_id=sa.Text),
        sa.Column("extra", Json, server_default="{}", nullable=False),
        refers_to("posts", "source_id", "sources"),
        primary_key("posts", "id"),
        unique("posts", "source_id", "source_post_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_posts_source_stream", "posts", ["source_id", "created_at", "id"], unique=False)
    op.create_index("ix_posts_stream", "posts", ["created_at", "id"], unique=False)
    op.create_index("ix_posts_url_key", "posts", ["source_id", "url_key"], unique=False)
    source_aliases(*required(address=sa.Text))
    op.create_index("ix_source_aliases_source_id", "source_aliases", ["source_id"], unique=False)
    op.create_table(
        "users",
        own_id(),
        *required(tenant_id=BigId, name=sa.Text, role=sa.String(20), created_at=Moment),
        refers_to("users", "tenant_id", "tenants"),
        primary_key("users", "id"),
        unique("users", "tenant_id", "id"),
        unique("users", "tenant_id", "name"),
    )
    op.create_table(
        "api_tokens",
        own_id(),
        *tenant_and_user(),
        *required(kind=sa.String(10), name=sa.Text, token_hash=sa.LargeBinary, created_at=Moment),
        sa.Column("expires_at", Moment(), nullable=True),
        of_user("api_tokens"),
        primary_key("api_tokens", "id"),
        unique("api_tokens", "token_hash"),
    )
    op.create_table(
        "post_states",
        *tenant_and_user(),
        sa.Column("post_id", BigId, nullable=False),
        *optional(read_at=Moment, starred_at=Moment),
        refers_to("post_states", "post_id", "posts"),
        of_user("post_states"),
        primary_key("post_states", "tenant_id", "user_id", "post_id"),
    )
    partial_index(
        "ix_post_states_starred", "post_states", ["tenant_id", "user_id", "post_id"], "starred_at IS NOT NULL"
    )
    op.create_table(
        "post_versions",
        *required(post_id=BigId, version=sa.Integer, text_norm_hash=sa.LargeBinary),
        sa.Column("url", sa.Text(), nullable=True),
        *required(title=sa.Text, content=sa.Text),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("extra", Json, server_default="{}", nullable=False),
        *required(valid_from=Moment, valid_to=Moment),
        refers_to("post_versions", "post_id", "posts"),
        primary_key("post_versions", "post_id", "version"),
    )
    op.create_table(
        "subscriptions",
        *tenant_and_user(),
        source_id(),
        *optional(title=sa.Text, folder=sa.Text),
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
