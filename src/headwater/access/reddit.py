"""Ways to Reddit: its API with a key, or the public feeds without one, each within a budget that all processes share.

A way only asks. What to ask for and what an answer means is `sources.reddit`; when to come again is `run`.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
import structlog

from headwater.errors import AnswerBroken, StatusRefused, StoreUnavailable
from headwater.fetch.body import unpacked
from headwater.fetch.statuses import judge
from headwater.model import Request, Response
from headwater.sources import reddit
from headwater.store.db import Database
from headwater.store.sources import limits
from headwater.store.sources.limits import Budget

TOKEN_PATH = "/api/v1/access_token"
TOKEN_BYTES = 65_536
EARLIER = timedelta(seconds=60)  # a token is renewed before it ends, not when it has
SHORTEST_REST = 0.05
STORE_REST = timedelta(seconds=5)
LONGEST_PAUSE = 86_400.0
CONCURRENCY = 10
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")
_NUMBER = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,9})?")
log = structlog.get_logger()


class RateLimiter:
    """Turns out of a budget. One with no requests in it means no limit."""

    def __init__(
        self,
        db: Database,
        budget: Budget,
        now: Callable[[], datetime],
        rest: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._db = db
        self._budget = budget
        self._now = now
        self._rest = rest

    async def take(self) -> datetime | None:
        if not self._budget.requests:
            return None
        try:
            return await self._db.write(limits.take, self._budget, self._now())
        except StoreUnavailable as error:
            log.warning("store.unavailable", error=error.detail)
            return self._now() + STORE_REST

    async def wait(self) -> None:
        while (at := await self.take()) is not None:
            await self._rest(max(SHORTEST_REST, (at - self._now()).total_seconds()))

    async def hold(self, pause: timedelta) -> None:
        if not self._budget.requests:
            return
        try:
            await self._db.write(limits.hold, self._budget, self._now() + pause)
        except StoreUnavailable as error:
            log.warning("store.unavailable", error=error.detail)  # the host is held by the visit as well


class RedditApp(NamedTuple):
    """Who we are to Reddit, and where it is."""

    client_id: str
    secret: str
    site: str = reddit.SITE
    api: str = reddit.API


class RedditToken(msgspec.Struct):
    access_token: str
    expires_in: float = 3600.0


class RedditApi:
    """Reddit's API. The token is kept until it ends, and renewed once where Reddit does not know it any more."""

    def __init__(
        self,
        app: RedditApp,
        fetch: Callable[[Request], Awaitable[Response]],
        turns: RateLimiter,
        now: Callable[[], datetime],
        concurrency: int = CONCURRENCY,
    ) -> None:
        self.places = asyncio.Semaphore(concurrency)
        self._app = app
        self._fetch = fetch
        self._turns = turns
        self._now = now
        self._renewing = asyncio.Lock()
        self._token = ""
        self._token_ends: datetime | None = None
        self._under_way = 0

    async def turn(self) -> datetime | None:
        """A token is had first: a place in the budget that has to wait for one would be used too late."""
        async with self._renewing:
            if not self._has_token():
                if at := await self._turns.take():
                    return at
                await self._renew()
        return await self._turns.take()

    async def wait(self) -> None:
        await self._current_token()
        await self._turns.wait()

    async def fetch(self, request: Request) -> Response:
        request = request._replace(url=self._app.api + request.url.removeprefix(reddit.API))
        token = self._token if self._has_token() else await self._current_token()
        answer = await self._ask(with_token(request, token))
        if answer.status == 401:
            token = await self._current_token(refused=token)
            await self._turns.wait()
            answer = await self._ask(with_token(request, token))
        return answer

    async def _ask(self, request: Request) -> Response:
        self._under_way += 1
        try:
            answer = await self._fetch(request)
            pause = pause_after(answer, self._under_way)
        finally:
            self._under_way -= 1
        if pause:
            await self._turns.hold(pause)
        return with_pause(answer)

    def _has_token(self) -> bool:
        return self._token_ends is not None and self._token_ends > self._now()

    async def _current_token(self, refused: str | None = None) -> str:
        async with self._renewing:
            if not self._has_token() or self._token == refused:
                await self._turns.wait()
                await self._renew()
            return self._token

    async def _renew(self) -> None:
        given = await self._new_token()
        lifetime = timedelta(seconds=min(max(given.expires_in, 0.0), LONGEST_PAUSE))
        self._token, self._token_ends = given.access_token, self._now() + lifetime - EARLIER

    async def _new_token(self) -> RedditToken:
        basic = b64encode(f"{self._app.client_id}:{self._app.secret}".encode()).decode()
        headers = (("Authorization", f"Basic {basic}"), ("Content-Type", "application/x-www-form-urlencoded"))
        url = self._app.site + TOKEN_PATH
        answer = await self._ask(Request(url, headers, "POST", b"grant_type=client_credentials"))
        if answer.status in (400, 401, 403):
            raise StatusRefused(
                "Reddit does not accept the credentials. Check HEADWATER_REDDIT_CLIENT_ID and"
                f" HEADWATER_REDDIT_CLIENT_SECRET. (HTTP {answer.status})",
                http_status=answer.status,
            )
        judge(answer)
        return token_in(unpacked(answer, TOKEN_BYTES))


class RedditFeeds:
    """The feeds of communities, for those who have no key."""

    def __init__(
        self,
        fetch: Callable[[Request], Awaitable[Response]],
        turns: RateLimiter,
        site: str = reddit.SITE,
        concurrency: int = CONCURRENCY,
    ) -> None:
        self.places = asyncio.Semaphore(concurrency)
        self._fetch = fetch
        self._turns = turns
        self._site = site

    async def turn(self) -> datetime | None:
        return await self._turns.take()

    async def wait(self) -> None:
        await self._turns.wait()

    async def fetch(self, request: Request) -> Response:
        asked = reddit.as_feed(request)
        return with_pause(await self._fetch(asked._replace(url=self._site + asked.url.removeprefix(reddit.SITE))))


def token_in(body: bytes) -> RedditToken:
    """The token that an answer gives. Pure."""
    try:
        token = msgspec.json.decode(body, type=RedditToken)
    except msgspec.DecodeError as error:
        raise AnswerBroken("Reddit answered with something else than a token.") from error
    if not _TOKEN.fullmatch(token.access_token):
        raise AnswerBroken("Reddit answered with a token that cannot be sent.")
    return token


def pause_after(answer: Response, under_way: int) -> timedelta | None:
    """How long Reddit wants nothing more: its headers count what is left of a window. Pure.

    Requests under way have not been counted yet, so the last ones in a window are left to them.
    """
    left, reset = number(answer, "x-ratelimit-remaining"), number(answer, "x-ratelimit-reset")
    if reset is None or not (answer.status == 429 or (left is not None and left < under_way)):
        return None
    return timedelta(seconds=min(reset, LONGEST_PAUSE))


def with_pause(answer: Response) -> Response:
    """A refusal that names its end only in Reddit's own header says it as everybody does. Pure."""
    reset = answer.headers.get("x-ratelimit-reset")
    if answer.status != 429 or reset is None or "retry-after" in answer.headers:
        return answer
    return answer._replace(headers={**answer.headers, "retry-after": reset})


def with_token(request: Request, token: str) -> Request:
    return request._replace(headers=(*request.headers, ("Authorization", f"Bearer {token}")))


def number(answer: Response, name: str) -> float | None:
    """What a header counts; None: it does not. Pure."""
    value = answer.headers.get(name, "").strip()
    return float(value) if _NUMBER.fullmatch(value) else None
