"""The loop of a worker: claim work with a lease, do a few pieces at once, settle each, and wait for more.

The queue, the leases and the retries are in the store, and nothing is remembered here. A worker that is killed leaves
leases that expire; then its work is claimed again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Generic, Protocol, TypeVar

import structlog
from sqlalchemy import Connection

from headwater.errors import HeadwaterError
from headwater.store.db import Database
from headwater.waiting import POLL_SECONDS, SOON_SECONDS, TROUBLE_SECONDS, finish, wait

C = TypeVar("C")
O = TypeVar("O")  # noqa: E741 - claim and outcome
log = structlog.get_logger()


class LeasedWork(Protocol[C, O]):
    """A kind of work that is claimed from a queue in the store. `name` is what the log calls it."""

    name: str

    async def claim(self, in_hand: Collection[C]) -> Sequence[C]:
        """Claims what is due, as much as there is room for beside what is in hand."""

    async def work(self, claim: C) -> O:
        """Does the work. Expected failures are outcomes too."""

    def settle(self, conn: Connection, claim: C, outcome: O) -> bool:
        """Records the outcome and gives the lease back. Returns False if the lease was lost: nothing is recorded."""

    def label(self, claim: C) -> str:
        """What the log calls this claim."""


class LeaseWorker(Generic[C, O]):
    """Works through one queue. Several workers, in any number of processes, share a queue by its leases."""

    def __init__(self, db: Database, kind: LeasedWork[C, O]) -> None:
        self._db, self._kind = db, kind
        self._in_hand: dict[asyncio.Task[None], C] = {}
        self._ended = asyncio.Event()

    async def run(self, stop: asyncio.Event, patience: timedelta, *wakers: asyncio.Event) -> None:
        """Works until `stop` is set. Then what is in hand has `patience` to finish; the rest is left to its lease."""
        pause = POLL_SECONDS
        while not stop.is_set():
            try:
                while not stop.is_set() and await self._start_due():
                    pause = POLL_SECONDS
            except HeadwaterError as error:
                log.warning("worker.waits", work=self._kind.name, error=error.detail)
                pause = TROUBLE_SECONDS
            woken = await wait(pause, self._ended, *wakers, stop=stop)
            # What a waker announces may not be in the queue yet. What ended has made room already.
            pause = SOON_SECONDS if woken - {self._ended} else min(pause * 2, POLL_SECONDS)
        await finish(self._in_hand, patience)

    async def _start_due(self) -> int:
        claims = await self._kind.claim(self._in_hand.values())
        for claim in claims:
            task = asyncio.create_task(self._work_on(claim))
            self._in_hand[task] = claim
            task.add_done_callback(self._end)
        return len(claims)

    async def _work_on(self, claim: C) -> None:
        outcome = await self._kind.work(claim)
        try:
            recorded = await self._db.write(self._kind.settle, claim, outcome)
        except HeadwaterError as error:
            log.warning("work.unrecorded", work=self._kind.name, claim=self._kind.label(claim), error=error.detail)
            return
        if not recorded:
            log.warning("work.lease_lost", work=self._kind.name, claim=self._kind.label(claim))

    def _end(self, task: asyncio.Task[None]) -> None:
        claim = self._in_hand.pop(task)
        self._ended.set()
        if not task.cancelled() and (error := task.exception()):
            # A bug costs one piece of work, never the loop: the lease expires, and the work is claimed again.
            log.error("work.crashed", work=self._kind.name, claim=self._kind.label(claim), exc_info=error)
