"""One visit of one source: the whole path of a post on one screen.

    1. sources   what to ask: `KINDS[kind].first`, plus what we already have (`conditional`)
    2. fetch     ask: `tools.fetch`, or the `Way` of a kind that has a key and a budget of its own
    3. crawl     what does the status say: `judge`; same bytes as last time: nothing to read
    4. sources   what does the answer say: `KINDS[kind].read`, in a reading process (`readers`)
                 a page that is no feed, on a first visit: look for the feed it names (`discover`)
    5. crawl     what does it mean, and when to come again: `concluded`, `schedule.next_check`
    6. store     posts, state, the visit and its events in one transaction: `record`

Everything that can be expected to go wrong with a source ends as a Visit that says so. Nothing here raises for it.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple, Protocol

from headwater.crawl import discover
from headwater.crawl.readers import Readers
from headwater.crawl.schedule import LONGEST_WISH, next_check
from headwater.errors import AnswerBroken, Blocked, SourceFailure, StatusRefused, TimedOut
from headwater.fetch.failures import is_our_network
from headwater.fetch.politeness import cache_lifetime, retry_after
from headwater.model import DueSource, Page, Request, Response, SourceState, Visit
from headwater.sources import KINDS, Kind

VALIDATORS_LIVE = timedelta(days=8)
MOST_PAGES = 20
BUSY = (429, 503)


class Way(Protocol):
    """How a kind of source is asked that has a budget of requests."""

    async def turn(self) -> datetime | None:
        """Take one request out of the budget; None: go ahead. Otherwise the time at which to ask again."""

    async def wait(self) -> None:
        """Take one as soon as there is one."""

    async def fetch(self, request: Request) -> Response: ...


class Tools(NamedTuple):
    """What a visit works with; `gap` is its rest before a further request, `held` says which hosts asked for quiet.

    `ways` are for kinds of source that are not simply fetched.
    """

    fetch: Callable[[Request], Awaitable[Response]]
    readers: Readers
    now: Callable[[], datetime]
    chance: Callable[[], float]
    interval: timedelta
    visit_seconds: float
    gap: float
    held: dict[str, datetime]
    unseal: Callable[[bytes], str]
    ways: Mapping[str, Way] = {}


class Look(NamedTuple):
    """What one visit saw. `page` is None where nothing had changed; `cut_short` says why further pages are missing."""

    response: Response
    page: Page | None
    state: SourceState
    moved_to: str | None = None
    cut_short: SourceFailure | None = None


async def visit(due: DueSource, tools: Tools) -> Visit:
    wait = (due.start_at - tools.now()).total_seconds()
    if wait > 0:
        await asyncio.sleep(wait)
    started_at, started = tools.now(), time.monotonic()
    held_until = tools.held.get(due.host)
    if held_until and held_until > started_at:
        return _put_off(due, started_at, held_until, f"{due.host} asked for a pause")
    way = tools.ways.get(due.source.kind)
    turn_at = await way.turn() if way else None
    if turn_at:
        tools.held[due.host] = turn_at
        spent = _put_off(due, started_at, turn_at, f"its turn at {due.host}")
        return spent._replace(host=due.host, hold_host_until=turn_at)
    try:
        async with asyncio.timeout(tools.visit_seconds):
            look = await _look(due, tools)
    except TimeoutError:
        failure: SourceFailure = TimedOut(f"The visit took more than {tools.visit_seconds:g} s.")
    except SourceFailure as error:
        failure = error
    else:
        return ended(due, look, started_at, time.monotonic() - started, tools)
    return failed(due, failure, started_at, time.monotonic() - started, tools)


def ended(due: DueSource, look: Look, started_at: datetime, seconds: float, tools: Tools) -> Visit:
    """What was seen of a listing is stored even if its end was not reached; only the watermark has to stay."""
    if look.cut_short is None or look.page is None:
        return concluded(due, look, started_at, seconds, tools)
    visit = failed(due, look.cut_short, started_at, seconds, tools)
    return visit._replace(posts=look.page.posts, facts=look.page.facts, beside=look.page.beside)


async def _look(due: DueSource, tools: Tools) -> Look:
    source, state, kind = due.source, due.state, KINDS[due.source.kind]
    asked = conditional(kind.first(source, state), state, tools.now())
    if due.credential:
        asked = authorized(asked, tools.unseal(due.credential))
    response = None
    try:
        response = await _ask(kind, asked, tools)
        if response.status == 304:
            return Look(response, None, state)
        body_hash = _hash(response)
        if body_hash == state.body_hash:
            return Look(response, None, _seen(response, state, body_hash))
        page = await tools.readers.read(source, state, response)
    except SourceFailure as error:
        if state.body_hash is not None or not kind.at_address or not discover.worth_a_search(error):
            raise
        search = discover.Search(tools.fetch, tools.readers, tools.gap)
        response, page = await discover.find_feed(source, response, error, search)
        return Look(response, page, _seen(response, state, _hash(response)), response.moved_to or response.url)
    page, cut_short = await _following_pages(due, page, tools)
    moved_to = response.moved_to if kind.at_address else None
    return Look(response, page, _seen(response, state, body_hash), moved_to, cut_short)


async def _ask(kind: Kind, asked: Request, tools: Tools) -> Response:
    """Ask; for a kind with a budget, this request has been taken out of it."""
    fetch = tools.ways[kind.name].fetch if kind.name in tools.ways else tools.fetch
    response = await fetch(asked)
    if response.status == 304 and not _has_condition(asked):
        await _next_turn(kind, tools)
        response = await fetch(asked)
        if response.status == 304:
            raise AnswerBroken("The server says that nothing has changed, though we have nothing from it. (HTTP 304)")
    judge(response)
    return response


async def _next_turn(kind: Kind, tools: Tools) -> None:
    await asyncio.sleep(tools.gap)
    if kind.name in tools.ways:
        await tools.ways[kind.name].wait()


async def _following_pages(due: DueSource, page: Page, tools: Tools) -> tuple[Page, SourceFailure | None]:
    """All pages as one, as far as they could be had in time, and what went wrong with the next one."""
    kind = KINDS[due.source.kind]
    posts, beside, asked, gap = list(page.posts), list(page.beside), page.next, page.facts.gap
    failure: SourceFailure | None = None
    try:
        async with asyncio.timeout(tools.visit_seconds / 2):
            for _ in range(MOST_PAGES):
                if asked is None:
                    break
                await _next_turn(kind, tools)
                response = await _ask(kind, asked, tools)
                further = await tools.readers.read(due.source, due.state, response)
                posts += further.posts
                beside += further.beside
                asked, gap = further.next, gap and further.facts.gap
    except TimeoutError:
        failure = TimedOut("There was no time for all pages of the listing.")
    except SourceFailure as error:
        failure = error
    facts = page.facts._replace(gap=gap and failure is None)
    return page._replace(posts=posts, facts=facts, beside=beside), failure


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


def judge(response: Response) -> None:
    """Raise StatusRefused where the status is not an answer we can use."""
    status = response.status
    if status == 200 or status == 304:
        return
    wait = retry_after(response.headers, response.received_at)
    advice = {
        401: "The server wants a name and password for this address.",
        403: "The server does not let us in.",
        404: "There is nothing at this address.",
        410: "The server says that this source is gone for good. It is not visited any more.",
        429: "The server asks us to come less often.",
    }.get(status, "The server has a problem." if status >= 500 else "The server refused.")
    raise StatusRefused(f"{advice} (HTTP {status})", http_status=status, retry_after=wait)


def _hash(response: Response) -> bytes:
    return blake2b(response.body, digest_size=16).digest()


def _seen(response: Response, state: SourceState, body_hash: bytes) -> SourceState:
    return state._replace(
        etag=response.headers.get("etag"),
        last_modified=response.headers.get("last-modified"),
        body_hash=body_hash,
        validated_at=response.received_at,
    )


def concluded(due: DueSource, look: Look, started_at: datetime, seconds: float, tools: Tools) -> Visit:
    response, page = look.response, look.page
    if page is None:
        outcome, status = "unchanged", due.status if due.status in ("ok", "empty") else "ok"
    else:
        outcome = status = "ok" if page.posts else "empty"
    ttl = page.facts.ttl_seconds if page else None
    return Visit(
        source_id=due.source.id,
        lease=due.lease,
        started_at=started_at,
        seconds=seconds,
        outcome=outcome,
        status=status,
        next_check_at=next_check(
            tools.now(),
            _rarer(_interval(due, tools), due.push_trust),
            chance=tools.chance(),
            wishes=(timedelta(seconds=ttl) if ttl else None, cache_lifetime(response.headers, response.received_at)),
        ),
        state=look.state,
        posts=page.posts if page else [],
        beside=page.beside if page else [],
        facts=page.facts if page else None,
        http_status=response.status,
        bytes=len(response.body),
        moved_to=look.moved_to,
    )


def failed(due: DueSource, error: SourceFailure, started_at: datetime, seconds: float, tools: Tools) -> Visit:
    now = tools.now()
    http_status = error.facts.get("http_status")
    pause = error.facts.get("retry_after")
    busy = http_status in BUSY
    blames_source = not (http_status == 429 or is_our_network(error))
    next_at = next_check(
        now,
        _interval(due, tools),
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
    if isinstance(error, Blocked):
        return "blocked"
    return "failing" if blames_source else due.status


def _put_off(due: DueSource, now: datetime, until: datetime, why: str) -> Visit:
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


def _interval(due: DueSource, tools: Tools) -> timedelta:
    return timedelta(seconds=due.interval_seconds) if due.interval_seconds else tools.interval


def _rarer(interval: timedelta, trust: int) -> timedelta:
    """Where a hub pushes, polling only makes sure that it does; once a day all the same."""
    return max(interval, min(interval * trust, LONGEST_WISH))
