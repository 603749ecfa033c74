"""One visit to a list: pages that name items (the threads of a board, the articles of a site) or contain posts.

    1. claim       as for a document: a lease, then `admitted` and `take_request`
    2. begin       `_begin`: go on with an unfinished crawl at its checkpoint, or ask for the first page of the list
    3. ask         `ListRequests.ask`: robots.txt, rate limit, the request, and `judge` for its status
    4. parse       `tools.parsers` says what a page of the list names, or what the page of an item says
    5. decide      `walk`: which items are fresh, and where the list ends (`_take_list_page`). Each fresh item is read
                   page by page, until it is read (`_read_item`)
    6. record      `save`: after every page, `record_page` in `crawl/record.py` writes its posts, the item, the
                   checkpoint and the events in one transaction
    7. end         `_completed`, `_interrupted` or `_failed` make the Visit. `record` in `crawl/record.py` writes it;
                   `Crawler` calls that, as for a document

A visit works until its time is nearly over, and the next visit goes on from there. If the process is killed, the page
in hand is lost. Where requests need no gap, some items are prefetched; what they say is stored in order all the same.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import structlog

from headwater import urls
from headwater.crawl.record import PageTaken, record_page
from headwater.crawl.visit import steps, walk
from headwater.crawl.visit.steps import VisitTools
from headwater.crawl.visit.walk import COMPLETED, Checkpoint
from headwater.errors import BadInput, FetchFailed, NotAsked, NotYet, SourceFailure, StoreUnavailable, TimedOut
from headwater.fetch.failures import is_our_network
from headwater.fetch.statuses import BUSY, GONE, cache_lifetime, judge
from headwater.model import DueSource, Facts, Item, Page, Post, Request, Response, Visit
from headwater.store import posts
from headwater.store.db import Database
from headwater.store.sources import leases
from headwater.store.visits import items
from headwater.store.visits.items import KnownItem

PAGES_AT_ONCE = 4
MOST_FAILURES_IN_A_ROW = 5  # then it is the site, not its items
START_OVER_AFTER = 3  # failures at the page where a crawl stands
NOT_A_PAGE = (400, *GONE)
ACCEPT = (("Accept", "text/html, application/xhtml+xml, application/json;q=0.9, */*;q=0.1"),)
SHORTEST_WAIT = 0.001
SHARE_OF_TIME = 0.6  # of a visit's time; the rest is for the page that is in hand then
T = TypeVar("T")
R = TypeVar("R")
log = structlog.get_logger()


async def visit(due: DueSource, tools: VisitTools, db: Database) -> Visit:
    """Visits a list. Returns the visit as it is recorded; its pages are recorded by then."""
    async with steps.admitted(due, tools) as not_now:
        return not_now or await ListVisit(due, tools, db).run()


class ListVisit:
    """One visit to a list: how far it got, what it has found, and the Visit that it ends as."""

    checkpoint: Checkpoint

    def __init__(self, due: DueSource, tools: VisitTools, db: Database) -> None:
        self._due = due
        self._source = due.source
        self._kind = tools.kinds[due.source.kind]
        self._tools = tools
        self._db = db
        self._requests = ListRequests(due, tools, db)
        self._started_at, self._started = tools.now(), time.monotonic()
        self._state = due.state
        self._is_unchanged = True  # until something else was seen
        self._gap = False
        self._list_pages = 0
        self._asked_for: set[tuple[str, bytes | None]] = set()  # pages of the list
        self._named = 0  # by the list
        self._facts: Facts | None = None
        self._counted: Counter[str] = Counter()

    async def run(self) -> Visit:
        tools = self._tools
        try:
            async with asyncio.timeout(tools.visit_seconds):
                if waits := await steps.take_request(self._due, tools):
                    return waits
                await self._crawl()
        except Interrupted as end:
            return self._interrupted(end.at, end.why)
        except NotYet as wait:
            return self._interrupted(wait.until, wait.detail)
        except TimeoutError:
            if self._requests.answers:
                return self._interrupted(tools.now())
            return await self._failed(TimedOut(f"No page came within {tools.visit_seconds:g} s."))
        except SourceFailure as error:
            return await self._failed(error)
        except StoreUnavailable as error:
            log.warning("store.unavailable", error=error.detail)
            return self._interrupted(tools.now())
        return self._completed()

    async def _crawl(self) -> None:
        if not await self._begin():
            return None
        while True:
            await self._read_waiting()
            if self.checkpoint.page is None:
                return await self._complete()
            await self._read_list(self.checkpoint.page)

    async def _begin(self) -> bool:
        """Goes on with an unfinished crawl, or begins one. Returns False if there is nothing to do.

        That is so if the list is what it was at the end of the last crawl and no item has to be tried again.
        """
        now = self._tools.now()
        before = self.checkpoint = await self._db.read(Checkpoint.load, self._source, now)
        if before.is_unfinished:
            self._is_unchanged = False
            return True
        first = self._kind.first(self._source, self._state)
        self.checkpoint = before.begun(first, now)
        known = self._state if before.status == COMPLETED else self._state._replace(validated_at=None, body_hash=None)
        response = await self._requests.ask(steps.conditional(first, known, self._tools.now()))
        to_retry = await self._db.read(items.to_try_again, self._source.id)
        if response.status == 304 or steps.body_hash(response) == known.body_hash:
            if to_retry:
                await self.save(self.checkpoint.going_on_at(None), fresh=walk.fresh([], {}, to_retry))
            return bool(to_retry)
        self._state, self._is_unchanged = steps.state_after(response, self._state), False
        await self._take_list_page(first, response, to_retry)
        return True

    async def _read_list(self, request: Request) -> None:
        """Reads one page of the list."""
        try:
            await self._take_list_page(request, await self._requests.ask(request))
        except SourceFailure as error:
            before = self.checkpoint
            if before.current_page == 0 or is_about_the_site(error):
                raise
            gone = error.facts.get("http_status") in NOT_A_PAGE
            if self._list_pages == 0 and (gone or self._due.consecutive_failures >= START_OVER_AFTER):
                # The page where the crawl stood is gone. What was read is known, so starting over costs only lists.
                self.checkpoint = before.started_over(self._kind.first(self._source, self._due.state))
            elif error.facts.get("http_status") in GONE:
                await self.save(before.going_on_at(None))  # many lists end like this
            else:
                raise

    async def _take_list_page(self, request: Request, response: Response, to_retry: Sequence[KnownItem] = ()) -> None:
        """Stores what a page of the list says, with the items to read, and decides where the list goes on."""
        source, checkpoint = self._source, self.checkpoint
        page = await self._tools.parsers.read(source, self._due.state, response)
        item_ids, post_ids = [item.id for item in page.items], [post.source_post_id for post in page.posts]
        completed_at = checkpoint.row.completed_at
        known = await self._db.read(items.known, source.id, item_ids)
        stored = await self._db.read(posts.stored_before, source.id, post_ids, completed_at)
        self._note_list_page(request, page)
        step = walk.step(page, known, stored, completed_at, self._asked_for)
        if step and checkpoint.current_page + 1 >= walk.page_limit(source):
            self._gap, step = completed_at is not None, None
        elif step is None:
            self._gap = page.facts.gap
        fresh = walk.fresh(page.items, known, to_retry)
        ids = [page.facts.watermark] if page.facts.watermark else item_ids or post_ids
        await self.save(checkpoint.listed(ids, step), page.posts, fresh=fresh)

    def _note_list_page(self, request: Request, page: Page) -> None:
        self._list_pages += 1
        self._asked_for.add((request.url, request.body))
        self._named += len(page.items) + len(page.posts)
        if self.checkpoint.current_page == 0:
            self._facts = page.facts._replace(note=merged_note(self._due.note, page.facts.note))
        else:  # a further page does not say what the list is called or where it is at home
            before, said = self._facts or Facts(note=self._due.note), page.facts
            learnt = {**before.settings, **said.settings}
            self._facts = before._replace(truncated=before.truncated or said.truncated, settings=learnt)
        if not page.facts.whole:  # the same bytes would mean something else next time
            self._state = self._state._replace(etag=None, last_modified=None, body_hash=None)

    async def _read_waiting(self) -> None:
        """Reads the items that the list has named so far. Many failures in a row mean that the site has a problem."""
        in_a_row = 0
        waiting = await self._db.read(items.waiting, self._source.id)
        async with prefetched(self._page_of, waiting, self._pages_at_once) as prefetching:
            for item, first_page in prefetching:
                failure = await self._read_item(item, first_page)
                if failure is None:
                    in_a_row = 0
                elif failure.facts.get("http_status") not in GONE:
                    in_a_row += 1
                    if in_a_row >= MOST_FAILURES_IN_A_ROW:
                        raise failure

    @property
    def _pages_at_once(self) -> int:
        """How many pages may be requested before the first is stored: one if requests have a gap."""
        return 1 if self._tools.gap or self._source.settings.get("render") else PAGES_AT_ONCE

    async def _read_item(self, item: KnownItem, first_page: Awaitable[Page]) -> SourceFailure | None:
        """Reads an item to its end, page by page. Stores what went wrong with it, and returns that."""
        failure: SourceFailure | None = None
        coming: Awaitable[Page] | None = first_page
        while item.state == "waiting":
            page: Page | None = None
            try:
                page = await (coming or self._page_of(item))
            except SourceFailure as error:
                if is_about_the_site(error):
                    raise
                failure = error
                item = walk.after_failure(item, error)
            else:
                failure = None
                item = walk.after_page(item, page)
            coming = None
            await self.save(self.checkpoint.read(item), page.posts if page else [], item=item)
        return failure

    async def _page_of(self, item: KnownItem) -> Page:
        """Returns the page at which reading the item goes on."""
        response = await self._requests.ask(Request(item.next_url, ACCEPT))
        return await self._tools.parsers.read_item(self._source, item.as_listed(), response)

    async def save(
        self,
        checkpoint: Checkpoint,
        found: Sequence[Post] = (),
        *,
        fresh: Sequence[Item] = (),
        item: KnownItem | None = None,
    ) -> None:
        """Records a page and how far it brought the crawl. Without the lease, stores nothing and ends the visit."""
        taken = PageTaken(self._source.id, self._due.lease, checkpoint, found, fresh, item)
        saved = await self._db.write(record_page, taken, self._tools.now())
        if saved is None:
            raise Interrupted(self._tools.now())
        stored, self.checkpoint = saved
        self._counted.update(post.change for post in stored)

    async def _complete(self) -> None:
        """Completes the crawl: the list is at its end and no item waits. Everything is stored: the watermark moves."""
        await self.save(self.checkpoint.mark_completed(self._tools.now()))
        newest = await self._db.read(posts.newest, self._source.id)
        seen = self._state.last_seen_created_at
        if newest and (seen is None or newest[1] > seen):
            self._state = self._state._replace(last_seen_post_id=newest[0], last_seen_created_at=newest[1])
        if self._kind.tells_watermark:
            self._state = self._state._replace(last_seen_post_id=self.checkpoint.max_id)

    def _completed(self) -> Visit:
        brought = any(self._counted[change] for change in ("new", "edited", "touched"))
        only_news = self._kind.tells_watermark and self._due.state.last_seen_created_at is not None
        is_empty = self._list_pages > 0 and not self._named and self.checkpoint.current_page <= 1 and not only_news
        outcome = "empty" if is_empty else "ok" if brought else "unchanged"
        now, every = self._tools.now(), steps.interval(self._due, self._tools)
        wished = steps.least_wait(every, wishes=(self._requests.fresh_for,))
        next_at = steps.next_check(now, max(every, wished), chance=self._tools.chance())
        status = "empty" if is_empty else self._good_status()
        return self._visit(outcome, next_at)._replace(status=status, not_before=now + wished)

    def _interrupted(self, at: datetime, why: str | None = None) -> Visit:
        """Returns a visit that ended early. The crawl goes on with the next one."""
        if not self._requests.answers:
            return steps.deferred(self._due, self._started_at, at, why or "its crawl goes on")
        return self._visit("ok", at)._replace(unfinished=True, waits_for=why)

    async def _failed(self, error: SourceFailure) -> Visit:
        """Returns a visit that failed. What was stored stays, and the next visit goes on at the page that failed."""
        try:
            await self.save(self.checkpoint.mark_error(error.detail))
        except (StoreUnavailable, Interrupted) as trouble:
            log.warning("checkpoint.unsaved", source=self._source.address, error=str(trouble))
        seconds = time.monotonic() - self._started
        visit = steps.failed(self._due, error, self._started_at, seconds, self._tools)
        return visit._replace(state=self._state, facts=self._learnt(), counted=self._counted, bytes=self._bytes())

    def _visit(self, outcome: str, next_check_at: datetime) -> Visit:
        seconds = time.monotonic() - self._started
        return steps.visit_of(self._due, outcome, self._started_at, seconds, next_check_at)._replace(
            status=self._good_status(),
            state=self._state,
            facts=self._learnt(),
            http_status=self._requests.answers[-1][0] if self._requests.answers else None,
            bytes=self._bytes(),
            counted=self._counted,
        )

    def _good_status(self) -> str:
        return self._due.status if self._is_unchanged and self._due.status in ("ok", "empty") else "ok"

    def _learnt(self) -> Facts | None:
        return self._facts._replace(gap=self._gap) if self._facts else None

    def _bytes(self) -> int:
        return sum(size for _, size in self._requests.answers)


def is_about_the_site(error: SourceFailure) -> bool:
    """Whether a failure would hit every other page as well, so that trying them is of no use."""
    return error.facts.get("http_status") in BUSY or is_our_network(error) or isinstance(error, NotAsked)


def merged_note(before: str, said: str) -> str:
    """Returns the note on how a source is read. The sentence that no feed was found stays in front. Pure."""
    if not before.startswith(steps.NO_FEED):
        return said
    return f"{before.partition('.')[0]}. {said}".strip()


@asynccontextmanager
async def prefetched(
    work: Callable[[T], Coroutine[Any, Any, R]], things: Sequence[T], at_once: int
) -> AsyncIterator[Iterator[tuple[T, asyncio.Task[R]]]]:
    """Yields each thing, in order, with the work on it begun. At most `at_once` are; what nobody took is cancelled."""
    begun: deque[asyncio.Task[R]] = deque()

    def in_order() -> Iterator[tuple[T, asyncio.Task[R]]]:
        following = iter(things)
        for thing in things:
            begun.extend(asyncio.create_task(work(one)) for one in islice(following, at_once - len(begun)))
            yield thing, begun.popleft()

    try:
        yield in_order()
    finally:
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)


class Interrupted(Exception):
    """The visit ends here without a failure. The next one may start at `at`."""

    def __init__(self, at: datetime, why: str | None = None) -> None:
        self.at = at
        self.why = why


class ListRequests:
    """The requests of one visit to a list, and what is known of their answers."""

    def __init__(self, due: DueSource, tools: VisitTools, db: Database) -> None:
        self._due = due
        self._tools = tools
        self._db = db
        self._access = tools.access.get(due.source.kind)
        self._has_slot = True  # the claim gave one at the source's host, or `take_request` took one out of the budget
        self._ask_until = time.monotonic() + tools.visit_seconds * SHARE_OF_TIME
        self.answers: list[tuple[int, int]] = []  # status and bytes
        self.fresh_for: timedelta | None = None  # the cache lifetime of the first answer

    async def ask(self, request: Request) -> Response:
        """Returns the answer to a request. Raises Interrupted if there is no time left for it."""
        if time.monotonic() > self._ask_until:
            raise Interrupted(self._tools.now())
        try:
            wait_for_slot = partial(self._wait_for_slot, urls.host_of(urls.split(request.url)))
            if self._access is None and self._tools.robots:
                await self._tools.robots.check(request.url, wait_for_slot)
            await wait_for_slot()
            response = await steps.send(self._with_credential(request), self._fetch, wait_for_slot)
            judge(response)
        except BadInput as error:
            raise FetchFailed(error.detail) from error
        if not self.answers:
            self.fresh_for = cache_lifetime(response)
        self.answers.append((response.status, len(response.body)))
        return response

    async def _fetch(self, request: Request) -> Response:
        if self._access:
            return await self._access.fetch(request)
        if not self._due.source.settings.get("render"):
            return await self._tools.fetch(request)
        if self._tools.browser is None:
            raise FetchFailed("This site needs a browser, which is not installed: pip install 'headwater[browser]'.")
        return await self._tools.browser(request)

    def _with_credential(self, request: Request) -> Request:
        if self._due.credential is None or not urls.same_server(self._due.source.address, request.url):
            return request
        return steps.authorized(request, self._tools.unseal(self._due.credential))

    async def _wait_for_slot(self, host: str) -> None:
        """Waits for a slot of the host, or of the API's budget. Raises Interrupted if it comes too late."""
        now = self._tools.now()
        pause = self._tools.paused_until.get(host)
        if pause and pause.until > now:
            raise Interrupted(pause.until, pause.why)
        if self._has_slot and (self._access or host == self._due.host):
            self._has_slot = False
        elif self._access:
            while (at := await self._access.try_acquire()) is not None:
                await self._sleep_until(at, host)
        elif self._tools.gap:
            gap, within = timedelta(seconds=self._tools.gap), timedelta(seconds=self._time_left())
            slot = await self._db.write(leases.reserve_slot, host, now=now, gap=gap, within=within)
            await self._sleep_until(slot.at, host)

    async def _sleep_until(self, at: datetime, host: str) -> None:
        seconds = (at - self._tools.now()).total_seconds()
        if seconds > self._time_left():
            raise Interrupted(at, f"its turn at {host}")
        await asyncio.sleep(max(SHORTEST_WAIT, seconds))

    def _time_left(self) -> float:
        return max(0.0, self._ask_until - time.monotonic())
