"""The ground floor: sources, posts with their history, visits, the outbox, and who follows what."""

import sqlalchemy as sa
from alembic import op

from headwater.store.tables.columns import BigId, Json, Moment

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "event_outbox",
        sa.Column("id", BigId, nullable=False),
        sa.Column("event_id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("tenant_id", BigId, nullable=True),
        sa.Column("user_id", BigId, nullable=True),
        sa.Column("payload", Json, nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event_outbox")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_event_outbox_idempotency_key")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "hosts",
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("next_at", Moment(), nullable=False),
        sa.Column("held_until", Moment(), nullable=True),
        sa.PrimaryKeyConstraint("host", name=op.f("pk_hosts")),
    )
    op.create_table(
        "sources",
        sa.Column("id", BigId, nullable=False),
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
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sources")),
        sa.UniqueConstraint("address", name=op.f("uq_sources_address")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_sources_due",
        "sources",
        ["next_check_at"],
        unique=False,
        sqlite_where=sa.text("active"),
        postgresql_where=sa.text("active"),
    )
    op.create_index("ix_sources_host", "sources", ["host"], unique=False)
    op.create_table(
        "tenants",
        sa.Column("id", BigId, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenants")),
        sa.UniqueConstraint("name", name=op.f("uq_tenants_name")),
    )
    op.create_table(
        "crawls",
        sa.Column("id", BigId, nullable=False),
        sa.Column("source_id", BigId, nullable=False),
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
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_crawls_source_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_crawls")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_crawls_source", "crawls", ["source_id", "id"], unique=False)
    op.create_table(
        "posts",
        sa.Column("id", BigId, nullable=False),
        sa.Column("source_id", BigId, nullable=False),
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
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_posts_source_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_posts")),
        sa.UniqueConstraint("source_id", "source_post_id", name=op.f("uq_posts_source_id_source_post_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_posts_source_stream", "posts", ["source_id", "created_at", "id"], unique=False)
    op.create_index("ix_posts_stream", "posts", ["created_at", "id"], unique=False)
    op.create_index("ix_posts_url_key", "posts", ["source_id", "url_key"], unique=False)
    op.create_table(
        "source_aliases",
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("source_id", BigId, nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_source_aliases_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("address", name=op.f("pk_source_aliases")),
    )
    op.create_index("ix_source_aliases_source_id", "source_aliases", ["source_id"], unique=False)
    op.create_table(
        "users",
        sa.Column("id", BigId, nullable=False),
        sa.Column("tenant_id", BigId, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_users_tenant_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("tenant_id", "id", name=op.f("uq_users_tenant_id_id")),
        sa.UniqueConstraint("tenant_id", "name", name=op.f("uq_users_tenant_id_name")),
    )
    op.create_table(
        "api_tokens",
        sa.Column("id", BigId, nullable=False),
        sa.Column("tenant_id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("expires_at", Moment(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.id"],
            name=op.f("fk_api_tokens_tenant_id_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_tokens")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_api_tokens_token_hash")),
    )
    op.create_table(
        "post_states",
        sa.Column("tenant_id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("post_id", BigId, nullable=False),
        sa.Column("read_at", Moment(), nullable=True),
        sa.Column("starred_at", Moment(), nullable=True),
        sa.ForeignKeyConstraint(["post_id"], ["posts.id"], name=op.f("fk_post_states_post_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.id"],
            name=op.f("fk_post_states_tenant_id_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", "post_id", name=op.f("pk_post_states")),
    )
    op.create_index(
        "ix_post_states_starred",
        "post_states",
        ["tenant_id", "user_id", "post_id"],
        unique=False,
        sqlite_where=sa.text("starred_at IS NOT NULL"),
        postgresql_where=sa.text("starred_at IS NOT NULL"),
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
        sa.ForeignKeyConstraint(["post_id"], ["posts.id"], name=op.f("fk_post_versions_post_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("post_id", "version", name=op.f("pk_post_versions")),
    )
    op.create_table(
        "subscriptions",
        sa.Column("tenant_id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("source_id", BigId, nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("folder", sa.Text(), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_subscriptions_source_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.id"],
            name=op.f("fk_subscriptions_tenant_id_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", "source_id", name=op.f("pk_subscriptions")),
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
