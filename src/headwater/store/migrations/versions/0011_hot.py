"""The newest posts have a store of their own; listings are cached; days are counted, and requests by the minute."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import counted_visits, primary_key, refers_to, source_id
from headwater.store.tables.columns import BigId, Json, Moment, optional, required

revision = "0011"
down_revision = "0010"

FAR_FUTURE = datetime(9999, 1, 1, tzinfo=UTC)


def upgrade() -> None:
    _hot_posts()
    _cached_listings()
    _days_and_minutes()


def _hot_posts() -> None:
    op.create_table(
        "posts_hot",
        sa.Column("id", BigId, autoincrement=False, nullable=False),
        source_id(),
        *required(source_post_id=sa.Text, version=sa.Integer),
        sa.Column("url", sa.Text()),
        *required(title=sa.Text, content=sa.Text),
        sa.Column("author", sa.Text()),
        *required(created_at=Moment, fetched_at=Moment),
        *optional(score=sa.Integer, num_comments=sa.Integer, lang=sa.Text),
        *required(extra=Json, expires_at=Moment),
        refers_to("posts_hot", "id", "posts"),
        primary_key("posts_hot", "id"),
    )
    op.create_index("ix_posts_hot_stream", "posts_hot", ["created_at", "id"])
    op.create_index("ix_posts_hot_expires_at", "posts_hot", ["expires_at"])
    window = op.create_table(
        "hot_window",
        sa.Column("since", Moment(), autoincrement=False, nullable=False),
        sa.Column("kept_seconds", sa.Integer(), nullable=False),
        primary_key("hot_window", "since"),
    )
    op.bulk_insert(window, [{"since": FAR_FUTURE, "kept_seconds": 0}])  # it is filled when Headwater starts


def _cached_listings() -> None:
    op.create_table(
        "cached_listings",
        source_id(autoincrement=False),
        *required(fetched_at=Moment, expires_at=Moment, posts=Json),
        refers_to("cached_listings", "source_id", "sources"),
        primary_key("cached_listings", "source_id"),
    )
    op.create_index("ix_cached_listings_expires_at", "cached_listings", ["expires_at"])


def _days_and_minutes() -> None:
    op.create_table(
        "crawl_days",
        sa.Column("day", Moment(), autoincrement=False, nullable=False),
        *counted_visits(),
        primary_key("crawl_days", "day"),
    )
    op.create_table(
        "budget_use",
        *required(name=sa.Text, minute=Moment, used=sa.Integer),
        primary_key("budget_use", "name", "minute"),
    )


def downgrade() -> None:
    for table in ("budget_use", "crawl_days", "cached_listings", "hot_window", "posts_hot"):
        op.drop_table(table)
