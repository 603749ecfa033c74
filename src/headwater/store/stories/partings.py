"""What people have taken apart, for their tenant or for everybody, and the record of it.

A story is folded once, for everybody. When a tenant undoes it or takes a post out of it, `story_members` stays as it
is: the posts get a side of their own in `story_sides`. For a tenant, posts are one story if they are members of the
same story and on the same side; a post without a row is on the side where everything begins.

What is undone for everybody is in `posts_apart`, which the index obeys, and in `story_decisions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Decision, Reader
from headwater.store import stories
from headwater.store.sql import columns, portable
from headwater.store.stories import PastDecision


class PartedStory(NamedTuple):
    """A story as it was when a person took it apart, or a post out of it. `by` is None for users of other tenants."""

    story_id: int
    action: str
    at: datetime
    by: str | None
    for_everybody: bool
    members: list[dict[str, Any]]

    @property
    def decisions(self) -> list[Decision]:
        return [Decision(story_id=self.story_id, **member) for member in self.members]


# The posts that are one story for a tenant with this one, whoever may see them, as they arrived.
_group = portable(
    f"""SELECT {columns(Decision, "other")}
    FROM story_members own JOIN story_members other ON other.story_id = own.story_id
        LEFT JOIN story_sides mine ON mine.tenant_id = :tenant_id AND mine.post_id = own.post_id
        LEFT JOIN story_sides its ON its.tenant_id = :tenant_id AND its.post_id = other.post_id
    WHERE own.post_id = :post_id AND COALESCE(its.parting_id, 0) = COALESCE(mine.parting_id, 0)
        AND COALESCE(its.side, 0) = COALESCE(mine.side, 0)
    ORDER BY other.seq""",
    row=Decision,
)
_record = portable(
    """INSERT INTO story_partings (tenant_id, user_id, parted_at, action, story_id, post_id, members)
    VALUES (:tenant_id, :user_id, :now, :action, :story_id, :post_id, :members) RETURNING id"""
)
_put = portable(
    """INSERT INTO story_sides (tenant_id, post_id, parting_id, side) VALUES (?, ?, ?, ?)
    ON CONFLICT (tenant_id, post_id) DO UPDATE SET parting_id = excluded.parting_id, side = excluded.side"""
)
_side_of = portable("SELECT side FROM story_sides WHERE tenant_id = ? AND post_id = ?")
_PARTED = """SELECT p.story_id, p.action, p.parted_at, u.name, 0 > 0, p.members
    FROM story_partings p LEFT JOIN users u ON u.id = p.user_id AND u.tenant_id = p.tenant_id"""
_parted_story = portable(
    f"{_PARTED} WHERE p.tenant_id = ? AND p.story_id = ? ORDER BY p.id DESC LIMIT 1", row=PartedStory
)
_parted_post = portable(
    f"""{_PARTED} JOIN story_sides s ON s.tenant_id = p.tenant_id AND s.parting_id = p.id
    WHERE s.tenant_id = ? AND s.post_id = ?""",
    row=PartedStory,
)
_FOR_EVERYBODY = """SELECT d.story_id, d.action, d.decided_at, u.name, 0 = 0, d.members
    FROM story_decisions d LEFT JOIN users u ON u.id = d.user_id AND u.tenant_id = ?"""
_parted_story_for_everybody = portable(
    f"""{_FOR_EVERYBODY} WHERE d.story_id = ? AND d.action IN ('undone', 'parted') AND d.members IS NOT NULL
    ORDER BY d.id DESC LIMIT 1""",
    row=PartedStory,
)
_parted_post_for_everybody = portable(
    f"""{_FOR_EVERYBODY} WHERE d.id = (SELECT max(parting_id) FROM posts_apart WHERE post_id = ?)
    AND d.members IS NOT NULL""",
    row=PartedStory,
)
_history = portable(
    """SELECT parted_at, action, story_id, post_id, NULL, NULL, NULL, user_id FROM story_partings
    WHERE tenant_id = ? AND story_id = ? ORDER BY id""",
    row=PastDecision,
)
_sides = portable("SELECT post_id, parting_id, side FROM story_sides WHERE tenant_id = ? AND post_id IN (?)")


def undo(conn: Connection, reader: Reader, post_id: int, now: datetime) -> list[int]:
    """Takes the story of this post apart for a tenant. Returns its posts, or nothing if it is alone."""
    story = _group_of(conn, reader, post_id)
    if len(story) < 2:
        return []
    parting_id = _recorded(conn, reader, "undone", story, post_id, now)
    _put.many(conn, [(reader.tenant_id, one.post_id, parting_id, one.post_id) for one in story])
    return [one.post_id for one in story]


def separate(conn: Connection, reader: Reader, post_id: int, now: datetime) -> list[int]:
    """Takes a post, with its repeats, out of its story for a tenant. Returns the posts that were taken out."""
    story = _group_of(conn, reader, post_id)
    if len(story) < 2:
        return []
    leaving = stories.leaving(story, post_id, stories.met_with(conn, story[0].story_id, post_id))
    parting_id = _recorded(conn, reader, "parted", story, post_id, now)
    _put.many(conn, [(reader.tenant_id, one, parting_id, leaving[0]) for one in leaving])
    return leaving


def last_of_story(conn: Connection, reader: Reader, story_id: int) -> PartedStory | None:
    """Returns the story as it was when it was taken apart for this tenant, or else for everybody."""
    return _parted_story.first(conn, reader.tenant_id, story_id) or _parted_story_for_everybody.first(
        conn, reader.tenant_id, story_id
    )


def last_of_post(conn: Connection, reader: Reader, post_id: int) -> PartedStory | None:
    """Returns the story that this post was taken out of last."""
    return _parted_post.first(conn, reader.tenant_id, post_id) or _parted_post_for_everybody.first(
        conn, reader.tenant_id, post_id
    )


def history(conn: Connection, reader: Reader, story_id: int) -> list[PastDecision]:
    """Returns what was decided about a story for everybody and for this tenant, the oldest first."""
    found = [*stories.history(conn, story_id), *_history.all(conn, reader.tenant_id, story_id)]
    return sorted(found, key=lambda one: one.decided_at)


def on_one_side(conn: Connection, reader: Reader, one: int, other: int) -> bool:
    """Whether two posts of a story are one for this tenant, too."""
    sides = {post_id: place for post_id, *place in _sides.all(conn, reader.tenant_id, [one, other])}
    return sides.get(one) == sides.get(other)


def _group_of(conn: Connection, reader: Reader, post_id: int) -> list[Decision]:
    return _group.all(conn, tenant_id=reader.tenant_id, post_id=post_id)


def _recorded(
    conn: Connection, reader: Reader, action: str, story: Sequence[Decision], post_id: int, now: datetime
) -> int:
    """Writes the record of a parting. The story is named as this tenant knows it: after its side, if it has one."""
    side = _side_of.value(conn, reader.tenant_id, post_id)
    parting_id: int = _record.value(
        conn,
        **reader.key,
        now=now,
        action=action,
        story_id=side or story[0].story_id,
        post_id=post_id,
        members=stories.as_members(story),
    )
    return parting_id
