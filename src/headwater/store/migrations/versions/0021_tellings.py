"""A telling says something new or only repeats others; a story that was read is updated by what is new.

Repeats of before are taken for what they are. Every other telling of before counts as new, and what was marked as read
stays read.
"""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import primary_key
from headwater.store.tables.columns import BigId, Json, required

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.add_column("story_members", sa.Column("says_new", sa.Boolean(), server_default=sa.true(), nullable=False))
    op.create_index("ix_story_members_arrival", "story_members", ["story_id", "seq"])
    op.create_table(
        "story_news",
        *required(post_id=BigId, new=Json, against=Json),
        _of_member("story_news", "post_id"),
        primary_key("story_news", "post_id"),
    )
    op.create_table(
        "story_echoes",
        *required(post_id=BigId, of_post_id=BigId),
        _of_member("story_echoes", "post_id"),
        _of_member("story_echoes", "of_post_id"),
        primary_key("story_echoes", "post_id", "of_post_id"),
    )
    op.create_index("ix_story_echoes_of_post_id", "story_echoes", ["of_post_id"])
    op.execute(
        """INSERT INTO story_echoes (post_id, of_post_id) SELECT m.post_id, m.repeat_id FROM story_members m
        WHERE m.rule = 'exact' AND m.repeat_id <> m.post_id
            AND EXISTS (SELECT 1 FROM story_members o WHERE o.post_id = m.repeat_id)"""
    )
    op.execute("UPDATE story_members SET says_new = FALSE WHERE post_id IN (SELECT post_id FROM story_echoes)")


def downgrade() -> None:
    op.drop_table("story_echoes")
    op.drop_table("story_news")
    op.drop_index("ix_story_members_arrival", "story_members")
    op.drop_column("story_members", "says_new")


def _of_member(table: str, name: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [name], ["story_members.post_id"], name=op.f(f"fk_{table}_{name}"), ondelete="CASCADE"
    )
