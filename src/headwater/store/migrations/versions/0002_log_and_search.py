"""Consumers read the outbox with cursors of their own, and posts can be searched."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import cursors
from headwater.store.tables.columns import BigId

revision = "0002"
down_revision = "0001"

CREATE = {
    "sqlite": (
        "CREATE VIRTUAL TABLE post_words USING fts5 (words, content='', detail='none', columnsize=0)",
        # Few large steps instead of many small ones: a third less CPU for a first pass over thousands of feeds.
        "INSERT INTO post_words (post_words, rank) VALUES ('hashsize', 16777216)",
        "INSERT INTO post_words (post_words, rank) VALUES ('automerge', 16)",
        "CREATE TABLE post_words_versions (post_id INTEGER PRIMARY KEY, version INTEGER NOT NULL)",
    ),
    "postgresql": (
        "CREATE TABLE post_words (post_id BIGINT PRIMARY KEY REFERENCES posts (id) ON DELETE CASCADE,"
        " words TSVECTOR NOT NULL)",
        "CREATE INDEX ix_post_words_words ON post_words USING gin (words)",
    ),
}
DROP = {
    "sqlite": ("DROP TABLE post_words_versions", "DROP TABLE post_words"),
    "postgresql": ("DROP TABLE post_words",),
}


def upgrade() -> None:
    cursors("consumer")
    op.add_column("event_outbox", sa.Column("xid", BigId, server_default="0", nullable=False))
    dialect = op.get_bind().dialect.name
    if dialect == "postgresql":
        op.create_index("ix_event_outbox_log", "event_outbox", ["xid", "id"], unique=False)
        op.alter_column("event_outbox", "xid", server_default=sa.text("(pg_current_xact_id()::text::bigint)"))
    for statement in CREATE[dialect]:
        op.execute(statement)


def downgrade() -> None:
    dialect = op.get_bind().dialect.name
    for statement in DROP[dialect]:
        op.execute(statement)
    if dialect == "postgresql":
        op.drop_index("ix_event_outbox_log", table_name="event_outbox")
    op.drop_column("event_outbox", "xid")
    op.drop_table("consumer_cursors")
