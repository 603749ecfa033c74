"""Asking for visits: at once, when the interval is over, or here and now in this process."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app import pool
from headwater.app import sources as followed
from headwater.app.shapes import Example
from headwater.crawl.crawler import Crawler
from headwater.crawl.record import report, with_other_names
from headwater.errors import BadInput
from headwater.ids import uuid7
from headwater.model import Reader, SavedVisit, Source
from headwater.sources import KINDS
from headwater.store import sources, visits
from headwater.store.db import Database
from headwater.store.sources import WatchedSource, leases

LOOK_AGAIN_SECONDS = 0.25
_AT_ONCE = 1000
OpenCrawler = Callable[[Callable[[SavedVisit], None]], AbstractAsyncContextManager[Crawler]]


def request_visit(conn: Connection, reader: Reader, source_id: int, now: datetime, *, at_once: bool) -> Scheduled:
    """Asks for a visit of a source: at once, or after what remains of its interval since the last fetch."""
    source = followed.one(conn, reader, source_id, now)
    delay = 0 if at_once or not source.active else remaining(source, now)
    if source.checking:
        return Scheduled(task_id=_task_id(source_id, source.next_check_at), status="already_running", delay_seconds=0)
    if delay:  # the schedule is a column: the visit is in it already
        return Scheduled(task_id=_task_id(source_id, source.next_check_at), status="queued", delay_seconds=delay)
    if not sources.make_due(conn, [source_id], now):
        return Scheduled(task_id=_task_id(source_id, now), status="already_running", delay_seconds=0)
    return Scheduled(task_id=_task_id(source_id, now), status="queued", delay_seconds=0)


async def request_all(db: Database, reader: Reader, now: Callable[[], datetime]) -> int:
    """Asks for a visit of everything that the reader follows. Returns how many visits were asked for."""
    ids = await db.read(sources.followed_ids, reader)
    asked = 0
    for start in range(0, len(ids), _AT_ONCE):
        asked += await db.write(sources.make_due, ids[start : start + _AT_ONCE], now())
    return asked


def remaining(source: WatchedSource, now: datetime) -> int:
    """Returns the seconds until the next visit of a source is due."""
    return max(0, math.ceil((source.next_check_at - now).total_seconds()))


def _task_id(source_id: int, at: datetime) -> str:
    return f"visit-{source_id}-{int(at.timestamp())}"


def chosen(
    conn: Connection,
    reader: Reader,
    now: datetime,
    *,
    names: Sequence[str] = (),
    tier: str | None = None,
    everything: bool = False,
) -> list[int]:
    """Returns the sources that a person means: those named, those of a tier, all, or else those that are due."""
    if names:
        return [followed.named(conn, reader, name) for name in names]
    if tier:
        return pool.followed_in(conn, reader, tier)
    return sources.followed_ids(conn, reader) if everything else due(conn, now)


def due(conn: Connection, now: datetime) -> list[int]:
    """Returns the sources that are due."""
    return leases.due_ids(conn, now)


def community(conn: Connection, reader: Reader, name: str, now: datetime) -> Source:
    """Returns a followed community by its name. Raises BadInput for other kinds of sources."""
    found = followed.one(conn, reader, followed.named(conn, reader, name), now)
    if not KINDS[found.kind].has_listings:
        raise BadInput(f"{name} is not a community: only communities are warmed up.")
    return Source(found.id, found.kind, found.address, found.title)


async def visit_now(
    db: Database,
    open_crawler: OpenCrawler,
    source_ids: Sequence[int],
    now: Callable[[], datetime],
    on_report: Callable[[dict[str, Any]], None],
    *,
    most_in_hand: int,
    lease_for: timedelta,
    gap: timedelta,
    whole: bool = True,
) -> int:
    """Visits these sources, each when its host's turn comes. Returns how many visits failed.

    A source that another process visits in the meantime is not visited again: the other visit is reported. A long crawl
    takes several visits; without `whole`, it is left after the first one to whoever crawls next.
    """
    failures = 0
    continued: set[int] = set()
    waiting = dict.fromkeys(source_ids)
    since = now()

    def on_saved(saved: SavedVisit) -> None:
        nonlocal failures
        if saved.visit.outcome == "deferred":
            waiting[saved.visit.source_id] = None
            return
        if saved.accepted and (saved.visit.becomes or (whole and saved.visit.unfinished)):
            waiting[saved.visit.source_id] = None
            continued.add(saved.visit.source_id)
        failures += saved.visit.outcome == "failed" or not saved.accepted
        on_report(report(saved))

    async with open_crawler(on_saved) as crawler:
        while not await _is_done(crawler, waiting):
            room = most_in_hand - crawler.in_hand
            if wanted := list(waiting)[:room]:
                granted = await db.write(
                    leases.claim_named, wanted, now=now(), lease=uuid7(), lease_for=lease_for, gap=gap
                )
                for due in granted:
                    waiting.pop(due.source.id, None)
                crawler.start(granted)
                others = [id for id in list(waiting)[:room] if id not in continued]
                for visit in await db.read(visits.visited_since, others, since):
                    waiting.pop(visit.source_id, None)
                    failures += visit.outcome == "failed"
                    on_report(with_other_names({**visit._asdict(), "seconds": round(visit.seconds, 3)}))
            crawler.changed.clear()
            try:
                async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                    await crawler.changed.wait()
            except TimeoutError:
                pass
    return failures


async def _is_done(crawler: Crawler, waiting: Collection[int]) -> bool:
    """Whether nothing is left to visit. What is written last may ask for another visit."""
    if waiting or crawler.in_hand:
        return False
    await crawler.settle()
    return not waiting


class Refresh(TypedDict):
    status: Annotated[Literal["queued", "already_running"], Example("queued")]


class RefreshAll(TypedDict):
    asked: Annotated[int, Example(204)]


class Scheduled(TypedDict):
    """A visit that was asked for. Asking for the same visit again gives the same `task_id`."""

    task_id: Annotated[str, Example("visit-12-1767778200")]
    status: Annotated[Literal["queued", "already_running"], Example("queued")]
    delay_seconds: Annotated[int, Example(540)]
