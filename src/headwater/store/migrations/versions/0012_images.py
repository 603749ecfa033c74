"""Images of posts have records: their address, whether they are saved, and which posts show them."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import counters, own_id, partial_index, primary_key, refers_to, source_id, unique
from headwater.store.tables.columns import BigId, Json, Moment, optional, required

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    _images()
    _shown_by_posts()


def _images() -> None:
    op.create_table(
        "images",
        own_id(),
        *required(url_key=sa.LargeBinary, url=sa.Text, host=sa.Text, state=sa.String(10), created_at=Moment),
        *optional(next_try_at=Moment, lease_owner=sa.Text, lease_until=Moment),
        *counters("attempts"),
        *optional(tried_at=Moment, error_code=sa.Text, error=sa.Text),
        *optional(saved_at=Moment, content_hash=sa.String(64), path=sa.Text, type=sa.String(20)),
        *optional(size=sa.Integer, width=sa.Integer, height=sa.Integer),
        sa.Column("metadata", Json, server_default="{}", nullable=False),
        primary_key("images", "id"),
        unique("images", "url_key"),
        sqlite_autoincrement=True,
    )
    partial_index("ix_images_waiting", "images", ["host", "next_try_at", "id"], "state = 'waiting'")
    op.create_index("ix_images_content", "images", ["content_hash", "size"])
    partial_index("ix_images_settled", "images", ["state", "id"], "state <> 'waiting'")


def _shown_by_posts() -> None:
    op.create_table(
        "post_images",
        *required(post_id=BigId, image_id=BigId),
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
