"""What tellings say: whether each says something new, what it is, and whom it contradicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import PostText
from headwater.store import stories
from headwater.store.sql import columns, json_text, portable

FIRST_COMPARED, LAST_COMPARED = 8, 24  # with which earlier tellings of a story a new one is compared


class Telling(NamedTuple):
    """What a post says, compared with the earlier tellings of its story. `echoes` said all of it before."""

    post_id: int
    echoes: Sequence[int]
    new: dict[str, Any]
    against: list[dict[str, Any]]


class TellingNews(NamedTuple):
    post_id: int
    new: dict[str, Any]
    against: list[dict[str, Any]]


class AppearanceRow(NamedTuple):
    """When a post claims to have been published, when it was first seen, and the visit before that, which did not show
    it."""

    post_id: int
    source_id: int
    claimed_at: datetime | None
    seen_at: datetime
    missed_at: datetime | None


_SEEN = "COALESCE((SELECT min(v.valid_from) FROM post_versions v WHERE v.post_id = p.id), p.valid_from)"
# The last visit until then brought the post; the one before it did not.
_appearances = portable(
    f"""SELECT p.id, p.source_id, CASE WHEN p.dated THEN p.created_at END, {_SEEN},
        (SELECT c.started_at FROM crawls c WHERE c.source_id = p.source_id AND c.started_at <= {_SEEN}
            AND c.outcome IN ('ok', 'unchanged', 'empty') ORDER BY c.id DESC LIMIT 1 OFFSET 1)
    FROM posts p WHERE p.id IN (?)""",
    row=AppearanceRow,
)
_ORIGINAL = "SELECT post_id FROM story_members WHERE story_id = ? AND says_new ORDER BY seq {order} LIMIT ?"
_first_original = portable(_ORIGINAL.format(order=""))
_last_original = portable(_ORIGINAL.format(order="DESC"))
_is_echo = portable("UPDATE story_members SET says_new = FALSE WHERE post_id IN (?)")
_add_echo = portable("INSERT INTO story_echoes (post_id, of_post_id) VALUES (?, ?) ON CONFLICT DO NOTHING")
_add_news = portable("INSERT INTO story_news (post_id, new, against) VALUES (?, ?, ?) ON CONFLICT DO NOTHING")
_news = portable(f"SELECT {columns(TellingNews)} FROM story_news WHERE post_id IN (?)", row=TellingNews)


def original(conn: Connection, story_id: int) -> list[PostText]:
    """Returns the tellings of a story that said something new when they came: the first ones, and the last ones.

    A post that joins a story of a thousand is compared with as many as one that joins a story of thirty.
    """
    ids = {
        *_first_original.values(conn, story_id, FIRST_COMPARED),
        *_last_original.values(conn, story_id, LAST_COMPARED),
    }
    return stories.texts(conn, sorted(ids))


def save(conn: Connection, told: Iterable[Telling]) -> None:
    """Writes what tellings say. Those that the index has decided about meanwhile are left as they are."""
    told = list(told)
    _is_echo.once(conn, [one.post_id for one in told if one.echoes])
    _add_echo.many(conn, [(one.post_id, other) for one in told for other in one.echoes])
    fresh = [one for one in told if one.new or one.against]
    _add_news.many(conn, [(one.post_id, json_text(one.new), json_text(one.against)) for one in fresh])


def news(conn: Connection, post_ids: Sequence[int]) -> dict[int, TellingNews]:
    return {one.post_id: one for one in _news.all(conn, list(post_ids))} if post_ids else {}


def appearances(conn: Connection, post_ids: Sequence[int]) -> list[AppearanceRow]:
    """Returns when these posts appeared."""
    return _appearances.all(conn, list(post_ids))
