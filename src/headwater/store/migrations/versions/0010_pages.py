"""Lists and their items, checkpoints, and robots.txt."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import counters, own_id, primary_key, refers_to, source_id, unique
from headwater.store.tables.columns import Json, Moment, optional, required

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("hosts", sa.Column("gap_seconds", sa.Float(), nullable=True))
    op.create_table(
        "robots",
        *required(origin=sa.Text, status=sa.Integer),
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
        *required(item_id=sa.Text, url=sa.Text),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("mark", sa.Text(), server_default="", nullable=False),
        sa.Column("published_at", Moment(), nullable=True),
        sa.Column("state", sa.String(10), nullable=False),
        *counters("attempts"),
        sa.Column("error", sa.Text(), nullable=True),
        *counters("posts", "pages"),
        sa.Column("resume_url", sa.Text(), nullable=True),
        *required(created_at=Moment, updated_at=Moment),
        refers_to("items", "source_id", "sources"),
        primary_key("items", "id"),
        unique("items", "source_id", "item_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_items_state", "items", ["source_id", "state", "id"])


def _make_checkpoints() -> None:
    op.create_table(
        "checkpoints",
        *required(site=sa.Text, board=sa.Text),
        source_id(),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        *counters("current_page"),
        *optional(page_url=sa.Text, page_request=Json, last_thread_id=sa.Text, last_thread_url=sa.Text),
        sa.Column("stats", Json, server_default="{}", nullable=False),
        sa.Column("seen_ids", Json, server_default="[]", nullable=False),
        *optional(min_id=sa.Text, max_id=sa.Text),
        sa.Column("started_at", Moment(), nullable=False),
        sa.Column("completed_at", Moment(), nullable=True),
        *required(created_at=Moment, updated_at=Moment),
        refers_to("checkpoints", "source_id", "sources"),
        primary_key("checkpoints", "site", "board"),
    )
    op.create_index("ix_checkpoints_source_id", "checkpoints", ["source_id"])


def downgrade() -> None:
    op.drop_table("checkpoints")
    op.drop_table("items")
    op.drop_table("robots")
    op.drop_column("hosts", "gap_seconds")
