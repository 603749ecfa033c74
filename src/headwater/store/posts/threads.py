"""Threads: a first post and the replies to it, which the stream shows as one entry.

A post that is part of a thread has a row in `thread_posts`, which is written in the transaction that writes the post.
All posts of a thread are of one source, so whoever may see one of them may see them all. A reply whose first post is
not stored stands alone until it is. If the post that it answers is a reply to something that is not stored, that one
stands in as the first.

A thread stands in the stream where its newest post stands, and is shown as its first one. For a reader, only posts
that are folded with no others are part of the entry: those that tell a story stand where their story stands. If the
first post is such a one, its replies are an entry that is shown as the newest of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.model import Post, Reader
from headwater.store.sql import Prepared, columns, portable
from headwater.store.stories import folded
from headwater.store.stories.folded import FoldSettings, StreamPart

MOST_COUNTED = 10_000  # replies of one thread
MOST_NEW = 100  # replies that the reader has not read, of one thread


class NewPost(NamedTuple):
    """A post that was just written, for finding its thread."""

    id: int
    source_id: int
    post: Post

    @property
    def named(self) -> str | None:
        """The thread that it names, or the post that it answers."""
        post = self.post
        reference = post.reference.id if post.reference and post.reference.kind == "reply" else None
        name = post.thread or reference
        return name if name != post.source_post_id else None


class ThreadRow(NamedTuple):
    post_id: int
    source_id: int
    thread: str
    first_id: int | None
    created_at: datetime


class Thread(NamedTuple):
    """A thread as an entry of the stream. `until` is the reply that was stored last.

    `first_tells` says that its first post is part of a story of several posts, which is an entry of its own.
    """

    post_id: int
    first_id: int
    first_tells: bool
    first_is_read: bool
    replies: int
    new_replies: int
    until: int

    @property
    def shown_id(self) -> int:
        return self.post_id if self.first_tells else self.first_id

    @property
    def state(self) -> str:
        """unread, read, or updated: its first post was read and has new replies."""
        if self.first_tells or self.first_is_read:
            return "read" if not self.new_replies else "unread" if self.first_tells else "updated"
        return "unread"


class ThreadOfPost(NamedTuple):
    """The thread that a post is in, and how many replies are stored."""

    first_id: int
    replies: int


class _Named(NamedTuple):
    """A post that others answer, by what they call it. `first_id` is the first post of its thread, if it is a reply."""

    name: str
    id: int
    first_id: int | None


class _Waiting(NamedTuple):
    post_id: int
    named_id: int


_insert = portable(
    f"INSERT INTO thread_posts ({columns(ThreadRow)}) VALUES (?, ?, ?, ?, ?) ON CONFLICT (post_id) DO UPDATE"
    " SET first_id = excluded.first_id"
)
_named_by_id = portable(
    """SELECT p.source_post_id, p.id, t.first_id FROM posts p LEFT JOIN thread_posts t ON t.post_id = p.id
    WHERE p.source_id = ? AND p.source_post_id IN (?)""",
    row=_Named,
)
_named_by_thread = portable(
    """SELECT t.thread, t.post_id, t.first_id FROM thread_posts t
    WHERE t.source_id = ? AND t.thread IN (?) AND t.first_id = t.post_id ORDER BY t.post_id DESC""",
    row=_Named,
)
# CROSS JOIN: SQLite goes from the new posts to the replies. The first kind waits for a post, the second for a thread.
_WAITING = """SELECT w.post_id, n.{id} FROM {new} n CROSS JOIN thread_posts w
    WHERE n.{id} IN (?) AND w.source_id = n.source_id AND w.thread = n.{name} AND w.post_id <> n.{id}
        AND (w.first_id IS NULL OR w.first_id = w.post_id)"""
waiting_for_post = portable(_WAITING.format(new="posts", id="id", name="source_post_id"), row=_Waiting)
waiting_for_thread = portable(_WAITING.format(new="thread_posts", id="post_id", name="thread"), row=_Waiting)
# A reply to what is not stored becomes the first post of its thread; its row is there already.
_begin = portable(
    """INSERT INTO thread_posts (post_id, source_id, thread, first_id, created_at)
    SELECT id, source_id, source_post_id, id, created_at FROM posts WHERE id IN (?)
    ON CONFLICT (post_id) DO UPDATE SET first_id = excluded.first_id"""
)
_set_first = portable("UPDATE thread_posts SET first_id = ? WHERE post_id = ? OR first_id = ?")

_IN_THREAD = """FROM thread_posts one WHERE one.first_id = {thread}.first_id"""
_mark_until = portable(
    """SELECT one.post_id FROM thread_posts last JOIN thread_posts one ON one.first_id = last.first_id
    WHERE last.post_id IN (?) AND one.post_id <= last.post_id AND one.post_id <> one.first_id"""
)
_thread_of = portable(
    f"""SELECT own.first_id, (SELECT count(*) FROM (SELECT 1 {_IN_THREAD.format(thread="own")} LIMIT ?) AS counted) - 1
    FROM thread_posts own WHERE own.post_id = ? AND own.first_id IS NOT NULL""",
    row=ThreadOfPost,
)
_replies = portable(
    """SELECT one.post_id FROM thread_posts one WHERE one.first_id = :first_id AND one.post_id <> :first_id
        AND (one.created_at, one.post_id) > (:created_at, :post_id)
    ORDER BY one.created_at, one.post_id LIMIT :limit"""
)


def is_shown(level: str, *, folder: bool, source: bool) -> str:
    """Returns the condition that the post `p` is where its thread stands: it is the newest post of it. A post that is
    folded with others stands where its story stands.

    It is no NOT EXISTS, which PostgreSQL would make a join of all posts of the stream, sorted at the end.
    """
    alone = partial(folded.is_alone, level=level, folder=folder, source=source)
    return f"""(SELECT 1 FROM thread_posts mine
        WHERE mine.post_id = p.id AND mine.source_id + 0 IN ({folded.foldable(folder=folder, source=source)})
            AND EXISTS (SELECT 1 FROM thread_posts newer WHERE newer.first_id = mine.first_id
                AND (newer.created_at, newer.post_id) > (mine.created_at, mine.post_id)
                AND {alone("newer.post_id")})
            AND {alone("mine.post_id")} LIMIT 1) IS NULL"""


def has_news(level: str, otherwise: str, *, folder: bool, source: bool) -> str:
    """Returns the condition that the thread of the post `p` has something that was not read; of a post that is in no
    thread, `otherwise`."""
    alone = partial(folded.is_alone, level=level, folder=folder, source=source)
    mine = f"""SELECT 1 FROM thread_posts mine
        WHERE mine.post_id = p.id AND mine.source_id + 0 IN ({folded.foldable(folder=folder, source=source)})
            AND mine.first_id IS NOT NULL AND {alone("mine.post_id")}"""
    return f"""CASE WHEN EXISTS ({mine})
        THEN EXISTS ({mine} AND EXISTS (SELECT 1 FROM thread_posts one WHERE one.first_id = mine.first_id
            AND NOT {folded.is_read("one")} AND (one.post_id <> one.first_id OR {alone("one.post_id")})))
        ELSE {otherwise} END"""


@cache
def threads_statement(level: str, folder: bool, source: bool) -> Prepared[Thread]:
    """Returns the query for the threads that stand at posts."""
    alone = partial(folded.is_alone, level=level, folder=folder, source=source)
    every = _IN_THREAD.format(thread="mine")
    unread = f"{every} AND one.post_id <> one.first_id AND NOT {folded.is_read('one')}"
    return portable(
        f"""SELECT mine.post_id, mine.first_id, NOT {alone("mine.first_id")}, {folded.is_read("mine", "first_id")},
            (SELECT count(*) FROM (SELECT 1 {every} LIMIT :most) AS counted) - 1,
            (SELECT count(*) FROM (SELECT 1 {unread} LIMIT :most_new) AS counted),
            (SELECT max(one.post_id) {every})
        FROM thread_posts mine WHERE mine.post_id IN (:ids) AND mine.first_id IS NOT NULL
            AND mine.source_id + 0 IN ({folded.foldable(folder=folder, source=source)}) AND {alone("mine.post_id")}""",
        row=Thread,
    )


def standing_at(
    conn: Connection,
    reader: Reader,
    wanted: FoldSettings,
    post_ids: Sequence[int],
    part: StreamPart = StreamPart(),
) -> dict[int, Thread]:
    """Returns the threads that stand at these posts and have replies."""
    found = threads_statement(wanted.level, part.folder is not None, part.source_id is not None).all(
        conn,
        **reader.key,
        threshold=wanted.threshold,
        ids=list(post_ids),
        **part._asdict(),
        most=MOST_COUNTED,
        most_new=MOST_NEW,
    )
    return {one.post_id: one for one in found if one.replies}


def thread_of(conn: Connection, post_id: int) -> ThreadOfPost | None:
    """Returns the thread that a post is in; None if it is in none, or if its first post is not stored."""
    return _thread_of.first(conn, MOST_COUNTED, post_id)


def replies(conn: Connection, first_id: int, after: tuple[datetime, int] | None, limit: int) -> list[int]:
    """Returns the next replies of a thread, the oldest first."""
    created_at, post_id = after or (datetime.min.replace(tzinfo=UTC), 0)
    own = {"first_id": first_id, "created_at": created_at, "post_id": post_id, "limit": limit}
    return _replies.values(conn, **own)


def stored_until(conn: Connection, last_ids: Sequence[int]) -> list[int]:
    """Returns each of these replies and those of its thread that were stored before it."""
    return _mark_until.values(conn, list(last_ids)) if last_ids else []


def connect(conn: Connection, written: Sequence[NewPost]) -> None:
    """Finds the threads of posts that were just written, and the replies that waited for one of them."""
    if not written:
        return
    links: dict[int, int] = {}  # from a reply to the post that it answers
    firsts: dict[int, int] = {}  # of the threads of posts that are answered
    openings = _opened(conn, [one for one in written if one.post.opens_thread and one.named])
    replies = [one for one in written if one.named and not one.post.opens_thread]
    for source_id, some in _by_source(replies).items():
        names = list({one.named for one in some})
        found = {one.name: one for one in _named_by_id.all(conn, source_id, names)}
        found.update((one.name, one) for one in _named_by_thread.all(conn, source_id, names))
        firsts.update((one.id, one.first_id) for one in found.values() if one.first_id is not None)
        links.update((one.id, found[one.named].id) for one in some if one.named in found)
    waiting = waiting_for_post.all(conn, [one.id for one in written])
    waiting += waiting_for_thread.all(conn, openings) if openings else []
    links.update(waiting)
    found_firsts = roots(links, firsts)
    _insert.many(conn, [_row(one, found_firsts.get(one.id)) for one in replies])
    if found_firsts:
        _begin.once(conn, list(set(found_firsts.values())))
    moved = [(found_firsts[one.post_id], one.post_id, one.post_id) for one in waiting if one.post_id in found_firsts]
    _set_first.many(conn, moved)


def _row(one: NewPost, first_id: int | None) -> ThreadRow:
    return ThreadRow(one.id, one.source_id, one.named or "", first_id, one.post.created_at)


def roots(links: Mapping[int, int], firsts: Mapping[int, int]) -> dict[int, int]:
    """Returns, for each post that answers another, the post at the end of its links, or the first of that one's thread.
    Posts that answer each other in a circle have none. Pure."""
    found: dict[int, int] = {}
    for start in links:
        path = [start]
        seen = {start}
        while (after := links.get(path[-1])) is not None and after not in seen and path[-1] not in found:
            path.append(after)
            seen.add(after)
        last = path[-1]
        if last in found:
            root = found[last]
        elif after is not None:
            continue  # a circle
        else:
            root = firsts.get(last, last)
        found.update((one, root) for one in path if one in links and one != root)
    return found


def _opened(conn: Connection, openings: Sequence[NewPost]) -> list[int]:
    """Writes the rows of posts that open a thread. Returns them; a thread that is known is not opened again."""
    opened = []
    for source_id, some in _by_source(openings).items():
        before = {one.name for one in _named_by_thread.all(conn, source_id, list({one.named for one in some}))}
        fresh = {one.named: one for one in reversed(some) if one.named not in before}
        _insert.many(conn, [_row(one, one.id) for one in fresh.values()])
        opened += [one.id for one in fresh.values()]
    return opened


def _by_source(posts: Iterable[NewPost]) -> dict[int, list[NewPost]]:
    found: dict[int, list[NewPost]] = {}
    for one in posts:
        found.setdefault(one.source_id, []).append(one)
    return found
