"""Sources have a tier and can be in the pool; visits are counted by the hour; alerts are raised and cleared."""

import sqlalchemy as sa
from alembic import op

from headwater.store.tables.columns import Json, Moment

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

POOLED = sa.text("pooled_at IS NOT NULL")
COLUMNS = ("tier", "pinned_tier", "avg_valid_posts", "quality_score", "categories", "pooled_at")


def upgrade() -> None:
    op.add_column("sources", sa.Column("tier", sa.String(10)))
    op.add_column("sources", sa.Column("pinned_tier", sa.String(10)))
    op.add_column("sources", sa.Column("avg_valid_posts", sa.Float()))
    op.add_column("sources", sa.Column("quality_score", sa.Float()))
    op.add_column("sources", sa.Column("categories", Json, server_default="[]", nullable=False))
    op.add_column("sources", sa.Column("pooled_at", Moment()))
    op.create_index("ix_sources_pooled", "sources", ["last_crawled_at"], sqlite_where=POOLED, postgresql_where=POOLED)
    op.create_index("ix_crawls_started_at", "crawls", ["started_at"])
    op.create_table(
        "crawl_metrics",
        sa.Column("hour", Moment(), autoincrement=False, nullable=False),
        sa.Column("visits_ok", sa.Integer(), nullable=False),
        sa.Column("visits_unchanged", sa.Integer(), nullable=False),
        sa.Column("visits_empty", sa.Integer(), nullable=False),
        sa.Column("visits_failed", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("posts_new", sa.Integer(), nullable=False),
        sa.Column("posts_updated", sa.Integer(), nullable=False),
        sa.Column("posts_duplicate", sa.Integer(), nullable=False),
        sa.Column("valid_posts_24h", sa.Integer()),
        sa.Column("sources_total", sa.Integer()),
        sa.Column("tiers", Json),
        sa.PrimaryKeyConstraint("hour", name=op.f("pk_crawl_metrics")),
    )
    op.create_table(
        "alerts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("raised_at", Moment(), nullable=False),
        sa.Column("cleared_at", Moment()),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_alerts")),
    )


def downgrade() -> None:
    op.drop_table("alerts")
    op.drop_table("crawl_metrics")
    op.drop_index("ix_crawls_started_at", "crawls")
    op.drop_index("ix_sources_pooled", "sources")
    for column in COLUMNS:
        op.drop_column("sources", column)
