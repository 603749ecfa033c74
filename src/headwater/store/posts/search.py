"""Full-text search over titles and contents, in every script: words as they are, Chinese and Japanese as pairs.

SQLite has a contentless FTS5 index (`post_words`). A second table says which version of a post is indexed, because FTS5
needs a text in order to remove it. PostgreSQL has a tsvector for each post, with a GIN index. Both hold only words; the
posts themselves are read from `posts`. The index is filled after the crawl, by the consumer `search`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.errors import BadInput
from headwater.model import Reader
from headwater.store.sql import Prepared, portable
from headwater.text import without_tags

MOST_CHARACTERS = 200_000  # of one post; PostgreSQL's tsvector ends at a megabyte
MOST_WORDS = 20  # in one query

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
_VISIBLE = (
    "EXISTS (SELECT 1 FROM subscriptions s WHERE s.tenant_id = ? AND s.user_id = ? AND s.source_id = p.source_id)"
)
_find = Prepared(
    sqlite=f"""SELECT p.id FROM post_words CROSS JOIN posts p ON p.id = post_words.rowid
        WHERE post_words MATCH ? AND post_words.rowid < ? AND {_VISIBLE} ORDER BY post_words.rowid DESC LIMIT ?""",
    postgresql=f"""SELECT p.id FROM post_words w JOIN posts p ON p.id = w.post_id
        WHERE w.words @@ to_tsquery('simple', ?) AND w.post_id < ? AND {_VISIBLE}
        ORDER BY w.post_id DESC LIMIT ?""",
)
_LAST = 2**62


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


def find(conn: Connection, reader: Reader, words: str, *, before: int | None = None, limit: int = 50) -> list[int]:
    """Returns the ids of posts that have all these words and that the reader may see, the newest first."""
    query = question(words, conn.dialect.name)
    return _find.values(conn, query, before or _LAST, reader.tenant_id, reader.user_id, limit)
