"""Posts belong to stories; every decision is on record and can be undone."""

import sqlalchemy as sa
from alembic import op

from headwater.store.tables.columns import BigId, Moment

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


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
        sa.Column("source_id", BigId, nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("decided_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["post_id"], ["posts.id"], name=op.f("fk_story_members_post_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_story_members")),
        sa.UniqueConstraint("post_id", name=op.f("uq_story_members_post_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_story_members_story", "story_members", ["story_id", "created_at", "post_id"])
    op.create_index("ix_story_members_repeat", "story_members", ["repeat_id", "created_at", "post_id"])
    op.create_table(
        "story_decisions",
        sa.Column("id", BigId, nullable=False),
        sa.Column("decided_at", Moment(), nullable=False),
        sa.Column("action", sa.String(10), nullable=False),
        sa.Column("story_id", BigId, nullable=False),
        sa.Column("post_id", BigId, nullable=False),
        sa.Column("rule", sa.String(10)),
        sa.Column("score", sa.Float()),
        sa.Column("why", sa.Text()),
        sa.Column("user_id", BigId),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_story_decisions")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_story_decisions_story", "story_decisions", ["story_id", "id"])
    op.create_index("ix_story_decisions_post", "story_decisions", ["post_id", "id"])
    op.create_table(
        "posts_apart",
        sa.Column("post_id", BigId, nullable=False),
        sa.Column("parting_id", BigId, nullable=False),
        sa.Column("side", BigId, nullable=False),
        sa.ForeignKeyConstraint(["post_id"], ["posts.id"], name=op.f("fk_posts_apart_post_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("post_id", "parting_id", name=op.f("pk_posts_apart")),
    )
    op.create_index("ix_posts_apart_parting_id", "posts_apart", ["parting_id"])
    op.create_table(
        "fold_settings",
        sa.Column("tenant_id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("level", sa.String(10), nullable=False),
        sa.Column("threshold", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.id"],
            name=op.f("fk_fold_settings_tenant_id_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", name=op.f("pk_fold_settings")),
    )
    op.add_column("subscriptions", sa.Column("fold", sa.Boolean(), server_default=sa.true(), nullable=False))


def downgrade() -> None:
    op.drop_column("subscriptions", "fold")
    for table in ("fold_settings", "posts_apart", "story_decisions", "story_members"):
        op.drop_table(table)
