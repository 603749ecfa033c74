"""Asking for a visit: now, or when the source's interval is over."""

from __future__ import annotations

import math
from datetime import datetime
from typing import NamedTuple

from headwater.errors import NotFound
from headwater.model import Reader
from headwater.store import sources
from headwater.store.sources import WatchedSource
from headwater.wire import Parts

_AT_ONCE = 1000


class VisitRequest(NamedTuple):
    """`status` is queued or already_running. Asking for the same visit again gives the same `task_id`."""

    task_id: str
    status: str
    delay_seconds: int


async def watched(parts: Parts, reader: Reader, source_id: int) -> WatchedSource:
    source = await parts.db.read(sources.watched_one, reader, source_id, parts.now())
    if source is None:
        raise NotFound(f"You do not follow a source {source_id}.")
    return source


async def ask(parts: Parts, reader: Reader, source_id: int, *, now: bool) -> VisitRequest:
    """Have a source visited: at once, or after what remains of its interval since the last fetch (D4)."""
    source = await watched(parts, reader, source_id)
    moment = parts.now()
    delay = 0 if now or not source.active else remaining(source, moment)
    if source.checking:
        return VisitRequest(_task_id(source_id, source.next_check_at), "already_running", 0)
    if delay:  # the schedule is a column: the visit is in it already
        return VisitRequest(_task_id(source_id, source.next_check_at), "queued", delay)
    if not await parts.db.write(sources.make_due, [source_id], moment):
        return VisitRequest(_task_id(source_id, moment), "already_running", 0)
    parts.wake()
    return VisitRequest(_task_id(source_id, moment), "queued", 0)


async def ask_all(parts: Parts, reader: Reader) -> int:
    """Have everything visited that the reader follows; returns how many visits were asked for."""
    ids = await parts.db.read(sources.followed_ids, reader)
    asked = 0
    for start in range(0, len(ids), _AT_ONCE):
        asked += await parts.db.write(sources.make_due, ids[start : start + _AT_ONCE], parts.now())
    parts.wake()
    return asked


def remaining(source: WatchedSource, now: datetime) -> int:
    return max(0, math.ceil((source.next_check_at - now).total_seconds()))


def _task_id(source_id: int, at: datetime) -> str:
    return f"visit-{source_id}-{int(at.timestamp())}"
