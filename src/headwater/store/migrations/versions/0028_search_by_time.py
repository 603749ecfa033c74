"""Tells the search index when posts were published, so that the newest matches are found first."""

from collections.abc import Callable
from datetime import datetime

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Connection

# SQLite's index has to hold what the program will remove from it later.
from headwater.store.posts.search import place, searchable
from headwater.store.tables.columns import Moment

revision = "0028"
down_revision = "0027"

AT_ONCE = 4_000
MOST_PENDING = 2**31 - 1  # kilobytes: no limit

_posts = sa.table(
    "posts",
    sa.column("id", sa.Integer),
    sa.column("version", sa.Integer),
    sa.column("title", sa.Text),
    sa.column("content", sa.Text),
    sa.column("created_at", Moment),
)
_SPANS = ", ".join(
    f"'#{bits}/' || floor(extract(epoch FROM p.created_at) / {1 << bits})::bigint" for bits in (10, 14, 18, 22)
)


def upgrade() -> None:
    conn = op.get_bind()
    if conn.dialect.name == "sqlite":
        _number(conn, place)
    else:
        _set("w.words || array_to_tsvector(ARRAY[{}])")
        # What was added last is read from end to end by every search. 4 MB, the usual limit, would take longest of all.
        op.execute("ALTER INDEX ix_post_words_words SET (gin_pending_list_limit = 256)")


def downgrade() -> None:
    conn = op.get_bind()
    if conn.dialect.name == "sqlite":
        _number(conn, lambda _, post_id: post_id)
    else:
        _set("ts_delete(w.words, ARRAY[{}])")
        op.execute("ALTER INDEX ix_post_words_words RESET (gin_pending_list_limit)")


def _number(conn: Connection, row_number: Callable[[datetime, int], int]) -> None:
    """Indexes all posts again, with other row numbers."""
    conn.exec_driver_sql("INSERT INTO post_words (post_words) VALUES ('delete-all')")
    conn.exec_driver_sql("DELETE FROM post_words_versions")
    last = 0
    while rows := conn.execute(sa.select(_posts).where(_posts.c.id > last).order_by(_posts.c.id).limit(AT_ONCE)).all():
        words = sorted((row_number(row.created_at, row.id), searchable(row.title, row.content)) for row in rows)
        conn.exec_driver_sql("INSERT INTO post_words (rowid, words) VALUES (?, ?)", words)
        versions = [(row.id, row.version) for row in rows]
        conn.exec_driver_sql("INSERT INTO post_words_versions (post_id, version) VALUES (?, ?)", versions)
        last = rows[-1].id


def _set(words: str) -> None:
    """Changes the words of all posts. They are added to the index all at once, which takes 60 % of the time."""
    op.execute("SET LOCAL maintenance_work_mem = '256MB'")
    op.execute(f"ALTER INDEX ix_post_words_words SET (gin_pending_list_limit = {MOST_PENDING})")
    op.execute(f"UPDATE post_words w SET words = {words.format(_SPANS)} FROM posts p WHERE p.id = w.post_id")
    op.execute("SELECT gin_clean_pending_list('ix_post_words_words')")
