"""What users have that posts can name, and which posts name it.

What a post names is stored once for everybody, by a number for each subject. Whose it is stands in `owned_subjects`
alone. So a post costs the same however many users have what it names, and machines that somebody adds are known from
all posts that were read for somebody else before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.fleet.portfolios import Owner
from headwater.store.fleet.treasury import COUNTS
from headwater.store.sql import Prepared, columns, portable


class OwnedSubject(NamedTuple):
    """Something that a user has. `machines` is how many machines are of it, by it, or mine for it."""

    subject_id: int
    kind: str
    name: str
    maker: str
    machines: int


class MachineKind(NamedTuple):
    """The machines of a user of one model that mine for one pool."""

    model: str | None
    manufacturer: str | None
    pool: str
    quantity: int


class Signal(NamedTuple):
    """A post names something that the reader has: by which word, and what it is."""

    post_id: int
    word: str
    kind: str
    name: str
    maker: str
    machines: int


class MentionText(NamedTuple):
    """A post as it is searched for names."""

    id: int
    title: str
    content: str
    created_at: datetime
    fetched_at: datetime


class FoundMention(NamedTuple):
    post_id: int
    subject_id: int
    word: str
    created_at: datetime


class NamingPost(NamedTuple):
    """A post that names something, and its place in the stream."""

    created_at: datetime
    post_id: int


_OWN = "tenant_id = ? AND user_id = ?"
# Whoever changes what is looked for waits for those who look, and they wait for it. SQLite has one writer at a time.
_look = Prepared(sqlite="SELECT 1", postgresql="SELECT pg_advisory_xact_lock_shared(hashtext('headwater mentions'))")
_change = Prepared(sqlite="SELECT 1", postgresql="SELECT pg_advisory_xact_lock(hashtext('headwater mentions'))")
_machines = portable(
    f"""SELECT k.model_name, k.manufacturer, m.pool, m.quantity FROM (
        SELECT miner_model_id, pool, SUM(quantity) AS quantity FROM user_miners WHERE {_OWN}
        GROUP BY miner_model_id, pool) m
    LEFT JOIN miner_models k ON k.id = m.miner_model_id""",
    row=MachineKind,
)
_satoshis = portable(
    f"""SELECT COALESCE(SUM(CASE side WHEN 'sell' THEN -satoshis ELSE satoshis END), 0) FROM treasury_trades
    WHERE {_OWN} AND {COUNTS}"""
)
_owned = portable(f"SELECT {columns(OwnedSubject)} FROM owned_subjects WHERE {_OWN}", row=OwnedSubject)
_disown = portable("DELETE FROM owned_subjects WHERE tenant_id = ? AND user_id = ? AND subject_id = ?")
_own = portable(
    f"""INSERT INTO owned_subjects (tenant_id, user_id, {columns(OwnedSubject)})
    SELECT u.tenant_id, u.id, ?, ?, ?, ?, ? FROM users u WHERE u.tenant_id = ? AND u.id = ?
    ON CONFLICT (tenant_id, user_id, subject_id) DO UPDATE SET machines = excluded.machines"""
)
_wanted = portable("SELECT DISTINCT subject_id, kind, name, '', 0 FROM owned_subjects", row=OwnedSubject)
_begin_scans = portable(
    """INSERT INTO mention_scans (subject_id, next_id)
    SELECT DISTINCT o.subject_id, (SELECT COALESCE(MAX(id), 0) FROM posts) FROM owned_subjects o
    WHERE NOT EXISTS (SELECT 1 FROM mention_scans s WHERE s.subject_id = o.subject_id)
    ON CONFLICT (subject_id) DO NOTHING"""
)
_NOBODYS = "NOT EXISTS (SELECT 1 FROM owned_subjects o WHERE o.subject_id = {0}.subject_id)"
_nobodys = portable(f"SELECT subject_id FROM mention_scans WHERE {_NOBODYS.format('mention_scans')}")
_forget_mentions = portable("DELETE FROM post_mentions WHERE subject_id IN (?)")
_forget_all = [portable(f"DELETE FROM {table}") for table in ("post_mentions", "mention_scans", "owned_subjects")]
_forget_scans = portable("DELETE FROM mention_scans WHERE subject_id IN (?)")
_TEXT = f"SELECT {columns(MentionText)} FROM posts"
_texts = portable(f"{_TEXT} WHERE id IN (?)", row=MentionText)
_texts_below = portable(f"{_TEXT} WHERE id <= ? ORDER BY id DESC LIMIT ?", row=MentionText)
_forget_posts = portable("DELETE FROM post_mentions WHERE post_id IN (?)")
_insert = portable(
    f"""INSERT INTO post_mentions ({columns(FoundMention)}) VALUES (?, ?, ?, ?)
    ON CONFLICT (post_id, subject_id) DO UPDATE SET word = excluded.word"""
)
_scans = portable("SELECT subject_id, next_id FROM mention_scans WHERE next_id > 0")
_move_scans = portable("UPDATE mention_scans SET next_id = ? WHERE next_id > ?")
_of_posts = portable(
    """SELECT m.post_id, m.word, o.kind, o.name, o.maker, o.machines
    FROM owned_subjects o JOIN post_mentions m ON m.subject_id = o.subject_id
    WHERE o.tenant_id = ? AND o.user_id = ? AND m.post_id IN (?) ORDER BY m.post_id, o.kind, o.name""",
    row=Signal,
)
_NEWEST = "SELECT created_at, post_id FROM post_mentions WHERE subject_id = ?"
_newest = portable(f"{_NEWEST} ORDER BY created_at DESC, post_id DESC LIMIT ?", row=NamingPost)
_newest_before = portable(
    f"{_NEWEST} AND (created_at, post_id) < (?, ?) ORDER BY created_at DESC, post_id DESC LIMIT ?", row=NamingPost
)


def begin_looking(conn: Connection) -> None:
    """Keeps what is looked for as it is, until the transaction ends."""
    _look.all(conn)


def begin_change(conn: Connection) -> None:
    """Keeps others from looking for what is about to change, until the transaction ends."""
    _change.all(conn)


def machines_of(conn: Connection, owner: Owner) -> list[MachineKind]:
    return _machines.all(conn, *owner)


def holds_coins(conn: Connection, owner: Owner) -> bool:
    return bool(_satoshis.value(conn, *owner) > 0)


def save_owned(conn: Connection, owner: Owner, found: Iterable[OwnedSubject]) -> None:
    """Says what a user has now. Saying it again changes nothing."""
    after = {one.subject_id: one for one in found}
    before = {one.subject_id: one for one in _owned.all(conn, *owner)}
    _disown.many(conn, [(*owner, subject_id) for subject_id in before if subject_id not in after])
    _own.many(conn, [(*one, *owner) for subject_id, one in sorted(after.items()) if before.get(subject_id) != one])


def settle_scans(conn: Connection) -> None:
    """Has earlier posts searched for what nobody had before, and forgets what nobody has any more."""
    if gone := _nobodys.values(conn):
        _forget_mentions.once(conn, gone)
        _forget_scans.once(conn, gone)
    _begin_scans.once(conn)


def forget_all(conn: Connection) -> None:
    for statement in _forget_all:
        statement.once(conn)


def wanted(conn: Connection) -> list[OwnedSubject]:
    """Returns what anybody has."""
    return _wanted.all(conn)


def texts(conn: Connection, post_ids: Sequence[int]) -> list[MentionText]:
    return _texts.all(conn, list(post_ids))


def texts_below(conn: Connection, post_id: int, limit: int) -> list[MentionText]:
    """Returns posts down from this id, which is the order in which they arrived."""
    return _texts_below.all(conn, post_id, limit)


def replace(conn: Connection, post_ids: Sequence[int], found: Iterable[FoundMention]) -> None:
    """Stores what posts name now, instead of what they named before."""
    _forget_posts.once(conn, list(post_ids))
    add(conn, found)


def add(conn: Connection, found: Iterable[FoundMention]) -> None:
    _insert.many(conn, sorted(found))


def scans(conn: Connection) -> dict[int, int]:
    """Returns down from which post the earlier ones have still to be searched, for each subject."""
    return dict(_scans.all(conn))


def move_scans(conn: Connection, next_id: int) -> None:
    """Notes that all posts above this one were searched for every subject."""
    _move_scans.once(conn, next_id, next_id)


def owns(conn: Connection, reader: Reader) -> bool:
    """Whether the reader has something that posts can name."""
    return bool(_owned.all(conn, reader.tenant_id, reader.user_id))


def of_posts(conn: Connection, reader: Reader, post_ids: Sequence[int]) -> list[Signal]:
    """Returns what these posts name of what the reader has."""
    return _of_posts.all(conn, reader.tenant_id, reader.user_id, list(post_ids))


def newest(conn: Connection, reader: Reader, *, before: NamingPost | None, limit: int) -> list[NamingPost]:
    """Returns the newest posts that name something that the reader has, whether the reader may see them or not."""
    found: set[NamingPost] = set()
    for one in _owned.all(conn, reader.tenant_id, reader.user_id):
        found.update(
            _newest_before.all(conn, one.subject_id, *before, limit)
            if before
            else _newest.all(conn, one.subject_id, limit)
        )
    return sorted(found, reverse=True)[:limit]
