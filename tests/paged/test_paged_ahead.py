"""Pages of items that are asked for ahead: in order, few at once, and only where no gap between requests is kept."""

from __future__ import annotations

import asyncio

import pytest

from headwater.crawl.visit.listing import PAGES_AT_ONCE, prefetched
from headwater.wire import Parts
from support.boards import Board, visit_board
from support.fire import stored_ids
from support.web import Answer


class Work:
    """Doubles numbers, the higher ones sooner, and knows how many it is about. 13 fails; the others may never end."""

    def __init__(self, *, ends: bool = True) -> None:
        self.ends = ends
        self.begun: list[int] = []
        self.given_up: list[int] = []
        self.under_way = self.most = 0

    async def __call__(self, number: int) -> int:
        self.begun.append(number)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(0.01 / (number + 1) if self.ends or number == 13 else 3600)
        except asyncio.CancelledError:
            self.given_up.append(number)
            raise
        finally:
            self.under_way -= 1
        if number == 13:
            raise ValueError(number)
        return number * 2


@pytest.mark.parametrize("at_once", [1, 3])
async def test_results_come_in_order_and_no_more_are_under_way_than_may_be(at_once: int) -> None:
    work = Work()
    async with prefetched(work, range(10), at_once) as begun:
        assert [(number, await result) for number, result in begun] == [(number, number * 2) for number in range(10)]
    assert work.begun == list(range(10))
    assert work.most == at_once


async def test_what_was_begun_is_given_up_where_one_fails() -> None:
    work = Work(ends=False)

    async def all_of_it() -> None:
        async with prefetched(work, [13, 0, 1, 2, 3], 3) as begun:
            for _, result in begun:
                await result

    with pytest.raises(ValueError, match="13"):
        await all_of_it()
    assert work.begun == [13, 0, 1]
    assert work.given_up == [0, 1]


def asked_of(board: Board) -> int:
    """How many pages were asked for, besides robots.txt."""
    return sum(1 for asked in board.world.asked if asked.path != "/robots.txt")


async def test_threads_are_asked_for_ahead_only_where_no_gap_is_kept(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.page_size = 20
    board.add(*(f"{number}" for number in range(12)))
    board.threads[0].error = Answer("busy", 503)
    await visit_board(parts, source_id)
    assert 2 < asked_of(board) <= 1 + PAGES_AT_ONCE
    board.world.asked.clear()
    parts.settings = parts.settings.model_copy(update={"host_gap_seconds": 0.001})
    await visit_board(parts, source_id)
    assert asked_of(board) == 1
    board.threads[0].error = None
    await visit_board(parts, source_id)
    assert stored_ids(parts) == board.all_posts()
