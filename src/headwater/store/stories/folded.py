"""Stories as one reader folds them: not at all, repeats only, or all of a story; from a score on; not some sources.

A story is shown as the earliest of its members that the reader may see. Which post that is differs from reader to
reader, so it is decided while reading, along the index of the story. What the reader's tenant has taken apart is not
folded: its posts are on different sides (see `partings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.model import Decision, Reader
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
_SIDES = """LEFT JOIN story_sides {one}_side ON {one}_side.tenant_id = :tenant_id AND {one}_side.post_id = {one}.post_id
        LEFT JOIN story_sides {other}_side
            ON {other}_side.tenant_id = :tenant_id AND {other}_side.post_id = {other}.post_id"""
_ON_ONE_SIDE = """COALESCE({one}_side.parting_id, 0) = COALESCE({other}_side.parting_id, 0)
            AND COALESCE({one}_side.side, 0) = COALESCE({other}_side.side, 0)"""
_MAY_FOLD = "SELECT source_id FROM subscriptions WHERE tenant_id = :tenant_id AND user_id = :user_id AND fold"

_settings = portable("SELECT level, threshold FROM fold_settings WHERE tenant_id = ? AND user_id = ?", row=FoldSettings)
_save_settings = portable(
    """INSERT INTO fold_settings (tenant_id, user_id, level, threshold) VALUES (?, ?, ?, ?)
    ON CONFLICT (tenant_id, user_id) DO UPDATE SET level = excluded.level, threshold = excluded.threshold"""
)
_set_folding = portable("UPDATE subscriptions SET fold = ? WHERE tenant_id = ? AND user_id = ? AND source_id = ?")
_cold_posts = portable("SELECT id, url, title FROM posts WHERE id IN (?)", row=_ColdPost)
# A story's posts by its id, those that may be folded first: of the story itself, or of what a tenant took out of one.
_VISIBLE_OF = """SELECT m.post_id FROM story_members m
        JOIN subscriptions f ON f.tenant_id = :tenant_id AND f.user_id = :user_id AND f.source_id = m.source_id
        {sides}
    ORDER BY f.fold DESC, m.created_at, m.post_id LIMIT 1"""
_first_of_story = portable(
    _VISIBLE_OF.format(
        sides="""LEFT JOIN story_sides s ON s.tenant_id = :tenant_id AND s.post_id = m.post_id
    WHERE m.story_id = :story_id AND s.side IS NULL"""
    )
)
_first_of_side = portable(
    _VISIBLE_OF.format(
        sides="""JOIN story_sides s ON s.tenant_id = :tenant_id AND s.post_id = m.post_id
    WHERE s.side = :story_id"""
    )
)
_described = portable(
    """SELECT p.id, p.source_id, COALESCE(NULLIF(COALESCE(f.title, s.title), ''), s.address), p.url, p.title,
        p.created_at, state.read_at IS NOT NULL
    FROM posts p JOIN sources s ON s.id = p.source_id
    JOIN subscriptions f ON f.tenant_id = :tenant_id AND f.user_id = :user_id AND f.source_id = p.source_id
    LEFT JOIN post_states state
        ON state.tenant_id = :tenant_id AND state.user_id = :user_id AND state.post_id = p.id
    WHERE p.id IN (:ids) ORDER BY p.created_at, p.id"""
)
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
        {_SIDES.format(one="own", other="earlier")}
        WHERE own.post_id = p.id AND {_ON_ONE_SIDE.format(one="own", other="earlier")}
            AND (earlier.created_at, earlier.post_id) < (own.created_at, own.post_id)
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


def story_named(conn: Connection, reader: Reader, story_id: int) -> list[ShownMember]:
    """Returns the visible members of a story as the reader's tenant folds it, whatever the reader's settings are."""
    for statement in (_first_of_story, _first_of_side):
        own = {"tenant_id": reader.tenant_id, "user_id": reader.user_id, "story_id": story_id}
        post_id = statement.value(conn, **own)
        story = story_of(conn, reader, post_id) if post_id else []
        if len(story) > 1:
            return story
    return []


def story_of(conn: Connection, reader: Reader, post_id: int) -> list[ShownMember]:
    """Returns the visible members of the story that a post is in."""
    return members(conn, reader, FoldSettings(), [post_id]).get(post_id, [])


def as_it_was(conn: Connection, reader: Reader, story: Sequence[Decision]) -> list[ShownMember]:
    """Returns the visible members of a story that does not exist any more."""
    decisions = {one.post_id: one for one in story}
    rows = _described.all(conn, tenant_id=reader.tenant_id, user_id=reader.user_id, ids=list(decisions))
    return [_member((*row, *_why(decisions[row[0]]))) for row in rows]


def _why(one: Decision) -> tuple[str, float, str, int, int]:
    return one.rule, one.score, one.why, one.repeat_id, one.story_id


@cache
def _members(level: str) -> Prepared:
    """Returns the query for the members of stories. Those that are not in the hot store have no title."""
    group = _GROUPS[level]
    return portable(
        f"""SELECT own.post_id, other.post_id, other.source_id, COALESCE(f.title, s.title, s.address),
            hot.url, hot.title, other.created_at, state.read_at IS NOT NULL,
            other.rule, other.score, other.why, other.repeat_id, COALESCE(other_side.side, other.story_id)
        FROM story_members own JOIN story_members other ON other.{group} = own.{group}
        {_SIDES.format(one="own", other="other")}
        JOIN sources s ON s.id = other.source_id
        JOIN subscriptions f ON f.tenant_id = :tenant_id AND f.user_id = :user_id AND f.source_id = other.source_id
        LEFT JOIN hot_posts hot ON hot.id = other.post_id
        LEFT JOIN post_states state
            ON state.tenant_id = :tenant_id AND state.user_id = :user_id AND state.post_id = other.post_id
        WHERE own.post_id IN (:ids) AND {_counts("own", group)} AND {_counts("other", group)}
            AND {_ON_ONE_SIDE.format(one="own", other="other")}
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
