"""Notes which posts name the machines, makers, pools and coins that users have.

Posts are searched as they arrive, for what anybody has. When somebody gets something that nobody had before,
`work/mentions.py` has the posts of the last weeks searched for it as well. Where nobody has anything, nothing is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from sqlalchemy import Connection

from headwater.events.catalogue import (
    MINER_ADDED,
    MINER_CHANGED,
    MINER_REMOVED,
    POST_CHANGED,
    POST_STORED,
    TRADE_CORRECTED,
    TRADED,
)
from headwater.events.delivery import Consumer
from headwater.fleet.mentions import COIN, Subject, Vocabulary, model_name, pool_named, vocabulary
from headwater.store.db import after_commit
from headwater.store.fleet import mentions, miners
from headwater.store.fleet.mentions import FoundMention, MachineKind, MentionText, OwnedSubject
from headwater.store.fleet.portfolios import Owner
from headwater.store.log.outbox import LoggedEvent
from headwater.text import plain

WINDOW = timedelta(days=30)  # how far back posts are searched for something new
SEARCHED_AT_ONCE = 200
MOST_CHARACTERS = 20_000  # of a post
_OWN = frozenset(kind.name for kind in (MINER_ADDED, MINER_CHANGED, MINER_REMOVED, TRADED, TRADE_CORRECTED))
_POSTS = frozenset({POST_STORED.name, POST_CHANGED.name})


def consumer(wake: Callable[[], None]) -> Consumer:
    """Returns the consumer. `wake` is called when earlier posts may have to be searched."""

    def note(conn: Connection, events: list[LoggedEvent]) -> None:
        owners = {
            Owner(event.tenant_id, event.user_id)
            for event in events
            if event.kind in _OWN and event.tenant_id is not None and event.user_id is not None
        }
        if owners:
            note_owned(conn, owners)
            after_commit(conn, wake)
        post_ids = sorted({POST_STORED.read(event).post_id for event in events if event.kind in _POSTS})
        if post_ids:
            _search_new(conn, post_ids)

    return Consumer("mentions", _OWN | _POSTS, note, linger=1.0, reset=mentions.forget_all)


def note_owned(conn: Connection, owners: Iterable[Owner]) -> None:
    """Notes what these users have now, and what is to be searched for because of it."""
    mentions.begin_change(conn)
    for owner in sorted(owners):
        found = owned(mentions.machines_of(conn, owner), holds_coins=mentions.holds_coins(conn, owner))
        mentions.save_owned(conn, owner, found)
    mentions.settle_scans(conn)


def owned(machines: Iterable[MachineKind], *, holds_coins: bool) -> list[OwnedSubject]:
    """Returns what posts can name of machines and coins. Pure."""
    counts: dict[tuple[Subject, str], int] = {(COIN, ""): 0} if holds_coins else {}
    for one in machines:
        maker = one.manufacturer or ""
        found = [(Subject("model", model_name(one.model)), maker)] if one.model else []
        found += [(Subject("maker", maker), "")] if maker else []
        found += [(pool, "")] if (pool := pool_named(one.pool)) else []
        for subject in found:
            counts[subject] = counts.get(subject, 0) + one.quantity
    return [OwnedSubject(subject.id, *subject, maker, count) for (subject, maker), count in counts.items()]


def _search_new(conn: Connection, post_ids: Sequence[int]) -> None:
    mentions.begin_looking(conn)
    wanted = mentions.wanted(conn)
    if wanted:
        mentions.replace(conn, post_ids, _found(conn, mentions.texts(conn, post_ids), wanted))


def search_earlier(conn: Connection, now: datetime) -> bool:
    """Searches the next of the earlier posts. Returns whether there are more."""
    mentions.begin_looking(conn)
    below = mentions.scans(conn)
    if not below:
        return False
    highest = max(below.values())
    texts = mentions.texts_below(conn, highest, SEARCHED_AT_ONCE)
    mentions.add(conn, _found(conn, texts, [one for one in mentions.wanted(conn) if one.subject_id in below]))
    is_end = len(texts) < SEARCHED_AT_ONCE or texts[-1].fetched_at < now - WINDOW
    mentions.move_scans(conn, 0 if is_end else texts[-1].id - 1)
    return not is_end


def _found(conn: Connection, texts: Iterable[MentionText], wanted: Iterable[OwnedSubject]) -> list[FoundMention]:
    catalogue = tuple((one.model_name, one.manufacturer) for one in miners.models(conn))
    ids = {one.subject_id for one in wanted}
    looks_for = _vocabulary(catalogue, tuple(sorted(one.name for one in wanted if one.kind == "pool")))
    return [
        FoundMention(post.id, subject_id, one.word, post.created_at)
        for post in texts
        for one in looks_for.mentions(f"{post.title}\n{plain(post.content[:MOST_CHARACTERS])}")
        if (subject_id := one.subject.id) in ids
    ]


@lru_cache(maxsize=2)
def _vocabulary(models: tuple[tuple[str, str], ...], pools: tuple[str, ...]) -> Vocabulary:
    return vocabulary(models, pools)
