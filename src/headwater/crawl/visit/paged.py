"""A paged visit under way: how it asks, how it stores, and the Visit that it ends as."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

import structlog

from headwater import urls
from headwater.crawl.checkpoint import Checkpoint
from headwater.crawl.record import PageTaken, record_page
from headwater.crawl.schedule import next_check
from headwater.crawl.visit.shared import VisitTools, ask, authorized, deferred, failed, interval, noted
from headwater.errors import BadInput, FetchFailed, NotAsked, SourceFailure, StoreUnavailable
from headwater.fetch.failures import is_our_network
from headwater.fetch.statuses import BUSY, cache_lifetime
from headwater.model import DueSource, Facts, Item, Page, Post, Request, Response, Visit
from headwater.store import posts
from headwater.store.db import Database
from headwater.store.sources import leases
from headwater.store.visits.items import KnownItem

SHORTEST_REST = 0.001
PAGES_AT_ONCE = 4
SHARE_OF_TIME = 0.6  # of a visit's time; the rest is for the page that is under way then
log = structlog.get_logger()


class Later(Exception):
    """The visit ends here, well; the next one may begin at `at`."""

    def __init__(self, at: datetime, why: str | None = None) -> None:
        self.at = at
        self.why = why


class Crawl:
    """What a paged visit works with and how far it got. Which page comes next is not decided here."""

    checkpoint: Checkpoint

    def __init__(self, due: DueSource, tools: VisitTools, db: Database) -> None:
        self.due = due
        self.tools = tools
        self.db = db
        self.kind = tools.kinds[due.source.kind]
        self.state = due.state
        self.is_unchanged = True  # until something else was seen
        self.gap = False
        self.list_pages = 0
        self.asked_for: set[tuple[str, bytes | None]] = set()  # pages of the list
        self._way = tools.ways.get(due.source.kind)
        self._has_turn = True  # the claim gave out a slot at the source's host, or `take_turn` took a request
        self._started_at, self._started = tools.now(), time.monotonic()
        self._works_until = self._started + tools.visit_seconds * SHARE_OF_TIME
        self._answers: list[tuple[int, int]] = []  # status and bytes
        self._lasts: timedelta | None = None  # how long the first answer stays good
        self._named = 0  # by the list
        self._facts: Facts | None = None
        self._counted: Counter[str] = Counter()

    @property
    def pages_at_once(self) -> int:
        """How many pages may be asked for before the first of them is stored: one, where requests have a gap."""
        return 1 if self.tools.gap or self.due.source.settings.get("render") else PAGES_AT_ONCE

    @property
    def got_answers(self) -> bool:
        return bool(self._answers)

    async def ask(self, asked: Request) -> Response:
        """The answer to a request, once it is allowed and its turn has come. Raises Later where time is up."""
        if time.monotonic() > self._works_until:
            raise Later(self.tools.now())
        try:
            turn = partial(self._turn, urls.host_of(urls.split(asked.url)))
            if self._way is None and self.tools.robots:
                await self.tools.robots.check(asked.url, turn)
            await turn()
            response = await ask(self._authorized(asked), self._fetch, turn)
        except BadInput as error:
            raise FetchFailed(error.detail) from error
        if not self._answers:
            self._lasts = cache_lifetime(response.headers, response.received_at)
        self._answers.append((response.status, len(response.body)))
        return response

    async def _fetch(self, asked: Request) -> Response:
        if self._way:
            return await self._way.fetch(asked)
        if not self.due.source.settings.get("render"):
            return await self.tools.fetch(asked)
        if self.tools.browser is None:
            raise FetchFailed(
                "This site is to be read by a browser, which is not installed: pip install 'headwater[browser]'."
            )
        return await self.tools.browser(asked)

    def _authorized(self, asked: Request) -> Request:
        if self.due.credential is None or not urls.same_server(self.due.source.address, asked.url):
            return asked
        return authorized(asked, self.tools.unseal(self.due.credential))

    async def _turn(self, host: str) -> None:
        """Wait for a slot at a host, or out of a budget; one that comes too late for this visit ends it."""
        now = self.tools.now()
        held_until = self.tools.held.get(host)
        if held_until and held_until > now:
            raise Later(held_until, f"{host} asked for a pause")
        if self._has_turn and (self._way or host == self.due.host):
            self._has_turn = False
        elif self._way:
            while (at := await self._way.turn()) is not None:
                await self._wait(host, at)
        elif self.tools.gap:
            gap, within = timedelta(seconds=self.tools.gap), timedelta(seconds=self._time_left())
            slot = await self.db.write(leases.take_turn, host, now=now, gap=gap, within=within)
            await self._wait(host, slot.at)

    async def _wait(self, host: str, at: datetime) -> None:
        seconds = (at - self.tools.now()).total_seconds()
        if seconds > self._time_left():
            raise Later(at, f"its turn at {host}")
        await asyncio.sleep(max(SHORTEST_REST, seconds))

    def _time_left(self) -> float:
        return max(0.0, self._works_until - time.monotonic())

    def saw_list(self, asked: Request, page: Page) -> None:
        self.list_pages += 1
        self.asked_for.add((asked.url, asked.body))
        self._named += len(page.items) + len(page.posts)
        if self.checkpoint.current_page == 0:
            self._facts = page.facts._replace(note=noted(self.due.note, page.facts.note))
        else:  # a further page does not say what the list is called or where it is at home
            before, said = self._facts or Facts(note=self.due.note), page.facts
            found_out = {**before.settings, **said.settings}
            self._facts = before._replace(truncated=before.truncated or said.truncated, settings=found_out)
        if not page.facts.whole:  # the same bytes would mean something else next time
            self.state = self.state._replace(etag=None, last_modified=None, body_hash=None)

    async def save(
        self,
        checkpoint: Checkpoint,
        found: Sequence[Post] = (),
        *,
        fresh: Sequence[Item] = (),
        item: KnownItem | None = None,
    ) -> None:
        """Store a page and how far it brought the crawl. Whoever lost the lease stores nothing and stops."""
        taken = PageTaken(self.due.source.id, self.due.lease, checkpoint, found, fresh, item)
        saved = await self.db.write(record_page, taken, self.tools.now())
        if saved is None:
            raise Later(self.tools.now())
        stored, self.checkpoint = saved
        self._counted.update(post.change for post in stored)

    async def complete(self) -> None:
        """The list is at its end and nothing waits: all that there is, is stored, so the watermark may move."""
        await self.save(self.checkpoint.mark_completed(self.tools.now()))
        newest = await self.db.read(posts.newest, self.due.source.id)
        seen = self.state.last_seen_created_at
        if newest and (seen is None or newest[1] > seen):
            self.state = self.state._replace(last_seen_post_id=newest[0], last_seen_created_at=newest[1])
        if self.kind.tells_watermark:
            self.state = self.state._replace(last_seen_post_id=self.checkpoint.max_id)

    def is_about_all(self, error: SourceFailure) -> bool:
        """Whether a failure is no fault of the page that was asked for: trying others would be of no use."""
        return error.facts.get("http_status") in BUSY or is_our_network(error) or isinstance(error, NotAsked)

    def ended(self) -> Visit:
        brought = any(self._counted[change] for change in ("new", "edited", "touched"))
        only_news = self.kind.tells_watermark and self.due.state.last_seen_created_at is not None
        is_empty = self.list_pages > 0 and not self._named and self.checkpoint.current_page <= 1 and not only_news
        outcome = "empty" if is_empty else "ok" if brought else "unchanged"
        next_at = next_check(
            self.tools.now(), interval(self.due, self.tools), chance=self.tools.chance(), wishes=(self._lasts,)
        )
        return self._visit(outcome, next_at)._replace(status="empty" if is_empty else self._good_status())

    def interrupted(self, at: datetime, why: str | None = None) -> Visit:
        """The crawl goes on with the next visit."""
        if not self._answers:
            return deferred(self.due, self._started_at, at, why or "its crawl goes on")
        return self._visit("ok", at)._replace(unfinished=True, waits_for=why)

    async def failed(self, error: SourceFailure) -> Visit:
        """What was stored stays; the next visit goes on at the page that failed."""
        try:
            await self.save(self.checkpoint.mark_error(error.detail))
        except (StoreUnavailable, Later) as trouble:
            log.warning("checkpoint.unsaved", source=self.due.source.address, error=str(trouble))
        seconds = time.monotonic() - self._started
        visit = failed(self.due, error, self._started_at, seconds, self.tools)
        return visit._replace(state=self.state, facts=self._learnt(), counted=self._counted, bytes=self._bytes())

    def _visit(self, outcome: str, next_check_at: datetime) -> Visit:
        return Visit(
            source_id=self.due.source.id,
            lease=self.due.lease,
            started_at=self._started_at,
            seconds=time.monotonic() - self._started,
            outcome=outcome,
            status=self._good_status(),
            next_check_at=next_check_at,
            state=self.state,
            facts=self._learnt(),
            http_status=self._answers[-1][0] if self._answers else None,
            bytes=self._bytes(),
            counted=self._counted,
        )

    def _good_status(self) -> str:
        return self.due.status if self.is_unchanged and self.due.status in ("ok", "empty") else "ok"

    def _learnt(self) -> Facts | None:
        return self._facts._replace(gap=self.gap) if self._facts else None

    def _bytes(self) -> int:
        return sum(size for _, size in self._answers)
