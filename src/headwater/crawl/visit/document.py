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
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from headwater.crawl.schedule import LONGEST_WISH, next_check
from headwater.crawl.visit.shared import (
    NO_FEED,
    VisitTools,
    ask,
    authorized,
    body_hash,
    conditional,
    failed,
    in_its_turn,
    interval,
    seen,
    take_turn,
)
from headwater.errors import SourceFailure, TimedOut
from headwater.fetch.statuses import cache_lifetime
from headwater.follow import discovery
from headwater.model import Becoming, DueSource, Facts, Page, Request, Response, SourceState, Visit
from headwater.sources import Kind

MOST_PAGES = 20


class Look(NamedTuple):
    """What one visit saw. `page` is None where nothing had changed; `cut_short` says why further pages are missing.

    `becomes` is the kind of source that can read what is there, where it is no feed.
    """

    response: Response
    page: Page | None
    state: SourceState
    moved_to: str | None = None
    cut_short: SourceFailure | None = None
    becomes: Becoming | None = None


async def visit(due: DueSource, tools: VisitTools) -> Visit:
    return await in_its_turn(due, tools, partial(_visit, due, tools))


async def _visit(due: DueSource, tools: VisitTools) -> Visit:
    started_at, started = tools.now(), time.monotonic()
    try:
        async with asyncio.timeout(tools.visit_seconds):
            waits = await take_turn(due, tools)
            if waits:
                return waits
            look = await _look(due, tools)
    except TimeoutError:
        failure: SourceFailure = TimedOut(f"The visit took more than {tools.visit_seconds:g} s.")
    except SourceFailure as error:
        failure = error
    else:
        return ended(due, look, started_at, time.monotonic() - started, tools)
    return failed(due, failure, started_at, time.monotonic() - started, tools)


def ended(due: DueSource, look: Look, started_at: datetime, seconds: float, tools: VisitTools) -> Visit:
    """What was seen of a listing is stored even if its end was not reached; only the watermark has to stay."""
    if look.becomes:
        return turned(due, look, look.becomes, started_at, seconds, tools)
    if look.cut_short is None or look.page is None:
        return concluded(due, look, started_at, seconds, tools)
    visit = failed(due, look.cut_short, started_at, seconds, tools)
    return visit._replace(posts=look.page.posts, facts=look.page.facts, beside=look.page.beside)


async def _look(due: DueSource, tools: VisitTools) -> Look:
    source, state, kind = due.source, due.state, tools.kinds[due.source.kind]
    asked = conditional(kind.first(source, state), state, tools.now())
    if due.credential:
        asked = authorized(asked, tools.unseal(due.credential))
    response = None
    try:
        response = await _ask(kind, asked, tools)
        if response.status == 304:
            return Look(response, None, state)
        if body_hash(response) == state.body_hash:
            return Look(response, None, seen(response, state))
        page = await tools.readers.read(source, state, response)
    except SourceFailure as error:
        if state.body_hash is not None or not kind.at_address or not discovery.worth_a_search(error):
            raise
        return await _look_around(due, response, error, tools)
    page, cut_short = await _following_pages(due, page, tools)
    moved_to = response.moved_to if kind.at_address else None
    return Look(response, page, seen(response, state), moved_to, cut_short)


async def _look_around(due: DueSource, page: Response | None, reason: SourceFailure, tools: VisitTools) -> Look:
    """The feed of a site; where it has none, the kind that can read its pages."""
    search = discovery.Search(tools.fetch, tools.readers, tools.gap)
    try:
        response, found = await discovery.find_feed(due.source, page, reason, search)
    except SourceFailure:
        becomes = await tools.readers.recognise(due.source, page) if page else None
        if page is None or becomes is None:
            raise
        return Look(page, None, due.state, becomes=becomes)
    return Look(response, found, seen(response, due.state), response.moved_to or response.url)


async def _ask(kind: Kind, asked: Request, tools: VisitTools) -> Response:
    """Ask; for a kind with a budget, this request has been taken out of it."""
    fetch = tools.ways[kind.name].fetch if kind.name in tools.ways else tools.fetch
    return await ask(asked, fetch, partial(_next_turn, kind, tools))


async def _next_turn(kind: Kind, tools: VisitTools) -> None:
    await asyncio.sleep(tools.gap)
    if kind.name in tools.ways:
        await tools.ways[kind.name].wait()


async def _following_pages(due: DueSource, page: Page, tools: VisitTools) -> tuple[Page, SourceFailure | None]:
    """All pages as one, as far as they could be had in time, and what went wrong with the next one."""
    kind = tools.kinds[due.source.kind]
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
                asked, gap = further.next, further.facts.gap if further.posts else gap
    except TimeoutError:
        failure = TimedOut("There was no time for all pages of the listing.")
    except SourceFailure as error:
        failure = error
    facts = page.facts._replace(gap=gap and failure is None)
    return page._replace(posts=posts, facts=facts, beside=beside), failure


def concluded(due: DueSource, look: Look, started_at: datetime, seconds: float, tools: VisitTools) -> Visit:
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
            _rarer(interval(due, tools), due.push_trust),
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


def turned(
    due: DueSource, look: Look, becomes: Becoming, started_at: datetime, seconds: float, tools: VisitTools
) -> Visit:
    """There is no feed, but a kind that can read the pages: from the next visit on, which is due at once, it does."""
    note = f"{NO_FEED}, so its pages are read, as {discovery.NAMES.get(becomes.kind, becomes.kind)}."
    return Visit(
        source_id=due.source.id,
        lease=due.lease,
        started_at=started_at,
        seconds=seconds,
        outcome="ok",
        status=due.status,
        next_check_at=tools.now(),
        state=due.state,
        facts=Facts(note=note),
        http_status=look.response.status,
        bytes=len(look.response.body),
        unfinished=True,
        becomes=becomes,
    )


def _rarer(interval: timedelta, trust: int) -> timedelta:
    """Where a hub pushes, polling only makes sure that it does; once a day all the same."""
    return max(interval, min(interval * trust, LONGEST_WISH))
