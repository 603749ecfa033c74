"""The steps that both shapes of visit take: their tools, how they start, how they ask, and how they end.

- start: `admitted` waits for the start time of the claim, `take_request` takes the first request out of a budget
- ask: `conditional`, `authorized` and `send`
- end: `failed` and `deferred` make the Visit; `least_wait` and `next_check` say when to come again
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, NamedTuple

from headwater.access.budget import Access
from headwater.access.robots import Robots
from headwater.errors import (
    AnswerBroken,
    Blocked,
    ConnectionFailed,
    KeyMissing,
    NotAsked,
    NotYet,
    ParserStopped,
    SourceFailure,
    TimedOut,
)
from headwater.fetch.failures import is_our_network
from headwater.fetch.statuses import pause_of
from headwater.model import DueSource, Request, Response, SourceState, Visit
from headwater.parse.pool import Parsers
from headwater.sources import KINDS, Kind

NO_FEED = "This site has no feed"
VALIDATORS_LIVE = timedelta(days=8)
LONGEST_WISH = timedelta(days=1)  # a feed's own ttl or cache lifetime is respected up to here
LONGEST_BACK_OFF = timedelta(days=1)
JITTER = 0.1
MISSED = timedelta(seconds=5)  # after which the slot of a visit may be over, and another one has the next
RETRY_AFTER = timedelta(seconds=5)  # for a task, which somebody waits for
Fetch = Callable[[Request], Awaitable[Response]]


class Pause(NamedTuple):
    """A time without requests to a host, and why: it asked for that, or our request budget is spent."""

    until: datetime
    why: str


class VisitTools(NamedTuple):
    """What a visit works with.

    `gap` is the seconds between two requests to one host. `paused_until` has the hosts that get no request. `access`
    is for kinds of source that are asked through an API with a budget, `browser` for pages that are made by scripts.
    `robots` says which pages a site lets programs read. `fetch_first` sends the requests of visits that a person asked
    for before all others that wait. `listing` says which listing of communities is read, whatever their tiers say.
    """

    fetch: Fetch
    parsers: Parsers
    now: Callable[[], datetime]
    chance: Callable[[], float]
    interval: timedelta
    visit_seconds: float
    gap: float
    paused_until: dict[str, Pause]
    unseal: Callable[[bytes], str]
    access: Mapping[str, Access] = {}
    kinds: Mapping[str, Kind] = KINDS
    robots: Robots | None = None
    browser: Fetch | None = None
    fetch_first: Fetch | None = None
    listing: Mapping[str, Any] = {}


def lease_is_too_short(due: DueSource, tools: VisitTools) -> bool:
    """Whether the lease could end before the visit does."""
    return tools.now() + timedelta(seconds=tools.visit_seconds) > due.lease_until


@asynccontextmanager
async def admitted(due: DueSource, tools: VisitTools) -> AsyncIterator[Visit | None]:
    """Waits until the visit may start. Yields None, or a deferred Visit if it may not start now.

    A visit through an API holds one of its connections until the end.
    """
    wait = (due.start_at - tools.now()).total_seconds()
    if wait > 0:
        await asyncio.sleep(wait)
    access = tools.access.get(due.source.kind)
    async with access.concurrency if access else nullcontext():
        now, pause = tools.now(), tools.paused_until.get(due.host)
        missed_its_slot = tools.gap > 0 and now > due.start_at + MISSED  # this process was stopped for a while
        if (access and lease_is_too_short(due, tools)) or (missed_its_slot and not access):
            yield deferred(due, now, now, f"its turn at {due.host}")
        elif pause and pause.until > now:
            yield deferred(due, now, pause.until, pause.why)
        else:
            yield None


async def take_request(due: DueSource, tools: VisitTools) -> Visit | None:
    """Takes a visit's first request out of the budget of its API. Returns a deferred Visit if none is left.

    Without an API there is nothing to take: the claim gave the visit a slot of its host.
    """
    access = tools.access.get(due.source.kind)
    try:
        retry_at = await access.try_acquire() if access else None
    except NotYet as wait:
        return deferred(due, tools.now(), wait.until, wait.detail)
    if retry_at is None:
        return None
    why = f"our request budget for {due.host}"
    tools.paused_until[due.host] = Pause(retry_at, why)
    spent = deferred(due, tools.now(), retry_at, why)
    return spent._replace(host=due.host, pause_host_until=retry_at)


async def send(request: Request, fetch: Fetch, wait_for_slot: Callable[[], Awaitable[None]]) -> Response:
    """Sends a request that has a slot. Asks once more, in a slot of its own, after a 304 that makes no sense."""
    response = await fetch(request)
    if response.status == 304 and not _has_condition(request):
        await wait_for_slot()
        response = await fetch(request)
        if response.status == 304:
            raise AnswerBroken("The server says that nothing has changed, but we have nothing from it. (HTTP 304)")
    return response


def conditional(request: Request, state: SourceState, now: datetime) -> Request:
    """Adds what we have (ETag, date), unless that is so old that the server may have forgotten what it meant."""
    if state.validated_at is None or now - state.validated_at > VALIDATORS_LIVE:
        return request
    headers = list(request.headers)
    if state.etag:
        headers.append(("If-None-Match", state.etag))
    if state.last_modified:
        headers.append(("If-Modified-Since", state.last_modified))
    return request._replace(headers=tuple(headers))


def authorized(request: Request, credential: str) -> Request:
    """Adds `name:password` as basic authorization. `fetch` drops it on a redirect to another host."""
    basic = b64encode(credential.encode()).decode()
    return request._replace(headers=(*request.headers, ("Authorization", f"Basic {basic}")))


def _has_condition(request: Request) -> bool:
    return any(name.startswith("If-") for name, _ in request.headers)


def body_hash(response: Response) -> bytes:
    return blake2b(response.body, digest_size=16).digest()


def state_after(response: Response, state: SourceState) -> SourceState:
    """Returns the state with what to send next time: validators, and the hash of the body."""
    return state._replace(
        etag=response.headers.get("etag"),
        last_modified=response.headers.get("last-modified"),
        body_hash=body_hash(response),
        validated_at=response.received_at,
    )


def failed(due: DueSource, error: SourceFailure, started_at: datetime, seconds: float, tools: VisitTools) -> Visit:
    """Returns a visit that failed. Pauses the host if it asked for that; see `fetch/statuses.py`."""
    now, http_status = tools.now(), error.facts.get("http_status")
    retry_after, pause = error.facts.get("retry_after"), pause_of(error)
    blames_source = not (http_status == 429 or is_our_network(error) or isinstance(error, NotAsked))
    every, chance = interval(due, tools), tools.chance()
    back_off = least_wait(
        every,
        retry_after=retry_after if isinstance(retry_after, timedelta) else None,
        failures=due.consecutive_failures + blames_source,
    )
    asked = f"{due.host} asked for a pause"
    if pause:
        tools.paused_until[due.host] = Pause(now + pause, asked)
    again = next_check(now, max(every, back_off), chance=chance)
    return visit_of(due, "failed", started_at, seconds, again)._replace(
        status=_status_after(due, error, blames_source),
        not_before=now + back_off,
        http_status=http_status if isinstance(http_status, int) else None,
        error_code=error.code,
        error=error.detail,
        blames_source=blames_source,
        host=due.host,
        pause_host_until=now + pause if pause else None,
        waits_for=asked if pause else None,
        retry_at=now + RETRY_AFTER * (1 + JITTER * chance) if is_transient(error) and not retry_after else None,
    )


def is_transient(error: SourceFailure) -> bool:
    """Whether the failure is ours, or may be over in a moment. A server that refuses does not change its mind. Pure."""
    status = error.facts.get("http_status")
    if isinstance(status, int):
        return status >= 500
    return is_our_network(error) or isinstance(error, TimedOut | ConnectionFailed | AnswerBroken | ParserStopped)


def _status_after(due: DueSource, error: SourceFailure, blames_source: bool) -> str:
    if error.facts.get("http_status") == 410:
        return "retired"
    if isinstance(error, Blocked | KeyMissing):
        return "blocked"
    return "failing" if blames_source else due.status


def deferred(due: DueSource, now: datetime, until: datetime, why: str) -> Visit:
    """Returns a visit that has to wait, which is not a failure."""
    return visit_of(due, "deferred", now, 0.0, until)._replace(waits_for=why)


def visit_of(due: DueSource, outcome: str, started_at: datetime, seconds: float, next_check_at: datetime) -> Visit:
    """Returns a visit that leaves the status and the state of its source as they are."""
    return Visit(
        source_id=due.source.id,
        lease=due.lease,
        started_at=started_at,
        seconds=seconds,
        outcome=outcome,
        status=due.status,
        next_check_at=next_check_at,
        state=due.state,
    )


def least_wait(
    interval: timedelta,
    *,
    wishes: tuple[timedelta | None, ...] = (),
    retry_after: timedelta | None = None,
    failures: int = 0,
) -> timedelta:
    """Returns how long to wait at least: as long as the source wishes, and as the back-off demands. Pure.

    The back-off doubles with each failure, is capped, and never stops for good.
    """
    wait = timedelta(0)
    for wish in wishes:
        if wish is not None:
            wait = max(wait, min(wish, LONGEST_WISH))
    if failures:
        wait = max(wait, min(interval * 2 ** min(failures - 1, 10), LONGEST_BACK_OFF))
    if retry_after is not None:
        wait = max(wait, retry_after)
    return wait


def next_check(
    now: datetime,
    interval: timedelta,
    *,
    chance: float,
    wishes: tuple[timedelta | None, ...] = (),
    retry_after: timedelta | None = None,
    failures: int = 0,
) -> datetime:
    """Returns when to come again: after our interval, or after the longer wait that `least_wait` demands. Pure.

    `chance` is a random number in [0, 1) that adds up to 10 % of jitter.
    """
    at_least = least_wait(interval, wishes=wishes, retry_after=retry_after, failures=failures)
    return now + max(interval, at_least) * (1 + JITTER * chance)


def interval(due: DueSource, tools: VisitTools) -> timedelta:
    """Returns how often a source is visited: what its readers chose, else by its tier, else as all sources are.

    A reader who chose nothing still gets the usual interval, even if another one chose a longer one.
    """
    usual = timedelta(seconds=due.interval_seconds) if due.interval_seconds else tools.interval
    if due.chosen_seconds is None:
        return usual
    chosen = timedelta(seconds=due.chosen_seconds)
    return chosen if due.chosen_by_all else min(chosen, usual)
