"""Sources have a tier and can be in the pool; visits are counted by the hour; alerts are raised and cleared."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import counted_visits, partial_index, primary_key
from headwater.store.tables.columns import Json, Moment, required

revision = "0007"
down_revision = "0006"
COLUMNS = ("tier", "pinned_tier", "avg_valid_posts", "quality_score", "categories", "pooled_at")


def upgrade() -> None:
    op.add_column("sources", sa.Column("tier", sa.String(10)))
    op.add_column("sources", sa.Column("pinned_tier", sa.String(10)))
    op.add_column("sources", sa.Column("avg_valid_posts", sa.Float()))
    op.add_column("sources", sa.Column("quality_score", sa.Float()))
    op.add_column("sources", sa.Column("categories", Json, server_default="[]", nullable=False))
    op.add_column("sources", sa.Column("pooled_at", Moment()))
    partial_index("ix_sources_pooled", "sources", ["last_crawled_at"], "pooled_at IS NOT NULL")
    op.create_index("ix_crawls_started_at", "crawls", ["started_at"])
    op.create_table(
        "crawl_metrics",
        sa.Column("hour", Moment(), autoincrement=False, nullable=False),
        *counted_visits(),
        primary_key("crawl_metrics", "hour"),
    )
    op.create_table(
        "alerts",
        *required(name=sa.Text, detail=sa.Text, raised_at=Moment),
        sa.Column("cleared_at", Moment()),
        primary_key("alerts", "name"),
    )


def downgrade() -> None:
    op.drop_table("alerts")
    op.drop_table("crawl_metrics")
    op.drop_index("ix_crawls_started_at", "crawls")
    op.drop_index("ix_sources_pooled", "sources")
    for column in COLUMNS:
        op.drop_column("sources", column)
