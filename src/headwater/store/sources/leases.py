"""Leases on due sources, and slots in the queues of their hosts, across all processes on one database.

A claim is one transaction. Due sources are taken in order, and each host gives out slots at least `gap` apart. A source
whose slot is further away than `LOOK_AHEAD` is put back with a ticket for that slot: it is deferred, not failed. A
ticket that was missed during downtime is exchanged for a new one, so that a restart with thousands of due sources does
not send thousands of requests at once.

What a person asked for goes first: it is claimed before everything that is due, and takes the first ticket at its host,
whose owner goes to the end of that queue, or takes over the ticket that the source had.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import DueSource, Source, SourceState
from headwater.store.sql import columns, moment, moment_or_none, picked, portable

LOOK_AHEAD = timedelta(seconds=2)
LONGEST_JUMP = timedelta(minutes=5)  # a smaller error of the clock needs no repair
LONGEST_HOLD = timedelta(days=2)
SPREAD = timedelta(minutes=1)
HEAL_STEP = 500


class Wait(NamedTuple):
    """What a source waits for, and until when."""

    why: str
    until: datetime


class SendableSource(NamedTuple):
    """A due source that nobody visits. `task_id` is the task that its visit will finish."""

    id: int
    next_check_at: datetime
    task_id: str | None
    asked_at: datetime | None


class _FreeSource(NamedTuple):
    """A source that nobody visits. `push_trust` is None unless a hub pushes it."""

    id: int
    kind: str
    address: str
    title: str
    settings: dict[str, Any]
    etag: str | None
    last_modified: str | None
    body_hash: bytes | None
    last_seen_post_id: str | None
    last_seen_created_at: datetime | None
    validated_at: datetime | None
    host: str
    interval_seconds: int | None
    consecutive_failures: int
    status: str
    turn_at: datetime | None
    credential: bytes | None
    note: str
    chosen_seconds: int | None
    chosen_by_all: bool
    asked_at: datetime | None
    push_trust: int | None


_TRUST = """(SELECT trust FROM hub_subscriptions h
        WHERE h.source_id = sources.id AND h.state = 'active' AND h.lease_until > ?)"""
_FREE = f"""SELECT {columns(_FreeSource).replace("push_trust", _TRUST)} FROM sources
    WHERE (lease_until IS NULL OR lease_until <= ?)"""

_select_due = portable(
    f"{_FREE} AND active AND next_check_at <= ? ORDER BY next_check_at LIMIT ?",
    postgresql=" FOR UPDATE SKIP LOCKED",
    row=_FreeSource,
)
# Written so that no planner reads everything that is due instead of the few that were asked for.
_IS_ASKED = "asked_at IS NOT NULL AND CASE WHEN active THEN next_check_at <= ? ELSE FALSE END"
_select_asked = portable(
    f"{_FREE} AND {_IS_ASKED} ORDER BY asked_at LIMIT ?",
    postgresql=" FOR UPDATE SKIP LOCKED",
    row=_FreeSource,
)
_count_asked = portable(f"SELECT count(*) FROM sources WHERE {_IS_ASKED} AND (lease_until IS NULL OR lease_until <= ?)")
_first_ticket = portable(
    """SELECT id, turn_at FROM sources WHERE host = ? AND turn_at >= ? AND turn_at < ? AND asked_at IS NULL
        AND (lease_until IS NULL OR lease_until <= ?) ORDER BY turn_at LIMIT 1""",
    postgresql=" FOR UPDATE SKIP LOCKED",
)
_select_named = portable(f"{_FREE} AND id IN (?)", postgresql=" FOR UPDATE SKIP LOCKED", row=_FreeSource)
_select_named_due = portable(
    f"{_FREE} AND id IN (?) AND active AND next_check_at <= ?", postgresql=" FOR UPDATE SKIP LOCKED", row=_FreeSource
)
_select_hosts = portable(
    "SELECT host, next_at, held_until, held_why, gap_seconds FROM hosts WHERE host IN (?)",
    postgresql=" ORDER BY host FOR UPDATE",
)
_select_held = portable("SELECT host, next_at, held_until, held_why, gap_seconds FROM hosts WHERE held_until > ?")
_waits = portable(
    "SELECT waits_for, next_check_at FROM sources WHERE id IN (?) AND waits_for IS NOT NULL ORDER BY next_check_at",
    row=Wait,
)
_lease = portable(
    "UPDATE sources SET lease_owner = ?, lease_until = ?, next_check_at = ?, turn_at = NULL, waits_for = NULL "
    "WHERE id = ?"
)
_defer = portable("UPDATE sources SET next_check_at = ?, turn_at = ?, waits_for = ? WHERE id = ?")
_advance_host = portable(
    "INSERT INTO hosts (host, next_at) VALUES (?, ?) ON CONFLICT (host) DO UPDATE SET next_at = excluded.next_at"
)
_hold_host = portable(
    "INSERT INTO hosts (host, next_at, held_until, held_why) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (host) DO UPDATE SET held_until = excluded.held_until, held_why = excluded.held_why"
)
_widen_gap = portable(
    "INSERT INTO hosts (host, next_at, gap_seconds) VALUES (?, ?, ?) "
    "ON CONFLICT (host) DO UPDATE SET gap_seconds = excluded.gap_seconds"
)
_holder = portable("SELECT lease_owner, lease_until FROM sources WHERE id = ?", postgresql=" FOR UPDATE")
_give_back = portable(
    "UPDATE sources SET lease_owner = NULL, lease_until = NULL, next_check_at = ? WHERE id = ? AND lease_owner = ?"
)
_free_stuck = portable(
    "UPDATE sources SET lease_owner = NULL, lease_until = NULL, next_check_at = ? WHERE lease_until > ?"
)
_recall = portable(
    "UPDATE sources SET last_crawled_at = ?, turn_at = NULL, next_check_at = ? WHERE id IN "
    "(SELECT id FROM sources WHERE last_crawled_at > ? ORDER BY id LIMIT ?)"
)
_free_hosts = portable("DELETE FROM hosts WHERE next_at > ? OR held_until > ?")
_due_ids = portable("SELECT id FROM sources WHERE active AND next_check_at <= ? ORDER BY next_check_at")
_unclaimed = f"SELECT {columns(SendableSource)} FROM sources WHERE (lease_until IS NULL OR lease_until <= ?)"
_due_to_send = portable(
    f"{_unclaimed} AND active AND next_check_at <= ? ORDER BY next_check_at LIMIT ?", row=SendableSource
)
_asked_to_send = portable(f"{_unclaimed} AND {_IS_ASKED} ORDER BY asked_at LIMIT ?", row=SendableSource)
_next_due = portable("SELECT MIN(next_check_at) FROM sources WHERE active")


class WaitingSource(NamedTuple):
    """A due source as the queue of its host sees it. `turn_at` is its ticket."""

    host: str
    turn_at: datetime | None


class HostQueue(NamedTuple):
    """`gap` is how far apart the host itself wants requests to be."""

    next_at: datetime
    held_until: datetime | None = None
    gap: timedelta = timedelta(0)
    held_why: str | None = None


class Slot(NamedTuple):
    at: datetime
    granted: bool
    held: bool
    held_why: str | None = None


def assign_slots(
    waiting: Iterable[WaitingSource], queues: dict[str, HostQueue], now: datetime, gap: timedelta
) -> tuple[list[Slot], dict[str, HostQueue]]:
    """Assigns a slot to each waiting source, in order. Returns the slots and the queues as they are then. Pure."""
    queues = dict(queues)
    slots = []
    for source in waiting:
        queue = queues.get(source.host, HostQueue(now))
        held = queue.held_until is not None and queue.held_until > now
        earliest = max(now, queue.held_until) if held and queue.held_until else now
        if source.turn_at is not None and source.turn_at >= earliest:
            at = source.turn_at
        else:
            at = max(earliest, queue.next_at) if gap else earliest
            queues[source.host] = queue._replace(next_at=at + max(gap, queue.gap))
        slots.append(Slot(at, at <= now + LOOK_AHEAD, held, queue.held_why if held else None))
    return slots, queues


def claim_due(
    conn: Connection, *, now: datetime, lease: str, lease_for: timedelta, gap: timedelta, limit: int
) -> list[DueSource]:
    """Leases up to `limit` due sources. Those that have to wait for their host are put back with a ticket."""
    asked = _select_asked.all(conn, now, now, now, limit)
    known = {row.id for row in asked}
    due = _select_due.all(conn, now, now, now, limit) if len(asked) < limit else []
    rows = [*asked, *(row for row in due if row.id not in known)][:limit]
    return _grant(conn, rows, now, lease, now + lease_for, gap)


def claim_asked(
    conn: Connection, *, now: datetime, lease: str, lease_for: timedelta, gap: timedelta, limit: int
) -> list[DueSource]:
    """Leases up to `limit` sources whose visit a person asked for."""
    return _grant(conn, _select_asked.all(conn, now, now, now, limit), now, lease, now + lease_for, gap)


def is_asked(conn: Connection, now: datetime) -> bool:
    """Returns whether a visit that a person asked for can be claimed."""
    return bool(_count_asked.value(conn, now, now))


def claim_named(
    conn: Connection,
    ids: Sequence[int],
    *,
    now: datetime,
    lease: str,
    lease_for: timedelta,
    gap: timedelta,
    only_due: bool = False,
) -> list[DueSource]:
    """Leases these sources, due or not, unless they are being visited. They wait for their hosts as others do."""
    if only_due:
        rows = _select_named_due.all(conn, now, now, list(ids), now)
    else:
        rows = _select_named.all(conn, now, now, list(ids))
    order = {id: place for place, id in enumerate(ids)}
    rows.sort(key=lambda row: order[row.id])
    return _grant(conn, rows, now, lease, now + lease_for, gap)


def reserve_slot(conn: Connection, host: str, *, now: datetime, gap: timedelta, within: timedelta) -> Slot:
    """Finds a slot for a further request of a visit, and reserves it if it comes `within` the time given."""
    before = _queues(conn, {host}, now, gap)
    [slot], after = assign_slots([WaitingSource(host, None)], before, now, gap)
    granted = slot.at <= now + within
    if gap and granted:
        _advance_host.once(conn, host, after[host].next_at)
    return slot._replace(granted=granted)


def set_crawl_delay(conn: Connection, host: str, gap: timedelta, now: datetime) -> None:
    """Records how far apart the host wants requests to be; 0: as everywhere."""
    _widen_gap.once(conn, host, now, gap.total_seconds() or None)


def holds(conn: Connection, source_id: int, lease: str, now: datetime) -> bool:
    """Returns whether this lease is still valid. On PostgreSQL it stays valid until the transaction ends."""
    for owner, until in _holder.all(conn, source_id):
        return owner == lease and until is not None and moment(until) > now
    return False


def reserve_slots(conn: Connection, hosts: Sequence[str], now: datetime, gap: timedelta) -> dict[str, datetime]:
    """Reserves a slot at each of these hosts for a request that is no visit, except at hosts that have a queue."""
    waiting = [WaitingSource(host, None) for host in sorted(set(hosts))]
    before = _queues(conn, {source.host for source in waiting}, now, gap) if waiting else {}
    slots, after = assign_slots(waiting, before, now, gap)
    granted = {source.host: slot.at for source, slot in zip(waiting, slots, strict=True) if slot.granted}
    if gap:
        _advance_host.many(conn, [(host, after[host].next_at) for host in granted])
    return granted


def to_send(conn: Connection, now: datetime, limit: int) -> list[SendableSource]:
    """Returns sources that can be claimed now: first what a person asked for, then what is due."""
    asked = _asked_to_send.all(conn, now, now, limit)
    known = {one.id for one in asked}
    return asked + [one for one in _due_to_send.all(conn, now, now, limit) if one.id not in known]


def next_due(conn: Connection) -> datetime | None:
    return moment_or_none(_next_due.value(conn))


def due_ids(conn: Connection, now: datetime) -> list[int]:
    return _due_ids.values(conn, now)


def pause_host(conn: Connection, host: str, now: datetime, until: datetime, why: str | None = None) -> None:
    """Holds back every request to a host until `until`: it asked for a pause, or there is another reason."""
    _hold_host.once(conn, host, now, until, why)


def waits(conn: Connection, ids: Sequence[int]) -> list[Wait]:
    """Returns what these sources wait for, the first to be visited first."""
    return _waits.all(conn, list(ids))


def release(conn: Connection, held: Sequence[tuple[int, str]], now: datetime) -> None:
    """Gives back leases, (source id, lease) each, on sources that were not visited. They are due at once."""
    _give_back.many(conn, [(now, source_id, lease) for source_id, lease in held])


def heal_clock(conn: Connection, now: datetime, lease_for: timedelta) -> int:
    """Frees what was leased or crawled in the future, after the clock was set back. Spreads it over ten minutes.

    A clock that was set forward needs no repair: sources become due early, and the queues of their hosts space them.
    """
    _free_stuck.once(conn, now, now + lease_for + LONGEST_JUMP)
    _free_hosts.once(conn, now + LONGEST_HOLD, now + LONGEST_HOLD)
    healed = 0
    while count := _recall.once(conn, now, now + SPREAD * (healed // HEAL_STEP % 10), now + LONGEST_JUMP, HEAL_STEP):
        healed += count
    return healed


def _grant(
    conn: Connection, rows: list[_FreeSource], now: datetime, lease: str, lease_until: datetime, gap: timedelta
) -> list[DueSource]:
    if not rows:
        return []
    before = _queues(conn, {row.host for row in rows}, now, gap)
    if gap and any(row.asked_at for row in rows):
        rows, before = _overtake(conn, rows, before, now, gap)
    waiting = [WaitingSource(row.host, row.turn_at) for row in rows]
    slots, after = assign_slots(waiting, before, now, gap)
    granted = [(row, slot) for row, slot in zip(rows, slots, strict=True) if slot.granted]
    put_back = [(row, slot) for row, slot in zip(rows, slots, strict=True) if not slot.granted]
    _lease.many(conn, [(lease, lease_until, lease_until, row.id) for row, _ in granted])
    _defer.many(conn, [(slot.at - LOOK_AHEAD, slot.at, _why(row.host, slot), row.id) for row, slot in put_back])
    if gap:
        changed = sorted(host for host in after if after[host] != before.get(host))
        _advance_host.many(conn, [(host, after[host].next_at) for host in changed])
    return [_due(row, lease, lease_until, slot.at) for row, slot in granted]


def _overtake(
    conn: Connection, rows: list[_FreeSource], queues: dict[str, HostQueue], now: datetime, gap: timedelta
) -> tuple[list[_FreeSource], dict[str, HostQueue]]:
    """Gives what a person asked for the first ticket at its host. Returns the rows and the queues as they are then.

    Tickets only change hands, so that requests stay as far apart as they were. The rows of other claims are locked, and
    keep theirs.
    """
    queues = dict(queues)
    changed = {row.id: row for row in rows}
    for row in [row for row in rows if row.asked_at]:
        queue = queues.get(row.host, HostQueue(now))
        earliest = max(now, queue.held_until) if queue.held_until else now
        own = row.turn_at if row.turn_at and row.turn_at >= earliest else None
        mine = own or max(earliest, queue.next_at)
        if mine <= earliest + LOOK_AHEAD:
            continue
        for other_id, first in _first_ticket.all(conn, row.host, earliest, mine, now):
            if own is None:
                queues[row.host] = queue._replace(next_at=mine + max(gap, queue.gap))
                _advance_host.once(conn, row.host, queues[row.host].next_at)
            changed[row.id] = row._replace(turn_at=moment(first))
            _defer.once(conn, mine - LOOK_AHEAD, mine, _why(row.host, Slot(mine, False, False)), other_id)
            if other_id in changed:
                changed[other_id] = changed[other_id]._replace(turn_at=mine)
    return list(changed.values()), queues


def _queues(conn: Connection, hosts: set[str], now: datetime, gap: timedelta) -> dict[str, HostQueue]:
    rows = _select_hosts.all(conn, sorted(hosts)) if gap else _select_held.all(conn, now)
    return {
        host: HostQueue(moment(next_at), moment_or_none(held), timedelta(seconds=own_gap or 0), why)
        for host, next_at, held, why, own_gap in rows
    }


def _why(host: str, slot: Slot) -> str:
    return (slot.held_why or f"{host} asked for a pause") if slot.held else f"its turn at {host}"


def _due(row: _FreeSource, lease: str, lease_until: datetime, start_at: datetime) -> DueSource:
    return picked(
        DueSource,
        row,
        source=picked(Source, row),
        state=picked(SourceState, row),
        lease=lease,
        lease_until=lease_until,
        start_at=start_at,
        push_trust=row.push_trust or 1,
        is_asked=row.asked_at is not None,
    )
