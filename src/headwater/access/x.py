"""Access to X: its API v2 with a token, within X's rate limit and within what is paid for in a month."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urldefrag

import msgspec
import structlog
from sqlalchemy import Connection

from headwater.access.budget import (
    CONCURRENCY,
    LONGEST_PAUSE,
    STORE_RETRY,
    Fetch,
    LimitedFetch,
    RateLimiter,
    RateLimitWindow,
    number,
    with_token,
)
from headwater.errors import BadInput, FetchFailed, KeyMissing, NotYet, StatusRefused, StoreUnavailable
from headwater.fetch.body import unpacked
from headwater.model import Request, Response
from headwater.sources import x
from headwater.store import sources
from headwater.store.db import Database
from headwater.store.people import accounts
from headwater.store.sources import limits as meters
from headwater.store.sources.limits import MonthlyAllowance, MonthlyUse
from headwater.text import plain

METER = "x"
SECRET = "x bearer token"
NO_TOKEN = (
    "X is read through its API, and no token for it is set. Give one: `headwater x token`, or HEADWATER_X_BEARER_TOKEN."
    " Nothing is asked of X until then."
)
PAID_LATER = timedelta(days=1)  # X says that the month is used up, but not when it ends
LONGEST_WORDS = 300
ANSWER_BYTES = 64 * 1024 * 1024
_TOKEN = re.compile(r"[\x21-\x7e]{10,4096}")
log = structlog.get_logger()


def token_from(typed: str) -> str:
    """Returns the token in what a person typed. Raises BadInput if it cannot be one. Pure."""
    token = typed.strip().removeprefix("Bearer ").strip()
    if not _TOKEN.fullmatch(token):
        raise BadInput("This cannot be a token: a token has ten characters or more, and no spaces.")
    return token


class XState(NamedTuple):
    """Whether X can be asked: what is wrong with the token, what is used of the month, how many sources need it."""

    problem: str
    used: MonthlyUse
    allowance: MonthlyAllowance
    month_ends: datetime
    sources: int

    @property
    def is_spent(self) -> bool:
        return self.allowance.is_spent_by(self.used)

    @property
    def words(self) -> str:
        if self.problem:
            return self.problem if self.sources else "nothing is followed there, and no token is set"
        share = [
            f"{had:,} of {most:,} {what}" if most else f"{had:,} {what}"
            for had, most, what in zip(self.used, self.allowance, MonthlyUse._fields, strict=True)
        ]
        spent = f"; spent until {self.month_ends:%d %B}" if self.is_spent else ""
        return f"{' and '.join(share)} this month{spent}"


def keep_token(conn: Connection, sealed: bytes, now: datetime) -> int:
    """Stores an encrypted token and makes the sources that wait for it due. Returns how many they are."""
    accounts.save_secret(conn, SECRET, sealed, now)
    return sources.make_due(conn, sources.visited_of_kind(conn, x.KIND.name), now)


class MonthlyMeter:
    """Counts in the store what is asked of X in a month. When it is used up, NotYet says until when."""

    def __init__(self, db: Database, allowance: MonthlyAllowance, now: Callable[[], datetime]) -> None:
        self._db = db
        self._allowance = allowance
        self._now = now

    async def check(self) -> None:
        try:
            used = await self._db.read(meters.used_this_month, METER, self._now())
        except StoreUnavailable as error:
            raise without_store(error, self._now()) from error
        if self._allowance.is_spent_by(used):
            raise self._spent()

    async def count_request(self) -> None:
        try:
            counted = await self._db.write(meters.count_request, METER, self._allowance, self._now())
        except StoreUnavailable as error:
            raise without_store(error, self._now()) from error
        if not counted:
            raise self._spent()

    async def count_posts(self, posts: int) -> None:
        try:
            await self._db.write(meters.count_posts, METER, posts, self._now())
        except StoreUnavailable as error:
            log.warning("store.unavailable", error=error.detail)  # better uncounted posts than lost ones

    def _spent(self) -> NotYet:
        until = meters.month_ends(self._now())
        requests, posts = self._allowance
        limits = [f"{most:,} {what}" for most, what in ((requests, "requests"), (posts, "posts")) if most]
        return NotYet(f"the next month: this month's {' or '.join(limits)} of X are used up", until=until)


def without_store(error: StoreUnavailable, now: datetime) -> NotYet:
    """Returns the reason not to ask X: without the store, requests cannot be counted."""
    log.warning("store.unavailable", error=error.detail)
    return NotYet("the store, in which requests to X are counted", until=now + STORE_RETRY)


class XApi:
    """X's API. `token` raises KeyMissing if there is none. A person may set or replace it at any time."""

    def __init__(
        self,
        api: str,
        token: Callable[[], Awaitable[str]],
        fetch: Fetch,
        limiter: RateLimiter,
        meter: MonthlyMeter,
        now: Callable[[], datetime],
    ) -> None:
        self.concurrency = asyncio.Semaphore(CONCURRENCY)
        self._api = api
        self._token = token
        self._send = LimitedFetch(fetch, limiter, window_of)
        self._limiter = limiter
        self._meter = meter
        self._now = now

    async def try_acquire(self) -> datetime | None:
        try:
            await self._known_token()
        except KeyMissing:
            return None  # no request will be sent, so there is nothing to wait for
        await self._meter.check()
        return await self._limiter.try_acquire()

    async def acquire(self) -> None:
        await self._meter.check()
        await self._limiter.acquire()

    async def fetch(self, request: Request) -> Response:
        token = await self._known_token()
        request = x.within_reach(request, self._now())
        answer = await self._counted(with_token(request, token))
        if answer.status == 402 or is_spent(answer):
            await self._limiter.pause(PAID_LATER)
            raise NotYet(f"X: {words_of(answer) or 'what was paid for is used up'}", until=self._now() + PAID_LATER)
        refuse(answer)
        # The address as it was requested: what follows # counts the pages before this one.
        return answer._replace(url=request.url)

    async def _known_token(self) -> str:
        try:
            return await self._token()
        except StoreUnavailable as error:
            raise without_store(error, self._now()) from error

    async def _counted(self, request: Request) -> Response:
        await self._meter.count_request()
        answer = await self._send(request._replace(url=self._api + urldefrag(request.url).url.removeprefix(x.API)))
        if answer.status == 200:
            await self._meter.count_posts(posts_in(answer))
        return answer


def refuse(answer: Response) -> None:
    """Raises StatusRefused, with X's own words, for statuses that mean something special at X. Pure."""
    advice = {
        400: "X does not understand the request.",
        401: "X does not accept the token. Give another: `headwater x token`, or HEADWATER_X_BEARER_TOKEN.",
        403: "X does not allow this with the present token.",
    }.get(answer.status)
    if advice:
        said = words_of(answer)
        words = f"{advice} It says: {said} (HTTP {answer.status})" if said else f"{advice} (HTTP {answer.status})"
        raise StatusRefused(words, http_status=answer.status)


def window_of(answer: Response) -> RateLimitWindow | None:
    """Returns what X's headers say about its rate limit; None if they say nothing. Pure.

    X gives the time of the reset in seconds since 1970. A reset in the past counts as one second from now.
    """
    reset = number(answer, "x-rate-limit-reset")
    if reset is None:
        return None
    resets_in = min(max(reset - answer.received_at.timestamp(), 1.0), LONGEST_PAUSE)
    return RateLimitWindow(number(answer, "x-rate-limit-remaining"), resets_in)


class _Problem(msgspec.Struct):
    title: str = ""
    detail: str = ""
    errors: list[_Problem] = []
    message: str = ""


class _Included(msgspec.Struct):
    tweets: list[msgspec.Raw] = []


class _Counted(msgspec.Struct):
    data: list[msgspec.Raw] | dict[str, msgspec.Raw] = []
    includes: _Included = msgspec.field(default_factory=_Included)


def is_spent(answer: Response) -> bool:
    """Whether X refuses for the rest of the month, and not just for the present window. Pure."""
    return answer.status == 429 and _problem_in(answer).title == "UsageCapExceeded"


def words_of(answer: Response) -> str:
    """Returns what X says about a refusal, as plain text. Pure."""
    problem = _problem_in(answer)
    said = [one.message or one.detail for one in problem.errors[:3]] or [problem.detail or problem.title]
    return plain(" ".join(said))[:LONGEST_WORDS]


def posts_in(answer: Response) -> int:
    """Returns how many posts an answer contains. X also counts the posts that those refer to. Pure."""
    try:
        counted = msgspec.json.decode(unpacked(answer, ANSWER_BYTES), type=_Counted)
    except (msgspec.DecodeError, FetchFailed):
        return 0
    listed = len(counted.data) if isinstance(counted.data, list) else 0
    return listed + len(counted.includes.tweets)


def _problem_in(answer: Response) -> _Problem:
    try:
        return msgspec.json.decode(unpacked(answer, ANSWER_BYTES), type=_Problem)
    except (msgspec.DecodeError, FetchFailed):
        return _Problem()
