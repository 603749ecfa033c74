"""Posts belong to stories; every decision is recorded and can be undone."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import (
    of_user,
    own_id,
    primary_key,
    refers_to,
    source_id,
    tenant_and_user,
    unique,
)
from headwater.store.tables.columns import BigId, Moment

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "story_members",
        sa.Column("seq", BigId, nullable=False),
        sa.Column("post_id", BigId, nullable=False),
        sa.Column("story_id", BigId, nullable=False),
        sa.Column("repeat_id", BigId, nullable=False),
        sa.Column("rule", sa.String(10), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        source_id(),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("decided_at", Moment(), nullable=False),
        refers_to("story_members", "post_id", "posts"),
        primary_key("story_members", "seq"),
        unique("story_members", "post_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_story_members_story", "story_members", ["story_id", "created_at", "post_id"])
    op.create_index("ix_story_members_repeat", "story_members", ["repeat_id", "created_at", "post_id"])
    op.create_table(
        "story_decisions",
        own_id(),
        sa.Column("decided_at", Moment(), nullable=False),
        sa.Column("action", sa.String(10), nullable=False),
        sa.Column("story_id", BigId, nullable=False),
        sa.Column("post_id", BigId, nullable=False),
        sa.Column("rule", sa.String(10)),
        sa.Column("score", sa.Float()),
        sa.Column("why", sa.Text()),
        sa.Column("user_id", BigId),
        primary_key("story_decisions", "id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_story_decisions_story", "story_decisions", ["story_id", "id"])
    op.create_index("ix_story_decisions_post", "story_decisions", ["post_id", "id"])
    op.create_table(
        "posts_apart",
        sa.Column("post_id", BigId, nullable=False),
        sa.Column("parting_id", BigId, nullable=False),
        sa.Column("side", BigId, nullable=False),
        refers_to("posts_apart", "post_id", "posts"),
        primary_key("posts_apart", "post_id", "parting_id"),
    )
    op.create_index("ix_posts_apart_parting_id", "posts_apart", ["parting_id"])
    op.create_table(
        "fold_settings",
        *tenant_and_user(),
        sa.Column("level", sa.String(10), nullable=False),
        sa.Column("threshold", sa.Float(), nullable=False),
        of_user("fold_settings"),
        primary_key("fold_settings", "tenant_id", "user_id"),
    )
    op.add_column("subscriptions", sa.Column("fold", sa.Boolean(), server_default=sa.true(), nullable=False))


def downgrade() -> None:
    op.drop_column("subscriptions", "fold")
    for table in ("fold_settings", "posts_apart", "story_decisions", "story_members"):
        op.drop_table(table)
