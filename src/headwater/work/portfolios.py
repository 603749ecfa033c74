"""Calculates stale portfolios, one at a time for each user, over all processes.

The first change is taken in at once. While changes of one user keep coming, each calculation is followed by a pause,
and the pauses grow: a thousand changes within seconds cost about a dozen calculations. The last one takes in all.
Most of a calculation is waiting for the database, so a process has a few under way at once, of different users: whoever
changes something does not wait until somebody else's calculation is stored.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from headwater.app.fleet import portfolio
from headwater.coordination.cache import Cache
from headwater.coordination.locks import Locks, hold_free, recalculation
from headwater.errors import HeadwaterError
from headwater.store.db import Database
from headwater.store.fleet import portfolios
from headwater.store.fleet.portfolios import Owner
from headwater.waiting import POLL_SECONDS, TROUBLE_SECONDS, WakeUpSignal, wait

AT_ONCE = 100
UNDER_WAY = 3  # calculations of a process, each of up to AT_ONCE portfolios
LEASE = timedelta(seconds=30)
FIRST_PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 0.5
QUIET_FACTOR = 4  # after so many pauses without a change, it is calm again
log = structlog.get_logger()


class CalculationTools(NamedTuple):
    db: Database
    locks: Locks
    cache: Cache
    now: Callable[[], datetime]


class Pauses:
    """How long the portfolio of each user is left alone after a calculation. Times are those of a monotonic clock."""

    def __init__(self) -> None:
        self._pauses: dict[Owner, tuple[float, float]] = {}  # until when, and how long
        self._under_way: set[Owner] = set()

    def is_under_way(self, owner: Owner) -> bool:
        """Whether this process is calculating it."""
        return owner in self._under_way

    @contextmanager
    def calculating(self, owners: Sequence[Owner]) -> Iterator[None]:
        """Calculates these in the block. A pause of each begins when it is left."""
        self._under_way.update(owners)
        try:
            yield
        finally:
            self._under_way.difference_update(owners)
        at = time.monotonic()
        for owner in owners:
            self.calculated(owner, at)

    def left(self, owner: Owner, at: float) -> float:
        """Returns for how many seconds it has to wait."""
        until, _ = self._pauses.get(owner, (at, 0.0))
        return max(0.0, until - at)

    def calculated(self, owner: Owner, at: float) -> None:
        """Begins a pause: a longer one than the last if that was not long ago."""
        until, seconds = self._pauses.get(owner, (0.0, 0.0))
        is_busy = at < until + QUIET_FACTOR * seconds
        seconds = min(seconds * 2, LONGEST_PAUSE_SECONDS) if is_busy and seconds else FIRST_PAUSE_SECONDS
        self._pauses[owner] = (at + seconds, seconds)

    def forget_calm(self, at: float) -> None:
        """Forgets pauses that no longer matter."""
        calm = [owner for owner, (until, seconds) in self._pauses.items() if at >= until + QUIET_FACTOR * seconds]
        for owner in calm:
            del self._pauses[owner]


async def keep_calculated(tools: CalculationTools, stale: WakeUpSignal, stop: asyncio.Event) -> None:
    """Runs until `stop` is set."""
    pauses = Pauses()
    async with asyncio.TaskGroup() as group:
        for _ in range(UNDER_WAY):
            group.create_task(_keep_calculated(tools, pauses, stale, stop))


async def _keep_calculated(tools: CalculationTools, pauses: Pauses, stale: WakeUpSignal, stop: asyncio.Event) -> None:
    with stale.listening() as woken:
        while not stop.is_set():
            try:
                rest = await _calculate_stale(tools, pauses)
            except HeadwaterError as error:
                log.warning("portfolios.wait", error=error.detail)
                rest = TROUBLE_SECONDS
            await wait(rest, woken, stop=stop)


async def catch_up(tools: CalculationTools) -> None:
    """Calculates what is stale now."""
    while owners := await tools.db.read(portfolios.stale, AT_ONCE):
        if not await calculate(tools, owners):
            return  # other processes are at it


async def _calculate_stale(tools: CalculationTools, pauses: Pauses) -> float:
    """Calculates what is stale and not to be left alone. Returns after how many seconds to look again."""
    stale = await tools.db.read(portfolios.stale, AT_ONCE)
    at = time.monotonic()
    due = [owner for owner in stale if not pauses.is_under_way(owner) and not pauses.left(owner, at)]
    if due:
        with pauses.calculating(due):
            await calculate(tools, due)
    at = time.monotonic()
    pauses.forget_calm(at)
    return min([POLL_SECONDS, *(pauses.left(owner, at) for owner in stale if not pauses.is_under_way(owner))])


async def calculate(tools: CalculationTools, owners: Sequence[Owner]) -> list[Owner]:
    """Calculates portfolios, except those that another process is at, and forgets what is cached of them.

    Returns those that were calculated. They are stored together: a transaction for each would cost more than most
    calculations.
    """
    named = {recalculation(owner.user_id): owner for owner in owners}
    async with hold_free(tools.locks, list(named), LEASE) as tokens:
        if not tokens:
            return []
        found = await tools.db.read(portfolio.calculate_all, [named[name] for name in tokens])
        held = list(zip(found, tokens.items(), strict=True))
        saved = await tools.db.write_grouped(portfolio.save_all, held, tools.now())
    await tools.cache.forget(*(portfolio.cache_key(portfolio.reader_of(owner)) for owner in saved))
    return saved
