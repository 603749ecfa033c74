"""Runs visits, and records the finished ones in batches.

`visit/document.py` and `visit/listing.py` are the two shapes of a visit. Each returns a Visit, and `record` writes it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import timedelta

import structlog

from headwater.crawl.record import record
from headwater.crawl.visit import document, listing
from headwater.crawl.visit.steps import VisitTools, failed, lease_is_too_short
from headwater.errors import SourceFailure, StoreUnavailable
from headwater.ids import current_trace, new_trace
from headwater.model import DueSource, SavedVisit, Visit
from headwater.store.db import Database
from headwater.store.sources import leases

MOST_VISITS = 100  # in one transaction
MOST_POSTS = 3000
RETRY_SECONDS = 1.0
log = structlog.get_logger()


class Crawler:
    """`start` starts visits. Finished ones reach the store and then `on_saved`. It does not decide what is due."""

    def __init__(
        self,
        db: Database,
        tools: VisitTools,
        on_saved: Callable[[SavedVisit], None],
        on_started: Callable[[Sequence[DueSource]], None] = lambda _: None,
    ) -> None:
        self._db = db
        self._tools = tools
        self._on_saved = on_saved
        self._on_started = on_started
        self._visiting: dict[asyncio.Task[None], DueSource] = {}
        self._finished: asyncio.Queue[Visit] = asyncio.Queue()
        self._recorder = asyncio.create_task(self._record_finished())
        self.changed = asyncio.Event()  # a visit ended: there is room for another

    @property
    def in_hand(self) -> int:
        """How many visits are not in the store yet."""
        return len(self._visiting) + self._finished.qsize()

    def start(self, granted: Sequence[DueSource]) -> None:
        self._on_started(granted)
        for due in granted:
            task = asyncio.create_task(self._visit(due))
            self._visiting[task] = due
            task.add_done_callback(self._forget)

    async def settle(self) -> None:
        """Waits until every visit in hand is recorded."""
        while self._visiting:
            await asyncio.wait(list(self._visiting))
        await self._finished.join()

    async def stop(self, within: timedelta) -> None:
        """Lets visits finish for a while, gives back the leases of the others, and records what is finished.

        A store that stays away does not block this: the leases expire, and the sources are due again.
        """
        if self._visiting:
            await asyncio.wait(list(self._visiting), timeout=within.total_seconds())
        unfinished = dict(self._visiting)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._finished.join(), within.total_seconds() + RETRY_SECONDS)
        self._recorder.cancel()
        unused = [(due.source.id, due.lease) for due in unfinished.values()]
        try:
            await self._db.write(leases.release, unused, self._tools.now())
        except StoreUnavailable as error:
            log.warning("store.unavailable", error=error.detail, unwritten=self._finished.qsize())

    async def _visit(self, due: DueSource) -> None:
        if lease_is_too_short(due, self._tools):
            return  # it waited too long here; the lease expires and the source is due again
        tools, started_at = self._tools, self._tools.now()
        trace = new_trace()
        current_trace.set(trace)  # of this task alone
        if due.is_asked and tools.fetch_first:
            tools = tools._replace(fetch=tools.fetch_first)
        if tools.kinds[due.source.kind].has_listings:
            due = due._replace(source=due.source._replace(settings={**due.source.settings, **tools.listing}))
        try:
            if tools.kinds[due.source.kind].is_list:
                finished = await listing.visit(due, tools, self._db)
            else:
                finished = await document.visit(due, tools)
        except Exception as error:  # the last resort: a bug costs one visit, never the loop
            log.exception("visit.crashed", source=due.source.address)
            reason = SourceFailure(
                f"Headwater could not handle this source ({type(error).__name__}). This is a bug in Headwater."
            )
            finished = failed(due, reason, started_at, 0.0, tools)
        self._finished.put_nowait(finished._replace(traceparent=trace))

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._visiting.pop(task, None)
        self.changed.set()

    async def _record_finished(self) -> None:
        while True:
            batch = await self._next_batch()
            try:
                for saved in await self._db.write(record, batch, self._tools.now()):
                    self._on_saved(saved)
            except StoreUnavailable as error:
                # The visits are still in hand. The leases decide how long it makes sense to retry.
                log.warning("store.unavailable", error=error.detail, visits=len(batch))
                await asyncio.sleep(RETRY_SECONDS)
                for unsaved in batch:
                    self._finished.put_nowait(unsaved)
            finally:
                for _ in batch:
                    self._finished.task_done()
                self.changed.set()

    async def _next_batch(self) -> list[Visit]:
        batch = [await self._finished.get()]
        posts = len(batch[0].posts)
        while len(batch) < MOST_VISITS and posts < MOST_POSTS and not self._finished.empty():
            batch.append(self._finished.get_nowait())
            posts += len(batch[-1].posts)
        return batch
