"""One visit of a source whose list names items on pages of their own: a board and its threads, a site and its articles.

    1. begin     the checkpoint: a new crawl asks for the first page of the list, an unfinished one goes on (`_begin`)
    2. list      a page of it names items; the store says which are fresh, `walk` where the list ends (`_read_list`)
    3. items     each fresh item, page by page, until it is read (`_read_item`)
    4. store     after every page one transaction: posts, item, checkpoint, events (`record.record_page`)
    5. end       the list is at its end and nothing waits: completed; else the next visit goes on where this one ended

A visit works until its time is nearly over. Being killed costs the page that was under way. Where requests need no gap,
some items are asked for ahead; what they say is stored in order all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial

import structlog

from headwater.crawl.checkpoint import COMPLETED, Checkpoint
from headwater.crawl.visit import walk
from headwater.crawl.visit.paged import Crawl, Later
from headwater.crawl.visit.prefetch import prefetched
from headwater.crawl.visit.shared import VisitTools, body_hash, conditional, in_its_turn, seen, take_turn
from headwater.errors import NotYet, SourceFailure, StoreUnavailable, TimedOut
from headwater.fetch.statuses import GONE
from headwater.model import DueSource, Page, Request, Response, Visit
from headwater.store import posts
from headwater.store.db import Database
from headwater.store.visits import items
from headwater.store.visits.items import KnownItem

MOST_FAILURES_IN_A_ROW = 5  # then it is the site, not its items
START_OVER_AFTER = 3  # failures at the page where a crawl stands
NOT_A_PAGE = (400, *GONE)
ACCEPT = (("Accept", "text/html, application/xhtml+xml, application/json;q=0.9, */*;q=0.1"),)
log = structlog.get_logger()


async def visit(due: DueSource, tools: VisitTools, db: Database) -> Visit:
    return await in_its_turn(due, tools, partial(_visit, due, tools, db))


async def _visit(due: DueSource, tools: VisitTools, db: Database) -> Visit:
    crawl = Crawl(due, tools, db)
    try:
        async with asyncio.timeout(tools.visit_seconds):
            waits = await take_turn(due, tools)
            if waits:
                return waits
            await _crawl(crawl)
    except Later as later:
        return crawl.interrupted(later.at, later.why)
    except NotYet as wait:
        return crawl.interrupted(wait.until, wait.detail)
    except TimeoutError:
        if crawl.got_answers:
            return crawl.interrupted(tools.now())
        return await crawl.failed(TimedOut(f"No page came within {tools.visit_seconds:g} s."))
    except SourceFailure as error:
        return await crawl.failed(error)
    except StoreUnavailable as error:
        log.warning("store.unavailable", error=error.detail)
        return crawl.interrupted(tools.now())
    return crawl.ended()


async def _crawl(crawl: Crawl) -> None:
    if not await _begin(crawl):
        return None
    while True:
        await _read_waiting(crawl)
        if crawl.checkpoint.page is None:
            return await crawl.complete()
        await _read_list(crawl, crawl.checkpoint.page)


async def _begin(crawl: Crawl) -> bool:
    """Take up an unfinished crawl, or begin one; False: the list is as it was at the last one, and nothing failed."""
    due, tools = crawl.due, crawl.tools
    before = crawl.checkpoint = await crawl.db.read(Checkpoint.load, due.source, tools.now())
    if before.is_unfinished:
        crawl.is_unchanged = False
        return True
    first = crawl.kind.first(due.source, due.state)
    crawl.checkpoint = before.begun(first, tools.now())
    known = due.state if before.status == COMPLETED else due.state._replace(validated_at=None, body_hash=None)
    response = await crawl.ask(conditional(first, known, tools.now()))
    failed = await crawl.db.read(items.to_try_again, due.source.id)
    if response.status == 304 or body_hash(response) == known.body_hash:
        if failed:
            await crawl.save(crawl.checkpoint.going_on_at(None), fresh=walk.fresh([], {}, failed))
        return bool(failed)
    crawl.state, crawl.is_unchanged = seen(response, due.state), False
    await _take_list(crawl, first, response, failed)
    return True


async def _read_list(crawl: Crawl, asked: Request) -> None:
    try:
        response = await crawl.ask(asked)
        await _take_list(crawl, asked, response)
    except SourceFailure as error:
        before = crawl.checkpoint
        if before.current_page == 0 or crawl.is_about_all(error):
            raise
        gone = error.facts.get("http_status") in NOT_A_PAGE
        if crawl.list_pages == 0 and (gone or crawl.due.consecutive_failures >= START_OVER_AFTER):
            # The page where the crawl stood is no longer one: what was read is known, so this costs only lists.
            crawl.checkpoint = before.started_over(crawl.kind.first(crawl.due.source, crawl.due.state))
        elif error.facts.get("http_status") in GONE:
            await crawl.save(before.going_on_at(None))  # many lists end like this
        else:
            raise


async def _take_list(crawl: Crawl, asked: Request, response: Response, failed: Sequence[KnownItem] = ()) -> None:
    """Store what a page of the list tells, note which items are to be read, and decide where the list goes on."""
    source, checkpoint = crawl.due.source, crawl.checkpoint
    page = await crawl.tools.readers.read(source, crawl.due.state, response)
    item_ids, post_ids = [item.id for item in page.items], [post.source_post_id for post in page.posts]
    completed_at = checkpoint.row.completed_at
    known = await crawl.db.read(items.known, source.id, item_ids)
    stored = await crawl.db.read(posts.stored_before, source.id, post_ids, completed_at)
    crawl.saw_list(asked, page)
    step = walk.step(page, known, stored, completed_at, crawl.asked_for)
    if step and checkpoint.current_page + 1 >= walk.page_limit(source):
        crawl.gap, step = completed_at is not None, None
    elif step is None:
        crawl.gap = page.facts.gap
    fresh = walk.fresh(page.items, known, failed)
    ids = [page.facts.watermark] if page.facts.watermark else item_ids or post_ids
    await crawl.save(checkpoint.listed(ids, step), page.posts, fresh=fresh)


async def _read_waiting(crawl: Crawl) -> None:
    """Read what the list has named so far. Many failures in a row are the site's: then the others wait for it."""
    in_a_row = 0
    waiting = await crawl.db.read(items.waiting, crawl.due.source.id)
    async with prefetched(partial(_page_of, crawl), waiting, crawl.pages_at_once) as begun:
        for item, first_page in begun:
            failure = await _read_item(crawl, item, first_page)
            if failure is None:
                in_a_row = 0
            elif failure.facts.get("http_status") not in GONE:
                in_a_row += 1
                if in_a_row >= MOST_FAILURES_IN_A_ROW:
                    raise failure


async def _read_item(crawl: Crawl, item: KnownItem, first_page: Awaitable[Page]) -> SourceFailure | None:
    """Read an item to its end, page by page; what went wrong with it is noted on it and returned."""
    failure: SourceFailure | None = None
    coming: Awaitable[Page] | None = first_page
    while item.state == "waiting":
        page: Page | None = None
        try:
            page = await (coming or _page_of(crawl, item))
        except SourceFailure as error:
            if crawl.is_about_all(error):
                raise
            failure = error
            item = walk.after_failure(item, error)
        else:
            failure = None
            item = walk.after_page(item, page)
        coming = None
        await crawl.save(crawl.checkpoint.read(item), page.posts if page else [], item=item)
    return failure


async def _page_of(crawl: Crawl, item: KnownItem) -> Page:
    """What the page says at which reading the item goes on."""
    response = await crawl.ask(Request(item.next_url, ACCEPT))
    return await crawl.tools.readers.read_item(crawl.due.source, item.as_listed(), response)
