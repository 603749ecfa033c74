"""kill -9 at random moments of a paged crawl: at most what is in flight is fetched again, nothing twice (B10)."""

from __future__ import annotations

import random

import pytest

from headwater.crawl.underway import PAGES_AT_ONCE
from headwater.model import Reader
from headwater.wire import Parts
from support.boards import Board, follow_board
from support.fire import crawl_under_fire, fetched_again, states, stored_ids
from support.processes import CRAWL_BOARDS_UNTIL_KILLED, start


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("gap", "kills", "in_flight"), [("0.001", 20, 1), ("0", 8, PAGES_AT_ONCE)])
def test_a_paged_crawl_killed_at_random_moments_fetches_at_most_what_is_in_flight_again(
    environ: dict[str, str], parts: Parts, owner: Reader, board: Board, gap: str, kills: int, in_flight: int
) -> None:
    environ["HEADWATER_HOST_GAP_SECONDS"] = gap
    for number in range(45):
        board.add(f"{number}", posts=random.randint(1, 8))
    board.delay = 0.01 * in_flight
    follow_board(parts, owner, board.address)
    hits = crawl_under_fire(parts, board.world, lambda: start(environ, CRAWL_BOARDS_UNTIL_KILLED), kills=kills)
    assert hits >= kills - 5, "the kills did not fall into the crawl"
    assert stored_ids(parts) == board.all_posts()  # nothing lost
    assert states(parts) == {"done": 45}
    assert fetched_again(board.world) <= hits * in_flight
