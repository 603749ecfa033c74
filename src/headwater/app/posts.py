"""Posts and the stream of stories: reading, searching, marking, and what a post said before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.app.shapes.shape import iso
from headwater.errors import BadInput, NotFound
from headwater.model import Reader
from headwater.store import images, sources
from headwater.store.images import ImageRecord
from headwater.store.posts import search, stream
from headwater.store.posts.stream import Filter, PostVersion, Story, StreamPosition, StreamPost
from headwater.store.sources import WatchedSource


class StreamView(NamedTuple):
    """A page of the stream and what stands around it: the folders, and the one source it is limited to."""

    stories: list[Story]
    folders: list[str]
    source: WatchedSource | None
    follows_nothing: bool


class PostView(NamedTuple):
    """A post in full, with its earlier versions and its images."""

    post: StreamPost
    past: Sequence[PostVersion]
    images: list[ImageRecord]


def read_stream(
    conn: Connection, reader: Reader, wanted: Filter, *, after: StreamPosition | None = None, limit: int
) -> list[Story]:
    """Returns the next stories, the newest first."""
    return stream.page(conn, reader, wanted, after=after, limit=limit)


def stream_view(
    conn: Connection, reader: Reader, now: datetime, wanted: Filter, *, after: StreamPosition | None, limit: int
) -> StreamView:
    stories = stream.page(conn, reader, wanted, after=after, limit=limit)
    follows_nothing = not stories and not sources.watched_after(conn, reader, now, after=None, limit=1)
    source = sources.watched_one(conn, reader, wanted.source_id, now) if wanted.source_id else None
    return StreamView(stories, stream.folders(conn, reader), source, follows_nothing)


def page(
    conn: Connection, reader: Reader, wanted: Filter, *, after: StreamPosition | None = None, limit: int
) -> list[StreamPost]:
    """Returns the next posts, each by itself, the newest first."""
    return stream.posts_page(conn, reader, wanted, after=after, limit=limit)


def find_words(conn: Connection, reader: Reader, words: str, *, limit: int) -> list[StreamPost]:
    """Returns posts that have all these words, the last stored first."""
    return stream.posts_by_id(conn, reader, search.find(conn, reader, words, limit=limit))


def one(conn: Connection, reader: Reader, post_id: int) -> StreamPost:
    found = stream.one_post(conn, reader, post_id)
    if found is None:
        raise NotFound(f"There is no post {post_id}, or you do not follow its source any more.")
    return found


def view(conn: Connection, reader: Reader, post_id: int) -> PostView:
    post = one(conn, reader, post_id)
    past = stream.versions(conn, reader, post_id)[1:] if post.version > 1 else []
    return PostView(post, past, images.of_post(conn, post_id))


def mark(
    conn: Connection,
    reader: Reader,
    ids: Sequence[int],
    now: datetime,
    *,
    read: bool | None = None,
    starred: bool | None = None,
) -> int:
    """Marks posts as read or starred, or takes the mark away. Returns how many of them the reader can see."""
    state = {name: on for name, on in (("read", read), ("starred", starred)) if on is not None}
    if not state:
        raise BadInput("Nothing to change: give read, starred or both.")
    return stream.mark_posts(conn, reader, ids, now, **state)


def mark_one(
    conn: Connection,
    reader: Reader,
    post_id: int,
    now: datetime,
    *,
    read: bool | None = None,
    starred: bool | None = None,
) -> StreamPost:
    """Marks a post and returns it as it is now."""
    mark(conn, reader, [post_id], now, read=read, starred=starred)
    return one(conn, reader, post_id)


def versions(conn: Connection, reader: Reader, post_id: int, at: str | None = None) -> Sequence[PostVersion]:
    """Returns the texts of a post, the newest first, or only the one that it had at a time."""
    found = stream.versions(conn, reader, post_id)
    if not found:
        raise NotFound(f"There is no post {post_id}.")
    if at is None:
        return found
    version = stream.version_at(found, time_named(at))
    if version is None:
        raise NotFound(f"The post {post_id} was not known then. It was first seen at {iso(found[-1].valid_from)}.")
    return [version]


def time_named(text: str) -> datetime:
    """Reads a time in ISO 8601, UTC where no zone is given. A date alone is the end of that day."""
    text = text.strip()
    try:
        return datetime.combine(date.fromisoformat(text), time.max, UTC)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"{text} is not a time. Write 2026-01-07, or 2026-01-07T09:00.") from error
