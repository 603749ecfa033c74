"""Posts, their versions, the stories they belong to, and their images."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from headwater.store.tables import columns as col


def _of_member(name: str, **options: Any) -> sa.Column[int]:
    """A post as a member of a story. The row goes when the decision about it goes."""
    member = sa.ForeignKey("story_members.post_id", ondelete="CASCADE")
    return sa.Column(name, col.BigId, member, nullable=False, **options)


posts = col.table(
    "posts",
    col.own_id(),
    col.refers_to("sources"),
    *col.required(source_post_id=sa.Text, text_norm_hash=sa.LargeBinary),
    sa.Column("version", sa.Integer, nullable=False, server_default="1"),  # of the text
    sa.Column("revision", sa.Integer, nullable=False, server_default="1"),  # counts changes of score and comments, too
    *col.optional(url=sa.Text, url_key=col.BigId),
    *col.required(title=sa.Text, content=sa.Text),
    sa.Column("author", sa.Text),
    sa.Column("created_at", col.Moment, nullable=False),
    sa.Column("dated", sa.Boolean, nullable=False, server_default=sa.true()),
    *col.required(fetched_at=col.Moment, valid_from=col.Moment),
    *col.optional(
        score=sa.Integer, num_comments=sa.Integer, lang=sa.Text, reference_kind=sa.Text, reference_id=sa.Text
    ),
    sa.Column("extra", col.Json, nullable=False, server_default="{}"),
    sa.UniqueConstraint("source_id", "source_post_id"),
    sqlite_autoincrement=True,
)
sa.Index("ix_posts_url_key", posts.c.source_id, posts.c.url_key)
sa.Index("ix_posts_stream", posts.c.created_at, posts.c.id)
sa.Index("ix_posts_source_stream", posts.c.source_id, posts.c.created_at, posts.c.id)

# A copy of the newest posts, as the stream shows them: see store/posts/hot.py. A row says what `posts` says.
hot_posts = col.table(
    "hot_posts",
    col.refers_to("posts", "id", primary_key=True, autoincrement=False),
    *col.required(source_id=col.BigId, source_post_id=sa.Text, version=sa.Integer),
    sa.Column("url", sa.Text),
    *col.required(title=sa.Text, content=sa.Text),
    sa.Column("author", sa.Text),
    *col.required(created_at=col.Moment, fetched_at=col.Moment),
    *col.optional(score=sa.Integer, num_comments=sa.Integer, lang=sa.Text),
    *col.required(extra=col.Json, expires_at=col.Moment),
)
sa.Index("ix_posts_hot_stream", hot_posts.c.created_at, hot_posts.c.id)
sa.Index("ix_posts_hot_expires_at", hot_posts.c.expires_at)

# One row: `hot_posts` holds every post that was created after `since`, which is in the far future until it is filled.
hot_window = col.table(
    "hot_window",
    sa.Column("since", col.Moment, primary_key=True, autoincrement=False),
    sa.Column("kept_seconds", sa.Integer, nullable=False),  # how long what is written now will be kept
)

post_versions = col.table(
    "post_versions",
    col.refers_to("posts"),
    *col.required(version=sa.Integer, text_norm_hash=sa.LargeBinary),
    sa.Column("url", sa.Text),
    *col.required(title=sa.Text, content=sa.Text),
    sa.Column("author", sa.Text),
    sa.Column("extra", col.Json, nullable=False, server_default="{}"),
    *col.required(valid_from=col.Moment, valid_to=col.Moment),
    sa.PrimaryKeyConstraint("post_id", "version"),
)

# Posts that are part of a thread: see store/posts/threads.py. `thread` is its name at the source, or the post that this
# one replies to. A reply whose thread began with a post that is not stored has no `first_id`.
thread_posts = col.table(
    "thread_posts",
    col.refers_to("posts", primary_key=True, autoincrement=False),
    *col.required(source_id=col.BigId, thread=sa.Text),
    sa.Column("first_id", col.BigId, sa.ForeignKey("posts.id", ondelete="SET NULL")),
    sa.Column("created_at", col.Moment, nullable=False),  # the post's
)
sa.Index("ix_thread_posts_name", thread_posts.c.source_id, thread_posts.c.thread)
sa.Index("ix_thread_posts_time", thread_posts.c.first_id, thread_posts.c.created_at, thread_posts.c.post_id)
sa.Index("ix_thread_posts_arrival", thread_posts.c.first_id, thread_posts.c.post_id)

# Which story a post belongs to. Every post that was decided about has a row; one that is not folded is its own story.
# A story and a group of repeats are named after the post they began with. `seq` orders the decisions, so that a process
# with an index in memory can find what others have decided.
story_members = col.table(
    "story_members",
    col.own_id("seq"),
    col.refers_to("posts", unique=True),
    *col.required(
        story_id=col.BigId, repeat_id=col.BigId, rule=sa.String(10), score=sa.Float, why=sa.Text, source_id=col.BigId
    ),
    sa.Column("created_at", col.Moment, nullable=False),  # the post's
    sa.Column("decided_at", col.Moment, nullable=False),
    sa.Column("says_new", sa.Boolean, nullable=False, server_default=sa.true()),  # something no earlier telling said
    sqlite_autoincrement=True,
)
sa.Index("ix_story_members_arrival", story_members.c.story_id, story_members.c.seq)
sa.Index("ix_story_members_story", story_members.c.story_id, story_members.c.created_at, story_members.c.post_id)
sa.Index("ix_story_members_repeat", story_members.c.repeat_id, story_members.c.created_at, story_members.c.post_id)

story_decisions = col.table(
    "story_decisions",
    col.own_id(),
    sa.Column("decided_at", col.Moment, nullable=False),
    sa.Column("action", sa.String(10), nullable=False),  # joined, met, parted, undone
    *col.required(story_id=col.BigId, post_id=col.BigId),
    *col.optional(rule=sa.String(10), score=sa.Float, why=sa.Text),
    sa.Column("user_id", col.BigId),  # who; None: the rules
    sa.Column("members", col.Json),  # the story as it was before it met another, was parted or undone
    sqlite_autoincrement=True,
)
sa.Index("ix_story_decisions_story", story_decisions.c.story_id, story_decisions.c.id)
sa.Index("ix_story_decisions_post", story_decisions.c.post_id, story_decisions.c.id)

# What a telling says, compared with the earlier ones of its story: see store/stories/tellings.py. `new` is what none of
# them said, and `against` is what contradicts one of them. If it says nothing new, `story_echoes` has the tellings that
# together said it all. Both go with the decision that a post is in the story.
story_news = col.table(
    "story_news",
    _of_member("post_id", primary_key=True, autoincrement=False),
    *col.required(new=col.Json, against=col.Json),
)
story_echoes = col.table(
    "story_echoes",
    _of_member("post_id"),
    _of_member("of_post_id"),
    sa.PrimaryKeyConstraint("post_id", "of_post_id"),
)
sa.Index("ix_story_echoes_of_post_id", story_echoes.c.of_post_id)

# Runs of folding that somebody asked for, and their results: see store/stories/runs.py.
fold_runs = col.table(
    "fold_runs",
    sa.Column("task_id", sa.String(36), primary_key=True),
    *col.tenant_and_user(),
    sa.Column("status", sa.String(10), nullable=False),  # running, completed, proposed or failed
    sa.Column("post_ids", col.Json, nullable=False),
    *col.optional(result=col.Json, error=sa.Text),
    sa.Column("started_at", col.Moment, nullable=False),
    sa.Column("lease_until", col.Moment, nullable=False),  # a run that has not ended by then was interrupted
    sa.Column("finished_at", col.Moment),
    col.of_user(),
)
sa.Index("ix_fold_runs_started_at", fold_runs.c.started_at)

# What was separated for everybody: two posts on different sides of one parting are never in one story again.
posts_apart = col.table(
    "posts_apart",
    col.refers_to("posts"),
    *col.required(parting_id=col.BigId, side=col.BigId),
    sa.PrimaryKeyConstraint("post_id", "parting_id"),
)
sa.Index("ix_posts_apart_parting_id", posts_apart.c.parting_id)

# What a tenant has undone, or taken out of a story, and where its posts are for this tenant: see
# store/stories/partings.py.
story_partings = col.table(
    "story_partings",
    col.own_id(),
    col.refers_to("tenants"),
    sa.Column("user_id", col.BigId),  # who; the parting stays when they go
    sa.Column("parted_at", col.Moment, nullable=False),
    sa.Column("action", sa.String(10), nullable=False),  # parted, undone
    *col.required(story_id=col.BigId, post_id=col.BigId),
    sa.Column("members", col.Json, nullable=False),  # the story as it was
    sa.UniqueConstraint("tenant_id", "id"),
    sqlite_autoincrement=True,
)
sa.Index("ix_story_partings_story", story_partings.c.tenant_id, story_partings.c.story_id, story_partings.c.id)

story_sides = col.table(
    "story_sides",
    col.refers_to("tenants"),
    col.refers_to("posts"),
    sa.Column("parting_id", col.BigId, nullable=False),
    sa.Column("side", col.BigId, nullable=False),  # named after the first post on it
    sa.PrimaryKeyConstraint("tenant_id", "post_id"),
    sa.ForeignKeyConstraint(
        ["tenant_id", "parting_id"], ["story_partings.tenant_id", "story_partings.id"], ondelete="CASCADE"
    ),
)
sa.Index("ix_story_sides_post", story_sides.c.post_id)
sa.Index("ix_story_sides_side", story_sides.c.tenant_id, story_sides.c.side)

# Images by their address: see store/images/__init__.py and queue.py. next_try_at is NULL if nothing is left to do.
images = col.table(
    "images",
    col.own_id(),
    sa.Column("url_key", sa.LargeBinary, nullable=False, unique=True),  # a hash: addresses are too long for an index
    *col.required(url=sa.Text, host=sa.Text, state=sa.String(10), created_at=col.Moment),
    sa.Column("next_try_at", col.Moment),
    *col.lease(),
    # How it went.
    col.counter("attempts"),
    *col.optional(tried_at=col.Moment, error_code=sa.Text, error=sa.Text),
    # What was saved.
    *col.optional(saved_at=col.Moment, content_hash=sa.String(64)),
    sa.Column("path", sa.Text),  # below the folder for images
    *col.optional(type=sa.String(20), size=sa.Integer, width=sa.Integer, height=sa.Integer),
    sa.Column("metadata", col.Json, nullable=False, server_default="{}"),  # what its server said about it
    sqlite_autoincrement=True,
)
col.partial_index("ix_images_waiting", images.c.host, images.c.next_try_at, images.c.id, where="state = 'waiting'")
sa.Index("ix_images_content", images.c.content_hash, images.c.size)
# Not of all states, or SQLite would use this one instead of the first.
col.partial_index("ix_images_settled", images.c.state, images.c.id, where="state <> 'waiting'")

post_images = col.table(
    "post_images",
    col.refers_to("posts"),
    col.refers_to("images"),
    col.refers_to("sources"),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("alt", sa.Text, nullable=False, server_default=""),
    sa.PrimaryKeyConstraint("post_id", "image_id"),
)
sa.Index("ix_post_images_image", post_images.c.image_id, post_images.c.source_id)
sa.Index("ix_post_images_source", post_images.c.source_id, post_images.c.image_id)
