"""Posts as a reader sees them: the stream, newest first, single posts, and what a post said before.

A page of the stream ends at a position that stays right while new posts arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.fleet import mentions
from headwater.store.fleet.mentions import NamingPost, Signal
from headwater.store.log import outbox
from headwater.store.posts import search, threads
from headwater.store.posts.threads import Thread
from headwater.store.sql import Prepared, columns, picked, portable
from headwater.store.stories import folded, tellings
from headwater.store.stories.folded import Entry, FoldSettings, ShownMember, StreamPart
from headwater.store.stories.tellings import TellingNews


class StreamPosition(NamedTuple):
    """Where a page ended. The next page holds what comes after it."""

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


class Marks(NamedTuple):
    """What a reader says about posts; None: as it is. What joined their stories after `as_of` was not seen.

    `replies_until` are replies that are read with those of their threads that were stored before them.
    """

    read: bool | None = None
    starred: bool | None = None
    as_of: int | None = None
    replies_until: Sequence[int] = ()


class Story(NamedTuple):
    """Posts about one event: the one that it is shown as in full, a few members, and how many there are.

    `at` is where it stands in the stream. `state` is unread, updated or read; `news` are the tellings that make it
    updated, and `told` is what they say. `as_of` is what had arrived when the story was read from the store. `thread`
    is set if what stands here is a post with replies, or the replies to one that tells a story. `signals` are what it
    names of what the reader has (`with_signals`).
    """

    story_id: str
    post: StreamPost
    members: list[ShownMember]
    tellings: int
    at: StreamPosition
    state: str
    news: list[ShownMember]
    told: dict[int, TellingNews]
    as_of: int
    signals: list[Signal] = []
    thread: Thread | None = None


class Filter(NamedTuple):
    """Which part of the stream: all of it, or one source, one folder, only unread, starred, or with these words.

    `signals`: only what names something that the reader has, such as a model of machines.
    """

    source_id: int | None = None
    folder: str | None = None
    unread: bool = False
    starred: bool = False
    words: str | None = None
    signals: bool = False

    @property
    def is_listed(self) -> bool:
        """Whether an index lists the posts, so that they are shown one by one, as they were found."""
        return self.words is not None or self.signals


class PostVersion(NamedTuple):
    """A text of a post. It was current from `valid_from`, when we first saw it, until `valid_to`; None: it still is."""

    version: int
    url: str | None
    title: str
    content: str
    author: str | None
    valid_from: datetime
    valid_to: datetime | None


EVERYTHING = Filter()
MOST_MATCHES = 2_000  # of words, to look at together if another filter rejects most of them

_OWN = "tenant_id = :tenant_id AND user_id = :user_id"
# A tenant sees a post only through a subscription. The stream is read along its index, and each post is checked for a
# subscription. `+ 0` keeps the planner from reading subscription by subscription and sorting everything at the end.
# `folded.prepared` says how PostgreSQL checks it.
_THROUGH = f"p.source_id + 0 IN (SELECT source_id FROM subscriptions WHERE {_OWN}{{folder}})"
_VISIBLE = """SELECT p.id, p.source_id, COALESCE(NULLIF(COALESCE(own.title, s.title), ''), s.address), s.kind,
        p.source_post_id, p.url, p.title, p.content, p.author, p.created_at, p.fetched_at, p.version, p.lang, p.score,
        p.num_comments, p.extra, state.read_at IS NOT NULL, state.starred_at IS NOT NULL
    FROM {table} p JOIN sources s ON s.id = p.source_id
    LEFT JOIN subscriptions own
        ON own.tenant_id = :tenant_id AND own.user_id = :user_id AND own.source_id = p.source_id
    LEFT JOIN post_states state
        ON state.tenant_id = :tenant_id AND state.user_id = :user_id AND state.post_id = p.id
    WHERE """


def _visible(table: str, wanted: str, *, folder: bool = False) -> Prepared[StreamPost]:
    """Prepares the query for posts that a reader may see and that meet a condition."""
    through = _THROUGH.format(folder=" AND folder = :folder" * folder)
    return folded.prepared(_VISIBLE.format(table=table) + through + wanted, StreamPost)


_NAMES_MINE = f"""EXISTS (SELECT 1 FROM post_mentions m JOIN owned_subjects o ON o.subject_id = m.subject_id
        WHERE m.post_id = p.id AND {" AND ".join(f"o.{own}" for own in _OWN.split(" AND "))})"""
_one_post = _visible("posts", " AND p.id = :post_id")
_hot_by_id, _cold_by_id = (_visible(table, " AND p.id IN (:ids)") for table in ("hot_posts", "posts"))
_visible_ids = portable(
    """SELECT p.id FROM posts p WHERE p.id IN (?) AND p.source_id IN
        (SELECT source_id FROM subscriptions WHERE tenant_id = ? AND user_id = ?)"""
)
_SET_STATE = """INSERT INTO post_states (tenant_id, user_id, post_id, {name}) VALUES (?, ?, ?, ?)
    ON CONFLICT (tenant_id, user_id, post_id) DO UPDATE SET {name} = excluded.{name}"""
_set_read = portable(_SET_STATE.format(name="read_at"))
_set_starred = portable(_SET_STATE.format(name="starred_at"))
_changed = portable("SELECT changed FROM users WHERE tenant_id = ? AND id = ?")
_folders = portable(
    "SELECT DISTINCT folder FROM subscriptions WHERE tenant_id = ? AND user_id = ? AND folder IS NOT NULL"
)
_VERSION = columns(PostVersion)
_current_version = portable(f"SELECT {_VERSION.replace('valid_to', 'NULL')} FROM posts WHERE id = ?", row=PostVersion)
_revision = portable("SELECT revision FROM posts WHERE id = ?")
_past_versions = portable(
    f"SELECT {_VERSION} FROM post_versions WHERE post_id = ? ORDER BY version DESC", row=PostVersion
)


def page(
    conn: Connection,
    reader: Reader,
    wanted: Filter = EVERYTHING,
    *,
    after: StreamPosition | None = None,
    limit: int = 50,
) -> list[Story]:
    """Returns the next stories after `after`. Posts that were searched for, starred or signals are not folded."""
    as_of = folded.last_arrival(conn, reader)  # before the posts: what arrives in between was not seen
    fold = folded.settings_of(conn, reader)
    alone = fold.level == "off" or wanted.starred or wanted.is_listed
    found = posts_page(conn, reader, wanted, after=after, limit=limit, fold=None if alone else fold)
    ids = [post.id for post in found]
    part = StreamPart(wanted.folder, wanted.source_id)
    entries = {} if alone else folded.entries(conn, reader, fold, ids, part)
    standing = {} if alone else threads.standing_at(conn, reader, fold, ids, part)
    elsewhere = [one.shown_id for at in (entries, standing) for place, one in at.items() if one.shown_id != place]
    shown = {post.id: post for post in [*found, *posts_by_id(conn, reader, elsewhere)]} if elsewhere else {}
    told = tellings.news(conn, [one.post_id for entry in entries.values() for one in (*entry.members, *entry.news)])
    return [
        _story(post, shown.get(entry.shown_id, post), entry, told, as_of)
        if (entry := entries.get(post.id))
        else _thread(post, shown.get(thread.shown_id, post), thread, as_of)
        if (thread := standing.get(post.id))
        else _only(post, as_of)
        for post in found
    ]


def posts_page(
    conn: Connection,
    reader: Reader,
    wanted: Filter = EVERYTHING,
    *,
    after: StreamPosition | None = None,
    limit: int = 50,
    fold: FoldSettings | None = None,
) -> list[StreamPost]:
    """Returns the next posts after `after`, from the hot store and, where that ends, from the cold one.

    One source, and starred posts, have an index of their own in the cold store.
    """
    if wanted.is_listed:
        return _listed(conn, reader, wanted, after, limit)
    found: list[StreamPost] = []
    if wanted.source_id is None and not wanted.starred:
        found = _page(conn, "hot_posts", reader, wanted, after=after, limit=limit, fold=fold)
    if len(found) < limit:
        after = StreamPosition(found[-1].created_at, found[-1].id) if found else after
        found += _page(conn, "posts", reader, wanted, after=after, limit=limit - len(found), fold=fold)
    return found


def _listed(
    conn: Connection, reader: Reader, wanted: Filter, after: StreamPosition | None, limit: int
) -> list[StreamPost]:
    """Returns posts that an index lists. If another filter rejects most of them, it looks at more and more."""
    found: list[StreamPost] = []
    last, count = after, limit
    while matches := _matches(conn, reader, wanted, last, count):
        found += _page(conn, "posts", reader, wanted, limit=limit, ids=[one.post_id for one in matches])
        if len(found) >= limit or len(matches) < count:
            break
        last, count = matches[-1], min(2 * count, max(limit, MOST_MATCHES))
    return found[:limit]


def _matches(
    conn: Connection, reader: Reader, wanted: Filter, after: StreamPosition | None, limit: int
) -> list[StreamPosition]:
    """Returns posts with all these words, posts that name what the reader has, or those that do both."""
    if wanted.words is None:
        listed = mentions.newest(conn, reader, before=NamingPost(*after) if after else None, limit=limit)
        return [StreamPosition(*one) for one in listed]
    last = search.Match(after.post_id, after.created_at) if after else None
    found = search.find(conn, reader, wanted.words, after=last, limit=limit)
    return [StreamPosition(one.created_at, one.id) for one in found]


def _page(
    conn: Connection,
    table: str,
    reader: Reader,
    wanted: Filter,
    *,
    after: StreamPosition | None = None,
    limit: int,
    fold: FoldSettings | None = None,
    ids: list[int] | None = None,
) -> list[StreamPost]:
    statement = page_statement(
        table,
        after=after is not None,
        folder=wanted.folder is not None,
        source=wanted.source_id is not None,
        unread=wanted.unread,
        starred=wanted.starred,
        ids=ids is not None,
        signals=wanted.signals and wanted.words is not None,
        fold=fold.level if fold else None,
    )
    return statement.all(
        conn,
        **reader.key,
        created_at=after.created_at if after else None,
        post_id=after.post_id if after else None,
        folder=wanted.folder,
        source_id=wanted.source_id,
        threshold=fold.threshold if fold else None,
        ids=ids,
        limit=limit,
    )


@cache
def page_statement(
    table: str,
    *,
    after: bool = False,
    folder: bool = False,
    source: bool = False,
    unread: bool = False,
    starred: bool = False,
    ids: bool = False,
    signals: bool = False,
    fold: str | None = None,
) -> Prepared[StreamPost]:
    """Returns the query for a page of `posts` or `hot_posts`, with those of its conditions that are wanted."""
    within = {"folder": folder, "source": source}
    unread_post = "state.read_at IS NULL"
    unread_entry = threads.has_news(fold, folded.has_news(fold, **within), **within) if fold else unread_post
    conditions = {
        "p.created_at > (SELECT since FROM hot_window)": table == "hot_posts",
        "(p.created_at, p.id) < (:created_at, :post_id)": after,
        "p.source_id = :source_id": source,
        unread_entry: unread,
        f"p.id IN (SELECT post_id FROM post_states WHERE {_OWN} AND starred_at IS NOT NULL)": starred,
        "p.id IN (:ids)": ids,
        _NAMES_MINE: signals,
        folded.is_shown(fold, **within) if fold else "": fold is not None,
        threads.is_shown(fold, **within) if fold else " ": fold is not None,
    }
    wanted = "".join(f"\n    AND {condition}" for condition, is_wanted in conditions.items() if is_wanted)
    return _visible(table, f"{wanted}\n    ORDER BY p.created_at DESC, p.id DESC LIMIT :limit", folder=folder)


def with_signals(conn: Connection, reader: Reader, stories: Sequence[Story]) -> list[Story]:
    """Returns stories with what they name of what the reader has: in the post they are shown as, or a shown member."""
    posts = [{story.post.id, *(one.post_id for one in story.members)} for story in stories]
    found: dict[int, list[Signal]] = {}
    for one in mentions.of_posts(conn, reader, sorted(set().union(*posts))):
        found.setdefault(one.post_id, []).append(one)
    if not found:
        return list(stories)
    return [story._replace(signals=_signals(ids, found)) for story, ids in zip(stories, posts, strict=True)]


def _signals(ids: set[int], found: Mapping[int, list[Signal]]) -> list[Signal]:
    """Returns each thing that is named once, what is most the reader's own first."""
    every = {(one.kind, one.name): one for post_id in sorted(ids, reverse=True) for one in found.get(post_id, ())}
    return sorted(every.values(), key=lambda one: (("model", "pool", "maker", "coin").index(one.kind), one.name))


def version(conn: Connection, tenant_id: int, user_id: int) -> str:
    """Names what a reader sees in the stream now. It is another name after every event, and after whatever the reader
    did: a change of marks, subscriptions or settings. Scores and numbers of comments have no part in it.
    """
    return f"{_changed.value(conn, tenant_id, user_id)}.{outbox.version(conn)}"


def one_post(conn: Connection, reader: Reader, post_id: int) -> StreamPost | None:
    return _one_post.first(conn, **reader.key, post_id=post_id)


def posts_by_id(conn: Connection, reader: Reader, post_ids: Sequence[int]) -> list[StreamPost]:
    """Returns those of these posts that the reader may see, in the order of the ids. Hot ones are read there alone."""
    own = reader.key
    found = {post.id: post for post in _hot_by_id.all(conn, **own, ids=list(post_ids))}
    if older := [post_id for post_id in post_ids if post_id not in found]:
        found.update((post.id, post) for post in _cold_by_id.all(conn, **own, ids=older))
    return [found[post_id] for post_id in post_ids if post_id in found]


def mark_posts(conn: Connection, reader: Reader, post_ids: Sequence[int], now: datetime, marks: Marks) -> int:
    """Marks those of these posts that the reader may see. Returns how many there are.

    Reading one post of a story reads all posts that are folded with it and that the reader had seen.
    """
    ids: list[int] = _visible_ids.values(conn, list(post_ids), reader.tenant_id, reader.user_id)
    if marks.read is not None:
        both = folded.with_folded(conn, reader, ids, marks.as_of if marks.read else None)
        if marks.read and marks.replies_until:
            last = _visible_ids.values(conn, list(marks.replies_until), reader.tenant_id, reader.user_id)
            both = sorted({*both, *threads.stored_until(conn, last)})
        _mark(conn, _set_read, reader, both, now if marks.read else None)
    if marks.starred is not None:
        _mark(conn, _set_starred, reader, ids, now if marks.starred else None)
    return len(ids)


def visible(conn: Connection, reader: Reader, post_ids: Sequence[int]) -> list[int]:
    """Returns those of these posts that the reader may see, in their order."""
    seen = set(_visible_ids.values(conn, list(post_ids), reader.tenant_id, reader.user_id))
    return [post_id for post_id in post_ids if post_id in seen]


def _mark(conn: Connection, statement: Prepared, reader: Reader, ids: Sequence[int], time: datetime | None) -> None:
    statement.many(conn, [(reader.tenant_id, reader.user_id, post_id, time) for post_id in ids])


def folders(conn: Connection, reader: Reader) -> list[str]:
    return sorted(_folders.values(conn, reader.tenant_id, reader.user_id))


def replies(
    conn: Connection, reader: Reader, first_id: int, *, after: StreamPosition | None = None, limit: int
) -> list[StreamPost]:
    """Returns the next replies of the thread that began with a post, the oldest first."""
    return posts_by_id(conn, reader, threads.replies(conn, first_id, after, limit))


def versions(conn: Connection, reader: Reader, post_id: int) -> list[PostVersion]:
    """Returns every text that a post has had, the newest first; none if the reader may not see the post."""
    if one_post(conn, reader, post_id) is None:
        return []
    return [*_current_version.all(conn, post_id), *_past_versions.all(conn, post_id)]


def revision(conn: Connection, post_id: int) -> int:
    """Returns how many states of a post were seen: each other text, score or number of comments is one."""
    return int(_revision.value(conn, post_id))


def version_at(found: Sequence[PostVersion], at: datetime) -> PostVersion | None:
    """Returns the version that was current at this time; None: the post was not known then. Pure."""
    return next((one for one in found if one.valid_from <= at and (one.valid_to is None or at < one.valid_to)), None)


def _story(standing: StreamPost, shown: StreamPost, entry: Entry, told: Mapping[int, TellingNews], as_of: int) -> Story:
    state = "updated" if entry.news else "read" if entry.is_read else "unread"
    mine = {one.post_id: told[one.post_id] for one in (*entry.members, *entry.news) if one.post_id in told}
    return Story(
        story_id=str(entry.story_id),
        post=shown._replace(read=state == "read"),
        members=entry.members,
        tellings=entry.tellings,
        at=StreamPosition(standing.created_at, standing.id),
        state=state,
        news=entry.news,
        told=mine,
        as_of=as_of,
    )


def _thread(standing: StreamPost, shown: StreamPost, thread: Thread, as_of: int) -> Story:
    """Returns a thread as an entry: its first post, or the newest reply if the first post tells a story."""
    at = StreamPosition(standing.created_at, standing.id)
    entry = _only(shown._replace(read=thread.state == "read"), as_of)
    return entry._replace(at=at, state=thread.state, thread=thread)


def _only(post: StreamPost, as_of: int) -> Story:
    """Returns a post that is not folded as the only member of its story."""
    mine = {"post_id": post.id, "repeat_id": post.id, "story_id": post.id, "says_new": True, "seq": 0}
    member = picked(ShownMember, post, **mine, rule="first", score=1.0, why="")
    at = StreamPosition(post.created_at, post.id)
    return Story(str(post.id), post, [member], 1, at, "read" if post.read else "unread", [], {}, as_of)
