"""Which posts belong to one story: decisions, the record of them, and their undoing. Nothing is ever deleted (C4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater import text
from headwater.model import Decision, PostText, Reader, Reference
from headwater.store.sql import Prepared, moment, portable

_POST = "p.id, p.source_id, p.title, p.content, p.url, p.created_at, p.reference_kind, p.reference_id"
_MEMBER = "m.seq, m.post_id, m.story_id, m.repeat_id, m.rule, m.score, m.why"

_texts = portable(f"SELECT {_POST} FROM posts p WHERE p.id IN (?) ORDER BY p.created_at, p.id")
_decided = portable(f"SELECT {_MEMBER} FROM story_members m WHERE m.post_id IN (?)")
_after = portable(f"SELECT {_MEMBER} FROM story_members m WHERE m.seq > ? ORDER BY m.seq LIMIT ?")
_next_decision = portable("SELECT decided_at FROM story_members WHERE seq >= ? ORDER BY seq LIMIT 1")
_last_seq = portable("SELECT COALESCE(max(seq), 0) FROM story_members")
_of_story = portable(f"SELECT {_MEMBER} FROM story_members m WHERE m.story_id = ? ORDER BY m.created_at, m.post_id")
_remove = portable("DELETE FROM story_members WHERE post_id IN (?)")
_insert = portable(
    """INSERT INTO story_members (post_id, story_id, repeat_id, rule, score, why, source_id, created_at, decided_at)
    SELECT id, ?, ?, ?, ?, ?, source_id, created_at, ? FROM posts WHERE id = ? ON CONFLICT (post_id) DO NOTHING"""
)
_record = portable(
    """INSERT INTO story_decisions (decided_at, action, story_id, post_id, rule, score, why, user_id)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
)
_record_undoing = portable(
    """INSERT INTO story_decisions (decided_at, action, story_id, post_id, user_id) VALUES (?, ?, ?, ?, ?)
    RETURNING id"""
)
_part = portable("INSERT INTO posts_apart (post_id, parting_id, side) VALUES (?, ?, ?)")
_apart = portable(
    """SELECT one.post_id, other.post_id FROM posts_apart one
        JOIN posts_apart other ON other.parting_id = one.parting_id AND other.side <> one.side
    WHERE one.post_id IN (?)"""
)
_referenced = portable(
    """SELECT p.id FROM posts r JOIN sources s ON s.id = r.source_id JOIN sources o ON o.kind = s.kind
        JOIN posts p ON p.source_id = o.id AND p.source_post_id = r.reference_id
    WHERE r.id = ? AND p.id <> r.id LIMIT 1"""
)
_alone_now = portable(
    """SELECT m.post_id FROM story_members m WHERE m.post_id IN (?) AND m.story_id = m.post_id AND NOT EXISTS (
        SELECT 1 FROM story_members o WHERE o.story_id = m.story_id AND o.post_id <> m.post_id)"""
)
_undecided = portable(
    """SELECT p.id FROM posts p WHERE p.id > ? AND NOT EXISTS (SELECT 1 FROM story_members m WHERE m.post_id = p.id)
    ORDER BY p.id LIMIT ?"""
)
_lock = Prepared(sqlite="SELECT 1", postgresql="SELECT pg_advisory_xact_lock(hashtext('headwater folds'))")
_history = portable(
    """SELECT decided_at, action, story_id, post_id, rule, score, why, user_id FROM story_decisions
    WHERE story_id = ? ORDER BY id"""
)
_was_undone = portable("SELECT 1 FROM story_decisions WHERE story_id = ? AND action = 'undone' LIMIT 1")
# Whoever has read one member has read the next one as well, if it is folded for them.
_read_with_the_rest = portable(
    """INSERT INTO post_states (tenant_id, user_id, post_id, read_at)
    SELECT s.tenant_id, s.user_id, ?, max(s.read_at) FROM story_members m
        JOIN post_states s ON s.post_id = m.post_id AND s.read_at IS NOT NULL
        LEFT JOIN fold_settings f ON f.tenant_id = s.tenant_id AND f.user_id = s.user_id
    WHERE m.story_id = ? AND m.post_id <> ? AND ? >= COALESCE(f.threshold, 0)
        AND (COALESCE(f.level, 'stories') = 'stories' OR (f.level = 'repeats' AND m.repeat_id = ?))
    GROUP BY s.tenant_id, s.user_id
    ON CONFLICT DO NOTHING"""
)


class StoryMember(NamedTuple):
    """A post's place, as it was decided; `seq` is the place of the decision in the order of all."""

    seq: int
    decision: Decision


class PastDecision(NamedTuple):
    decided_at: datetime
    action: str
    story_id: int
    post_id: int
    rule: str | None
    score: float | None
    why: str | None
    user_id: int | None


def texts(conn: Connection, post_ids: Sequence[int]) -> list[PostText]:
    """What these posts say, the oldest first."""
    return [_post_text(row) for row in _texts.all(conn, list(post_ids))]


def decided(conn: Connection, post_ids: Sequence[int]) -> dict[int, StoryMember]:
    found = (_member(row) for row in _decided.all(conn, list(post_ids)))
    return {member.decision.post_id: member for member in found}


def undecided_after(conn: Connection, after: int, limit: int) -> list[int]:
    """The next posts that nobody has decided about."""
    return [post_id for (post_id,) in _undecided.all(conn, after, limit)]


def decided_after(conn: Connection, seq: int, limit: int = 5000) -> list[StoryMember]:
    """What was decided after this place, in order."""
    return [_member(row) for row in _after.all(conn, seq, limit)]


def seq_before(conn: Connection, since: datetime) -> int:
    """The place in the order of decisions after which everything was decided since then."""
    low, high = 0, last_seq(conn) + 1
    while low + 1 < high:
        middle = (low + high) // 2
        rows = _next_decision.all(conn, middle)
        if rows and moment(rows[0][0]) < since:
            low = middle
        else:
            high = middle
    return low


def last_seq(conn: Connection) -> int:
    return int(_last_seq.all(conn)[0][0])


def save(conn: Connection, decisions: Iterable[Decision], now: datetime) -> None:
    """Write these down. A post that somebody else has decided about meanwhile keeps its place."""
    decisions = list(decisions)
    _insert.many(conn, [_row(decision, now) for decision in decisions])
    joined = [decision for decision in decisions if decision.rule != "first"]
    _record.many(conn, [(now, "joined", d.story_id, d.post_id, d.rule, d.score, d.why, None) for d in joined])
    _read_with_the_rest.many(conn, [(d.post_id, d.story_id, d.post_id, d.score, d.repeat_id) for d in joined])


def forget(conn: Connection, post_ids: Sequence[int]) -> None:
    """These are to be decided about anew."""
    _remove.once(conn, list(post_ids))


def alone(conn: Connection, post_ids: Sequence[int]) -> list[int]:
    """Those of these posts that are a story of their own."""
    return [post_id for (post_id,) in _alone_now.all(conn, list(post_ids))]


def members(conn: Connection, story_id: int) -> list[StoryMember]:
    """The earliest first: it is the representative (C3)."""
    return [_member(row) for row in _of_story.all(conn, story_id)]


def apart_from(conn: Connection, post_ids: Sequence[int]) -> dict[int, set[int]]:
    """Which posts a person has taken apart from these."""
    found: dict[int, set[int]] = {}
    for one, other in _apart.all(conn, list(post_ids)):
        found.setdefault(one, set()).add(other)
    return found


def referenced(conn: Connection, post_id: int) -> int | None:
    """The post that this one points at, if one of the same kind of source is stored."""
    rows = _referenced.all(conn, post_id)
    return rows[0][0] if rows else None


def lock_decisions(conn: Connection) -> None:
    """Wait until nobody else decides, and keep it so until the transaction ends. SQLite has one writer anyway."""
    _lock.all(conn)


def undo(conn: Connection, story_id: int, who: Reader | None, now: datetime) -> list[int]:
    """Let every post of a story stand alone again, and remember it (C5). Returns the posts; empty: there is no such."""
    posts = [member.decision.post_id for member in members(conn, story_id)]
    if len(posts) < 2:
        return []
    parting = _record_undoing.all(conn, now, "undone", story_id, posts[0], who.user_id if who else None)[0][0]
    _part.many(conn, [(post_id, parting, post_id) for post_id in posts])
    _place_anew(conn, [_alone(post_id) for post_id in posts], now)
    return posts


def separate(conn: Connection, post_id: int, who: Reader | None, now: datetime) -> list[int]:
    """Take a post, with its repeats, out of its story, and remember it. Returns what was taken out.

    If the representative itself is among its repeats, it leaves them behind.
    """
    place = decided(conn, [post_id]).get(post_id)
    rest = [member.decision for member in members(conn, place.decision.story_id)] if place else []
    if place is None or len(rest) < 2:
        return []
    group = [one.post_id for one in rest if one.repeat_id == place.decision.repeat_id]
    leaving = [post_id] if rest[0].post_id in group else group
    staying = [one for one in rest if one.post_id not in leaving]
    story_id = place.decision.story_id
    parting = _record_undoing.all(conn, now, "parted", story_id, post_id, who.user_id if who else None)[0][0]
    _part.many(conn, [(one.post_id, parting, int(one.post_id in leaving)) for one in rest])
    _place_anew(conn, [*_regrouped(staying), *_regrouped([one for one in rest if one.post_id in leaving])], now)
    return leaving


def was_undone(conn: Connection, story_id: int) -> bool:
    return bool(_was_undone.all(conn, story_id))


def history(conn: Connection, story_id: int) -> list[PastDecision]:
    return [PastDecision(moment(row[0]), *row[1:]) for row in _history.all(conn, story_id)]


def _place_anew(conn: Connection, decisions: list[Decision], now: datetime) -> None:
    _remove.once(conn, [decision.post_id for decision in decisions])
    _insert.many(conn, [_row(decision, now) for decision in decisions])


def _regrouped(story: list[Decision]) -> list[Decision]:
    """What is left of a story, under the name of its first post where it lost the one it was named after. Pure."""
    first = story[0].post_id
    ids = {one.post_id for one in story}
    story_id = story[0].story_id if story[0].story_id in ids else first
    leaders: dict[int, int] = {}
    regrouped = []
    for one in story:
        leader = one.repeat_id if one.repeat_id in ids else leaders.setdefault(one.repeat_id, one.post_id)
        rule = "first" if one.post_id == story_id else one.rule.replace("first", "story")
        regrouped.append(one._replace(story_id=story_id, repeat_id=leader, rule=rule))
    return regrouped


def _alone(post_id: int) -> Decision:
    return Decision(post_id, post_id, post_id, "first", 1.0, "")


def _row(decision: Decision, now: datetime) -> tuple[Any, ...]:
    post_id, story_id, repeat_id, rule, score, why = decision
    return (story_id, repeat_id, rule, score, why, now, post_id)


def _member(row: Sequence[Any]) -> StoryMember:
    return StoryMember(row[0], Decision(*row[1:7]))


def _post_text(row: Sequence[Any]) -> PostText:
    id, source_id, title, content, url, created_at, reference_kind, reference_id = row
    reference = Reference(reference_kind, reference_id) if reference_kind else None
    return PostText(id, source_id, title, text.plain(content), url, moment(created_at), reference)
