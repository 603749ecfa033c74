"""Pictures that posts show have records: where they are, whether they are saved, and which posts show them."""

import sqlalchemy as sa
from alembic import op

from headwater.store.tables.columns import BigId, Json, Moment

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "images",
        sa.Column("id", BigId, nullable=False),
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
        sa.PrimaryKeyConstraint("id", name=op.f("pk_images")),
        sa.UniqueConstraint("url_key", name=op.f("uq_images_url_key")),
        sqlite_autoincrement=True,
    )
    waiting = sa.text("state = 'waiting'")
    op.create_index(
        "ix_images_waiting",
        "images",
        ["host", "next_try_at", "id"],
        sqlite_where=waiting,
        postgresql_where=waiting,
    )
    op.create_index("ix_images_content", "images", ["content_hash", "size"])
    settled = sa.text("state <> 'waiting'")
    op.create_index("ix_images_settled", "images", ["state", "id"], sqlite_where=settled, postgresql_where=settled)
    op.create_table(
        "post_images",
        sa.Column("post_id", BigId, nullable=False),
        sa.Column("image_id", BigId, nullable=False),
        sa.Column("source_id", BigId, nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("alt", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(["post_id"], ["posts.id"], name=op.f("fk_post_images_post_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["image_id"], ["images.id"], name=op.f("fk_post_images_image_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_post_images_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("post_id", "image_id", name=op.f("pk_post_images")),
    )
    op.create_index("ix_post_images_image", "post_images", ["image_id", "source_id"])
    op.create_index("ix_post_images_source", "post_images", ["source_id", "image_id"])


def downgrade() -> None:
    op.drop_table("post_images")
    op.drop_table("images")
