"""Lists and their items, checkpoints, and robots.txt."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import own_id, primary_key, refers_to, source_id, unique
from headwater.store.tables.columns import Json, Moment

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("hosts", sa.Column("gap_seconds", sa.Float(), nullable=True))
    op.create_table(
        "robots",
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("rules", sa.Text(), server_default="", nullable=False),
        sa.Column("fetched_at", Moment(), nullable=False),
        primary_key("robots", "origin"),
    )
    _make_items()
    _make_checkpoints()


def _make_items() -> None:
    op.create_table(
        "items",
        own_id(),
        source_id(),
        sa.Column("item_id", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("mark", sa.Text(), server_default="", nullable=False),
        sa.Column("published_at", Moment(), nullable=True),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("posts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("pages", sa.Integer(), server_default="0", nullable=False),
        sa.Column("resume_url", sa.Text(), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        refers_to("items", "source_id", "sources"),
        primary_key("items", "id"),
        unique("items", "source_id", "item_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_items_state", "items", ["source_id", "state", "id"])


def _make_checkpoints() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("board", sa.Text(), nullable=False),
        source_id(),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("current_page", sa.Integer(), server_default="0", nullable=False),
        sa.Column("page_url", sa.Text(), nullable=True),
        sa.Column("page_request", Json, nullable=True),
        sa.Column("last_thread_id", sa.Text(), nullable=True),
        sa.Column("last_thread_url", sa.Text(), nullable=True),
        sa.Column("stats", Json, server_default="{}", nullable=False),
        sa.Column("seen_ids", Json, server_default="[]", nullable=False),
        sa.Column("min_id", sa.Text(), nullable=True),
        sa.Column("max_id", sa.Text(), nullable=True),
        sa.Column("started_at", Moment(), nullable=False),
        sa.Column("completed_at", Moment(), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        refers_to("checkpoints", "source_id", "sources"),
        primary_key("checkpoints", "site", "board"),
    )
    op.create_index("ix_checkpoints_source_id", "checkpoints", ["source_id"])


def downgrade() -> None:
    op.drop_table("checkpoints")
    op.drop_table("items")
    op.drop_table("robots")
    op.drop_column("hosts", "gap_seconds")
