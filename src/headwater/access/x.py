"""The way to X: its API v2 with a token, within what X allows and within what is paid for in a month.

The way only asks. What to ask for and what an answer means is `sources.x`; when to come again is `run`.
"""

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

from headwater.access.reddit import CONCURRENCY, LONGEST_PAUSE, STORE_REST, RateLimiter, number, with_token
from headwater.errors import BadInput, FetchFailed, KeyMissing, NotYet, StatusRefused, StoreUnavailable
from headwater.fetch.body import unpacked
from headwater.model import Request, Response
from headwater.sources import x
from headwater.store import sources
from headwater.store.db import Database
from headwater.store.people import secrets
from headwater.store.sources import limits as meters
from headwater.store.sources.limits import Allowance, Used
from headwater.text import plain

METER = "x"
SECRET = "x bearer token"
NO_TOKEN = (
    "X is read by its API, and no token for it is set. Give one: `headwater x token`, or HEADWATER_X_BEARER_TOKEN."
    " Nothing is asked of X until then."
)
PAID_LATER = timedelta(days=1)  # X says that a month is spent, but not until when
LONGEST_WORDS = 300
ANSWER_BYTES = 64 * 1024 * 1024
_TOKEN = re.compile(r"[\x21-\x7e]{10,4096}")
log = structlog.get_logger()


def token_from(typed: str) -> str:
    """A token as a person gives it. Pure."""
    token = typed.strip().removeprefix("Bearer ").strip()
    if not _TOKEN.fullmatch(token):
        raise BadInput("This cannot be a token: one has ten characters or more, without spaces.")
    return token


class XState(NamedTuple):
    """How X can be asked: what is wrong with the token, what is used of the month, how many sources need it."""

    problem: str
    used: Used
    allowance: Allowance
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
            for had, most, what in zip(self.used, self.allowance, Used._fields, strict=True)
        ]
        spent = f"; spent until {self.month_ends:%d %B}" if self.is_spent else ""
        return f"{' and '.join(share)} this month{spent}"


def keep_token(conn: Connection, sealed: bytes, now: datetime) -> int:
    """Keep a sealed token; what waits for one is due now. Returns how many sources that are."""
    secrets.keep(conn, SECRET, sealed, now)
    return sources.make_due(conn, sources.visited_of_kind(conn, "x"), now)


class MonthlyMeter:
    """What may be asked of X in a month, counted in the store. Where it is spent, NotYet says until when."""

    def __init__(self, db: Database, allowance: Allowance, now: Callable[[], datetime]) -> None:
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
            log.warning("store.unavailable", error=error.detail)  # they came; better uncounted than lost

    def _spent(self) -> NotYet:
        until = meters.month_ends(self._now())
        requests, posts = self._allowance
        limits = [f"{most:,} {what}" for most, what in ((requests, "requests"), (posts, "posts")) if most]
        return NotYet(f"the next month: what may be asked of X in one ({' or '.join(limits)}) is spent", until=until)


def without_store(error: StoreUnavailable, now: datetime) -> NotYet:
    """Where nothing can be counted, nothing is asked."""
    log.warning("store.unavailable", error=error.detail)
    return NotYet("the store, in which requests to X are counted", until=now + STORE_REST)


class XApi:
    """X's API. `token` raises KeyMissing where there is none; a person may give one, or another, at any time."""

    def __init__(
        self,
        api: str,
        token: Callable[[], Awaitable[str]],
        fetch: Callable[[Request], Awaitable[Response]],
        turns: RateLimiter,
        meter: MonthlyMeter,
        now: Callable[[], datetime],
    ) -> None:
        self.places = asyncio.Semaphore(CONCURRENCY)
        self._api = api
        self._token = token
        self._fetch = fetch
        self._turns = turns
        self._meter = meter
        self._now = now
        self._under_way = 0

    async def turn(self) -> datetime | None:
        try:
            await self._known_token()
        except KeyMissing:
            return None  # there will be no request, so there is nothing to wait for
        await self._meter.check()
        return await self._turns.take()

    async def wait(self) -> None:
        await self._meter.check()
        await self._turns.wait()

    async def fetch(self, request: Request) -> Response:
        token = await self._known_token()
        request = x.within_reach(request, self._now())
        answer = await self._ask(with_token(request, token))
        if answer.status == 402 or is_spent(answer):
            await self._turns.hold(PAID_LATER)
            raise NotYet(f"X: {words_of(answer) or 'what was paid for is used up'}", until=self._now() + PAID_LATER)
        refuse(answer)
        # The address as it was asked for: what follows # counts the pages before this one.
        return answer._replace(url=request.url)

    async def _known_token(self) -> str:
        try:
            return await self._token()
        except StoreUnavailable as error:
            raise without_store(error, self._now()) from error

    async def _ask(self, request: Request) -> Response:
        await self._meter.count_request()
        address = self._api + urldefrag(request.url).url.removeprefix(x.API)
        self._under_way += 1
        try:
            answer = await self._fetch(request._replace(url=address))
            pause = pause_after(answer, self._under_way)
        finally:
            self._under_way -= 1
        if pause:
            await self._turns.hold(pause)
        if answer.status == 200:
            await self._meter.count_posts(posts_in(answer))
        return with_pause(answer)


def refuse(answer: Response) -> None:
    """Raise StatusRefused, in words, for what only X says like this. Pure."""
    advice = {
        400: "X does not understand the request.",
        401: "X does not accept the token. Give another: `headwater x token`, or HEADWATER_X_BEARER_TOKEN.",
        403: "X does not allow this with the present token.",
    }.get(answer.status)
    if advice:
        said = words_of(answer)
        words = f"{advice} It says: {said} (HTTP {answer.status})" if said else f"{advice} (HTTP {answer.status})"
        raise StatusRefused(words, http_status=answer.status)


def pause_after(answer: Response, under_way: int) -> timedelta | None:
    """How long X wants nothing more: its headers say what is left of a window, and when that ends. Pure.

    Requests under way have not been counted yet, so the last ones in a window are left to them.
    """
    left, reset = number(answer, "x-rate-limit-remaining"), _seconds_to_reset(answer)
    if reset is None or not (answer.status == 429 or (left is not None and left < under_way)):
        return None
    return timedelta(seconds=reset)


def with_pause(answer: Response) -> Response:
    """A refusal that names its end only in X's own header says it as everybody does. Pure."""
    reset = _seconds_to_reset(answer)
    if answer.status != 429 or reset is None or "retry-after" in answer.headers:
        return answer
    return answer._replace(headers={**answer.headers, "retry-after": f"{reset:.0f}"})


def _seconds_to_reset(answer: Response) -> float | None:
    """X names the second since 1970 in which the window ends; one that has passed is over in a second."""
    reset = number(answer, "x-rate-limit-reset")
    if reset is None:
        return None
    return min(max(reset - answer.received_at.timestamp(), 1.0), LONGEST_PAUSE)


class _Problem(msgspec.Struct):
    title: str = ""
    detail: str = ""
    errors: list[_Problem] = []
    message: str = ""


class _Beside(msgspec.Struct):
    tweets: list[msgspec.Raw] = []


class _Counted(msgspec.Struct):
    data: list[msgspec.Raw] | dict[str, msgspec.Raw] = []
    includes: _Beside = msgspec.field(default_factory=_Beside)


def is_spent(answer: Response) -> bool:
    """Whether X refuses for the rest of a month, not of a quarter of an hour. Pure."""
    return answer.status == 429 and _problem_in(answer).title == "UsageCapExceeded"


def words_of(answer: Response) -> str:
    """What X says about a refusal, as text. Pure."""
    problem = _problem_in(answer)
    said = [one.message or one.detail for one in problem.errors[:3]] or [problem.detail or problem.title]
    return plain(" ".join(said))[:LONGEST_WORDS]


def posts_in(answer: Response) -> int:
    """How many posts an answer has, those that its posts point at included: X counts them as well. Pure."""
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
