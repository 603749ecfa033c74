"""Full-text search over titles and contents, in every script: words as they are, Chinese and Japanese as pairs.

SQLite has a contentless FTS5 index (`post_words`). A second table says which version of a post is indexed, because FTS5
needs a text in order to remove it. PostgreSQL has a tsvector for each post, with a GIN index. Both hold only words; the
posts themselves are read from `posts`. The index is filled after the crawl, by the consumer `search`.

What is found comes in the order of publication. PostgreSQL plans that by itself. FTS5 lists matches only in the order
in which posts were stored, which is nearly the same: what was stored last is looked at first, and then, by the index on
the time of publication, what was stored earlier and published later than that.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.errors import BadInput
from headwater.model import Reader
from headwater.store.sql import Prepared, portable
from headwater.text import without_tags

MOST_CHARACTERS = 200_000  # of one post; PostgreSQL's tsvector ends at a megabyte
MOST_WORDS = 20  # in one query
FEWEST_STORED = 200  # matches to look at among those that were stored last
AT_ONCE = 500  # posts to look at among those that were stored earlier
MOST_STEPS = 40

_ENTITY = re.compile("&(?:nbsp|lt|gt|quot|amp);")
_PAIRED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
# Most texts have nothing to pair, and these few ranges match many times faster than those above.
_UNPAIRED = re.compile("[\0-\u0dff\u0f00-\u303f\U0001f000-\U0001faff]*+")
_WORD = re.compile(r"[^\W_]+\*?")


class _PostText(NamedTuple):
    id: int
    version: int
    title: str
    content: str


class Match(NamedTuple):
    """A post that has the words, and when it was published."""

    id: int
    created_at: datetime


_texts = portable("SELECT id, version, title, content FROM posts WHERE id IN (?)", row=_PostText)
_indexed = portable("SELECT post_id, version FROM post_words_versions WHERE post_id IN (?)")
_old_text = portable("SELECT title, content FROM post_versions WHERE post_id = ? AND version = ?")
_remove = portable("INSERT INTO post_words (post_words, rowid, words) VALUES ('delete', ?, ?)")
_add = Prepared(
    sqlite="INSERT INTO post_words (rowid, words) VALUES (?, ?)",
    postgresql="""INSERT INTO post_words (post_id, words) VALUES (?, to_tsvector('simple', ?))
        ON CONFLICT (post_id) DO UPDATE SET words = excluded.words""",
)
_set_version = portable(
    "INSERT INTO post_words_versions (post_id, version) VALUES (?, ?) "
    "ON CONFLICT (post_id) DO UPDATE SET version = excluded.version"
)
_VISIBLE = """EXISTS (SELECT 1 FROM subscriptions s
        WHERE s.tenant_id = :tenant_id AND s.user_id = :user_id AND s.source_id = p.source_id)"""
_BEFORE = "(p.created_at, p.id) < (:created_at, :id)"
_MATCHING = f"""SELECT p.id, p.created_at FROM post_words CROSS JOIN posts p ON p.id = post_words.rowid
    WHERE post_words MATCH :query AND {_BEFORE} AND {_VISIBLE}"""
_newest = Prepared(
    sqlite=f"{_MATCHING} ORDER BY p.created_at DESC, p.id DESC LIMIT :limit",
    postgresql=f"""SELECT p.id, p.created_at FROM post_words w JOIN posts p ON p.id = w.post_id
        WHERE w.words @@ to_tsquery('simple', :query) AND {_BEFORE} AND {_VISIBLE}
        ORDER BY p.created_at DESC, p.id DESC LIMIT :limit""",
    row=Match,
)
_last_stored = Prepared(sqlite=f"{_MATCHING} ORDER BY post_words.rowid DESC LIMIT :limit", row=Match)
_stored_earlier = Prepared(
    sqlite=f"""SELECT p.id, p.created_at FROM posts p
        WHERE {_BEFORE} AND p.created_at >= :since AND p.id < :stored_before
        ORDER BY p.created_at DESC, p.id DESC LIMIT :limit""",
    row=Match,
)
_those_matching = Prepared(
    sqlite=f"""SELECT p.id FROM posts p CROSS JOIN post_words ON post_words.rowid = p.id
        WHERE p.id IN (:ids) AND post_words MATCH :query AND {_VISIBLE}"""
)
_START = Match(2**62, datetime.max.replace(tzinfo=UTC))


def searchable(title: str, content: str) -> str:
    """Returns the words of a post as both indexes take them. Pure."""
    text = f"{title} {without_tags(content[:MOST_CHARACTERS], ' ')}"
    if "&" in text:
        text = _ENTITY.sub(" ", text)
    if text.isascii() or _UNPAIRED.fullmatch(text) or not _PAIRED.search(text):
        return text
    return _PAIRED.sub(_pairs, unicodedata.normalize("NFKC", text))


def _pairs(run: re.Match[str]) -> str:
    """Writes 上涨了 as 上涨 涨了 了: every character begins a word, so that one alone can be found as a prefix."""
    signs = run.group()
    return f" {' '.join(signs[place : place + 2] for place in range(len(signs)))} "


def _pairs_wanted(run: re.Match[str]) -> str:
    signs = run.group()
    if len(signs) == 1:
        return f" {signs}* "
    return f" {' '.join(signs[place : place + 2] for place in range(len(signs) - 1))} "


def question(words: str, dialect: str) -> str:
    """Returns what a person typed as a query of the database: every word has to match; `word*` is a prefix."""
    parts = []
    for run in _WORD.findall(unicodedata.normalize("NFKC", words)):
        parts += [part for part in _PAIRED.sub(_pairs_wanted, run).split() if part != "*"]
    if not parts:
        raise BadInput("There is no word to search for.")
    if len(parts) > MOST_WORDS:
        raise BadInput(f"At most {MOST_WORDS} words can be searched for at once.")
    if dialect == "postgresql":
        return " & ".join(f"'{part.rstrip('*')}'{':*' if part.endswith('*') else ''}" for part in parts)
    return " AND ".join(f'"{part.rstrip("*")}"{" *" if part.endswith("*") else ""}' for part in parts)


def index(conn: Connection, post_ids: Sequence[int]) -> None:
    """Indexes the current text of these posts, and removes their older versions from the index."""
    rows = _texts.all(conn, list(post_ids))
    if conn.dialect.name == "sqlite":
        rows = _replaced(conn, post_ids, rows)
        _set_version.many(conn, [(row.id, row.version) for row in rows])
    _add.many(conn, [(row.id, searchable(row.title, row.content)) for row in rows])


def _replaced(conn: Connection, post_ids: Sequence[int], rows: list[_PostText]) -> list[_PostText]:
    """Removes older versions from the index. Returns the rows that are not in it."""
    indexed: dict[int, int] = dict(_indexed.all(conn, list(post_ids)))
    for post_id, version in indexed.items():
        for title, content in _old_text.all(conn, post_id, version):
            _remove.once(conn, post_id, searchable(title, content))
    return [row for row in rows if indexed.get(row.id) != row.version]


def find(conn: Connection, reader: Reader, words: str, *, after: Match | None = None, limit: int = 50) -> list[Match]:
    """Returns the next posts after `after` that have all these words and that the reader may see, the newest first."""
    after = after or _START
    asked = {
        "query": question(words, conn.dialect.name),
        "tenant_id": reader.tenant_id,
        "user_id": reader.user_id,
        "created_at": after.created_at,
        "id": after.id,
    }
    if conn.dialect.name == "sqlite":
        return _newest_by_steps(conn, asked, limit)
    return _newest.all(conn, **asked, limit=limit)


def _newest_by_steps(conn: Connection, asked: dict[str, Any], limit: int) -> list[Match]:
    """Returns what `_newest` would, without sorting all matches of a common word.

    A match that is missing in those that were stored last was stored earlier. Only if it was published later than the
    oldest one that is shown can it belong to the page, and there are few such posts.
    """
    many = max(FEWEST_STORED, 4 * limit)
    matches = _last_stored.all(conn, **asked, limit=many)
    newest = _sorted(matches)[:limit]
    if len(matches) < many:
        return newest
    place, stored_before = Match(asked["id"], asked["created_at"]), matches[-1].id
    for _ in range(MOST_STEPS):
        step = {"created_at": place.created_at, "id": place.id, "since": newest[-1].created_at}
        earlier = _stored_earlier.all(conn, **step, stored_before=stored_before, limit=AT_ONCE)
        ids = set(_those_matching.values(conn, **asked | {"ids": [one.id for one in earlier]})) if earlier else set()
        newest = _sorted([*newest, *(one for one in earlier if one.id in ids)])[:limit]
        if len(earlier) < AT_ONCE:
            return newest
        place = earlier[-1]
    return _newest.all(conn, **asked, limit=limit)


def _sorted(matches: Sequence[Match]) -> list[Match]:
    return sorted(matches, key=lambda one: (one.created_at, one.id), reverse=True)
