"""The stream as a reader sees it: newest first, paged by a cursor that stays right while new posts arrive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, func, literal, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from headwater.model import Reader
from headwater.store.posts import search
from headwater.store.sql import Moment
from headwater.store.stories import folded
from headwater.store.stories.folded import FoldSettings, ShownMember
from headwater.store.tables import hot_window, post_states, posts, posts_hot, sources, subscriptions


class StreamPosition(NamedTuple):
    """Where a page ended: the next one holds what comes after it."""

    created_at: datetime
    post_id: int


class StreamPost(NamedTuple):
    id: int
    source_id: int
    source: str
    source_kind: str
    source_post_id: str
    url: str | None
    title: str
    content: str
    author: str | None
    created_at: datetime
    fetched_at: datetime
    version: int
    lang: str | None
    score: int | None
    num_comments: int | None
    extra: dict[str, Any]
    read: bool
    starred: bool


class Story(NamedTuple):
    """Posts about one event: the representative in full, and all members, the earliest first."""

    story_id: str
    post: StreamPost
    members: list[ShownMember]


class Filter(NamedTuple):
    """Which part of the stream: all of it, or one source, one folder, only unread, starred, or with these words."""

    source_id: int | None = None
    folder: str | None = None
    unread: bool = False
    starred: bool = False
    words: str | None = None


EVERYTHING = Filter()
MOST_LOOKS = 50  # into the index for one page, where another filter leaves little of what has the words


def page(
    conn: Connection,
    reader: Reader,
    wanted: Filter = EVERYTHING,
    *,
    after: StreamPosition | None = None,
    limit: int = 50,
) -> list[Story]:
    """The next stories after `after`. What was searched for or starred stands alone: that very post is wanted."""
    fold = folded.settings_of(conn, reader)
    alone = fold.level == "off" or wanted.starred or wanted.words is not None
    found = posts_page(conn, reader, wanted, after=after, limit=limit, fold=None if alone else fold)
    members = {} if alone else folded.members(conn, reader, fold, [post.id for post in found])
    return [_story(post, members.get(post.id) or [_only(post)]) for post in found]


def posts_page(
    conn: Connection,
    reader: Reader,
    wanted: Filter = EVERYTHING,
    *,
    after: StreamPosition | None = None,
    limit: int = 50,
    fold: FoldSettings | None = None,
) -> list[StreamPost]:
    """The next posts after `after`: from the hot store, and where that ends, on from there in the cold one.

    One source, and what is starred, have an index of their own in the cold store.
    """
    if wanted.words is not None:
        return _with_words(conn, reader, wanted, wanted.words, after, limit)
    found = []
    if wanted.source_id is None and not wanted.starred:
        query = page_query(reader, wanted, after=after, limit=limit, fold=fold, kept=posts_hot)
        found = [_stream_row(row) for row in conn.execute(query)]
    if len(found) < limit:
        after = StreamPosition(found[-1].created_at, found[-1].id) if found else after
        query = page_query(reader, wanted, after=after, limit=limit - len(found), fold=fold)
        found += [_stream_row(row) for row in conn.execute(query)]
    return found


def _with_words(
    conn: Connection, reader: Reader, wanted: Filter, words: str, after: StreamPosition | None, limit: int
) -> list[StreamPost]:
    """Posts with all these words, the last stored first: that is the order in which the index can be walked."""
    found: list[StreamPost] = []
    before = after.post_id if after else None
    for _ in range(MOST_LOOKS):
        ids = search.find(conn, reader, words, before=before, limit=limit)
        if not ids:
            break
        here = page_query(reader, wanted, limit=limit).where(posts.c.id.in_(ids))
        found += sorted((_stream_row(row) for row in conn.execute(here)), key=lambda post: -post.id)
        if len(found) >= limit or len(ids) < limit:
            break
        before = ids[-1]
    return found[:limit]


def page_query(
    reader: Reader,
    wanted: Filter = EVERYTHING,
    *,
    after: StreamPosition | None = None,
    limit: int = 50,
    fold: FoldSettings | None = None,
    kept: Table = posts,
) -> Any:
    """The query for a page: of all posts, or of those that are in the hot store (`kept`)."""
    query = _visible(reader, wanted.folder, kept).order_by(kept.c.created_at.desc(), kept.c.id.desc()).limit(limit)
    if kept is posts_hot:
        query = query.where(kept.c.created_at > select(hot_window.c.since).scalar_subquery())
    if after is not None:
        place = tuple_(literal(after.created_at, Moment()), literal(after.post_id))
        query = query.where(tuple_(kept.c.created_at, kept.c.id) < place)
    if wanted.source_id is not None:
        query = query.where(kept.c.source_id == wanted.source_id)
    if wanted.unread:
        query = query.where(post_states.c.read_at.is_(None))
    if wanted.starred:
        starred = select(post_states.c.post_id).where(_own(post_states, reader), post_states.c.starred_at.is_not(None))
        query = query.where(kept.c.id.in_(starred))
    if fold is not None:
        query = query.where(folded.is_shown(reader, fold, kept.c.id, folder=wanted.folder, source_id=wanted.source_id))
    return query


def one_post(conn: Connection, reader: Reader, post_id: int) -> StreamPost | None:
    row = conn.execute(_visible(reader).where(posts.c.id == post_id)).first()
    return _stream_row(row) if row else None


def posts_by_id(conn: Connection, reader: Reader, post_ids: Sequence[int]) -> list[StreamPost]:
    """Those of these posts that the reader may see, in the order of the ids."""
    found = {row.id: row for row in conn.execute(_visible(reader).where(posts.c.id.in_(post_ids)))}
    return [_stream_row(found[post_id]) for post_id in post_ids if post_id in found]


def mark_posts(conn: Connection, reader: Reader, post_ids: Sequence[int], now: datetime, **state: bool) -> int:
    """Set `read` and/or `starred` on posts the reader may see; returns how many there were.

    Reading one post of a story reads all that is folded with it.
    """
    visible = _visible(reader).with_only_columns(posts.c.id).where(posts.c.id.in_(post_ids))
    ids = list(conn.execute(visible).scalars())
    if "read" in state:
        _set_state(conn, reader, folded.with_folded(conn, reader, ids), {"read_at": now if state["read"] else None})
    if "starred" in state:
        _set_state(conn, reader, ids, {"starred_at": now if state["starred"] else None})
    return len(ids)


def _set_state(conn: Connection, reader: Reader, ids: Sequence[int], values: dict[str, datetime | None]) -> None:
    if not ids:
        return
    insert = postgresql.insert if conn.dialect.name == "postgresql" else sqlite.insert
    whose = {"tenant_id": reader.tenant_id, "user_id": reader.user_id}
    conn.execute(
        insert(post_states)
        .values([{**whose, "post_id": post_id, **values} for post_id in ids])
        .on_conflict_do_update(index_elements=["tenant_id", "user_id", "post_id"], set_=values)
    )


def folders(conn: Connection, reader: Reader) -> list[str]:
    query = select(subscriptions.c.folder).where(_own(subscriptions, reader), subscriptions.c.folder.is_not(None))
    return sorted(conn.execute(query.distinct()).scalars())


def _story(post: StreamPost, members: list[ShownMember]) -> Story:
    return Story(str(members[0].story_id), post, members)


def _only(post: StreamPost) -> ShownMember:
    why = {"rule": "first", "score": 1.0, "why": "", "repeat_id": post.id, "story_id": post.id}
    return ShownMember(
        post.id,
        post.source_id,
        post.source,
        post.url,
        post.title,
        post.created_at,
        post.read,
        **why,  # type: ignore[arg-type]
    )


def _own(personal: Table, reader: Reader) -> ColumnElement[bool]:
    return and_(personal.c.tenant_id == reader.tenant_id, personal.c.user_id == reader.user_id)


def _visible(reader: Reader, folder: str | None = None, kept: Table = posts) -> Any:
    """A tenant sees a post only through a subscription.

    `+ 0` keeps the planner from walking subscription by subscription and sorting everything at the end: the stream is
    read along its index, and each post is asked whether it is followed.
    """
    followed = select(subscriptions.c.source_id).where(_own(subscriptions, reader))
    if folder is not None:
        followed = followed.where(subscriptions.c.folder == folder)
    own_title = and_(_own(subscriptions, reader), subscriptions.c.source_id == kept.c.source_id)
    own_state = and_(_own(post_states, reader), post_states.c.post_id == kept.c.id)
    return (
        select(
            kept,
            sources.c.kind.label("source_kind"),
            sources.c.address,
            func.coalesce(subscriptions.c.title, sources.c.title).label("source_title"),
            post_states.c.read_at,
            post_states.c.starred_at,
        )
        .join(sources, sources.c.id == kept.c.source_id)
        .outerjoin(subscriptions, own_title)
        .outerjoin(post_states, own_state)
        .where((kept.c.source_id + 0).in_(followed))
    )


def _stream_row(row: Row[Any]) -> StreamPost:
    return StreamPost(
        id=row.id,
        source_id=row.source_id,
        source=row.source_title or row.address,
        source_kind=row.source_kind,
        source_post_id=row.source_post_id,
        url=row.url,
        title=row.title,
        content=row.content,
        author=row.author,
        created_at=row.created_at,
        fetched_at=row.fetched_at,
        version=row.version,
        lang=row.lang,
        score=row.score,
        num_comments=row.num_comments,
        extra=row.extra,
        read=row.read_at is not None,
        starred=row.starred_at is not None,
    )
