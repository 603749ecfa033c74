"""Full-text search over titles and contents, in every script: words as they are, Chinese and Japanese by sign pairs.

SQLite: a contentless FTS5 index (`post_words`), with a note of which version of a post is in it, because FTS5 can take
a text out only if it is shown that text again. PostgreSQL: a tsvector per post with a GIN index. Both hold only words;
the posts themselves are read from `posts`. The index is filled behind the crawl, by the consumer `search`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from headwater.errors import BadInput
from headwater.model import Reader
from headwater.store.sql import Prepared, portable
from headwater.text import without_tags

MOST_CHARACTERS = 200_000  # of one post; PostgreSQL's tsvector ends at a megabyte
MOST_WORDS = 20  # in one question

_ENTITY = re.compile("&(?:nbsp|lt|gt|quot|amp);")
_PAIRED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
# Most texts have nothing to pair; these few ranges are looked through many times faster than those above.
_UNPAIRED = re.compile("[\0-\u0dff\u0f00-\u303f\U0001f000-\U0001faff]*+")
_WORD = re.compile(r"[^\W_]+\*?")

_texts = portable("SELECT id, version, title, content FROM posts WHERE id IN (?)")
_indexed = portable("SELECT post_id, version FROM post_words_versions WHERE post_id IN (?)")
_old_text = portable("SELECT title, content FROM post_versions WHERE post_id = ? AND version = ?")
_take_out = portable("INSERT INTO post_words (post_words, rowid, words) VALUES ('delete', ?, ?)")
_put_in = Prepared(
    sqlite="INSERT INTO post_words (rowid, words) VALUES (?, ?)",
    postgresql="""INSERT INTO post_words (post_id, words) VALUES (%s, to_tsvector('simple', %s))
        ON CONFLICT (post_id) DO UPDATE SET words = excluded.words""",
)
_note = portable(
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
        ORDER BY w.post_id DESC LIMIT ?""".replace("?", "%s"),
)
_LAST = 2**62


def searchable(title: str, content: str) -> str:
    """The words of a post, as both indexes take them. Pure."""
    text = f"{title} {without_tags(content[:MOST_CHARACTERS], ' ')}"
    if "&" in text:
        text = _ENTITY.sub(" ", text)
    if text.isascii() or _UNPAIRED.fullmatch(text) or not _PAIRED.search(text):
        return text
    return _PAIRED.sub(_pairs, unicodedata.normalize("NFKC", text))


def _pairs(run: re.Match[str]) -> str:
    """上涨了 as 上涨 涨了 了: every sign begins a word, so that one alone can be searched for as a beginning."""
    signs = run.group()
    return f" {' '.join(signs[place : place + 2] for place in range(len(signs)))} "


def _pairs_wanted(run: re.Match[str]) -> str:
    signs = run.group()
    if len(signs) == 1:
        return f" {signs}* "
    return f" {' '.join(signs[place : place + 2] for place in range(len(signs) - 1))} "


def question(words: str, dialect: str) -> str:
    """What a person typed, as the database's own query: every word has to be there; `word*` is a beginning."""
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
    """Put the present text of these posts into the index; what it had of an older version is taken out."""
    rows = _texts.all(conn, list(post_ids))
    if conn.dialect.name == "sqlite":
        rows = _replaced(conn, post_ids, rows)
        _note.many(conn, [(row[0], row[1]) for row in rows])
    _put_in.many(conn, [(row[0], searchable(row[2], row[3])) for row in rows])


def _replaced(conn: Connection, post_ids: Sequence[int], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Take older versions out; returns the rows that are not in the index yet."""
    indexed: dict[int, int] = dict(_indexed.all(conn, list(post_ids)))
    for post_id, version in indexed.items():
        for title, content in _old_text.all(conn, post_id, version):
            _take_out.once(conn, post_id, searchable(title, content))
    return [row for row in rows if indexed.get(row[0]) != row[1]]


def find(conn: Connection, reader: Reader, words: str, *, before: int | None = None, limit: int = 50) -> list[int]:
    """The ids of posts that have all these words and that the reader may see, newest first."""
    query = question(words, conn.dialect.name)
    rows = _find.all(conn, query, before or _LAST, reader.tenant_id, reader.user_id, limit)
    return [row[0] for row in rows]
