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
from headwater.app.shapes import Example, Time, iso
from headwater.crawl.crawler import Crawler
from headwater.crawl.record import report, with_other_names
from headwater.errors import BadInput, NotFound
from headwater.ids import uuid7
from headwater.model import Reader, SavedVisit, Source
from headwater.sources import KINDS
from headwater.store import sources, visits
from headwater.store.db import Database
from headwater.store.people import audit
from headwater.store.sources import WatchedSource, leases, schedule
from headwater.store.sources.leases import Wait

LOOK_AGAIN_SECONDS = 0.25
_AT_ONCE = 1000
OpenCrawler = Callable[[Callable[[SavedVisit], None]], AbstractAsyncContextManager[Crawler]]


def request_visit(conn: Connection, reader: Reader, source_id: int, now: datetime, *, at_once: bool) -> Scheduled:
    """Asks for a visit of a source: at once, or after what remains of its interval since the last fetch.

    A visit at once goes before everything that waits, and brings a retired source back. The task is finished by the
    next visit of the source; asking again before that gives the same task.
    """
    source = followed.one(conn, reader, source_id, now)
    delay = 0 if at_once else remaining(source, now)
    if source.checking:
        return Scheduled(task_id=None, status="already_running", delay_seconds=0)
    if at_once and not schedule.ask(conn, source_id, now):
        return Scheduled(task_id=None, status="already_running", delay_seconds=0)
    audit.record(conn, reader, "source.visit", source_id)
    return Scheduled(task_id=schedule.begin_task(conn, source_id, uuid7(), now), status="queued", delay_seconds=delay)


def task(conn: Connection, reader: Reader, task_id: str, now: datetime) -> Task:
    """Returns a visit that was asked for, and its result. Raises NotFound if there is none, or none any more."""
    found = schedule.task(conn, reader, task_id, now)
    if found is None:
        raise NotFound(f"There is no task {task_id[:80]}. Results are kept for 24 hours.")
    if found.finished_at is None:
        is_running = followed.one(conn, reader, found.source_id, now).checking
        return Task(
            task_id=found.id,
            status="STARTED" if is_running else "PENDING",
            result=None,
            error=None,
            date_done=None,
        )
    result = TaskResult(
        success=bool(found.success),
        feed_id=found.source_id,
        article_count=found.article_count or 0,
        duration_ms=found.duration_ms or 0,
    )
    return Task(
        task_id=found.id,
        status="SUCCESS" if found.success else "FAILURE",
        result=result,
        error=found.error,
        date_done=iso(found.finished_at),
    )


async def request_all(db: Database, reader: Reader, now: Callable[[], datetime]) -> int:
    """Makes everything due that the reader follows. Returns how many sources that are.

    They do not go before others: a visit that somebody asks for meanwhile overtakes them.
    """
    ids = await db.read(sources.followed_ids, reader)
    asked = 0
    for start in range(0, len(ids), _AT_ONCE):
        asked += await db.write(_make_due, reader, ids[start : start + _AT_ONCE], now())
    return asked


def _make_due(conn: Connection, reader: Reader, source_ids: Sequence[int], now: datetime) -> int:
    asked = sources.make_due(conn, source_ids, now)
    audit.record(conn, reader, "source.visit", detail=f"{asked} sources")
    return asked


def remaining(source: WatchedSource, now: datetime) -> int:
    """Returns the seconds until the next visit of a source is due."""
    return max(0, math.ceil((source.next_check_at - now).total_seconds()))


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
    first: bool = False,
    on_wait: Callable[[Wait], None] = lambda _: None,
) -> int:
    """Visits these sources, each when its host's turn comes. Returns how many visits failed.

    Those that are to be visited `first` go before everything that waits, here and in other processes. `on_wait` is
    called, again and again, with what the next of them waits for.

    A source that another process visits in the meantime is not visited again: the other visit is reported. A long crawl
    takes several visits; without `whole`, it is left after the first one to whoever crawls next.
    """
    failures = 0
    continued: set[int] = set()
    waiting = dict.fromkeys(source_ids)
    since = now()
    await db.write(_begin, source_ids if first else (), len(source_ids), since)

    def on_saved(saved: SavedVisit) -> None:
        nonlocal failures
        if saved.visit.outcome == "deferred":
            waiting[saved.visit.source_id] = None
            on_wait(Wait(saved.visit.waits_for or "", saved.visit.next_check_at))
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
                await _say_first_wait(db, list(waiting)[:room], on_wait)
                others = [id for id in list(waiting)[:room] if id not in continued]
                for visit in await db.read(visits.visited_since, others, since):
                    waiting.pop(visit.source_id, None)
                    failures += visit.outcome == "failed"
                    on_report(with_other_names({**visit._asdict(), "seconds": round(visit.seconds, 3)}))
            await _until_changed(crawler)
    return failures


async def _say_first_wait(db: Database, source_ids: Sequence[int], on_wait: Callable[[Wait], None]) -> None:
    for wait in (await db.read(leases.waits, source_ids))[:1]:
        on_wait(wait)


async def _until_changed(crawler: Crawler) -> None:
    crawler.changed.clear()
    try:
        async with asyncio.timeout(LOOK_AGAIN_SECONDS):
            await crawler.changed.wait()
    except TimeoutError:
        pass


def _begin(conn: Connection, first: Sequence[int], visited: int, now: datetime) -> None:
    for source_id in first:
        schedule.ask(conn, source_id, now)
    audit.record(conn, None, "source.visit", detail=f"{visited} sources")


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
    """A visit that was asked for. Asking again before that visit gives the same `task_id`."""

    task_id: Annotated[
        str | None, Example("019b9a6e-1c2f-7d3e-8a4b-5c6d7e8f9a0b", "null: a visit is under way already")
    ]
    status: Annotated[Literal["queued", "already_running"], Example("queued")]
    delay_seconds: Annotated[int, Example(540)]


class TaskResult(TypedDict):
    """How a visit went. `article_count` counts the posts that the source showed, new or not."""

    success: Annotated[bool, Example(True)]
    feed_id: Annotated[int, Example(12)]
    article_count: Annotated[int, Example(15)]
    duration_ms: Annotated[int, Example(2340)]


class Task(TypedDict):
    """A visit that was asked for. Its result is kept for 24 hours."""

    task_id: Annotated[str, Example("019b9a6e-1c2f-7d3e-8a4b-5c6d7e8f9a0b")]
    status: Annotated[Literal["PENDING", "STARTED", "SUCCESS", "FAILURE"], Example("SUCCESS")]
    result: Annotated[
        TaskResult | None,
        Example({"success": True, "feed_id": 12, "article_count": 15, "duration_ms": 2340}, "null: it is not over"),
    ]
    error: Annotated[str | None, Example(None, "why the visit failed")]
    date_done: Annotated[Time | None, Example("2026-01-07T09:30:45Z")]
