"""Stories as one reader folds them: not at all, repeats only, or all of a story; from a score on; not some sources.

A story is shown as the earliest of its members that the reader may see. Which post that is differs from reader to
reader, so it is decided while reading, along the index of the story.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.sql import Prepared, portable, row_maker

LEVELS = ("off", "repeats", "stories")
MOST_MEMBERS = 200  # of one story that are shown


class FoldSettings(NamedTuple):
    """What a reader wants folded: nothing, repeats, or all of a story; and from which score on."""

    level: str = "stories"
    threshold: float = 0.0


class ShownMember(NamedTuple):
    """A post as a member of a story, and why it is one."""

    post_id: int
    source_id: int
    source: str
    url: str | None
    title: str
    created_at: datetime
    read: bool
    rule: str
    score: float
    why: str
    repeat_id: int
    story_id: int


class _ColdPost(NamedTuple):
    id: int
    url: str | None
    title: str


_GROUPS = {"stories": "story_id", "repeats": "repeat_id"}
# A member is folded if it began the group, or if its score is high enough for the reader.
_COUNTS = "({member}.post_id = {member}.{group} OR {member}.score >= :threshold)"
_MAY_FOLD = "SELECT source_id FROM subscriptions WHERE tenant_id = :tenant_id AND user_id = :user_id AND fold"

_settings = portable("SELECT level, threshold FROM fold_settings WHERE tenant_id = ? AND user_id = ?", row=FoldSettings)
_save_settings = portable(
    """INSERT INTO fold_settings (tenant_id, user_id, level, threshold) VALUES (?, ?, ?, ?)
    ON CONFLICT (tenant_id, user_id) DO UPDATE SET level = excluded.level, threshold = excluded.threshold"""
)
_set_folding = portable("UPDATE subscriptions SET fold = ? WHERE tenant_id = ? AND user_id = ? AND source_id = ?")
_cold_posts = portable("SELECT id, url, title FROM posts WHERE id IN (?)", row=_ColdPost)
_member = row_maker(ShownMember)


def settings_of(conn: Connection, reader: Reader) -> FoldSettings:
    return _settings.first(conn, reader.tenant_id, reader.user_id) or FoldSettings()


def save_settings(conn: Connection, reader: Reader, wanted: FoldSettings) -> None:
    _save_settings.once(conn, reader.tenant_id, reader.user_id, wanted.level, wanted.threshold)


def set_folding(conn: Connection, reader: Reader, source_id: int, *, fold: bool) -> bool:
    """Sets whether posts of a source are folded for a reader. Returns whether the reader follows it."""
    return _set_folding.once(conn, fold, reader.tenant_id, reader.user_id, source_id) > 0


def is_shown(level: str, *, folder: bool, source: bool) -> str:
    """Returns the condition that the post `p` has an entry of its own: no earlier post of its story has it."""
    group = _GROUPS[level]
    may_fold = _MAY_FOLD + " AND folder = :folder" * folder + " AND source_id = :source_id" * source
    return f"""NOT EXISTS (SELECT 1 FROM story_members own JOIN story_members earlier ON earlier.{group} = own.{group}
        WHERE own.post_id = p.id AND (earlier.created_at, earlier.post_id) < (own.created_at, own.post_id)
            AND {_counts("own", group)} AND {_counts("earlier", group)}
            AND own.source_id + 0 IN ({may_fold}) AND earlier.source_id + 0 IN ({may_fold}))"""


def members(
    conn: Connection, reader: Reader, wanted: FoldSettings, post_ids: Sequence[int]
) -> dict[int, list[ShownMember]]:
    """Returns, for each of these posts, all posts that are folded with it and visible, the earliest first."""
    if wanted.level == "off" or not post_ids:
        return {}
    rows = _members(wanted.level).all(
        conn,
        tenant_id=reader.tenant_id,
        user_id=reader.user_id,
        threshold=wanted.threshold,
        ids=list(post_ids),
    )
    found: dict[int, list[ShownMember]] = {}
    for entry, *member in rows:
        story = found.setdefault(entry, [])
        if len(story) < MOST_MEMBERS:
            story.append(_member(member))
    return _with_cold_titles(conn, found)


@cache
def _members(level: str) -> Prepared:
    """Returns the query for the members of stories. Those that are not in the hot store have no title."""
    group = _GROUPS[level]
    return portable(
        f"""SELECT own.post_id, other.post_id, other.source_id, COALESCE(f.title, s.title, s.address),
            hot.url, hot.title, other.created_at, state.read_at IS NOT NULL,
            other.rule, other.score, other.why, other.repeat_id, other.story_id
        FROM story_members own JOIN story_members other ON other.{group} = own.{group}
        JOIN sources s ON s.id = other.source_id
        JOIN subscriptions f ON f.tenant_id = :tenant_id AND f.user_id = :user_id AND f.source_id = other.source_id
        LEFT JOIN hot_posts hot ON hot.id = other.post_id
        LEFT JOIN post_states state
            ON state.tenant_id = :tenant_id AND state.user_id = :user_id AND state.post_id = other.post_id
        WHERE own.post_id IN (:ids) AND {_counts("own", group)} AND {_counts("other", group)}
            AND (own.post_id = other.post_id OR (f.fold AND own.source_id IN ({_MAY_FOLD})))
        ORDER BY other.created_at, other.post_id"""
    )


def _with_cold_titles(conn: Connection, found: dict[int, list[ShownMember]]) -> dict[int, list[ShownMember]]:
    missing = [member.post_id for story in found.values() for member in story if member.title is None]
    if not missing:
        return found
    cold = {post.id: post for post in _cold_posts.all(conn, missing)}
    return {entry: [_with_title(member, cold) for member in story] for entry, story in found.items()}


def _with_title(member: ShownMember, cold: dict[int, _ColdPost]) -> ShownMember:
    post = cold.get(member.post_id)
    return member._replace(url=post.url, title=post.title) if post else member


def with_folded(conn: Connection, reader: Reader, post_ids: Sequence[int]) -> list[int]:
    """Returns these posts and all that are folded with them for this reader."""
    found = members(conn, reader, settings_of(conn, reader), post_ids)
    return sorted({*post_ids, *(member.post_id for story in found.values() for member in story)})


def _counts(member: str, group: str) -> str:
    return _COUNTS.format(member=member, group=group)
