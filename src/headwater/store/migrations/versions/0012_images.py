"""Images of posts have records: their address, whether they are saved, and which posts show them."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import own_id, partial_index, primary_key, refers_to, source_id, unique
from headwater.store.tables.columns import BigId, Json, Moment

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "images",
        own_id(),
        sa.Column("url_key", sa.LargeBinary(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("next_try_at", Moment(), nullable=True),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_until", Moment(), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tried_at", Moment(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("saved_at", Moment(), nullable=True),
        sa.Column("content_hash", sa.String(64), nullable=True),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("type", sa.String(20), nullable=True),
        sa.Column("size", sa.Integer(), nullable=True),
        sa.Column("width", sa.Integer(), nullable=True),
        sa.Column("height", sa.Integer(), nullable=True),
        sa.Column("metadata", Json, server_default="{}", nullable=False),
        primary_key("images", "id"),
        unique("images", "url_key"),
        sqlite_autoincrement=True,
    )
    partial_index("ix_images_waiting", "images", ["host", "next_try_at", "id"], "state = 'waiting'")
    op.create_index("ix_images_content", "images", ["content_hash", "size"])
    partial_index("ix_images_settled", "images", ["state", "id"], "state <> 'waiting'")
    op.create_table(
        "post_images",
        sa.Column("post_id", BigId, nullable=False),
        sa.Column("image_id", BigId, nullable=False),
        source_id(),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("alt", sa.Text(), server_default="", nullable=False),
        refers_to("post_images", "post_id", "posts"),
        refers_to("post_images", "image_id", "images"),
        refers_to("post_images", "source_id", "sources"),
        primary_key("post_images", "post_id", "image_id"),
    )
    op.create_index("ix_post_images_image", "post_images", ["image_id", "source_id"])
    op.create_index("ix_post_images_source", "post_images", ["source_id", "image_id"])


def downgrade() -> None:
    op.drop_table("post_images")
    op.drop_table("images")
