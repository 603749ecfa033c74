"""One visit to a document: one request says it all. Feeds are documents, and so are the listings of Reddit.

    1. claim       `store/sources/leases.py` leased the source to us; `Crawler` checks that the lease is long enough
    2. rate limit  `admitted` waits for the slot of the host, `take_request` takes the request out of an API's budget
    3. ask         `kind.first` makes the request, `conditional` adds what we have, `send` fetches the answer
    4. judge       `judge` raises for a status that is a refusal; the same bytes as last time need no parsing
    5. parse       `tools.parsers` turns bytes into posts, in a process of its own. On a first visit, a page that is
                   not a feed is searched for one (`_look_around`)
    6. decide      `_decide`: the outcome, the status of the source, and when to come again
    7. record      `record` in `crawl/record.py` writes the Visit that this returns: posts, state, visit and events in
                   one transaction. `Crawler` calls it, with many visits at once

Whatever can be expected to go wrong with a source ends as a Visit that says so. Nothing here raises for it.
"""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from headwater.crawl.visit import steps
from headwater.crawl.visit.steps import VisitTools
from headwater.errors import SourceFailure, TimedOut
from headwater.fetch.statuses import cache_lifetime, judge
from headwater.follow import discovery
from headwater.model import Becoming, DueSource, Facts, Page, Request, Response, SourceState, Visit
from headwater.sources import Kind

MOST_PAGES = 20


class Findings(NamedTuple):
    """What a visit found. `page` is None if nothing had changed; `cut_short` says why further pages are missing.

    `becomes` is the kind of source that can read what is there, if it is not a feed.
    """

    response: Response
    page: Page | None
    state: SourceState
    moved_to: str | None = None
    cut_short: SourceFailure | None = None
    becomes: Becoming | None = None


async def visit(due: DueSource, tools: VisitTools) -> Visit:
    """Visits a document. Returns the visit as it is recorded."""
    async with steps.admitted(due, tools) as not_now:
        if not_now:
            return not_now
        started_at, started = tools.now(), time.monotonic()
        try:
            async with asyncio.timeout(tools.visit_seconds):
                if waits := await steps.take_request(due, tools):
                    return waits
                found = await _find(due, tools)
        except TimeoutError:
            error = TimedOut(f"The visit took more than {tools.visit_seconds:g} s.")
            return steps.failed(due, error, started_at, time.monotonic() - started, tools)
        except SourceFailure as error:
            return steps.failed(due, error, started_at, time.monotonic() - started, tools)
        return _decide(due, found, started_at, time.monotonic() - started, tools)


async def _find(due: DueSource, tools: VisitTools) -> Findings:
    """Asks, judges and parses. Raises a SourceFailure if any of it fails."""
    source, state, kind = due.source, due.state, tools.kinds[due.source.kind]
    request = steps.conditional(kind.first(source, state), state, tools.now())
    if due.credential:
        request = steps.authorized(request, tools.unseal(due.credential))
    response = None
    try:
        response = await _ask(kind, request, tools)
        if response.status == 304:
            return Findings(response, None, state)
        if steps.body_hash(response) == state.body_hash:
            return Findings(response, None, steps.state_after(response, state))
        page = await tools.parsers.read(source, state, response)
    except SourceFailure as error:
        if state.body_hash is not None or not kind.at_address or not discovery.worth_a_search(error):
            raise
        return await _look_around(due, response, error, tools)
    page, cut_short = await _following_pages(due, page, tools)
    moved_to = response.moved_to if kind.at_address else None
    return Findings(response, page, steps.state_after(response, state), moved_to, cut_short)


async def _ask(kind: Kind, request: Request, tools: VisitTools) -> Response:
    """Returns the answer to a request whose slot is taken. Raises StatusRefused if the server refuses."""
    access = tools.access.get(kind.name)
    response = await steps.send(request, access.fetch if access else tools.fetch, partial(_wait_for_slot, kind, tools))
    judge(response)
    return response


async def _wait_for_slot(kind: Kind, tools: VisitTools) -> None:
    await asyncio.sleep(tools.gap)
    if access := tools.access.get(kind.name):
        await access.acquire()


async def _following_pages(due: DueSource, page: Page, tools: VisitTools) -> tuple[Page, SourceFailure | None]:
    """Returns all pages as one, as far as they came in time, and what went wrong with the next one."""
    kind = tools.kinds[due.source.kind]
    posts, comments, request, gap = list(page.posts), list(page.comments), page.next, page.facts.gap
    failure: SourceFailure | None = None
    try:
        async with asyncio.timeout(tools.visit_seconds / 2):
            for _ in range(MOST_PAGES):
                if request is None:
                    break
                await _wait_for_slot(kind, tools)
                response = await _ask(kind, request, tools)
                further = await tools.parsers.read(due.source, due.state, response)
                posts += further.posts
                comments += further.comments
                request, gap = further.next, further.facts.gap if further.posts else gap
    except TimeoutError:
        failure = TimedOut("There was no time for all pages of the listing.")
    except SourceFailure as error:
        failure = error
    facts = page.facts._replace(gap=gap and failure is None)
    return page._replace(posts=posts, facts=facts, comments=comments), failure


async def _look_around(due: DueSource, page: Response | None, reason: SourceFailure, tools: VisitTools) -> Findings:
    """Finds the feed of a site or, if it has none, the kind that can read its pages."""
    search = discovery.Search(tools.fetch, tools.parsers, tools.gap)
    try:
        response, found = await discovery.find_feed(due.source, page, reason, search)
    except SourceFailure:
        becomes = await tools.parsers.recognise(due.source, page) if page else None
        if page is None or becomes is None:
            raise
        return Findings(page, None, due.state, becomes=becomes)
    return Findings(response, found, steps.state_after(response, due.state), response.moved_to or response.url)


def _decide(due: DueSource, found: Findings, started_at: datetime, seconds: float, tools: VisitTools) -> Visit:
    if found.becomes:
        return _changes_kind(due, found, found.becomes, started_at, seconds, tools)
    if found.cut_short is None or found.page is None:
        return _succeeded(due, found, started_at, seconds, tools)
    # What came of a listing is stored even if its end was not reached. Only the watermark has to stay.
    visit = steps.failed(due, found.cut_short, started_at, seconds, tools)
    return visit._replace(posts=found.page.posts, facts=found.page.facts, comments=found.page.comments)


def _succeeded(due: DueSource, found: Findings, started_at: datetime, seconds: float, tools: VisitTools) -> Visit:
    response, page = found.response, found.page
    if page is None:
        outcome, status = "unchanged", due.status if due.status in ("ok", "empty") else "ok"
    else:
        outcome = status = "ok" if page.posts or page.days else "empty"
    ttl = page.facts.ttl_seconds if page else None
    now, every = tools.now(), _with_trust(steps.interval(due, tools), due.push_trust)
    wished = steps.least_wait(every, wishes=(timedelta(seconds=ttl) if ttl else None, cache_lifetime(response)))
    again = steps.next_check(now, max(every, wished), chance=tools.chance())
    return steps.visit_of(due, outcome, started_at, seconds, again)._replace(
        status=status,
        not_before=now + wished,
        state=found.state,
        posts=page.posts if page else [],
        comments=page.comments if page else [],
        days=page.days if page else [],
        facts=page.facts if page else None,
        http_status=response.status,
        bytes=len(response.body),
        moved_to=found.moved_to,
    )


def _changes_kind(
    due: DueSource, found: Findings, becomes: Becoming, started_at: datetime, seconds: float, tools: VisitTools
) -> Visit:
    """Returns the visit of a site without a feed whose pages another kind can read. The next visit is due at once."""
    note = f"{steps.NO_FEED}, so its pages are read, as a {tools.kinds[becomes.kind].label}."
    return steps.visit_of(due, "ok", started_at, seconds, tools.now())._replace(
        facts=Facts(note=note),
        http_status=found.response.status,
        bytes=len(found.response.body),
        unfinished=True,
        becomes=becomes,
    )


def _with_trust(interval: timedelta, trust: int) -> timedelta:
    """Returns a longer interval where a hub pushes: polling only makes sure that it does. Once a day all the same."""
    return max(interval, min(interval * trust, steps.LONGEST_WISH))
