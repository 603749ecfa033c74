"""What every visit shares: the tools it works with, its turn, asking, and how it ends where it fails."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple, Protocol

from headwater.access.robots import Robots
from headwater.crawl.schedule import next_check
from headwater.errors import AnswerBroken, Blocked, KeyMissing, NotAsked, NotYet, SourceFailure
from headwater.fetch.failures import is_our_network
from headwater.fetch.statuses import BUSY, judge
from headwater.model import DueSource, Request, Response, SourceState, Visit
from headwater.parse.pool import Parsers
from headwater.sources import KINDS, Kind

NO_FEED = "This site has no feed"
VALIDATORS_LIVE = timedelta(days=8)


class Access(Protocol):
    """How a kind of source is asked that has a budget of requests.

    A visit keeps one of `places` to its end. So no request queues for a connection while its place in the budget ages:
    what was taken out of the budget goes out at once.
    """

    @property
    def places(self) -> asyncio.Semaphore: ...

    async def turn(self) -> datetime | None:
        """Take one request out of the budget; None: go ahead. Otherwise the time at which to ask again.

        Raises NotYet where that is no matter of whose turn it is.
        """

    async def wait(self) -> None:
        """Take one as soon as there is one."""

    async def fetch(self, request: Request) -> Response: ...


class VisitTools(NamedTuple):
    """What a visit works with; `gap` is its rest before a further request, `held` says which hosts asked for quiet.

    `ways` are for kinds of source that are not simply fetched; `browser` is for pages that scripts make. `robots` says
    which pages a site lets programs read.
    """

    fetch: Callable[[Request], Awaitable[Response]]
    readers: Parsers
    now: Callable[[], datetime]
    chance: Callable[[], float]
    interval: timedelta
    visit_seconds: float
    gap: float
    held: dict[str, datetime]
    unseal: Callable[[bytes], str]
    ways: Mapping[str, Access] = {}
    kinds: Mapping[str, Kind] = KINDS
    robots: Robots | None = None
    browser: Callable[[Request], Awaitable[Response]] | None = None


async def in_its_turn(due: DueSource, tools: VisitTools, visit: Callable[[], Awaitable[Visit]]) -> Visit:
    """Begin a visit at its time and in a place of its way; where it may not begin, the visit that says so."""
    wait = (due.start_at - tools.now()).total_seconds()
    if wait > 0:
        await asyncio.sleep(wait)
    way = tools.ways.get(due.source.kind)
    if way is None:
        return _held_back(due, tools) or await visit()
    async with way.places:
        if tools.now() + timedelta(seconds=tools.visit_seconds) > due.lease_until:
            return deferred(due, tools.now(), tools.now(), f"its turn at {due.host}")
        return _held_back(due, tools) or await visit()


async def take_turn(due: DueSource, tools: VisitTools) -> Visit | None:
    """Take a visit's first request out of the budget of its way; where that is spent, the visit that says so."""
    way = tools.ways.get(due.source.kind)
    try:
        turn_at = await way.turn() if way else None
    except NotYet as wait:
        return deferred(due, tools.now(), wait.until, wait.detail)
    if turn_at is None:
        return None
    tools.held[due.host] = turn_at
    spent = deferred(due, tools.now(), turn_at, f"its turn at {due.host}")
    return spent._replace(host=due.host, hold_host_until=turn_at)


def _held_back(due: DueSource, tools: VisitTools) -> Visit | None:
    now, held_until = tools.now(), tools.held.get(due.host)
    if held_until and held_until > now:
        return deferred(due, now, held_until, f"{due.host} asked for a pause")
    return None


async def ask(
    asked: Request, fetch: Callable[[Request], Awaitable[Response]], next_turn: Callable[[], Awaitable[None]]
) -> Response:
    """The answer, if it is one that we can use. Its turn has come; `next_turn` waits for another."""
    response = await fetch(asked)
    if response.status == 304 and not _has_condition(asked):
        await next_turn()
        response = await fetch(asked)
        if response.status == 304:
            raise AnswerBroken("The server says that nothing has changed, though we have nothing from it. (HTTP 304)")
    judge(response)
    return response


def conditional(request: Request, state: SourceState, now: datetime) -> Request:
    """Say what we have, unless that is so old that the server may have forgotten what it meant."""
    if state.validated_at is None or now - state.validated_at > VALIDATORS_LIVE:
        return request
    headers = list(request.headers)
    if state.etag:
        headers.append(("If-None-Match", state.etag))
    if state.last_modified:
        headers.append(("If-Modified-Since", state.last_modified))
    return request._replace(headers=tuple(headers))


def authorized(request: Request, credential: str) -> Request:
    """With `name:password` as the server wants it; `fetch` drops it on a redirect to another host."""
    basic = b64encode(credential.encode()).decode()
    return request._replace(headers=(*request.headers, ("Authorization", f"Basic {basic}")))


def _has_condition(request: Request) -> bool:
    return any(name.startswith("If-") for name, _ in request.headers)


def body_hash(response: Response) -> bytes:
    return blake2b(response.body, digest_size=16).digest()


def seen(response: Response, state: SourceState) -> SourceState:
    return state._replace(
        etag=response.headers.get("etag"),
        last_modified=response.headers.get("last-modified"),
        body_hash=body_hash(response),
        validated_at=response.received_at,
    )


def failed(due: DueSource, error: SourceFailure, started_at: datetime, seconds: float, tools: VisitTools) -> Visit:
    now = tools.now()
    http_status = error.facts.get("http_status")
    pause = error.facts.get("retry_after")
    busy = http_status in BUSY
    blames_source = not (http_status == 429 or is_our_network(error) or isinstance(error, NotAsked))
    next_at = next_check(
        now,
        interval(due, tools),
        chance=tools.chance(),
        retry_after=pause if isinstance(pause, timedelta) else None,
        failures=due.consecutive_failures + blames_source,
    )
    hold = now + pause if busy and isinstance(pause, timedelta) else None
    if hold:
        tools.held[due.host] = hold
    return Visit(
        source_id=due.source.id,
        lease=due.lease,
        started_at=started_at,
        seconds=seconds,
        outcome="failed",
        status=_status_after(due, error, blames_source),
        next_check_at=next_at,
        state=due.state,
        http_status=http_status if isinstance(http_status, int) else None,
        error_code=error.code,
        error=error.detail,
        blames_source=blames_source,
        host=due.host,
        hold_host_until=hold,
        waits_for=f"{due.host} asked for a pause" if hold else None,
    )


def _status_after(due: DueSource, error: SourceFailure, blames_source: bool) -> str:
    if error.facts.get("http_status") == 410:
        return "retired"
    if isinstance(error, Blocked | KeyMissing):
        return "blocked"
    return "failing" if blames_source else due.status


def deferred(due: DueSource, now: datetime, until: datetime, why: str) -> Visit:
    return Visit(
        source_id=due.source.id,
        lease=due.lease,
        started_at=now,
        seconds=0.0,
        outcome="deferred",
        status=due.status,
        next_check_at=until,
        state=due.state,
        waits_for=why,
    )


def noted(before: str, said: str) -> str:
    """What is told about how a source is read; that it was found to have no feed stays said. Pure."""
    if not before.startswith(NO_FEED):
        return said
    return f"{before.partition('.')[0]}. {said}".strip()


def interval(due: DueSource, tools: VisitTools) -> timedelta:
    return timedelta(seconds=due.interval_seconds) if due.interval_seconds else tools.interval
