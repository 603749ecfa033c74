"""How a visit to a list asks: robots.txt has to allow a request, it waits for a slot, and its status is judged."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta
from functools import partial

from headwater import urls
from headwater.crawl.visit.shared import VisitTools, authorized, send
from headwater.errors import BadInput, FetchFailed
from headwater.fetch.statuses import cache_lifetime, judge
from headwater.model import DueSource, Request, Response
from headwater.store.db import Database
from headwater.store.sources import leases

SHORTEST_WAIT = 0.001
SHARE_OF_TIME = 0.6  # of a visit's time; the rest is for the page that is in hand then


class Interrupted(Exception):
    """The visit ends here without a failure. The next one may start at `at`."""

    def __init__(self, at: datetime, why: str | None = None) -> None:
        self.at = at
        self.why = why


class ListRequests:
    """The requests of one visit to a list, and what is known of their answers."""

    def __init__(self, due: DueSource, tools: VisitTools, db: Database) -> None:
        self._due = due
        self._tools = tools
        self._db = db
        self._access = tools.access.get(due.source.kind)
        self._has_slot = True  # the claim gave one at the source's host, or `take_request` took one out of the budget
        self._ask_until = time.monotonic() + tools.visit_seconds * SHARE_OF_TIME
        self.answers: list[tuple[int, int]] = []  # status and bytes
        self.fresh_for: timedelta | None = None  # the cache lifetime of the first answer

    async def ask(self, request: Request) -> Response:
        """Returns the answer to a request. Raises Interrupted if there is no time left for it."""
        if time.monotonic() > self._ask_until:
            raise Interrupted(self._tools.now())
        try:
            wait_for_slot = partial(self._wait_for_slot, urls.host_of(urls.split(request.url)))
            if self._access is None and self._tools.robots:
                await self._tools.robots.check(request.url, wait_for_slot)
            await wait_for_slot()
            response = await send(self._with_credential(request), self._fetch, wait_for_slot)
            judge(response)
        except BadInput as error:
            raise FetchFailed(error.detail) from error
        if not self.answers:
            self.fresh_for = cache_lifetime(response)
        self.answers.append((response.status, len(response.body)))
        return response

    async def _fetch(self, request: Request) -> Response:
        if self._access:
            return await self._access.fetch(request)
        if not self._due.source.settings.get("render"):
            return await self._tools.fetch(request)
        if self._tools.browser is None:
            raise FetchFailed(
                "This site is to be read by a browser, which is not installed: pip install 'headwater[browser]'."
            )
        return await self._tools.browser(request)

    def _with_credential(self, request: Request) -> Request:
        if self._due.credential is None or not urls.same_server(self._due.source.address, request.url):
            return request
        return authorized(request, self._tools.unseal(self._due.credential))

    async def _wait_for_slot(self, host: str) -> None:
        """Waits for a slot of the host, or of the API's budget. Raises Interrupted if it comes too late."""
        now = self._tools.now()
        paused_until = self._tools.paused_until.get(host)
        if paused_until and paused_until > now:
            raise Interrupted(paused_until, f"{host} asked for a pause")
        if self._has_slot and (self._access or host == self._due.host):
            self._has_slot = False
        elif self._access:
            while (at := await self._access.try_acquire()) is not None:
                await self._sleep_until(at, host)
        elif self._tools.gap:
            gap, within = timedelta(seconds=self._tools.gap), timedelta(seconds=self._time_left())
            slot = await self._db.write(leases.reserve_slot, host, now=now, gap=gap, within=within)
            await self._sleep_until(slot.at, host)

    async def _sleep_until(self, at: datetime, host: str) -> None:
        seconds = (at - self._tools.now()).total_seconds()
        if seconds > self._time_left():
            raise Interrupted(at, f"its turn at {host}")
        await asyncio.sleep(max(SHORTEST_WAIT, seconds))

    def _time_left(self) -> float:
        return max(0.0, self._ask_until - time.monotonic())
