"""When sources are visited because people want it: visits that they ask for, and how often they want them.

A shared source is visited as often as the reader needs it who wants it most often. Readers who chose nothing count with
the usual interval. What the source itself wants, and the back-off after failures, come before every choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.sql import columns, portable


class _Schedule(NamedTuple):
    """When a source was visited, and what decides when it will be. `not_before` is its own wish or the back-off."""

    last_crawled_at: datetime | None
    not_before: datetime | None
    interval_seconds: int | None
    chosen_seconds: int | None
    chosen_by_all: bool
    waits_for: str | None


_ask = portable(
    """UPDATE sources SET next_check_at = :now, asked_at = COALESCE(asked_at, :now), active = :active
    WHERE id = :id AND (lease_until IS NULL OR lease_until <= :now)"""
)
_choose = portable(
    "UPDATE subscriptions SET interval_seconds = ? WHERE tenant_id = ? AND user_id = ? AND source_id = ?"
)
_apply_choices = portable(
    """UPDATE sources SET
        chosen_seconds = (SELECT min(f.interval_seconds) FROM subscriptions f WHERE f.source_id = sources.id),
        chosen_by_all = (SELECT count(*) = count(f.interval_seconds) AND count(*) > 0 FROM subscriptions f
            WHERE f.source_id = sources.id)
    WHERE id = ?"""
)
_schedule = portable(f"SELECT {columns(_Schedule)} FROM sources WHERE id = ?", row=_Schedule)
_come_at = portable(
    "UPDATE sources SET next_check_at = ? WHERE id = ? AND (lease_until IS NULL OR lease_until <= ?) AND active"
)


def ask(conn: Connection, source_id: int, now: datetime) -> bool:
    """Asks for a visit that goes before all others. Returns False if the source is being visited already."""
    return bool(_ask.once(conn, now=now, active=True, id=source_id))


def choose_interval(
    conn: Connection, reader: Reader, source_id: int, seconds: int | None, usual: timedelta, now: datetime
) -> bool:
    """Sets how often a reader wants a source to be visited; None: as usual. Returns whether the reader follows it.

    The next visit comes as soon as the choice says, but not before the source itself allows it.
    """
    if not _choose.once(conn, seconds, reader.tenant_id, reader.user_id, source_id):
        return False
    apply_choices(conn, [source_id])
    found = _schedule.first(conn, source_id)
    if found is None or found.last_crawled_at is None or found.waits_for is not None:
        return True
    every = timedelta(seconds=found.interval_seconds) if found.interval_seconds else usual
    if found.chosen_seconds is not None:
        chosen = timedelta(seconds=found.chosen_seconds)
        every = chosen if found.chosen_by_all else min(chosen, every)
    _come_at.once(conn, max(now, found.last_crawled_at + every, found.not_before or now), source_id, now)
    return True


def apply_choices(conn: Connection, source_ids: Iterable[int]) -> None:
    """Records in the sources what their readers, who have changed, chose."""
    _apply_choices.many(conn, [(source_id,) for source_id in source_ids])
