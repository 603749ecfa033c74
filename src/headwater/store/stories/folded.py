"""Stories as one reader folds them: not at all, repeats only, or all of a story; from a score on; not some sources.

A story is one entry of the stream. It is shown as the first of its members that arrived and that the reader may see:
a later arrival never takes over its title and its link. It stands where its newest telling stands that says something
new. Which posts these are differs from reader to reader, so it is decided while reading, along the indexes of the
story. What the reader's tenant has taken apart is not folded: its posts are on different sides (see `partings`).

A telling is news for a reader who has not read it, unless it only repeats tellings of the same story that they have
read. A story that was read and has news is updated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Decision, Reader
from headwater.store.sql import Prepared, R, portable, row_maker
from headwater.text import headline

LEVELS = ("off", "repeats", "stories")
MOST_COUNTED = 1000  # members of one story that are counted
FEW = 5  # members of one story that the stream shows beside the one that the story is shown as
LOOKED_AT = 25  # the newest of them, from which these are chosen
BEGINNING = 1000  # characters in which the first words of a post without a title are looked for
EVERYTHING = 2**62


class FoldSettings(NamedTuple):
    """What a reader wants folded: nothing, repeats, or all of a story; and from which score on."""

    level: str = "stories"
    threshold: float = 0.0


class StreamPart(NamedTuple):
    """The part of the stream that is shown: a folder, a source, or all of it."""

    folder: str | None = None
    source_id: int | None = None


class ShownMember(NamedTuple):
    """A post as a member of a story, and why it is one. `seq` is its place in the order of arrival.

    A post that has no title is shown by its first words.
    """

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
    says_new: bool
    seq: int


class Entry(NamedTuple):
    """A story of several posts as the stream shows it. `news` are tellings that are news for a reader who read it."""

    story_id: int
    shown_id: int
    tellings: int
    is_read: bool
    members: list[ShownMember]
    news: list[ShownMember]


class _Head(NamedTuple):
    post_id: int
    story_id: int
    shown_id: int
    tellings: int
    is_read: bool


class _Candidate(NamedTuple):
    entry_id: int
    post_id: int
    source_id: int
    says_new: bool


_GROUPS = {"stories": "story_id", "repeats": "repeat_id"}
_MAY_FOLD = "SELECT source_id FROM subscriptions WHERE tenant_id = :tenant_id AND user_id = :user_id AND fold"
_IS_AMONG = re.compile(r"(\w+)\.source_id \+ 0 IN \(SELECT source_id FROM (subscriptions WHERE [^()]*)\)")


def _looked_up(text: str) -> str:
    """Returns a statement for PostgreSQL that looks up the subscription of each member, by the key of the table.

    Otherwise the planner prefers to read all members of all stories and to compare them with all subscriptions: for row
    level security forbids to look up a sum, and it takes subscriptions of one person for rare. SQLite makes a list of
    the subscriptions once, which is as good.
    """
    return _IS_AMONG.sub(r"COALESCE((SELECT TRUE FROM \2 AND source_id = \1.source_id), FALSE)", text)


def _side(member: str) -> str:
    """Returns the join that finds on which side a member is for the reader's tenant."""
    return f"""LEFT JOIN story_sides {member}_side
            ON {member}_side.tenant_id = :tenant_id AND {member}_side.post_id = {member}.post_id"""


def _counts(member: str, group: str, may_fold: str = _MAY_FOLD) -> str:
    """Returns the condition that a member is folded: its source may be, and it began the group or its score is high
    enough. `+ 0` keeps the planner from going through all posts of a source."""
    return f"""{member}.source_id + 0 IN ({may_fold})
            AND ({member}.post_id = {member}.{group} OR {member}.score >= :threshold)"""


def _together(one: str, other: str, group: str, may_fold: str = _MAY_FOLD) -> str:
    """Returns the condition that another member is folded with one that is folded."""
    return f"""{other}.{group} = {one}.{group} AND {_counts(other, group, may_fold)}
            AND COALESCE({other}_side.parting_id, 0) = COALESCE({one}_side.parting_id, 0)
            AND COALESCE({other}_side.side, 0) = COALESCE({one}_side.side, 0)"""


def is_read(member: str, name: str = "post_id") -> str:
    return f"""EXISTS (SELECT 1 FROM post_states r WHERE r.tenant_id = :tenant_id AND r.user_id = :user_id
            AND r.post_id = {member}.{name} AND r.read_at IS NOT NULL)"""


def _says_new(member: str, group: str, may_fold: str = _MAY_FOLD, *, beyond_read: bool = False) -> str:
    """Returns the condition that a telling says something that the tellings with which it is folded did not; or, with
    `beyond_read`, that those of them did not which were read."""
    heard = _together(member, "told", group, may_fold) + (f" AND {is_read('told')}" if beyond_read else "")
    return f"""({member}.says_new OR EXISTS (SELECT 1 FROM story_echoes echo
            JOIN story_members told ON told.post_id = echo.of_post_id {_side("told")}
            WHERE echo.post_id = {member}.post_id AND NOT ({heard})))"""


def _is_news(member: str, group: str, may_fold: str = _MAY_FOLD) -> str:
    return f"(NOT {is_read(member)} AND {_says_new(member, group, may_fold, beyond_read=True)})"


def foldable(*, folder: bool, source: bool) -> str:
    """Returns the query for the sources whose posts are folded."""
    return _MAY_FOLD + " AND folder = :folder" * folder + " AND source_id = :source_id" * source


def is_shown(level: str, *, folder: bool, source: bool) -> str:
    """Returns the condition that the post `p` is where its story stands: it says something new, and none after it
    does."""
    group, may_fold = _GROUPS[level], foldable(folder=folder, source=source)
    return f"""NOT EXISTS (SELECT 1 FROM story_members own {_side("own")}
        WHERE own.post_id = p.id AND {_counts("own", group, may_fold)}
            AND (NOT {_says_new("own", group, may_fold)} OR EXISTS (
                SELECT 1 FROM story_members later {_side("later")}
                WHERE {_together("own", "later", group, may_fold)}
                    AND (later.created_at, later.post_id) > (own.created_at, own.post_id)
                    AND {_says_new("later", group, may_fold)})))"""


def has_news(level: str, *, folder: bool, source: bool) -> str:
    """Returns the condition that the story of the post `p`, whose state is `state`, is unread or updated."""
    group, may_fold = _GROUPS[level], foldable(folder=folder, source=source)
    return f"""CASE WHEN EXISTS (
            SELECT 1 FROM story_members own WHERE own.post_id = p.id AND {_counts("own", group, may_fold)})
        THEN EXISTS (SELECT 1 FROM story_members own {_side("own")}
            JOIN story_members other ON other.{group} = own.{group} {_side("other")}
            WHERE own.post_id = p.id AND {_together("own", "other", group, may_fold)}
                AND {_is_news("other", group, may_fold)})
        ELSE state.read_at IS NULL END"""


def is_alone(post_id: str, *, level: str, folder: bool, source: bool) -> str:
    """Returns the condition that a post is folded with no other one."""
    group, may_fold = _GROUPS[level], foldable(folder=folder, source=source)
    return f"""NOT EXISTS (SELECT 1 FROM story_members alone {_side("alone")}
            JOIN story_members twin ON twin.{group} = alone.{group} {_side("twin")}
            WHERE alone.post_id = {post_id} AND {_counts("alone", group, may_fold)}
                AND twin.post_id <> alone.post_id AND {_together("alone", "twin", group, may_fold)})"""


_settings = portable("SELECT level, threshold FROM fold_settings WHERE tenant_id = ? AND user_id = ?", row=FoldSettings)
_save_settings = portable(
    """INSERT INTO fold_settings (tenant_id, user_id, level, threshold) VALUES (?, ?, ?, ?)
    ON CONFLICT (tenant_id, user_id) DO UPDATE SET level = excluded.level, threshold = excluded.threshold"""
)
_set_folding = portable("UPDATE subscriptions SET fold = ? WHERE tenant_id = ? AND user_id = ? AND source_id = ?")

_DESCRIBED = """p.id, p.source_id, COALESCE(NULLIF(COALESCE(f.title, s.title), ''), s.address), p.url, p.title,
        p.created_at, state.read_at IS NOT NULL"""
_VISIBLE = """JOIN sources s ON s.id = p.source_id
    JOIN subscriptions f ON f.tenant_id = :tenant_id AND f.user_id = :user_id AND f.source_id = p.source_id
    LEFT JOIN post_states state
        ON state.tenant_id = :tenant_id AND state.user_id = :user_id AND state.post_id = p.id"""
_beginnings = portable(f"SELECT id, substr(content, 1, {BEGINNING}) FROM posts WHERE id IN (?)")
_described = portable(f"SELECT {_DESCRIBED} FROM posts p {_VISIBLE} WHERE p.id IN (:ids)")
_hot_rows, _cold_rows = (
    portable(
        f"""SELECT {_DESCRIBED}, m.rule, m.score, m.why, m.repeat_id, COALESCE(side.side, m.story_id), m.says_new, m.seq
        FROM story_members m JOIN {table} p ON p.id = m.post_id {_VISIBLE}
        LEFT JOIN story_sides side ON side.tenant_id = :tenant_id AND side.post_id = m.post_id
        WHERE m.post_id IN (:ids)""",
        row=ShownMember,
    )
    for table in ("hot_posts", "posts")
)
# A story's posts by its id, those that may be folded first: of the story itself, or of what a tenant took out of one.
_VISIBLE_OF = """SELECT m.post_id FROM story_members m
        JOIN subscriptions f ON f.tenant_id = :tenant_id AND f.user_id = :user_id AND f.source_id = m.source_id
        {sides}
    ORDER BY f.fold DESC, m.seq LIMIT 1"""
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
# What others follow must not show: not even how much was folded for them.
_last_arrival = portable(
    """SELECT m.seq FROM story_members m WHERE EXISTS (SELECT 1 FROM subscriptions f
        WHERE f.tenant_id = ? AND f.user_id = ? AND f.source_id = m.source_id)
    ORDER BY m.seq DESC LIMIT 1"""
)
_member = row_maker(ShownMember)


def prepared(text: str, row: type[R] | None = None) -> Prepared[R]:
    """Prepares a statement that asks whether sources are among the reader's."""
    return Prepared(sqlite=text, postgresql=_looked_up(text), row=row)


@cache
def _heads(level: str, folder: bool, source: bool) -> Prepared[_Head]:
    """Returns the query for what the stories of posts are shown as, and how many members they have."""
    group, may_fold = _GROUPS[level], foldable(folder=folder, source=source)
    shown = f"""FROM story_members m {_side("m")} WHERE {_together("own", "m", group, may_fold)}
            ORDER BY m.seq LIMIT 1"""
    return prepared(
        f"""SELECT own.post_id, COALESCE(own_side.side, own.story_id), (SELECT m.post_id {shown}),
            (SELECT count(*) FROM (SELECT 1 FROM story_members m {_side("m")}
                WHERE {_together("own", "m", group)} LIMIT :most) AS counted),
            (SELECT {is_read("m")} {shown})
        FROM story_members own {_side("own")} WHERE own.post_id IN (:ids) AND {_counts("own", group)}""",
        row=_Head,
    )


@cache
def _newest(level: str, news: bool) -> Prepared[_Candidate]:
    """Returns the query for the newest members of the stories of posts; with `news`, those that are news."""
    group = _GROUPS[level]
    newest = f"""SELECT m.{{columns}} FROM story_members m {_side("m")}
            WHERE {_together("own", "m", group)}{f" AND {_is_news('m', group)}" if news else ""}
            ORDER BY m.created_at DESC, m.post_id DESC LIMIT :most"""
    text = """SELECT own.post_id, other.post_id, other.source_id, other.says_new
        FROM story_members own {side} JOIN {others}
        WHERE own.post_id IN (:ids) ORDER BY other.created_at DESC, other.post_id DESC"""
    side = _side("own")
    return Prepared(
        sqlite=text.format(side=side, others=f"story_members other ON other.seq IN ({newest.format(columns='seq')})"),
        postgresql=text.format(side=side, others=f"LATERAL ({_looked_up(newest).format(columns='*')}) other ON TRUE"),
        row=_Candidate,
    )


@cache
def _of_each_source(level: str) -> Prepared[_Candidate]:
    """Returns the query for the newest member of each source in the stories of posts. It reads all their members."""
    group = _GROUPS[level]
    return prepared(
        f"""SELECT entry_id, post_id, source_id, says_new FROM (
            SELECT own.post_id AS entry_id, m.post_id, m.source_id, m.says_new, m.created_at, ROW_NUMBER() OVER (
                PARTITION BY own.post_id, m.source_id ORDER BY m.created_at DESC, m.post_id DESC) AS place
            FROM story_members own {_side("own")}
            JOIN story_members m ON m.{group} = own.{group} {_side("m")}
            WHERE own.post_id IN (:ids) AND {_together("own", "m", group)}) ranked
        WHERE place = 1 ORDER BY created_at DESC, post_id DESC""",
        row=_Candidate,
    )


@cache
def _arrived(level: str) -> Prepared:
    """Returns the query for the members of one story, or of the stories of posts, in the order of arrival."""
    group = _GROUPS[level]
    return prepared(
        f"""SELECT m.post_id, m.seq FROM story_members own {_side("own")}
        JOIN story_members m ON m.{group} = own.{group} {_side("m")}
        WHERE own.post_id IN (:ids) AND {_counts("own", group)} AND {_together("own", "m", group)}
            AND m.seq > :after AND m.seq <= :as_of
        ORDER BY m.seq LIMIT :most"""
    )


def settings_of(conn: Connection, reader: Reader) -> FoldSettings:
    return _settings.first(conn, reader.tenant_id, reader.user_id) or FoldSettings()


def save_settings(conn: Connection, reader: Reader, wanted: FoldSettings) -> None:
    _save_settings.once(conn, reader.tenant_id, reader.user_id, wanted.level, wanted.threshold)


def set_folding(conn: Connection, reader: Reader, source_id: int, *, fold: bool) -> bool:
    """Sets whether posts of a source are folded for a reader. Returns whether the reader follows it."""
    return _set_folding.once(conn, fold, reader.tenant_id, reader.user_id, source_id) > 0


def entries(
    conn: Connection,
    reader: Reader,
    wanted: FoldSettings,
    post_ids: Sequence[int],
    part: StreamPart = StreamPart(),
) -> dict[int, Entry]:
    """Returns, for those of these posts that are folded with others, the entry that stands at the post."""
    if wanted.level == "off" or not post_ids:
        return {}
    own = _own(reader, wanted, post_ids)
    found = _heads(wanted.level, part.folder is not None, part.source_id is not None).all(
        conn, **own, **part._asdict(), most=MOST_COUNTED
    )
    heads = [head for head in found if head.tellings > 1]
    if not heads:
        return {}
    own["ids"] = [head.post_id for head in heads]
    newest = _by_entry(_newest(wanted.level, news=False).all(conn, **own, most=LOOKED_AT))
    if crowded := [entry_id for entry_id, some in newest.items() if _is_crowded(some)]:
        own["ids"] = crowded
        for entry_id, some in _by_entry(_of_each_source(wanted.level).all(conn, **own)).items():
            newest[entry_id] = [*newest[entry_id], *(one for one in some if one not in newest[entry_id])]
    own["ids"] = [head.post_id for head in heads if head.is_read]
    news = _by_entry(_newest(wanted.level, news=True).all(conn, **own, most=FEW)) if own["ids"] else {}
    chosen = {head.post_id: [head.shown_id, *most_telling(newest[head.post_id], head.shown_id)] for head in heads}
    fresh = {entry_id: [one.post_id for one in some] for entry_id, some in news.items()}
    rows = described(conn, reader, {*_flat(chosen.values()), *_flat(fresh.values())})
    return {
        head.post_id: Entry(
            *head[1:],
            [rows[one] for one in chosen[head.post_id]],
            [rows[one] for one in fresh.get(head.post_id, [])],
        )
        for head in heads
    }


def _is_crowded(newest: Sequence[_Candidate]) -> bool:
    """Whether few sources may have driven the others out of the newest members of a story."""
    return len(newest) == LOOKED_AT and len({one.source_id for one in newest}) <= FEW


def most_telling(newest: Sequence[_Candidate], shown_id: int, few: int = FEW) -> list[int]:
    """Returns a few of the newest members, in their order: of each source one, what is new before what repeats. Pure.

    Only if there are fewer sources than places, a source has several.
    """
    others = [one for one in newest if one.post_id != shown_id]
    if len(others) > few:
        ranked = sorted(others, key=lambda one: not one.says_new)
        best = {one.source_id: one.post_id for one in reversed(ranked)}
        once = [one for one in ranked if best[one.source_id] == one.post_id]
        kept = {one.post_id for one in [*once, *(one for one in ranked if one not in once)][:few]}
        others = [one for one in others if one.post_id in kept]
    return [one.post_id for one in reversed(others)]


def described(conn: Connection, reader: Reader, post_ids: Iterable[int]) -> dict[int, ShownMember]:
    """Returns these members as the reader sees them. Those of the last day are read from the hot store alone."""
    own = reader.key
    wanted = set(post_ids)
    rows = _hot_rows.all(conn, **own, ids=list(wanted))
    if older := wanted - {one.post_id for one in rows}:
        rows += _cold_rows.all(conn, **own, ids=list(older))
    return {one.post_id: one for one in _with_titles(conn, rows)}


def _with_titles(conn: Connection, members: list[ShownMember]) -> list[ShownMember]:
    untitled = [one.post_id for one in members if not one.title]
    beginnings = dict(_beginnings.all(conn, untitled)) if untitled else {}
    return [
        one if one.title else one._replace(title=headline("", beginnings.get(one.post_id, ""), one.url))
        for one in members
    ]


def story_named(conn: Connection, reader: Reader, story_id: int) -> int | None:
    """Returns a post of the story with this id, as the reader's tenant folds it; None if there is none."""
    for statement in (_first_of_story, _first_of_side):
        own = {**reader.key, "story_id": story_id}
        post_id: int | None = statement.value(conn, **own)
        if post_id and len(arrived(conn, reader, post_id, limit=2)) > 1:
            return post_id
    return None


def arrived(
    conn: Connection, reader: Reader, post_id: int, *, after: int = 0, limit: int = MOST_COUNTED
) -> list[ShownMember]:
    """Returns the visible members of the story of a post, whatever the reader's settings, in the order of arrival."""
    own = _own(reader, FoldSettings(), [post_id])
    ids = [one for one, _ in _arrived("stories").all(conn, **own, after=after, as_of=EVERYTHING, most=limit)]
    rows = described(conn, reader, ids)
    return [rows[one] for one in ids]


def count_tellings(conn: Connection, reader: Reader, post_id: int) -> int:
    """Returns how many members the story of a post has, as far as they are counted; 0 if the reader sees none."""
    head = _heads("stories", False, False).first(conn, **_own(reader, FoldSettings(), [post_id]), most=MOST_COUNTED)
    return head.tellings if head else 0


def last_arrival(conn: Connection, reader: Reader) -> int:
    """Returns the place of the newest telling that the reader may see. Whatever arrives later has a higher one."""
    return int(_last_arrival.value(conn, reader.tenant_id, reader.user_id) or 0)


def as_it_was(conn: Connection, reader: Reader, story: Sequence[Decision]) -> list[ShownMember]:
    """Returns the visible members of a story that does not exist any more."""
    ids = [one.post_id for one in story]
    rows = {row[0]: row for row in _described.all(conn, **reader.key, ids=ids)}
    seen = [one for one in story if one.post_id in rows]
    members = [
        _member((*rows[one.post_id], one.rule, one.score, one.why, one.repeat_id, one.story_id, True, place))
        for place, one in enumerate(seen)
    ]
    return _with_titles(conn, members)


def with_folded(conn: Connection, reader: Reader, post_ids: Sequence[int], as_of: int | None = None) -> list[int]:
    """Returns these posts and all that are folded with them for this reader, of those that had arrived by `as_of`."""
    wanted = settings_of(conn, reader)
    if wanted.level == "off" or not post_ids:
        return sorted(set(post_ids))
    own = _own(reader, wanted, post_ids)
    until = EVERYTHING if as_of is None else as_of
    found = _arrived(wanted.level).all(conn, **own, after=0, as_of=until, most=EVERYTHING)
    return sorted({*post_ids, *(post_id for post_id, _ in found)})


def _own(reader: Reader, wanted: FoldSettings, post_ids: Sequence[int]) -> dict[str, Any]:
    return {
        **reader.key,
        "threshold": wanted.threshold,
        "ids": list(post_ids),
    }


def _by_entry(candidates: Iterable[_Candidate]) -> dict[int, list[_Candidate]]:
    found: dict[int, list[_Candidate]] = {}
    for one in candidates:
        found.setdefault(one.entry_id, []).append(one)
    return found


def _flat(lists: Iterable[Iterable[int]]) -> Iterable[int]:
    return (one for some in lists for one in some)
