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
from headwater.store.tables.columns import BigId, Moment, optional, required

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "story_members",
        *required(seq=BigId, post_id=BigId, story_id=BigId, repeat_id=BigId),
        *required(rule=sa.String(10), score=sa.Float, why=sa.Text),
        source_id(),
        *required(created_at=Moment, decided_at=Moment),
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
        *required(decided_at=Moment, action=sa.String(10), story_id=BigId, post_id=BigId),
        *optional(rule=sa.String(10), score=sa.Float, why=sa.Text, user_id=BigId),
        primary_key("story_decisions", "id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_story_decisions_story", "story_decisions", ["story_id", "id"])
    op.create_index("ix_story_decisions_post", "story_decisions", ["post_id", "id"])
    op.create_table(
        "posts_apart",
        *required(post_id=BigId, parting_id=BigId, side=BigId),
        refers_to("posts_apart", "post_id", "posts"),
        primary_key("posts_apart", "post_id", "parting_id"),
    )
    op.create_index("ix_posts_apart_parting_id", "posts_apart", ["parting_id"])
    op.create_table(
        "fold_settings",
        *tenant_and_user(),
        *required(level=sa.String(10), threshold=sa.Float),
        of_user("fold_settings"),
        primary_key("fold_settings", "tenant_id", "user_id"),
    )
    op.add_column("subscriptions", sa.Column("fold", sa.Boolean(), server_default=sa.true(), nullable=False))


def downgrade() -> None:
    op.drop_column("subscriptions", "fold")
    for table in ("fold_settings", "posts_apart", "story_decisions", "story_members"):
        op.drop_table(table)
