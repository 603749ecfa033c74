"""Which posts belong to one story: decisions, the record of them, and undoing them. No post is ever deleted.

`folded` reads stories as one reader sees them, and `partings` has what tenants have undone for themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater import text
from headwater.model import Decision, PostText, Reader, Reference
from headwater.store.sql import Prepared, columns, json_text, json_value, moment_or_none, portable

_LARGEST = 2**62
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


class StoryMember(NamedTuple):
    """A post as a member of a story; `seq` is the position of the decision among all decisions."""

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


class _TextRow(NamedTuple):
    id: int
    source_id: int
    title: str
    content: str
    url: str | None
    created_at: datetime
    reference_kind: str | None
    reference_id: str


_MEMBER = f"SELECT seq, {columns(Decision)} FROM story_members"

_texts = portable(f"SELECT {columns(_TextRow)} FROM posts WHERE id IN (?) ORDER BY created_at, id", row=_TextRow)
_decided = portable(f"{_MEMBER} WHERE post_id IN (?)")
_after = portable(f"{_MEMBER} WHERE seq > ? ORDER BY seq LIMIT ?")
_next_decision = portable("SELECT decided_at FROM story_members WHERE seq >= ? ORDER BY seq LIMIT 1")
_last_seq = portable("SELECT COALESCE(max(seq), 0) FROM story_members")
_of_story = portable(f"{_MEMBER} WHERE story_id = ? ORDER BY seq")
_remove = portable("DELETE FROM story_members WHERE post_id IN (?)")
_insert = portable(
    """INSERT INTO story_members (post_id, story_id, repeat_id, rule, score, why, source_id, created_at, decided_at)
    SELECT id, :story_id, :repeat_id, :rule, :score, :why, source_id, created_at, :now FROM posts WHERE id = :post_id
    ON CONFLICT (post_id) DO NOTHING"""
)
_record_joining = portable(
    """INSERT INTO story_decisions (decided_at, action, story_id, post_id, rule, score, why)
    VALUES (:now, 'joined', :story_id, :post_id, :rule, :score, :why)"""
)
_record_undoing = portable(
    """INSERT INTO story_decisions (decided_at, action, story_id, post_id, user_id, members)
    VALUES (:now, :action, :story_id, :post_id, :user_id, :members) RETURNING id"""
)
# Two stories became one: what moved is in `members`, and `post_id` is the first of it.
_record_meeting = portable(
    """INSERT INTO story_decisions (decided_at, action, story_id, post_id, rule, score, why, members)
    VALUES (:now, 'met', :story_id, :post_id, 'story', :score, :why, :members)"""
)
_move = portable("UPDATE story_members SET story_id = :kept WHERE story_id = :moved")
_explain = portable("UPDATE story_members SET rule = 'story', score = :score, why = :why WHERE post_id = :post_id")
_met_with = portable(
    "SELECT members FROM story_decisions WHERE action = 'met' AND story_id = ? AND post_id = ? ORDER BY id DESC LIMIT 1"
)
_moved_to = portable("SELECT story_id FROM story_members WHERE post_id = ? AND story_id <> post_id")
_are_apart = portable(
    """SELECT 1 FROM story_members mine JOIN posts_apart one ON one.post_id = mine.post_id
        JOIN posts_apart other ON other.parting_id = one.parting_id AND other.side <> one.side
        JOIN story_members its ON its.post_id = other.post_id
    WHERE mine.story_id = ? AND its.story_id = ? LIMIT 1"""
)
_part = portable("INSERT INTO posts_apart (post_id, parting_id, side) VALUES (?, ?, ?)")
_apart = portable(
    """SELECT one.post_id, other.post_id FROM posts_apart one
        JOIN posts_apart other ON other.parting_id = one.parting_id AND other.side <> one.side
    WHERE one.post_id IN (?)"""
)
# A repeat of a post that a tenant has put elsewhere goes there, too.
_follow_its_text = portable(
    """INSERT INTO story_sides (tenant_id, post_id, parting_id, side)
    SELECT tenant_id, ?, parting_id, side FROM story_sides WHERE post_id = ? ON CONFLICT DO NOTHING"""
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
_ids_at_x = portable(
    "SELECT p.id, p.source_post_id FROM posts p JOIN sources s ON s.id = p.source_id WHERE s.kind = 'x' AND p.id IN (?)"
)
# The earliest copy of a post counts: an account and a search may both have brought it.
_posts_at_x = portable(
    """SELECT p.source_post_id, min(p.id) FROM sources s JOIN posts p ON p.source_id = s.id
    WHERE s.kind = 'x' AND p.source_post_id IN (?) GROUP BY p.source_post_id"""
)
# Those of which the reader may see two posts. A story that became part of another one has no posts any more.
_joined_before = portable(
    """SELECT d.story_id FROM story_decisions d WHERE d.action = 'joined' AND d.story_id < :before
    GROUP BY d.story_id HAVING min(d.decided_at) >= :since AND min(d.decided_at) < :until AND (SELECT count(*) FROM (
            SELECT 1 FROM story_members m JOIN subscriptions f
                ON f.tenant_id = :tenant_id AND f.user_id = :user_id AND f.source_id = m.source_id
            WHERE m.story_id = d.story_id LIMIT 2) AS seen) = 2
    ORDER BY d.story_id DESC LIMIT :limit"""
)
_undecided = portable(
    """SELECT p.id FROM posts p WHERE p.id > ? AND NOT EXISTS (SELECT 1 FROM story_members m WHERE m.post_id = p.id)
    ORDER BY p.id LIMIT ?"""
)
_lock = Prepared(sqlite="SELECT 1", postgresql="SELECT pg_advisory_xact_lock(hashtext('headwater folds'))")
_history = portable(
    f"SELECT {columns(PastDecision)} FROM story_decisions WHERE story_id = ? ORDER BY id", row=PastDecision
)


def texts(conn: Connection, post_ids: Sequence[int]) -> list[PostText]:
    """Returns the texts of these posts, the oldest first."""
    return [_post_text(row) for row in _texts.all(conn, list(post_ids))]


def decided(conn: Connection, post_ids: Sequence[int]) -> dict[int, StoryMember]:
    found = (_member(row) for row in _decided.all(conn, list(post_ids)))
    return {member.decision.post_id: member for member in found}


def undecided_after(conn: Connection, after: int, limit: int) -> list[int]:
    """Returns the next posts that were not decided about."""
    return _undecided.values(conn, after, limit)


def decided_after(conn: Connection, seq: int, limit: int = 5000) -> list[StoryMember]:
    """Returns what was decided after this position, in order."""
    return [_member(row) for row in _after.all(conn, seq, limit)]


def ids_at_x(conn: Connection, post_ids: Sequence[int]) -> dict[int, str]:
    """Returns the ids that those of these posts have at X which come from there."""
    return dict(_ids_at_x.all(conn, list(post_ids)))


def posts_at_x(conn: Connection, ids: Sequence[str]) -> dict[str, int]:
    """Returns the posts that have these ids at X."""
    return dict(_posts_at_x.all(conn, list(ids))) if ids else {}


def joined_before(
    conn: Connection,
    reader: Reader,
    before: int | None,
    limit: int,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[int]:
    """Returns stories of posts that the reader may see, those with the highest ids first. They may have been undone
    since."""
    own = {**reader.key, "since": since or _EARLIEST, "until": until or _LATEST}
    return _joined_before.values(conn, **own, before=before or _LARGEST, limit=limit)


def seq_before(conn: Connection, since: datetime) -> int:
    """Returns the position after which everything was decided since then."""
    low, high = 0, last_seq(conn) + 1
    while low + 1 < high:
        middle = (low + high) // 2
        decided_at = moment_or_none(_next_decision.value(conn, middle))
        if decided_at is not None and decided_at < since:
            low = middle
        else:
            high = middle
    return low


def last_seq(conn: Connection) -> int:
    return int(_last_seq.value(conn))


def save(conn: Connection, decisions: Iterable[Decision], now: datetime) -> None:
    """Writes decisions. A post that another process has decided about meanwhile stays where it is."""
    decisions = list(decisions)
    _insert.many(conn, [{**decision._asdict(), "now": now} for decision in decisions])
    joined = [decision for decision in decisions if decision.rule != "first"]
    _record_joining.many(conn, [{**decision._asdict(), "now": now} for decision in joined])
    _follow_its_text.many(conn, [(d.post_id, d.repeat_id) for d in joined if d.repeat_id != d.post_id])


def forget(conn: Connection, post_ids: Sequence[int]) -> None:
    """Deletes the decisions about these posts, so that they are decided about again."""
    _remove.once(conn, list(post_ids))


def alone(conn: Connection, post_ids: Sequence[int]) -> list[int]:
    """Returns those of these posts that are a story of their own."""
    return _alone_now.values(conn, list(post_ids))


def members(conn: Connection, story_id: int) -> list[StoryMember]:
    """Returns the members of a story in the order in which they arrived: the first one is the representative."""
    return [_member(row) for row in _of_story.all(conn, story_id)]


def meet(conn: Connection, one_id: int, other_id: int, score: float, why: str, now: datetime) -> list[Decision]:
    """Makes two stories one, under the name and the first post of the one that arrived first. Returns what moved.

    That is nothing if they are one already, or if a person has separated posts of one from posts of the other. Posts
    keep their place in the order of arrival and why they joined; the first of those that moved says why they met.
    """
    if one_id == other_id or _are_apart.first(conn, one_id, other_id) is not None:
        return []
    one, other = (members(conn, story_id) for story_id in (one_id, other_id))
    if not one or not other:
        return []
    kept, moved = ([member.decision for member in story] for story in sorted((one, other)))
    story_id, first = kept[0].story_id, moved[0]
    _record_meeting.once(
        conn, now=now, story_id=story_id, post_id=first.post_id, score=score, why=why, members=as_members(moved)
    )
    _move.once(conn, kept=story_id, moved=first.story_id)
    _explain.once(conn, score=score, why=why, post_id=first.post_id)
    reasons = [first._replace(rule="story", score=score, why=why), *moved[1:]]
    return [reason._replace(story_id=story_id) for reason in reasons]


def moved_to(conn: Connection, story_id: int) -> int | None:
    """Returns the story that the first post of this one is in now, if it became part of another."""
    found: int | None = _moved_to.value(conn, story_id)
    return found


def met_with(conn: Connection, story_id: int, post_id: int) -> set[int]:
    """Returns the posts that came into a story together with this one, when two stories became one."""
    record = _met_with.value(conn, story_id, post_id)
    return {member["post_id"] for member in json_value(record)} if record else set()


def apart_from(conn: Connection, post_ids: Sequence[int]) -> dict[int, set[int]]:
    """Returns which posts a person has separated from these."""
    found: dict[int, set[int]] = {}
    for one, other in _apart.all(conn, list(post_ids)):
        found.setdefault(one, set()).add(other)
    return found


def referenced(conn: Connection, post_id: int) -> int | None:
    """Returns the post that this one refers to, if it is stored, of a source of the same kind."""
    found: int | None = _referenced.value(conn, post_id)
    return found


def lock_decisions(conn: Connection) -> None:
    """Waits until no other process decides, and locks others out until the transaction ends. SQLite has one writer."""
    _lock.all(conn)


def undo(conn: Connection, story_id: int, who: Reader | None, now: datetime) -> list[int]:
    """Takes a story apart for everybody, for good. Returns its posts, or nothing if there is no such story."""
    story = [member.decision for member in members(conn, story_id)]
    posts = [one.post_id for one in story]
    if len(posts) < 2:
        return []
    parting = _recorded(conn, "undone", story, posts[0], who, now)
    _part.many(conn, [(post_id, parting, post_id) for post_id in posts])
    _place_anew(conn, [_alone(post_id) for post_id in posts], now)
    return posts


def separate(conn: Connection, post_id: int, who: Reader | None, now: datetime) -> list[int]:
    """Takes a post, with its repeats, out of its story for everybody, for good. Returns what was taken out."""
    place = decided(conn, [post_id]).get(post_id)
    story = [member.decision for member in members(conn, place.decision.story_id)] if place else []
    if len(story) < 2:
        return []
    out = leaving(story, post_id, met_with(conn, story[0].story_id, post_id))
    parting = _recorded(conn, "parted", story, post_id, who, now)
    _part.many(conn, [(one.post_id, parting, int(one.post_id in out)) for one in story])
    sides = ([one for one in story if (one.post_id in out) is leaves] for leaves in (False, True))
    _place_anew(conn, [one for side in sides for one in _regrouped(side)], now)
    return out


def leaving(story: Sequence[Decision], post_id: int, met: Set[int] = frozenset()) -> list[int]:
    """Returns the posts that leave a story with this one: its repeats, or what it `met` the story with. Pure.

    If the representative is one of the repeats, only the post itself leaves.
    """
    came = met & {one.post_id for one in story}
    if len(came) > 1:
        return [one.post_id for one in story if one.post_id in came or one.repeat_id in came]
    repeat_id = next(one.repeat_id for one in story if one.post_id == post_id)
    group = [one.post_id for one in story if one.repeat_id == repeat_id]
    return [post_id] if story[0].post_id in group else group


def as_members(story: Sequence[Decision]) -> str:
    """Returns a story as its record keeps it."""
    kept = ("post_id", "repeat_id", "rule", "score", "why")
    return json_text([{name: getattr(one, name) for name in kept} for one in story])


def history(conn: Connection, story_id: int) -> list[PastDecision]:
    return _history.all(conn, story_id)


def _recorded(
    conn: Connection, action: str, story: Sequence[Decision], post_id: int, who: Reader | None, now: datetime
) -> int:
    parting: int = _record_undoing.value(
        conn,
        now=now,
        action=action,
        story_id=story[0].story_id,
        post_id=post_id,
        user_id=who.user_id if who else None,
        members=as_members(story),
    )
    return parting


def _place_anew(conn: Connection, decisions: list[Decision], now: datetime) -> None:
    _remove.once(conn, [decision.post_id for decision in decisions])
    _insert.many(conn, [{**decision._asdict(), "now": now} for decision in decisions])


def _regrouped(story: list[Decision]) -> list[Decision]:
    """Returns what is left of a story, renamed after its first post if it lost the post it was named after. Pure."""
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


def _member(row: tuple[Any, ...]) -> StoryMember:
    seq, *decision = row
    return StoryMember(seq, Decision._make(decision))


def _post_text(row: _TextRow) -> PostText:
    reference = Reference(row.reference_kind, row.reference_id) if row.reference_kind else None
    plain = text.plain(row.content)
    return PostText(row.id, row.source_id, row.title, plain, row.url, row.created_at, reference)
