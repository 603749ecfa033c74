"""The stream with each story once, as one reader folds it: off, repeats only, or stories; by score; not some sources.

The entry of a story stands where its earliest member stands that the reader may see. Which post that is differs from
reader to reader, so it is decided while reading, along the index of the story.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, exists, func, or_, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from headwater.model import Reader
from headwater.store.tables import fold_settings, post_states, posts, posts_hot, sources, story_members, subscriptions

LEVELS = ("off", "repeats", "stories")
MOST_MEMBERS = 200  # of one story that are shown


class FoldSettings(NamedTuple):
    """What a reader wants folded: nothing, repeats, or all of a story; and from which score on."""

    level: str = "stories"
    threshold: float = 0.0


class ShownMember(NamedTuple):
    """A post within a story: what it is, and why it is here."""

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


def settings_of(conn: Connection, reader: Reader) -> FoldSettings:
    query = select(fold_settings.c.level, fold_settings.c.threshold).where(
        fold_settings.c.tenant_id == reader.tenant_id, fold_settings.c.user_id == reader.user_id
    )
    row = conn.execute(query).first()
    return FoldSettings(*row) if row else FoldSettings()


def save_settings(conn: Connection, reader: Reader, wanted: FoldSettings) -> None:
    insert = postgresql.insert if conn.dialect.name == "postgresql" else sqlite.insert
    whose = {"tenant_id": reader.tenant_id, "user_id": reader.user_id}
    conn.execute(
        insert(fold_settings)
        .values(**whose, **wanted._asdict())
        .on_conflict_do_update(index_elements=list(whose), set_=wanted._asdict())
    )


def set_folding(conn: Connection, reader: Reader, source_id: int, *, fold: bool) -> bool:
    """Whether posts of this source may be folded for this reader; returns whether they follow it."""
    own = and_(
        subscriptions.c.tenant_id == reader.tenant_id,
        subscriptions.c.user_id == reader.user_id,
        subscriptions.c.source_id == source_id,
    )
    return conn.execute(update(subscriptions).where(own).values(fold=fold)).rowcount > 0


def is_shown(
    reader: Reader, wanted: FoldSettings, post_id: ColumnElement[int], *, folder: str | None, source_id: int | None
) -> ColumnElement[bool]:
    """Whether a post has an entry of its own: no earlier post of its story has it."""
    own, earlier = story_members.alias("own"), story_members.alias("earlier")
    may_fold = _may_fold(reader)
    if folder is not None:
        may_fold = may_fold.where(subscriptions.c.folder == folder)
    if source_id is not None:
        may_fold = may_fold.where(subscriptions.c.source_id == source_id)
    told_earlier = (
        select(own.c.post_id)
        .join(earlier, _group(earlier, wanted) == _group(own, wanted))
        .where(own.c.post_id == post_id)
        .where(tuple_(earlier.c.created_at, earlier.c.post_id) < tuple_(own.c.created_at, own.c.post_id))
        .where(_counts(own, wanted), _counts(earlier, wanted))
        .where((own.c.source_id + 0).in_(may_fold), (earlier.c.source_id + 0).in_(may_fold))
    )
    return ~exists(told_earlier)


def members(
    conn: Connection, reader: Reader, wanted: FoldSettings, post_ids: Sequence[int]
) -> dict[int, list[ShownMember]]:
    """For each of these posts, all that is folded with it and that the reader may see, the earliest first."""
    if wanted.level == "off" or not post_ids:
        return {}
    rows = conn.execute(_members_query(reader, wanted, post_ids)).all()
    elsewhere = _as_in_cold_store(conn, [row.post_id for row in rows if row.title is None])
    found: dict[int, list[ShownMember]] = {}
    for row in rows:
        story = found.setdefault(row.entry, [])
        if len(story) < MOST_MEMBERS:
            member = ShownMember(*row[1:])
            url, title = elsewhere.get(member.post_id, (member.url, member.title))
            story.append(member._replace(url=url, title=title))
    return found


def _members_query(reader: Reader, wanted: FoldSettings, post_ids: Sequence[int]) -> Select[Any]:
    """What the hot store has of the members; of the others there is no title."""
    own, other = story_members.alias("own"), story_members.alias("other")
    return (
        select(
            own.c.post_id.label("entry"),
            other.c.post_id,
            other.c.source_id,
            func.coalesce(subscriptions.c.title, sources.c.title, sources.c.address).label("source"),
            posts_hot.c.url,
            posts_hot.c.title,
            other.c.created_at,
            post_states.c.read_at.is_not(None).label("read"),
            *(other.c[name] for name in ("rule", "score", "why", "repeat_id", "story_id")),
        )
        .select_from(own)
        .join(other, _group(other, wanted) == _group(own, wanted))
        .join(sources, sources.c.id == other.c.source_id)
        .join(subscriptions, and_(_follows(reader), subscriptions.c.source_id == other.c.source_id))
        .outerjoin(posts_hot, posts_hot.c.id == other.c.post_id)
        .outerjoin(post_states, and_(_states(reader), post_states.c.post_id == other.c.post_id))
        .where(own.c.post_id.in_(post_ids), _counts(own, wanted), _counts(other, wanted))
        .where(or_(own.c.post_id == other.c.post_id, subscriptions.c.fold & own.c.source_id.in_(_may_fold(reader))))
        .order_by(other.c.created_at, other.c.post_id)
    )


def _as_in_cold_store(conn: Connection, post_ids: Sequence[int]) -> dict[int, tuple[str | None, str]]:
    if not post_ids:
        return {}
    query = select(posts.c.id, posts.c.url, posts.c.title).where(posts.c.id.in_(post_ids))
    return {row.id: (row.url, row.title) for row in conn.execute(query)}


def with_folded(conn: Connection, reader: Reader, post_ids: Sequence[int]) -> list[int]:
    """These posts and all that is folded with them for this reader."""
    found = members(conn, reader, settings_of(conn, reader), post_ids)
    return sorted({*post_ids, *(member.post_id for story in found.values() for member in story)})


def _group(member: FromClause, wanted: FoldSettings) -> ColumnElement[Any]:
    return member.c.story_id if wanted.level == "stories" else member.c.repeat_id


def _counts(member: FromClause, wanted: FoldSettings) -> ColumnElement[bool]:
    """Whether the reader takes this post for a part of its story: what began it is, the rest by its score."""
    return or_(member.c.post_id == _group(member, wanted), member.c.score >= wanted.threshold)


def _may_fold(reader: Reader) -> Select[tuple[int]]:
    return select(subscriptions.c.source_id).where(_follows(reader), subscriptions.c.fold)


def _follows(reader: Reader) -> ColumnElement[bool]:
    return and_(subscriptions.c.tenant_id == reader.tenant_id, subscriptions.c.user_id == reader.user_id)


def _states(reader: Reader) -> ColumnElement[bool]:
    return and_(post_states.c.tenant_id == reader.tenant_id, post_states.c.user_id == reader.user_id)
