"""Visits asked for on the command line: now, in this process, beside whatever else runs on the same store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any

from headwater import wire
from headwater.crawl.crawler import Crawler
from headwater.crawl.record import report
from headwater.ids import uuid7
from headwater.model import SavedVisit
from headwater.store import sources
from headwater.store.sources import leases
from headwater.wire import Parts
from headwater.work import consumers

LOOK_AGAIN_SECONDS = 0.25


async def crawl(
    parts: Parts, source_ids: Sequence[int], on_report: Callable[[dict[str, Any]], None], *, whole: bool = True
) -> int:
    """Visit these sources, each when its host's turn comes; returns how many failed.

    One that another process visits in the meantime is not visited again: that visit is reported. A long crawl takes
    several visits; without `whole` it is left after the first one to whoever crawls next.
    """
    failures = 0
    going_on: set[int] = set()
    waiting = dict.fromkeys(source_ids)
    since = parts.now()
    pace = wire.pace(parts.settings)

    def on_saved(saved: SavedVisit) -> None:
        nonlocal failures
        if saved.visit.outcome == "deferred":
            waiting[saved.visit.source_id] = None
            return
        if saved.accepted and (saved.visit.becomes or (whole and saved.visit.unfinished)):
            waiting[saved.visit.source_id] = None
            going_on.add(saved.visit.source_id)
        failures += saved.visit.outcome == "failed" or not saved.accepted
        on_report(report(saved))

    async with wire.crawling(parts, on_saved) as crawler:
        while not await _is_done(crawler, waiting):
            room = pace.most_in_hand - crawler.in_hand
            wanted = list(waiting)[:room]
            if wanted:
                granted = await parts.db.write(
                    leases.claim_named, wanted, now=parts.now(), lease=uuid7(), lease_for=pace.lease_for, gap=pace.gap
                )
                for due in granted:
                    waiting.pop(due.source.id, None)
                crawler.start(granted)
                others = [id for id in list(waiting)[:room] if id not in going_on]
                for row in await parts.db.read(sources.visited_since, others, since):
                    waiting.pop(row.source_id, None)
                    failures += row.outcome == "failed"
                    on_report({**row._asdict(), "seconds": round(row.seconds, 3)})
            crawler.changed.clear()
            try:
                async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                    await crawler.changed.wait()
            except TimeoutError:
                pass
        await consumers.catch_up(parts.db, wire.consumers_at_hand(parts), parts.now)
    return failures


async def _is_done(crawler: Crawler, waiting: Collection[int]) -> bool:
    """Whether nothing is left to visit. What is written down last may be what asks for another visit."""
    if waiting or crawler.in_hand:
        return False
    await crawler.settle()
    return not waiting
