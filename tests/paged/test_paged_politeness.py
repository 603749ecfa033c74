"""A paged crawl asks only for what the site lets it read, and one request at a time for each host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

from headwater.model import Reader, Request, Response
from headwater.parse.process import verdict
from headwater.store.sources import leases, limits
from headwater.store.tables import hosts
from headwater.wire import Parts
from paged.test_paged_visits import checkpoint, known, pages, stored
from support.boards import Board, Fetch, follow_board, visit_board
from support.posts import NOON
from support.web import Answer

RULES = """
User-agent: *
Disallow: /t/secret
Disallow: /*?sort=
Allow: /t/secret/open$
Crawl-delay: 2

User-agent: badbot
Disallow: /
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/board", True),
        ("/t/secret", False),
        ("/t/secret/more", False),
        ("/t/secret/open", True),
        ("/board?sort=new", False),
    ],
)
def test_rules_with_wildcards_are_understood_as_the_standard_says(path: str, allowed: bool) -> None:
    said = verdict(RULES, f"https://site.example{path}", "Headwater")
    assert said == (allowed, 2.0)


def test_rules_for_others_are_not_for_us_and_rubbish_allows_everything() -> None:
    assert not verdict(RULES, "https://site.example/board", "badbot").allowed
    assert verdict("<html>Not found</html>", "https://site.example/board", "Headwater") == (True, None)
    assert not verdict("User-agent: headwater\nDisallow: /", "https://site.example/", "Headwater").allowed


async def test_a_thread_that_robots_may_not_read_is_not_asked_for(parts: Parts, board: Board, source_id: int) -> None:
    board.world.pages["/robots.txt"] = Answer("User-agent: *\nDisallow: /t/2")
    board.add("1", "2", "3")
    report = await visit_board(parts, source_id)
    assert (report["outcome"], report["new"]) == ("ok", 2)
    assert "/t/2" not in pages(board)
    [refused] = known(parts, source_id, "2")
    assert "robots.txt" in refused.error


async def test_a_list_that_robots_may_not_read_is_a_failure_that_says_so(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.world.pages["/robots.txt"] = Answer("User-agent: Headwater\nDisallow: /board")
    report = await visit_board(parts, source_id)
    assert report["outcome"] == "failed"
    assert "robots.txt" in str(report["error"])
    assert pages(board) == []


async def test_rules_are_asked_for_once_a_day_and_kept_when_the_site_cannot_say(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.world.pages["/robots.txt"] = Answer("User-agent: *\nDisallow: /t/2")
    board.add("1", "2")
    await visit_board(parts, source_id)
    await visit_board(parts, source_id)
    assert board.world.paths().count("/robots.txt") == 1
    clock, parts.now = parts.now, lambda: clock() + timedelta(days=2)
    board.world.pages["/robots.txt"] = Answer("broken", 500)
    board.title = "Later"
    await visit_board(parts, source_id)
    assert board.world.paths().count("/robots.txt") == 2
    assert "/t/2" not in pages(board)


async def test_a_site_that_cannot_say_what_we_may_read_is_left_alone(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.world.pages["/robots.txt"] = Answer("broken", 503, {"Retry-After": "60"})
    report = await visit_board(parts, source_id)
    assert report["outcome"] == "failed"
    assert "robots.txt cannot be read" in str(report["error"])
    assert pages(board) == []


async def test_a_crawl_delay_lengthens_the_gap_of_the_host(parts: Parts, board: Board, source_id: int) -> None:
    board.world.pages["/robots.txt"] = Answer("User-agent: *\nCrawl-delay: 7")
    board.add("1")
    await visit_board(parts, source_id)
    kept = parts.db.read_now(limits.load_robots, board.world.address)
    assert kept is not None
    now = parts.now()
    turns = [_turn(parts, now) for _ in range(3)]
    assert [(turn.at - turns[0].at).total_seconds() for turn in turns] == [0, 7, 14]


def _turn(parts: Parts, now: object) -> leases.Slot:
    wanted = {"now": now, "gap": timedelta(seconds=1), "within": timedelta(minutes=1)}
    return parts.db.write_now(lambda conn: leases.reserve_slot(conn, "127.0.0.1", **wanted))  # type: ignore[arg-type]


def test_a_turn_that_comes_too_late_is_not_taken(parts: Parts) -> None:
    def turn(within: int) -> leases.Slot:
        wanted = {"now": NOON, "gap": timedelta(seconds=10), "within": timedelta(seconds=within)}
        return parts.db.write_now(lambda conn: leases.reserve_slot(conn, "site.example", **wanted))  # type: ignore[arg-type]

    assert turn(0).granted
    late = turn(5)
    assert (late.granted, late.at) == (False, NOON + timedelta(seconds=10))
    assert turn(15) == late._replace(granted=True)


async def test_every_request_takes_a_slot_in_its_hosts_queue(parts: Parts, owner: Reader, board: Board) -> None:
    parts.settings = parts.settings.model_copy(update={"host_gap_seconds": 0.2})  # D7
    board.add("1", "2", "3")
    source_id = follow_board(parts, owner, board.address)
    began = parts.now()
    await visit_board(parts, source_id)
    assert len(board.world.asked) == 5  # with robots.txt
    queue = select(hosts.c.next_at).where(hosts.c.host == "127.0.0.1")
    free_from = parts.db.read_now(lambda conn: conn.execute(queue).scalar_one())
    assert free_from >= began + 5 * timedelta(seconds=0.2)


async def test_a_host_that_another_visit_was_asked_to_leave_alone_is_left_alone(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.page_size = 1
    board.add("1", "2")
    board.on_list = lambda page: Answer("slowly", 429, {"Retry-After": "600"}) if page == 2 else None
    await visit_board(parts, source_id)
    assert checkpoint(parts, board).status == "error"
    assert stored(parts) == {"2/1"}
    assert _turn(parts, parts.now()).held


class Budgeted:
    """A way with a budget: every second turn has to be asked for again a moment later."""

    def __init__(self, fetch: Fetch, now: Callable[[], datetime]) -> None:
        self._fetch = fetch
        self._now = now
        self.concurrency = asyncio.Semaphore(1)
        self.asked = self.taken = self.fetched = 0

    async def try_acquire(self) -> datetime | None:
        self.asked += 1
        if self.asked % 2:
            return self._now() + timedelta(milliseconds=5)
        self.taken += 1
        return None

    async def acquire(self) -> None:
        while await self.turn():
            pass

    async def fetch(self, request: Request) -> Response:
        self.fetched += 1
        return await self._fetch(request)


async def test_each_request_of_a_kind_with_a_budget_is_taken_out_of_it_and_robots_are_not_asked(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.add(*(f"{number}" for number in range(7)))
    ways: list[Budgeted] = []

    def way(fetch: Fetch) -> Budgeted:
        ways.append(Budgeted(fetch, parts.now))
        ways[0].asked = 1  # the first turn is there
        return ways[0]

    report = await visit_board(parts, source_id, way=way)
    assert (report["outcome"], report["new"]) == ("ok", 7)
    assert ways[0].taken == ways[0].fetched == len(board.world.asked) == 2 + 7


async def test_pages_that_need_a_browser_are_asked_for_by_one_or_say_what_is_missing(
    parts: Parts, owner: Reader, board: Board
) -> None:
    board.add("1")
    source_id = follow_board(parts, owner, board.address, render=True)
    report = await visit_board(parts, source_id)
    assert report["outcome"] == "failed"
    assert "headwater[browser]" in str(report["error"])
    rendered: list[str] = []

    def browser(fetch: Fetch) -> Fetch:
        async def render(request: Request) -> Response:
            rendered.append(request.url)
            return await fetch(request)

        return render

    report = await visit_board(parts, source_id, browser=browser)
    assert (report["new"], len(rendered)) == (1, 2)
