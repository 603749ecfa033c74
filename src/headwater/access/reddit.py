"""Access to Reddit: its API with a key, or the public feeds without one. All processes share the budget."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from headwater.access.budget import (
    CONCURRENCY,
    LONGEST_PAUSE,
    Fetch,
    LimitedFetch,
    RateLimiter,
    RateLimitWindow,
    number,
    with_retry_after,
    with_token,
)
from headwater.errors import AnswerBroken, StatusRefused
from headwater.fetch.body import unpacked
from headwater.fetch.statuses import judge
from headwater.model import Request, Response
from headwater.sources import reddit

TOKEN_PATH = "/api/v1/access_token"
TOKEN_BYTES = 65_536
EARLIER = timedelta(seconds=60)  # a token is renewed before it expires
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")


class RedditApp(NamedTuple):
    """The credentials of our app, and the addresses of Reddit."""

    client_id: str
    secret: str
    site: str = reddit.SITE
    api: str = reddit.API


class RedditToken(msgspec.Struct):
    access_token: str
    expires_in: float = 3600.0


class RedditApi:
    """Reddit's API. Keeps its token until it expires, and renews it once if Reddit refuses it before."""

    def __init__(
        self,
        app: RedditApp,
        fetch: Fetch,
        limiter: RateLimiter,
        now: Callable[[], datetime],
        concurrency: int = CONCURRENCY,
    ) -> None:
        self.concurrency = asyncio.Semaphore(concurrency)
        self._app = app
        self._send = LimitedFetch(fetch, limiter, window_of)
        self._limiter = limiter
        self._now = now
        self._renewing = asyncio.Lock()
        self._token = ""
        self._token_ends: datetime | None = None

    async def try_acquire(self) -> datetime | None:
        """Gets a token first. A request that had to wait for one would be sent too late for the window it counts in."""
        async with self._renewing:
            if not self._has_token():
                if at := await self._limiter.try_acquire():
                    return at
                await self._renew()
        return await self._limiter.try_acquire()

    async def acquire(self) -> None:
        await self._current_token()
        await self._limiter.acquire()

    async def fetch(self, request: Request) -> Response:
        request = request._replace(url=self._app.api + request.url.removeprefix(reddit.API))
        token = self._token if self._has_token() else await self._current_token()
        answer = await self._send(with_token(request, token))
        if answer.status == 401:
            token = await self._current_token(refused=token)
            await self._limiter.acquire()
            answer = await self._send(with_token(request, token))
        return answer

    def _has_token(self) -> bool:
        return self._token_ends is not None and self._token_ends > self._now()

    async def _current_token(self, refused: str | None = None) -> str:
        async with self._renewing:
            if not self._has_token() or self._token == refused:
                await self._limiter.acquire()
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
        answer = await self._send(Request(url, headers, "POST", b"grant_type=client_credentials"))
        if answer.status in (400, 401, 403):
            raise StatusRefused(
                "Reddit does not accept the credentials. Check HEADWATER_REDDIT_CLIENT_ID and"
                f" HEADWATER_REDDIT_CLIENT_SECRET. (HTTP {answer.status})",
                http_status=answer.status,
            )
        judge(answer)
        return token_in(unpacked(answer, TOKEN_BYTES))


class RedditFeeds:
    """The public feeds of communities, for those who have no key."""

    def __init__(
        self, fetch: Fetch, limiter: RateLimiter, site: str = reddit.SITE, concurrency: int = CONCURRENCY
    ) -> None:
        self.concurrency = asyncio.Semaphore(concurrency)
        self._fetch = fetch
        self._limiter = limiter
        self._site = site

    async def try_acquire(self) -> datetime | None:
        return await self._limiter.try_acquire()

    async def acquire(self) -> None:
        await self._limiter.acquire()

    async def fetch(self, request: Request) -> Response:
        feed = reddit.as_feed(request)
        answer = await self._fetch(feed._replace(url=self._site + feed.url.removeprefix(reddit.SITE)))
        return with_retry_after(answer, window_of(answer))


def token_in(body: bytes) -> RedditToken:
    """Returns the token in an answer. Pure."""
    try:
        token = msgspec.json.decode(body, type=RedditToken)
    except msgspec.DecodeError as error:
        raise AnswerBroken("Reddit's answer is not a token.") from error
    if not _TOKEN.fullmatch(token.access_token):
        raise AnswerBroken("Reddit answered with a token that cannot be sent in a header.")
    return token


def window_of(answer: Response) -> RateLimitWindow | None:
    """Returns what Reddit's headers say about its rate limit; None if they say nothing. Pure."""
    reset = number(answer, "x-ratelimit-reset")
    return None if reset is None else RateLimitWindow(number(answer, "x-ratelimit-remaining"), reset)
