"""Full-text search over titles and contents, in every script: words as they are, Chinese and Japanese as pairs.

SQLite has a contentless FTS5 index (`post_words`). A second table says which version of a post is indexed, because FTS5
needs a text in order to remove it. PostgreSQL has a tsvector for each post, with a GIN index. Both hold only words; the
posts themselves are read from `posts`. The index is filled after the crawl, by the consumer `search`.

What is found comes in the order of publication. FTS5 lists matches only in the order of its row numbers, so these begin
with the span of time in which a post was published, and end with its id: see `place`. GIN lists them in no order, so a
tsvector also has the spans in which its post was published, as words that nobody can ask for: see `span_words`. The
newest spans are searched first, then those before them, until there are enough matches.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.errors import BadInput
from headwater.model import Reader
from headwater.store.sql import Prepared, portable
from headwater.text import without_tags

MOST_CHARACTERS = 200_000  # of one post; PostgreSQL's tsvector ends at a megabyte
MOST_WORDS = 20  # in one query
# Short spans make the index larger, for numbers that are far apart take more bytes. All matches of a span are sorted.
SPAN = timedelta(seconds=1 << 14)
ID_BITS = 32
SPAN_BITS = (10, 14, 18, 22)  # on PostgreSQL spans have 2 ** bits seconds
MOST_SPANS = 16  # searched together

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
    created_at: datetime


class Match(NamedTuple):
    """A post that has the words, and when it was published."""

    id: int
    created_at: datetime


_texts = portable("SELECT id, version, title, content, created_at FROM posts WHERE id IN (?)", row=_PostText)
_indexed = portable("SELECT post_id, version FROM post_words_versions WHERE post_id IN (?)")
_old_text = portable("SELECT title, content FROM post_versions WHERE post_id = ? AND version = ?")
_remove = portable("INSERT INTO post_words (post_words, rowid, words) VALUES ('delete', ?, ?)")
_add = Prepared(sqlite="INSERT INTO post_words (rowid, words) VALUES (?, ?)")
_set = Prepared(
    postgresql="""INSERT INTO post_words (post_id, words)
        VALUES (?, to_tsvector('simple', ?) || array_to_tsvector(?::text[]))
        ON CONFLICT (post_id) DO UPDATE SET words = excluded.words"""
)
_set_version = portable(
    "INSERT INTO post_words_versions (post_id, version) VALUES (?, ?) "
    "ON CONFLICT (post_id) DO UPDATE SET version = excluded.version"
)
_VISIBLE = """EXISTS (SELECT 1 FROM subscriptions s
        WHERE s.tenant_id = :tenant_id AND s.user_id = :user_id AND s.source_id = p.source_id)"""
_BEFORE = "(p.created_at, p.id) < (:created_at, :id)"
_newest = Prepared(
    sqlite=f"""SELECT p.id, p.created_at FROM post_words
        CROSS JOIN posts p ON p.id = (post_words.rowid & {(1 << ID_BITS) - 1})
        WHERE post_words MATCH :query AND post_words.rowid BETWEEN :lowest AND :highest AND {_BEFORE} AND {_VISIBLE}
        ORDER BY post_words.rowid DESC LIMIT :limit""",
    # The words come first: without MATERIALIZED, a plan for any words reads posts by their time and looks at each.
    postgresql=f"""WITH matching AS MATERIALIZED (SELECT post_id FROM post_words
            WHERE words @@ (to_tsquery('simple', :query) && :spans::tsquery))
        SELECT p.id, p.created_at FROM matching JOIN posts p ON p.id = matching.post_id
        WHERE {_BEFORE} AND {_VISIBLE}
        ORDER BY p.created_at DESC, p.id DESC LIMIT :limit""",
    row=Match,
)
_last_before = Prepared(
    postgresql=f"""SELECT p.id, p.created_at FROM posts p WHERE {_BEFORE}
        ORDER BY p.created_at DESC, p.id DESC LIMIT 1""",
    row=Match,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST = datetime.min.replace(tzinfo=UTC) - _EPOCH
_START = Match(2**62, datetime.max.replace(tzinfo=UTC))


def place(created_at: datetime, post_id: int) -> int:
    """Returns the row number of a post in FTS5's index. Pure.

    The row numbers of posts that were published in the same span of time follow each other.
    """
    return (created_at - _EPOCH) // SPAN << ID_BITS | post_id


def span_words(created_at: datetime) -> list[str]:
    """Returns the words that a tsvector has for when its post was published. Pure."""
    return [_span_word(bits, _number(created_at, bits)) for bits in SPAN_BITS]


def _span_word(bits: int, number: int) -> str:
    return f"#{bits}/{number}"


def _number(created_at: datetime, bits: int) -> int:
    return (created_at - _EPOCH) // timedelta(seconds=1 << bits)


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
        rows = _replaced(conn, rows)
        _set_version.many(conn, [(row.id, row.version) for row in rows])
        places = sorted(
            (place(row.created_at, row.id), row) for row in rows
        )  # FTS5 writes a segment for each step back
        _add.many(conn, [(number, searchable(row.title, row.content)) for number, row in places])
    else:
        words = [(row.id, searchable(row.title, row.content), span_words(row.created_at)) for row in rows]
        _set.many(conn, words)


def _replaced(conn: Connection, rows: list[_PostText]) -> list[_PostText]:
    """Removes older versions from the index. Returns the rows that are not in it."""
    indexed: dict[int, int] = dict(_indexed.all(conn, [row.id for row in rows]))
    for row in rows:
        for title, content in _old_text.all(conn, row.id, indexed[row.id]) if row.id in indexed else ():
            _remove.once(conn, place(row.created_at, row.id), searchable(title, content))
    return [row for row in rows if indexed.get(row.id) != row.version]


def find(conn: Connection, reader: Reader, words: str, *, after: Match | None = None, limit: int = 50) -> list[Match]:
    """Returns the next posts after `after` that have all these words and that the reader may see, the newest first."""
    after = after or _START
    asked = {
        "query": question(words, conn.dialect.name),
        **reader.key,
        "created_at": after.created_at,
        "id": after.id,
    }
    if conn.dialect.name == "sqlite":
        return _newest_by_spans(conn, asked, limit)
    return _newest_by_windows(conn, asked, limit)


def _newest_by_spans(conn: Connection, asked: dict[str, Any], limit: int) -> list[Match]:
    """Returns the newest matches. FTS5 lists them by span, and within a span in any order.

    So the span in which the page ends is read to its end, and all is sorted.
    """
    highest = place(asked["created_at"], (1 << ID_BITS) - 1)
    matches = _newest.all(conn, **asked, lowest=-1 << 63, highest=highest, limit=limit)
    if len(matches) == limit:
        begins, last = place(matches[-1].created_at, 0), place(matches[-1].created_at, matches[-1].id)
        matches += _newest.all(conn, **asked, lowest=begins, highest=last - 1, limit=-1)
    return sorted(matches, key=lambda one: (one.created_at, one.id), reverse=True)[:limit]


def _newest_by_windows(conn: Connection, asked: dict[str, Any], limit: int) -> list[Match]:
    """Returns the newest matches, window by window. Each begins with the newest post that is left."""
    found: list[Match] = []
    searched, seconds = 0, 2 << SPAN_BITS[0]
    while len(found) < limit and (newest := _last_before.first(conn, **asked)):
        bits = next((bits for bits in SPAN_BITS if seconds <= MOST_SPANS << bits), SPAN_BITS[-1])
        count = min(-(-seconds >> bits), MOST_SPANS)
        first = _number(newest.created_at, bits) - count + 1
        spans = " | ".join(f"'{_span_word(bits, first + number)}'" for number in range(count))
        found += _newest.all(conn, **asked, spans=spans, limit=limit - len(found))
        asked = asked | {"created_at": _EPOCH + max(first * timedelta(seconds=1 << bits), _EARLIEST), "id": 0}
        searched += count << bits
        seconds = next_window(searched, len(found), limit)
    return found


def next_window(searched: int, found: int, limit: int) -> int:
    """Returns how many seconds to search next, if matches are as frequent as in those that were searched. Pure."""
    missing = 1.25 * (limit - found) / found if found else MOST_SPANS
    return int(searched * min(max(missing, 1.0), MOST_SPANS))
