"""Posts and their history: which posts of a page are new, which changed, and how that is written.

`contents` reads everything that is stored of each source, for comparing it with what should be stored. The rest of the
package: `stream` reads posts as a reader sees them, `threads` joins replies to their first post, `hot` keeps the
newest ones apart, and `search` finds words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Post, StoredPost
from headwater.store import images
from headwater.store.images import PostImages
from headwater.store.posts import hot, threads
from headwater.store.posts.threads import NewPost
from headwater.store.sql import Prepared, insert_into, json_text, moment, moment_or_none, portable, row_maker
from headwater.urls import identity


class KnownPost(NamedTuple):
    id: int
    source_post_id: str
    url_key: int | None
    text_hash: bytes
    version: int
    score: int | None
    num_comments: int | None
    title: str
    created: Any  # as the driver returned it: few of the known posts are ever asked for it
    dated: bool

    @property
    def created_at(self) -> datetime:
        return moment(self.created)


class Change(NamedTuple):
    """What has to be done about a post. `known` is the stored post that it continues; a new one has a `url_key`."""

    kind: str
    post: Post
    known: KnownPost | None = None
    url_key: int | None = None


_KNOWN = """SELECT id, source_post_id, url_key, text_norm_hash, version, score, num_comments, title, created_at, dated
    FROM posts WHERE source_id = ? AND """
_known_by_id = portable(_KNOWN + "source_post_id IN (?)", row=KnownPost)
_known_by_url = portable(_KNOWN + "url_key IN (?)", row=KnownPost)
_stored_before = portable(
    "SELECT source_post_id FROM posts WHERE source_id = ? AND source_post_id IN (?) AND valid_from <= ?"
)
_newest = portable(
    "SELECT source_post_id, created_at FROM posts WHERE source_id = ? ORDER BY created_at DESC, id DESC LIMIT 1"
)
_COLUMNS = """id, source_id, source_post_id, text_norm_hash, version, revision, url, url_key, title, content, author,
    created_at, dated, fetched_at, valid_from, score, num_comments, lang, reference_kind, reference_id, extra"""
_insert = portable(insert_into("posts", map(str.strip, _COLUMNS.split(","))))
_keep_version = portable(
    """INSERT INTO post_versions
        (post_id, version, text_norm_hash, url, title, content, author, extra, valid_from, valid_to)
    SELECT id, version, text_norm_hash, url, title, content, author, extra, valid_from, ? FROM posts WHERE id = ?"""
)
_edit = portable(
    """UPDATE posts SET text_norm_hash = :text_norm_hash, version = version + 1, revision = revision + 1,
        url = :url, url_key = :url_key,
        title = :title, content = :content, author = :author, fetched_at = :now, valid_from = :now, score = :score,
        num_comments = :num_comments, lang = :lang, extra = :extra
    WHERE id = :id"""
)
_touch = portable("UPDATE posts SET score = ?, num_comments = ?, fetched_at = ?, revision = revision + 1 WHERE id = ?")
_crowded = portable("SELECT post_id FROM post_versions GROUP BY post_id HAVING count(*) > ? LIMIT ?")
_spans = portable("SELECT version, valid_from, valid_to FROM post_versions WHERE post_id = ? ORDER BY version")
_delete_version = portable("DELETE FROM post_versions WHERE post_id = ? AND version = ?")
_last_id = Prepared(sqlite="SELECT COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'posts'), 0)")
_next_ids = Prepared(postgresql="SELECT nextval('posts_id_seq') FROM generate_series(1, ?)")


def url_key(url: str | None) -> int | None:
    """Returns a number for an address that stays the same if only http/https, www or tracking parameters change."""
    if not url:
        return None
    return int.from_bytes(blake2b(identity(url).encode(), digest_size=8).digest(), "big", signed=True)


def changes(posts: Sequence[Post], known: Sequence[KnownPost]) -> list[Change]:
    """Compares a page with what is stored. Pure.

    A post is known by its id. If the id is new, it is still the same post if its address is known, no other post on
    the page uses that address or the stored id, and title or date are unchanged: feeds do change their guids.
    """
    by_id = {post.source_post_id: post for post in known}
    on_page = {post.source_post_id for post in posts}
    keys = [None if post.source_post_id in by_id else url_key(post.url) for post in posts]
    used = Counter(keys)
    by_url = {post.url_key: post for post in known if post.url_key is not None and post.source_post_id not in on_page}
    found = []
    seen: set[str] = set()
    for post, key in zip(posts, keys, strict=True):
        if post.source_post_id in seen:
            continue
        seen.add(post.source_post_id)
        old = by_id.get(post.source_post_id)
        if old is None and key is not None and used[key] == 1:
            old = by_url.get(key)
            if old is not None and not _continues(post, old):
                old = None
        found.append(Change(_kind(post, old), post, old, key))
    return found


def _continues(post: Post, old: KnownPost) -> bool:
    return post.title == old.title or (post.dated and old.dated and post.created_at == old.created_at)


def _kind(post: Post, old: KnownPost | None) -> str:
    if old is None:
        return "new"
    if post.text_hash != old.text_hash:
        return "edited"
    counts = (post.score, post.num_comments)
    return "touched" if counts not in ((None, None), (old.score, old.num_comments)) else "same"


def known_posts(conn: Connection, source_id: int, posts: Sequence[Post]) -> list[KnownPost]:
    """Returns the stored posts that these could be."""
    known = _known_by_id.all(conn, source_id, [post.source_post_id for post in posts])
    found = {post.source_post_id for post in known}
    keys = [key for post in posts if post.source_post_id not in found and (key := url_key(post.url)) is not None]
    return [*known, *_known_by_url.all(conn, source_id, keys)] if keys else known


def save_page(conn: Connection, source_id: int, page: Sequence[Post], now: datetime) -> list[StoredPost]:
    """Stores the posts of one page of a source whose ids are reliable.

    Only ids are compared: the replies of a thread share its address and title and are different posts.
    """
    if not page:
        return []
    stored = _known_by_id.all(conn, source_id, [post.source_post_id for post in page])
    return write_changes(conn, [(source_id, change) for change in changes(page, stored)], now)


def stored_before(conn: Connection, source_id: int, ids: Sequence[str], time: datetime | None) -> set[str]:
    """Returns which of these posts were stored by then and have not changed since."""
    if not ids or time is None:
        return set()
    return set(_stored_before.values(conn, source_id, list(ids), time))


def newest(conn: Connection, source_id: int) -> tuple[str, datetime] | None:
    """Returns the newest post of a source: its id there, and when it was published."""
    for source_post_id, created_at in _newest.all(conn, source_id):
        return source_post_id, moment(created_at)
    return None


def write_changes(conn: Connection, found: Sequence[tuple[int, Change]], now: datetime) -> list[StoredPost]:
    """Writes the changes of many sources, (source_id, change) each, with a few statements. Keeps the order.

    The permanent store is written first, then the hot store, which copies from it.
    """
    fresh = iter(_reserved_ids(conn, sum(1 for _, change in found if change.known is None)))
    stored, inserts, edits, touches = [], [], [], []
    written: list[tuple[int, datetime]] = []
    new: list[NewPost] = []
    for source_id, (kind, post, known, key) in found:
        if known is None:
            post_id = next(fresh)
            inserts.append(_inserted(post_id, source_id, post, key, now))
            stored.append(StoredPost(post_id, kind, 1, post))
            new.append(NewPost(post_id, source_id, post))
            written.append((post_id, post.created_at))
            continue
        if kind != "same":
            written.append((known.id, known.created_at))
        if kind == "edited":
            edits.append(_edited(known.id, post, now))
        elif kind == "touched":
            touches.append((post.score, post.num_comments, now, known.id))
        stored.append(StoredPost(known.id, kind, known.version + (kind == "edited"), post))
    _insert.many(conn, inserts)
    _keep_version.many(conn, [(now, row["id"]) for row in edits])
    _edit.many(conn, edits)
    _touch.many(conn, touches)
    threads.connect(conn, new)
    hot.mirror(conn, written)
    shown = [(source_id, one) for (source_id, _), one in zip(found, stored, strict=True) if one.post.images]
    images.record(conn, [PostImages(source_id, one.id, one.post.images) for source_id, one in shown], now)
    return stored


def thin_versions(conn: Connection, kept: int, limit: int = 500) -> int:
    """Deletes earlier texts of posts that have more than `kept` of them. Returns how many posts had too many.

    A post that changes with every visit would otherwise be stored once for every visit.
    """
    crowded = _crowded.values(conn, kept, limit)
    for post_id in crowded:
        spans = [(version, moment(until) - moment(since)) for version, since, until in _spans.all(conn, post_id)]
        _delete_version.many(conn, [(post_id, version) for version in too_many(spans, kept)])
    return len(crowded)


def too_many(spans: Sequence[tuple[int, timedelta]], kept: int) -> list[int]:
    """Returns the versions to delete, of (version, how long it was current), so that `kept` remain. Pure.

    Those go first that were current for the shortest time; the first and the last stay as long as they can.
    """
    ends = {spans[0][0]: 2, spans[-1][0]: 1} if spans else {}
    by_worth = sorted(spans, key=lambda span: (ends.get(span[0], 0), span[1], -span[0]))
    return [version for version, _ in by_worth[: max(0, len(spans) - kept)]]


def _reserved_ids(conn: Connection, count: int) -> Sequence[int]:
    """Returns ids for new posts before they are written, so that a batch is one statement and events can name them."""
    if not count:
        return []
    if conn.dialect.name == "postgresql":
        return _next_ids.values(conn, count)
    last: int = _last_id.value(conn)
    return range(last + 1, last + 1 + count)


def _inserted(post_id: int, source_id: int, post: Post, key: int | None, now: datetime) -> dict[str, Any]:
    reference_kind, reference_id = post.reference or (None, None)
    return {
        "id": post_id,
        "source_id": source_id,
        "source_post_id": post.source_post_id,
        "text_norm_hash": post.text_hash,
        "version": 1,
        "revision": 1,
        "url": post.url,
        "url_key": key,
        "title": post.title,
        "content": post.content,
        "author": post.author,
        "created_at": post.created_at,
        "dated": post.dated,
        "fetched_at": now,
        "valid_from": now,
        "score": post.score,
        "num_comments": post.num_comments,
        "lang": post.lang,
        "reference_kind": reference_kind,
        "reference_id": reference_id,
        "extra": _extra(post),
    }


def _edited(post_id: int, post: Post, now: datetime) -> dict[str, Any]:
    return {
        "id": post_id,
        "text_norm_hash": post.text_hash,
        "url": post.url,
        "url_key": url_key(post.url),
        "title": post.title,
        "content": post.content,
        "author": post.author,
        "score": post.score,
        "num_comments": post.num_comments,
        "lang": post.lang,
        "extra": _extra(post),
        "now": now,
    }


def _extra(post: Post) -> str:
    if not post.extra and not post.enclosures and post.updated_at is None:
        return "{}"
    extra = dict(post.extra)
    if post.enclosures:
        extra["enclosures"] = [enclosure._asdict() for enclosure in post.enclosures]
    if post.updated_at is not None:
        extra["updated_at"] = post.updated_at.isoformat()
    return json_text(extra)


class Visited(NamedTuple):
    """A stored visit. `posts` is how many posts it brought, new or not."""

    started_at: datetime
    outcome: str
    posts: int
    gap: bool
    watermark_updated: bool


class StoredTexts(NamedTuple):
    """A post by its source's id, and its (title, content) in every version, the oldest first."""

    source_post_id: str
    texts: list[tuple[str, str]]


class Contents(NamedTuple):
    """A source with its visits in their order and all its posts."""

    source_id: int
    watermark: datetime | None
    visits: list[Visited]
    posts: list[StoredTexts]


_all_sources = portable("SELECT address, id, last_seen_created_at FROM sources")
_all_visits = portable(
    """SELECT source_id, started_at, outcome, new + updated + duplicates, gap, watermark_updated FROM crawls
    ORDER BY started_at, id"""
)
_past_texts = portable("SELECT post_id, title, content FROM post_versions ORDER BY version")
_all_posts = portable("SELECT id, source_id, source_post_id, title, content FROM posts")
_visited = row_maker(Visited)


def contents(conn: Connection) -> dict[str, Contents]:
    """Returns the contents of every source, by its address."""
    visits, texts = _visits_by_source(conn), _posts_by_source(conn)
    return {
        address: Contents(source_id, moment_or_none(watermark), visits[source_id], texts[source_id])
        for address, source_id, watermark in _all_sources.all(conn)
    }


def _visits_by_source(conn: Connection) -> dict[int, list[Visited]]:
    found: dict[int, list[Visited]] = defaultdict(list)
    for source_id, *visit in _all_visits.all(conn):
        found[source_id].append(_visited(visit))
    return found


def _posts_by_source(conn: Connection) -> dict[int, list[StoredTexts]]:
    past: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for post_id, title, content in _past_texts.all(conn):
        past[post_id].append((title, content))
    found: dict[int, list[StoredTexts]] = defaultdict(list)
    for post_id, source_id, source_post_id, title, content in _all_posts.all(conn):
        found[source_id].append(StoredTexts(source_post_id, [*past[post_id], (title, content)]))
    return found
