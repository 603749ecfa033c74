"""The tables of paged sources; `store.tables` has all the others, and these as well."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from headwater.store.metadata import metadata
from headwater.store.types import BigId, Json, Moment

# What lists name: threads of a board, articles of a site. The authority for "seen": see store/items.py.
items = Table(
    "items",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("item_id", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("title", Text, nullable=False, server_default=""),
    Column("mark", Text, nullable=False, server_default=""),  # its state as the list described it
    Column("published_at", Moment),  # as the list said
    Column("state", String(10), nullable=False),  # waiting, done or failed
    Column("attempts", Integer, nullable=False, server_default="0"),  # that failed in a row
    Column("error", Text),
    Column("posts", Integer, nullable=False, server_default="0"),
    Column("pages", Integer, nullable=False, server_default="0"),  # read since the list last named it as new
    Column("resume_url", Text),  # the page to read next; of a settled one, the page where reading ended
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    UniqueConstraint("source_id", "item_id"),
    sqlite_autoincrement=True,
)
Index("ix_items_state", items.c.source_id, items.c.state, items.c.id)

# How far the crawl of a list got: see crawl/checkpoint.py.
checkpoints = Table(
    "checkpoints",
    metadata,
    Column("site", Text, nullable=False),
    Column("board", Text, nullable=False),
    Column("source_id", BigId, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("status", String(10), nullable=False),  # running, completed or error
    Column("error", Text),
    Column("current_page", Integer, nullable=False, server_default="0"),  # list pages read by this crawl
    Column("page_url", Text),  # the list page to ask for next; None: the list was read to its end
    Column("page_request", Json),  # how, where that takes more than its address
    Column("last_thread_id", Text),
    Column("last_thread_url", Text),
    Column("stats", Json, nullable=False, server_default="{}"),
    Column("seen_ids", Json, nullable=False, server_default="[]"),  # the latest ones; only a cache
    Column("min_id", Text),
    Column("max_id", Text),
    Column("started_at", Moment, nullable=False),  # of this crawl
    Column("completed_at", Moment),  # the end of the last complete crawl
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    PrimaryKeyConstraint("site", "board"),
)
Index("ix_checkpoints_source_id", checkpoints.c.source_id)

# What a site asks of programs: one row for each scheme, host and port. See crawl/robots.py.
robots = Table(
    "robots",
    metadata,
    Column("origin", Text, primary_key=True),
    Column("status", Integer, nullable=False),  # what the server answered with
    Column("rules", Text, nullable=False, server_default=""),
    Column("fetched_at", Moment, nullable=False),
)
