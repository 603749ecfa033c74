"""Rate limits: a budget of requests that all processes share, and what an API's answers say about its own limit.

`Access` is how a visit talks to an API that has a budget. `access/reddit.py` and `access/x.py` implement it. They only
send requests: what to ask for and what an answer means is in `sources/`, and when to come again is in `crawl/visit/`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from math import ceil
from typing import NamedTuple, Protocol

import structlog

from headwater.errors import StoreUnavailable
from headwater.model import Request, Response
from headwater.store.db import Database
from headwater.store.sources import limits
from headwater.store.sources.limits import Budget

CONCURRENCY = 10
LONGEST_PAUSE = 86_400.0  # seconds
SHORTEST_WAIT = 0.05
STORE_RETRY = timedelta(seconds=5)
_NUMBER = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,9})?")
Fetch = Callable[[Request], Awaitable[Response]]
log = structlog.get_logger()


class Access(Protocol):
    """Access to an API with a budget of requests.

    A visit holds one slot of `concurrency` from its start to its end. So no request waits for a connection after it was
    taken out of the budget: it is sent at once, and counts in the window that the server sees.
    """

    @property
    def concurrency(self) -> asyncio.Semaphore: ...

    async def try_acquire(self) -> datetime | None:
        """Takes one request out of the budget. Returns None if it did, otherwise the time at which to try again.

        Raises NotYet if it has to wait for something other than the rate limit, such as the next month.
        """

    async def acquire(self) -> None:
        """Takes one request out of the budget, and waits until there is one."""

    async def fetch(self, request: Request) -> Response:
        """Sends a request that was taken out of the budget."""


class RateLimiter:
    """Takes requests out of a budget in the store. A budget of 0 requests means no limit."""

    def __init__(
        self,
        db: Database,
        budget: Budget,
        now: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._db = db
        self._budget = budget
        self._now = now
        self._sleep = sleep

    async def try_acquire(self) -> datetime | None:
        """Takes one request. Returns None if it did, otherwise the time at which to try again."""
        if not self._budget.requests:
            return None
        try:
            return await self._db.write(limits.reserve, self._budget, self._now())
        except StoreUnavailable as error:
            log.warning("store.unavailable", error=error.detail)
            return self._now() + STORE_RETRY

    async def acquire(self) -> None:
        while (at := await self.try_acquire()) is not None:
            await self._sleep(max(SHORTEST_WAIT, (at - self._now()).total_seconds()))

    async def pause(self, duration: timedelta) -> None:
        """Gives out no more requests for this long."""
        if not self._budget.requests:
            return
        try:
            await self._db.write(limits.pause, self._budget, self._now() + duration)
        except StoreUnavailable as error:
            log.warning("store.unavailable", error=error.detail)  # the visit pauses the host as well


class RateLimitWindow(NamedTuple):
    """What an API says about its own rate limit: how many requests are left, and in how many seconds it resets."""

    left: float | None
    resets_in: float


class LimitedFetch:
    """Sends requests to an API, and pauses the budget when an answer says that the API's own limit is reached."""

    def __init__(
        self, fetch: Fetch, limiter: RateLimiter, window_of: Callable[[Response], RateLimitWindow | None]
    ) -> None:
        self._fetch = fetch
        self._limiter = limiter
        self._window_of = window_of
        self._in_flight = 0

    async def __call__(self, request: Request) -> Response:
        self._in_flight += 1
        try:
            answer = await self._fetch(request)
            window = self._window_of(answer)
            pause = pause_after(answer.status, window, self._in_flight)
        finally:
            self._in_flight -= 1
        if pause:
            await self._limiter.pause(pause)
        return with_retry_after(answer, window)


def pause_after(status: int, window: RateLimitWindow | None, in_flight: int) -> timedelta | None:
    """Returns how long the API wants no more requests; None if it takes more. Pure.

    The API has not counted the requests in flight yet, so the last ones of a window are left to them.
    """
    if window is None or not (status == 429 or (window.left is not None and window.left < in_flight)):
        return None
    return timedelta(seconds=min(window.resets_in, LONGEST_PAUSE))


def with_retry_after(answer: Response, window: RateLimitWindow | None) -> Response:
    """Returns a refusal with a Retry-After header, where it says only in a header of its own when to retry. Pure."""
    if answer.status != 429 or window is None or "retry-after" in answer.headers:
        return answer
    return answer._replace(headers={**answer.headers, "retry-after": str(ceil(window.resets_in))})


def with_token(request: Request, token: str) -> Request:
    return request._replace(headers=(*request.headers, ("Authorization", f"Bearer {token}")))


def number(answer: Response, header: str) -> float | None:
    """Returns the number in a header; None if there is none. Pure."""
    value = answer.headers.get(header, "").strip()
    return float(value) if _NUMBER.fullmatch(value) else None
