"""Posts, their versions, the stories they belong to, and their images."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from headwater.store.tables.columns import (
    BigId,
    Json,
    Moment,
    counter,
    lease,
    metadata,
    of_user,
    own_id,
    partial_index,
    refers_to,
    tenant_and_user,
)


def _of_member(name: str, **options: Any) -> sa.Column[int]:
    """A post as a member of a story. The row goes when the decision about it goes."""
    member = sa.ForeignKey("story_members.post_id", ondelete="CASCADE")
    return sa.Column(name, BigId, member, nullable=False, **options)


posts = sa.Table(
    "posts",
    metadata,
    own_id(),
    refers_to("sources"),
    sa.Column("source_post_id", sa.Text, nullable=False),
    sa.Column("text_norm_hash", sa.LargeBinary, nullable=False),
    sa.Column("version", sa.Integer, nullable=False, server_default="1"),  # of the text
    sa.Column("revision", sa.Integer, nullable=False, server_default="1"),  # counts changes of score and comments, too
    sa.Column("url", sa.Text),
    sa.Column("url_key", BigId),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("author", sa.Text),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("dated", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("fetched_at", Moment, nullable=False),
    sa.Column("valid_from", Moment, nullable=False),
    sa.Column("score", sa.Integer),
    sa.Column("num_comments", sa.Integer),
    sa.Column("lang", sa.Text),
    sa.Column("reference_kind", sa.Text),
    sa.Column("reference_id", sa.Text),
    sa.Column("extra", Json, nullable=False, server_default="{}"),
    sa.UniqueConstraint("source_id", "source_post_id"),
    sqlite_autoincrement=True,
)
sa.Index("ix_posts_url_key", posts.c.source_id, posts.c.url_key)
sa.Index("ix_posts_stream", posts.c.created_at, posts.c.id)
sa.Index("ix_posts_source_stream", posts.c.source_id, posts.c.created_at, posts.c.id)

# A copy of the newest posts, as the stream shows them: see store/posts/hot.py. A row says what `posts` says.
hot_posts = sa.Table(
    "hot_posts",
    metadata,
    refers_to("posts", "id", primary_key=True, autoincrement=False),
    sa.Column("source_id", BigId, nullable=False),
    sa.Column("source_post_id", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("url", sa.Text),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("author", sa.Text),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("fetched_at", Moment, nullable=False),
    sa.Column("score", sa.Integer),
    sa.Column("num_comments", sa.Integer),
    sa.Column("lang", sa.Text),
    sa.Column("extra", Json, nullable=False),
    sa.Column("expires_at", Moment, nullable=False),
)
sa.Index("ix_posts_hot_stream", hot_posts.c.created_at, hot_posts.c.id)
sa.Index("ix_posts_hot_expires_at", hot_posts.c.expires_at)

# One row: `hot_posts` holds every post that was created after `since`, which is in the far future until it is filled.
hot_window = sa.Table(
    "hot_window",
    metadata,
    sa.Column("since", Moment, primary_key=True, autoincrement=False),
    sa.Column("kept_seconds", sa.Integer, nullable=False),  # how long what is written now will be kept
)

post_versions = sa.Table(
    "post_versions",
    metadata,
    refers_to("posts"),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("text_norm_hash", sa.LargeBinary, nullable=False),
    sa.Column("url", sa.Text),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("author", sa.Text),
    sa.Column("extra", Json, nullable=False, server_default="{}"),
    sa.Column("valid_from", Moment, nullable=False),
    sa.Column("valid_to", Moment, nullable=False),
    sa.PrimaryKeyConstraint("post_id", "version"),
)

# Which story a post belongs to. Every post that was decided about has a row; one that is not folded is its own story.
# A story and a group of repeats are named after the post they began with. `seq` orders the decisions, so that a process
# with an index in memory can find what others have decided.
story_members = sa.Table(
    "story_members",
    metadata,
    own_id("seq"),
    refers_to("posts", unique=True),
    sa.Column("story_id", BigId, nullable=False),
    sa.Column("repeat_id", BigId, nullable=False),
    sa.Column("rule", sa.String(10), nullable=False),
    sa.Column("score", sa.Float, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("source_id", BigId, nullable=False),
    sa.Column("created_at", Moment, nullable=False),  # the post's
    sa.Column("decided_at", Moment, nullable=False),
    sa.Column("says_new", sa.Boolean, nullable=False, server_default=sa.true()),  # something no earlier telling said
    sqlite_autoincrement=True,
)
sa.Index("ix_story_members_arrival", story_members.c.story_id, story_members.c.seq)
sa.Index("ix_story_members_story", story_members.c.story_id, story_members.c.created_at, story_members.c.post_id)
sa.Index("ix_story_members_repeat", story_members.c.repeat_id, story_members.c.created_at, story_members.c.post_id)

story_decisions = sa.Table(
    "story_decisions",
    metadata,
    own_id(),
    sa.Column("decided_at", Moment, nullable=False),
    sa.Column("action", sa.String(10), nullable=False),  # joined, parted, undone
    sa.Column("story_id", BigId, nullable=False),
    sa.Column("post_id", BigId, nullable=False),
    sa.Column("rule", sa.String(10)),
    sa.Column("score", sa.Float),
    sa.Column("why", sa.Text),
    sa.Column("user_id", BigId),  # who; None: the rules
    sa.Column("members", Json),  # the story as it was before it was parted or undone
    sqlite_autoincrement=True,
)
sa.Index("ix_story_decisions_story", story_decisions.c.story_id, story_decisions.c.id)
sa.Index("ix_story_decisions_post", story_decisions.c.post_id, story_decisions.c.id)

# What a telling says, compared with the earlier ones of its story: see store/stories/tellings.py. `new` is what none of
# them said, and `against` is what contradicts one of them. If it says nothing new, `story_echoes` has the tellings that
# together said it all. Both go with the decision that a post is in the story.
story_news = sa.Table(
    "story_news",
    metadata,
    _of_member("post_id", primary_key=True, autoincrement=False),
    sa.Column("new", Json, nullable=False),
    sa.Column("against", Json, nullable=False),
)
story_echoes = sa.Table(
    "story_echoes",
    metadata,
    _of_member("post_id"),
    _of_member("of_post_id"),
    sa.PrimaryKeyConstraint("post_id", "of_post_id"),
)
sa.Index("ix_story_echoes_of_post_id", story_echoes.c.of_post_id)

# Runs of folding that somebody asked for, and their results: see store/stories/runs.py.
fold_runs = sa.Table(
    "fold_runs",
    metadata,
    sa.Column("task_id", sa.String(36), primary_key=True),
    *tenant_and_user(),
    sa.Column("status", sa.String(10), nullable=False),  # running, completed, proposed or failed
    sa.Column("post_ids", Json, nullable=False),
    sa.Column("result", Json),
    sa.Column("error", sa.Text),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("lease_until", Moment, nullable=False),  # a run that has not ended by then was interrupted
    sa.Column("finished_at", Moment),
    of_user(),
)
sa.Index("ix_fold_runs_started_at", fold_runs.c.started_at)

# What was separated for everybody: two posts on different sides of one parting are never in one story again.
posts_apart = sa.Table(
    "posts_apart",
    metadata,
    refers_to("posts"),
    sa.Column("parting_id", BigId, nullable=False),
    sa.Column("side", BigId, nullable=False),
    sa.PrimaryKeyConstraint("post_id", "parting_id"),
)
sa.Index("ix_posts_apart_parting_id", posts_apart.c.parting_id)

# What a tenant has undone, or taken out of a story, and where its posts are for this tenant: see
# store/stories/partings.py.
story_partings = sa.Table(
    "story_partings",
    metadata,
    own_id(),
    refers_to("tenants"),
    sa.Column("user_id", BigId),  # who; the parting stays when they go
    sa.Column("parted_at", Moment, nullable=False),
    sa.Column("action", sa.String(10), nullable=False),  # parted, undone
    sa.Column("story_id", BigId, nullable=False),
    sa.Column("post_id", BigId, nullable=False),
    sa.Column("members", Json, nullable=False),  # the story as it was
    sa.UniqueConstraint("tenant_id", "id"),
    sqlite_autoincrement=True,
)
sa.Index("ix_story_partings_story", story_partings.c.tenant_id, story_partings.c.story_id, story_partings.c.id)

story_sides = sa.Table(
    "story_sides",
    metadata,
    refers_to("tenants"),
    refers_to("posts"),
    sa.Column("parting_id", BigId, nullable=False),
    sa.Column("side", BigId, nullable=False),  # named after the first post on it
    sa.PrimaryKeyConstraint("tenant_id", "post_id"),
    sa.ForeignKeyConstraint(
        ["tenant_id", "parting_id"], ["story_partings.tenant_id", "story_partings.id"], ondelete="CASCADE"
    ),
)
sa.Index("ix_story_sides_post", story_sides.c.post_id)
sa.Index("ix_story_sides_side", story_sides.c.tenant_id, story_sides.c.side)

# Images by their address: see store/images/__init__.py and queue.py. next_try_at is NULL if nothing is left to do.
images = sa.Table(
    "images",
    metadata,
    own_id(),
    sa.Column("url_key", sa.LargeBinary, nullable=False, unique=True),  # a hash: addresses are too long for an index
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("next_try_at", Moment),
    *lease(),
    # How it went.
    counter("attempts"),
    sa.Column("tried_at", Moment),
    sa.Column("error_code", sa.Text),
    sa.Column("error", sa.Text),
    # What was saved.
    sa.Column("saved_at", Moment),
    sa.Column("content_hash", sa.String(64)),
    sa.Column("path", sa.Text),  # below the folder for images
    sa.Column("type", sa.String(20)),
    sa.Column("size", sa.Integer),
    sa.Column("width", sa.Integer),
    sa.Column("height", sa.Integer),
    sa.Column("metadata", Json, nullable=False, server_default="{}"),  # what its server said about it
    sqlite_autoincrement=True,
)
partial_index("ix_images_waiting", images.c.host, images.c.next_try_at, images.c.id, where="state = 'waiting'")
sa.Index("ix_images_content", images.c.content_hash, images.c.size)
# Not of all states, or SQLite would use this one instead of the first.
partial_index("ix_images_settled", images.c.state, images.c.id, where="state <> 'waiting'")

post_images = sa.Table(
    "post_images",
    metadata,
    refers_to("posts"),
    refers_to("images"),
    refers_to("sources"),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("alt", sa.Text, nullable=False, server_default=""),
    sa.PrimaryKeyConstraint("post_id", "image_id"),
)
sa.Index("ix_post_images_image", post_images.c.image_id, post_images.c.source_id)
sa.Index("ix_post_images_source", post_images.c.source_id, post_images.c.image_id)
