"""Posts, what they said before, which story they belong to, and what they show."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
    true,
)

from headwater.store.tables.columns import BigId, Json, Moment, metadata

posts = Table(
    "posts",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("source_post_id", Text, nullable=False),
    Column("text_norm_hash", LargeBinary, nullable=False),
    Column("version", Integer, nullable=False, server_default="1"),
    Column("url", Text),
    Column("url_key", BigId),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("author", Text),
    Column("created_at", Moment, nullable=False),
    Column("dated", Boolean, nullable=False, server_default=true()),
    Column("fetched_at", Moment, nullable=False),
    Column("valid_from", Moment, nullable=False),
    Column("score", Integer),
    Column("num_comments", Integer),
    Column("lang", Text),
    Column("reference_kind", Text),
    Column("reference_id", Text),
    Column("extra", Json, nullable=False, server_default="{}"),
    UniqueConstraint("source_id", "source_post_id"),
    sqlite_autoincrement=True,
)
Index("ix_posts_url_key", posts.c.source_id, posts.c.url_key)
Index("ix_posts_stream", posts.c.created_at, posts.c.id)
Index("ix_posts_source_stream", posts.c.source_id, posts.c.created_at, posts.c.id)

# A copy of the newest posts, as the stream shows them: see store/posts/hot.py. A row says exactly what `posts` says.
posts_hot = Table(
    "posts_hot",
    metadata,
    Column("id", BigId, ForeignKey("posts.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("source_id", BigId, nullable=False),
    Column("source_post_id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("url", Text),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("author", Text),
    Column("created_at", Moment, nullable=False),
    Column("fetched_at", Moment, nullable=False),
    Column("score", Integer),
    Column("num_comments", Integer),
    Column("lang", Text),
    Column("extra", Json, nullable=False),
    Column("expires_at", Moment, nullable=False),
)
Index("ix_posts_hot_stream", posts_hot.c.created_at, posts_hot.c.id)
Index("ix_posts_hot_expires_at", posts_hot.c.expires_at)

# One row: `posts_hot` holds every post that was created after `since`. In the far future: it was not filled yet.
hot_window = Table(
    "hot_window",
    metadata,
    Column("since", Moment, primary_key=True, autoincrement=False),
    Column("kept_seconds", Integer, nullable=False),  # how long what is written now will be kept
)

post_versions = Table(
    "post_versions",
    metadata,
    Column("post_id", BigId, ForeignKey("posts.id", ondelete="CASCADE"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("text_norm_hash", LargeBinary, nullable=False),
    Column("url", Text),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("author", Text),
    Column("extra", Json, nullable=False, server_default="{}"),
    Column("valid_from", Moment, nullable=False),
    Column("valid_to", Moment, nullable=False),
    PrimaryKeyConstraint("post_id", "version"),
)

# Which story a post belongs to: every post that was decided about has a row; one that stands alone is its own story.
# A story and a group of repeats are named after the post they began with. `seq` orders the decisions: a process that
# keeps an index in memory sees by it what others have decided.
story_members = Table(
    "story_members",
    metadata,
    Column("seq", BigId, primary_key=True),
    Column("post_id", BigId, ForeignKey("posts.id", ondelete="CASCADE"), nullable=False, unique=True),
    Column("story_id", BigId, nullable=False),
    Column("repeat_id", BigId, nullable=False),
    Column("rule", String(10), nullable=False),
    Column("score", Float, nullable=False),
    Column("why", Text, nullable=False),
    Column("source_id", BigId, nullable=False),
    Column("created_at", Moment, nullable=False),  # the post's
    Column("decided_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)
Index("ix_story_members_story", story_members.c.story_id, story_members.c.created_at, story_members.c.post_id)
Index("ix_story_members_repeat", story_members.c.repeat_id, story_members.c.created_at, story_members.c.post_id)

story_decisions = Table(
    "story_decisions",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("decided_at", Moment, nullable=False),
    Column("action", String(10), nullable=False),  # joined, parted, undone
    Column("story_id", BigId, nullable=False),
    Column("post_id", BigId, nullable=False),
    Column("rule", String(10)),
    Column("score", Float),
    Column("why", Text),
    Column("user_id", BigId),  # who; None: the rules
    sqlite_autoincrement=True,
)
Index("ix_story_decisions_story", story_decisions.c.story_id, story_decisions.c.id)
Index("ix_story_decisions_post", story_decisions.c.post_id, story_decisions.c.id)

# What a person took apart stays apart: two posts on different sides of one parting are never in one story again.
posts_apart = Table(
    "posts_apart",
    metadata,
    Column("post_id", BigId, ForeignKey("posts.id", ondelete="CASCADE"), nullable=False),
    Column("parting_id", BigId, nullable=False),
    Column("side", BigId, nullable=False),
    PrimaryKeyConstraint("post_id", "parting_id"),
)
Index("ix_posts_apart_parting_id", posts_apart.c.parting_id)

# Pictures by their address, whoever shows them: see store/images.py and store/images/queue.py. A claim sets next_try_at
# to the lease's end, as for sources; it is NULL where nothing is left to do.
images = Table(
    "images",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("url_key", LargeBinary, nullable=False, unique=True),  # addresses are too long for an index
    Column("url", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("state", String(10), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("next_try_at", Moment),
    Column("lease_owner", Text),
    Column("lease_until", Moment),
    # How it went.
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("tried_at", Moment),
    Column("error_code", Text),
    Column("error", Text),
    # What was saved.
    Column("saved_at", Moment),
    Column("content_hash", String(64)),
    Column("path", Text),  # below the folder for pictures
    Column("type", String(20)),
    Column("size", Integer),
    Column("width", Integer),
    Column("height", Integer),
    Column("metadata", Json, nullable=False, server_default="{}"),  # what its server said about it
    sqlite_autoincrement=True,
)
_undone = text("state = 'waiting'")
Index(
    "ix_images_waiting",
    images.c.host,
    images.c.next_try_at,
    images.c.id,
    sqlite_where=_undone,
    postgresql_where=_undone,
)
Index("ix_images_content", images.c.content_hash, images.c.size)
# Not of all states, or SQLite would walk this one instead of the one above.
_settled = text("state <> 'waiting'")
Index("ix_images_settled", images.c.state, images.c.id, sqlite_where=_settled, postgresql_where=_settled)

post_images = Table(
    "post_images",
    metadata,
    Column("post_id", BigId, ForeignKey("posts.id", ondelete="CASCADE"), nullable=False),
    Column("image_id", BigId, ForeignKey("images.id", ondelete="CASCADE"), nullable=False),
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("place", Integer, nullable=False),
    Column("alt", Text, nullable=False, server_default=""),
    PrimaryKeyConstraint("post_id", "image_id"),
)
Index("ix_post_images_image", post_images.c.image_id, post_images.c.source_id)
Index("ix_post_images_source", post_images.c.source_id, post_images.c.image_id)
