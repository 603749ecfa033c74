"""Subscriptions at WebSub hubs, and the posts that hubs push."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Post, SavedVisit, Source, SourceState, Visit
from headwater.store import posts
from headwater.store.sql import columns, moment_or_none, picked, portable
from headwater.store.visits import newest_post

MOST_TRUST = 8
SHORTEST_LEASE = timedelta(minutes=5)
LONGEST_LEASE = timedelta(days=30)
FIRST_RETRY = timedelta(minutes=5)
LONGEST_RETRY = timedelta(days=1)
CALLBACK_ID_BYTES = 24
SOONEST_VISIT = timedelta(minutes=5)  # after the last one, however often a hub pushes what cannot be parsed


class HubSubscription(NamedTuple):
    """A source at a hub. `followed` is False once nobody follows the source: then we want to unsubscribe."""

    source_id: int
    kind: str
    address: str
    title: str
    settings: dict[str, Any]
    followed: bool
    hub: str
    topic: str
    callback_id: str
    state: str
    lease_until: datetime | None
    trust: int
    failures: int

    @property
    def source(self) -> Source:
        return picked(Source, self, id=self.source_id)

    @property
    def mode(self) -> str:
        """What we want of the hub."""
        return "subscribe" if self.followed else "unsubscribe"


class HubReport(NamedTuple):
    """What a visit found out about pushes: the hub and topic on its page, and how many posts no push had brought."""

    source_id: int
    hub: str | None
    topic: str
    missed: int


class _KnownHub(NamedTuple):
    source_id: int
    hub: str | None = None
    topic: str = ""
    state: str = ""
    trust: int = 1


class _PushedSource(NamedTuple):
    address: str
    status: str
    next_check_at: datetime
    last_seen_created_at: datetime | None
    lease_until: datetime | None


_SUBSCRIPTION = """SELECT h.source_id, s.kind, s.address, s.title, s.settings, s.active, h.hub, h.topic, h.callback_id,
        h.state, h.lease_until, h.trust, h.failures
    FROM hub_subscriptions h JOIN sources s ON s.id = h.source_id"""
_known_hubs = portable(
    "SELECT source_id, hub, topic, state, trust FROM hub_subscriptions WHERE source_id IN (?)",
    postgresql=" ORDER BY source_id FOR UPDATE",
    row=_KnownHub,
)
_offer = portable(
    """INSERT INTO hub_subscriptions (source_id, hub, topic, callback_id, state, next_try_at)
    SELECT id, ?, ?, ?, 'requested', ? FROM sources WHERE id = ?
    ON CONFLICT (source_id) DO UPDATE SET hub = excluded.hub, topic = excluded.topic,
        callback_id = excluded.callback_id, state = 'requested', lease_until = NULL,
        active_since = NULL, next_try_at = excluded.next_try_at, failures = 0, trust = 1, last_error = NULL"""
)
_trust = portable("UPDATE hub_subscriptions SET trust = ? WHERE source_id = ?")
_leave = portable(
    """UPDATE hub_subscriptions SET state = 'leaving', next_try_at = ?, failures = 0
    WHERE state <> 'leaving' AND source_id IN (SELECT id FROM sources WHERE NOT active)"""
)
_drop_left = portable(
    "DELETE FROM hub_subscriptions WHERE state = 'leaving' AND (lease_until IS NULL OR lease_until <= ?)"
)
_select_due = portable(
    f"{_SUBSCRIPTION} WHERE h.next_try_at <= ? ORDER BY h.next_try_at LIMIT ?",
    postgresql=" FOR UPDATE OF h SKIP LOCKED",
    row=HubSubscription,
)
_asked = portable(
    """UPDATE hub_subscriptions SET state = ?, trust = ?, failures = failures + 1, next_try_at = ?,
        active_since = CASE WHEN ? = 'requested' THEN NULL ELSE active_since END WHERE source_id = ?"""
)
_find = portable(f"{_SUBSCRIPTION} WHERE h.callback_id = ?", row=HubSubscription)
_confirm = portable(
    """UPDATE hub_subscriptions SET state = 'active', lease_until = ?, next_try_at = ?, failures = 0,
        last_error = NULL, active_since = COALESCE(active_since, ?) WHERE callback_id = ?"""
)
_deny = portable(
    """UPDATE hub_subscriptions SET state = 'denied', lease_until = NULL, active_since = NULL, trust = 1,
        next_try_at = ?, last_error = ? WHERE callback_id = ?"""
)
_fail = portable(
    """UPDATE hub_subscriptions SET state = CASE WHEN state = 'requested' THEN 'failed' ELSE state END,
        last_error = ? WHERE callback_id = ?"""
)
_drop = portable("DELETE FROM hub_subscriptions WHERE callback_id = ?")
_ask_again = portable("UPDATE hub_subscriptions SET next_try_at = ? WHERE state = 'active'")
_select_trust = portable("SELECT trust FROM hub_subscriptions WHERE source_id = ?", postgresql=" FOR UPDATE")
_pushed = portable("UPDATE hub_subscriptions SET trust = ?, last_push_at = ? WHERE source_id = ?")
_active_since = portable(
    "SELECT active_since FROM hub_subscriptions WHERE source_id = ? AND state = 'active' AND lease_until > ?"
)

_select_source = portable(
    f"SELECT {columns(_PushedSource)} FROM sources WHERE id = ? AND active AND success_hit + empty_hit > 0",
    postgresql=" FOR UPDATE",
    row=_PushedSource,
)
_move_watermark = portable("UPDATE sources SET last_seen_post_id = ?, last_seen_created_at = ? WHERE id = ?")
_bring_forward = portable(
    """UPDATE sources SET next_check_at = ? WHERE id = ? AND active AND next_check_at > ?
        AND (lease_until IS NULL OR lease_until <= ?) AND (last_crawled_at IS NULL OR last_crawled_at <= ?)"""
)


def ask_all_again(conn: Connection, now: datetime) -> None:
    """Has all hubs asked again soon that push something, as if their leases ended."""
    _ask_again.once(conn, now)


def trust_after(trust: int, *, brought: int = 0, missed: int = 0) -> int:
    """Returns how many times less often a source is polled, from 1 to MOST_TRUST. Pure.

    A push that brought something raises it by one; posts that a poll had to find halve it.
    """
    if missed:
        trust //= 2
    elif brought:
        trust += 1
    return min(max(trust, 1), MOST_TRUST)


def retry_after(failures: int) -> timedelta:
    """Returns how long to wait before a hub that did not confirm is asked again. It doubles up to a limit."""
    return min(FIRST_RETRY * (1 << min(failures, 12)), LONGEST_RETRY)


def save_reports(conn: Connection, heard: Sequence[HubReport], now: datetime) -> None:
    """Records the hubs that visits found, and lowers the trust in those whose pushes had missed something."""
    if not heard:
        return
    known = {one.source_id: one for one in _known_hubs.all(conn, [report.source_id for report in heard])}
    offers, trusts = [], []
    for source_id, hub, topic, missed in heard:
        before = known.get(source_id, _KnownHub(source_id))
        if hub is not None and (hub, topic) != (before.hub, before.topic):
            offers.append((hub, topic, secrets.token_urlsafe(CALLBACK_ID_BYTES), now, source_id))
        elif before.state == "active" and missed:
            trusts.append((trust_after(before.trust, missed=missed), source_id))
    _offer.many(conn, offers)
    _trust.many(conn, trusts)


def take_due(conn: Connection, now: datetime, limit: int) -> list[HubSubscription]:
    """Returns the subscriptions whose hub is to be asked now. Their next try is set, so no other process asks too."""
    _leave.once(conn, now)
    _drop_left.once(conn, now)
    due = _select_due.all(conn, now, limit)
    _asked.many(conn, [_asked_row(one, now) for one in due])
    return due


def find(conn: Connection, callback_id: str) -> HubSubscription | None:
    return _find.first(conn, callback_id)


def confirm(conn: Connection, callback_id: str, lease: timedelta, now: datetime) -> None:
    """Records that the hub pushes until the lease ends. It is asked again before that."""
    lease = min(max(lease, SHORTEST_LEASE), LONGEST_LEASE)
    _confirm.once(conn, now + lease, now + lease * 4 / 5, now, callback_id)


def deny(conn: Connection, callback_id: str, reason: str, now: datetime) -> None:
    _deny.once(conn, now + LONGEST_RETRY, reason, callback_id)


def fail(conn: Connection, failures: Iterable[tuple[str, str]]) -> None:
    """Records why hubs could not be asked: (callback_id, error) each."""
    _fail.many(conn, [(error, callback_id) for callback_id, error in failures])


def drop(conn: Connection, callback_id: str) -> None:
    _drop.once(conn, callback_id)


def record_push(conn: Connection, source_id: int, brought: int, now: datetime) -> None:
    for trust in _select_trust.values(conn, source_id):
        _pushed.once(conn, trust_after(trust, brought=brought), now, source_id)


def active_since(conn: Connection, source_id: int, now: datetime) -> datetime | None:
    """Returns since when a hub pushes this source; None if none does."""
    return moment_or_none(_active_since.value(conn, source_id, now))


def _asked_row(one: HubSubscription, now: datetime) -> tuple[Any, ...]:
    lasts = one.state == "active" and one.lease_until is not None and one.lease_until > now
    state = "leaving" if not one.followed else "active" if lasts else "requested"
    trust = 1 if state == "requested" else one.trust
    return (state, trust, now + retry_after(one.failures), state, one.source_id)


def save_push(conn: Connection, source_id: int, pushed: Sequence[Post], now: datetime) -> SavedVisit | None:
    """Writes these posts as a visit would. Known posts change nothing.

    Returns None if the source is not followed any more or was never visited: a first visit assumes an empty store.
    """
    source = _select_source.first(conn, source_id)
    if source is None:
        return None
    known = posts.known_posts(conn, source_id, pushed)
    changes = [(source_id, change) for change in posts.changes(pushed, known)]
    stored = posts.write_changes(conn, changes, now)
    moved = _move_on(conn, source_id, source, newest_post(pushed), now)
    visit = Visit(
        source_id=source_id,
        lease="",
        started_at=now,
        seconds=0.0,
        outcome="ok",
        status=source.status,
        next_check_at=source.next_check_at,
        state=SourceState(),
        posts=list(pushed),
    )
    return SavedVisit(visit, source.address, True, source.status, stored, moved)


def bring_forward(conn: Connection, source_id: int, now: datetime) -> bool:
    """Makes a source due now, unless it was visited just before."""
    return bool(_bring_forward.once(conn, now, source_id, now, now, now - SOONEST_VISIT))


def _move_on(conn: Connection, source_id: int, source: _PushedSource, newest: Post | None, now: datetime) -> bool:
    """Moves the watermark to the newest post, unless a visit is under way. Returns whether it moved."""
    seen, leased = source.last_seen_created_at, source.lease_until
    if newest is None or (leased is not None and leased > now) or (seen is not None and newest.created_at <= seen):
        return False
    _move_watermark.once(conn, newest.source_post_id, newest.created_at, source_id)
    return True
