"""Posts that are part of a thread, found again in what is stored."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import primary_key, refers_to
from headwater.store.tables.columns import BigId, Moment, required

revision = "0035"
down_revision = "0034"

_FACT = {"sqlite": "json_extract(p.extra, '$.{}')", "postgresql": "p.extra ->> '{}'"}
# Forums name their threads, comments of a community their post. Other replies name the post that they answer.
_FILL = """INSERT INTO thread_posts (post_id, source_id, thread, created_at)
    SELECT id, source_id, thread, created_at FROM (
        SELECT p.id, p.source_id, p.source_post_id, p.created_at, COALESCE({thread}, {post},
            CASE WHEN p.reference_kind = 'reply' THEN p.reference_id END) AS thread FROM posts p) named
    WHERE thread <> source_post_id"""
# The first post of a thread of a forum has its title alone.
_OPENINGS = """UPDATE thread_posts SET first_id = post_id WHERE post_id IN (
    SELECT min(p.id) FROM posts p JOIN thread_posts t ON t.post_id = p.id JOIN sources s ON s.id = p.source_id
    WHERE s.kind = 'forum' AND p.title <> '' AND substr(p.title, 1, 4) <> 'Re: ' GROUP BY t.source_id, t.thread)"""
_OF_FORUMS = """UPDATE thread_posts SET first_id = (SELECT o.post_id FROM thread_posts o
        WHERE o.source_id = thread_posts.source_id AND o.thread = thread_posts.thread AND o.first_id = o.post_id)
    WHERE first_id IS NULL AND source_id IN (SELECT id FROM sources WHERE kind = 'forum')"""
_OF_OTHERS = """UPDATE thread_posts SET first_id = (SELECT p.id FROM posts p
        WHERE p.source_id = thread_posts.source_id AND p.source_post_id = thread_posts.thread
            AND NOT EXISTS (SELECT 1 FROM thread_posts reply WHERE reply.post_id = p.id))
    WHERE first_id IS NULL"""
# The earliest reply that is stored stands for what is not.
_STANDING_IN = """UPDATE thread_posts SET first_id = post_id WHERE first_id IS NULL AND NOT EXISTS (
        SELECT 1 FROM posts above WHERE above.source_id = thread_posts.source_id
            AND above.source_post_id = thread_posts.thread)
    AND EXISTS (SELECT 1 FROM posts own JOIN thread_posts below ON below.source_id = own.source_id
            AND below.thread = own.source_post_id WHERE own.id = thread_posts.post_id)"""
# Replies to replies, one step further from the first post each time.
_FURTHER = """UPDATE thread_posts SET first_id = (SELECT above.first_id FROM posts p
        JOIN thread_posts above ON above.post_id = p.id
        WHERE p.source_id = thread_posts.source_id AND p.source_post_id = thread_posts.thread)
    WHERE first_id IS NULL AND EXISTS (SELECT 1 FROM posts p JOIN thread_posts above ON above.post_id = p.id
        WHERE p.source_id = thread_posts.source_id AND p.source_post_id = thread_posts.thread
            AND above.first_id IS NOT NULL)"""
_FIRST_POSTS = """INSERT INTO thread_posts (post_id, source_id, thread, first_id, created_at)
    SELECT p.id, p.source_id, p.source_post_id, p.id, p.created_at FROM posts p
    WHERE p.id IN (SELECT first_id FROM thread_posts)
        AND NOT EXISTS (SELECT 1 FROM thread_posts own WHERE own.post_id = p.id)"""


def upgrade() -> None:
    op.create_table(
        "thread_posts",
        sa.Column("post_id", BigId, nullable=False),
        *required(source_id=BigId, thread=sa.Text),
        sa.Column("first_id", BigId),
        *required(created_at=Moment),
        primary_key("thread_posts", "post_id"),
        refers_to("thread_posts", "post_id", "posts"),
        sa.ForeignKeyConstraint(["first_id"], ["posts.id"], name=op.f("fk_thread_posts_first_id"), ondelete="SET NULL"),
    )
    op.create_index("ix_thread_posts_name", "thread_posts", ["source_id", "thread"])
    op.create_index("ix_thread_posts_time", "thread_posts", ["first_id", "created_at", "post_id"])
    op.create_index("ix_thread_posts_arrival", "thread_posts", ["first_id", "post_id"])
    conn = op.get_bind()
    fact = _FACT[conn.dialect.name]
    for statement in (_FILL.format(thread=fact.format("thread"), post=fact.format("post")), _OPENINGS, _OF_FORUMS):
        conn.exec_driver_sql(statement)
    conn.exec_driver_sql(_OF_OTHERS)
    conn.exec_driver_sql(_STANDING_IN)
    while conn.exec_driver_sql(_FURTHER).rowcount > 0:
        pass
    conn.exec_driver_sql(_FIRST_POSTS)


def downgrade() -> None:
    op.drop_table("thread_posts")
