"""A paged crawl through the whole path: a real server, a real store, visits that end, fail and go on."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from headwater.crawl.visit.walk import Checkpoint
from headwater.model import Reader, Source
from headwater.store import sources
from headwater.store.tables import event_outbox, posts
from headwater.store.visits import items
from headwater.wire import Parts
from support.boards import Board, follow_board, visit_board
from support.web import Answer


def stored(parts: Parts) -> set[str]:
    return {row[0] for row in parts.db.read_now(lambda conn: conn.execute(select(posts.c.source_post_id)).all())}


def events(parts: Parts) -> list[str]:
    return list(parts.db.read_now(lambda conn: conn.execute(select(event_outbox.c.kind)).scalars().all()))


def checkpoint(parts: Parts, board: Board) -> Checkpoint:
    return parts.db.read_now(Checkpoint.load, Source(1, "board", board.address), parts.now())


def known(parts: Parts, source_id: int, *ids: str) -> list[Any]:
    return list(parts.db.read_now(items.known, source_id, ids).values())


def pages(board: Board) -> list[str]:
    """What was asked for, without robots.txt."""
    return [path for path in board.world.paths() if path != "/robots.txt"]


async def assert_a_visit_brings_all(parts: Parts, board: Board, source_id: int) -> None:
    await visit_board(parts, source_id)
    assert stored(parts) == board.all_posts()


async def test_a_board_is_read_to_its_end_and_every_post_is_stored_once(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.add(*(f"{number}" for number in range(12)), posts=4)  # B5
    report = await visit_board(parts, source_id)
    assert (report["outcome"], report["new"], report["unfinished"]) == ("ok", 48, False)
    assert report["watermark_updated"]
    assert stored(parts) == board.all_posts()
    assert events(parts).count("post.stored") == 48
    assert len(pages(board)) == len(set(pages(board))) == 3 + 12 * 2
    reached = checkpoint(parts, board)
    assert (reached.status, reached.current_page, reached.page) == ("completed", 3, None)
    assert reached.stats == {"list_pages": 3, "item_pages": 24, "done": 12, "new": 48, "images": 48}  # B9
    assert (reached.min_id, reached.max_id) == ("0", "11")
    assert reached.seen_ids == {f"{number}" for number in range(12)}


async def test_a_list_is_called_as_its_first_page_says(
    parts: Parts, owner: Reader, board: Board, source_id: int
) -> None:
    board.add(*(f"{number}" for number in range(12)))
    board.on_list = lambda page: Answer("busy", 503) if page == 3 else None
    await visit_board(parts, source_id)
    board.on_list = lambda page: None
    board.title = "Page 3 of 3"
    await visit_board(parts, source_id)
    [source] = parts.db.read_now(sources.watched, owner, parts.now())
    assert (source.title, source.site_url) == ("The Board", board.address)


async def test_an_unchanged_list_costs_one_request(parts: Parts, board: Board, source_id: int) -> None:
    board.add("1", "2")
    await visit_board(parts, source_id)
    before = len(pages(board))
    report = await visit_board(parts, source_id)
    assert (report["outcome"], len(pages(board)) - before) == ("unchanged", 1)


async def test_only_what_is_new_is_read_and_a_bumped_thread_from_where_reading_ended(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.add(*(f"{number}" for number in range(20)), posts=3)
    await visit_board(parts, source_id)
    board.reply("2")
    board.add("new")
    board.world.asked.clear()
    report = await visit_board(parts, source_id)
    assert report["new"] == 2
    first, *threads, second = pages(board)
    assert (first, second) == ("/board", "/board?page=2")
    assert sorted(threads) == ["/t/2", "/t/2?page=2", "/t/new"]
    board.reply("2")
    board.world.asked.clear()
    await visit_board(parts, source_id)
    assert pages(board) == ["/board", "/t/2?page=2", "/board?page=2"]  # B5: nothing that is stored is fetched again
    assert stored(parts) == board.all_posts()


async def test_pinned_threads_do_not_keep_a_crawl_going_and_do_not_end_it(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.add(*(f"{number}" for number in range(7)))
    board.threads[3].pinned = True
    await assert_a_visit_brings_all(parts, board, source_id)
    board.title = "Another title"
    board.world.asked.clear()
    await visit_board(parts, source_id)
    assert pages(board) == ["/board"]


async def test_posts_that_the_list_tells_are_stored_and_end_the_walk_when_they_are_known(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.tells = True
    board.add(*(f"{number}" for number in range(12)))
    await assert_a_visit_brings_all(parts, board, source_id)
    board.add("new")
    board.world.asked.clear()
    report = await visit_board(parts, source_id)
    assert (report["new"], pages(board)) == (1, ["/board", "/board?page=2"])


async def test_what_one_thread_does_wrong_is_noted_on_it_and_the_others_are_read(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.add("1", "2", "3")
    board.threads[1].error = Answer("a wall", 403)
    report = await visit_board(parts, source_id)
    assert (report["outcome"], report["new"]) == ("ok", 2)
    [two] = known(parts, source_id, "2")
    assert (two.state, two.attempts) == ("failed", 1)
    assert "403" in two.error
    assert checkpoint(parts, board).stats["failed"] == 1


async def test_a_thread_that_failed_is_tried_again_three_times_and_then_left_alone(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.add("1", "2")
    board.threads[0].error = Answer("broken", 500)
    for _ in range(5):  # the list stays as it is
        await visit_board(parts, source_id)
    assert pages(board).count("/t/2") == 3
    board.threads[0].error = None
    board.reply("2")
    await assert_a_visit_brings_all(parts, board, source_id)


async def test_a_thread_that_failed_far_down_the_list_is_not_forgotten(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.add(*(f"{number}" for number in range(12)))
    board.threads[-1].error = Answer("broken", 500)
    await visit_board(parts, source_id)
    board.threads[-1].error = None
    board.add("new")
    await assert_a_visit_brings_all(parts, board, source_id)


async def test_many_failures_in_a_row_are_the_sites_and_the_other_threads_wait(
    parts: Parts, board: Board, source_id: int
) -> None:
    parts.settings = parts.settings.model_copy(update={"host_gap_seconds": 0.001})
    board.page_size = 20
    board.add(*(f"{number}" for number in range(12)))
    for thread in board.threads:
        thread.error = Answer("broken", 500)
    report = await visit_board(parts, source_id)
    assert (report["outcome"], len(pages(board))) == ("failed", 6)
    assert checkpoint(parts, board).status == "error"
    for thread in board.threads:
        thread.error = None
    await visit_board(parts, source_id)
    await assert_a_visit_brings_all(parts, board, source_id)


async def test_a_host_that_asks_for_quiet_ends_the_visit_and_the_next_goes_on_there(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.add(*(f"{number}" for number in range(10)))
    board.on_list = lambda page: Answer("busy", 503) if page == 2 else None
    report = await visit_board(parts, source_id)
    assert (report["outcome"], report["new"]) == ("failed", 5)
    reached = checkpoint(parts, board)
    assert (reached.status, reached.current_page) == ("error", 1)
    assert "HTTP 503" in (reached.row.error or "")
    assert reached.page is not None
    assert reached.page.url.endswith("?page=2")
    board.on_list = lambda page: None
    board.world.asked.clear()
    report = await visit_board(parts, source_id)
    assert pages(board)[0] == "/board?page=2"
    assert "/board" not in pages(board)
    assert stored(parts) == board.all_posts()


async def test_a_thread_that_asks_for_quiet_is_not_counted_against_it(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.add("1", "2")
    board.threads[0].error = Answer("slowly", 429)
    report = await visit_board(parts, source_id)
    assert report["outcome"] == "failed"
    assert [(item.state, item.attempts) for item in known(parts, source_id, "2")] == [("waiting", 0)]
    board.threads[0].error = None
    await assert_a_visit_brings_all(parts, board, source_id)


async def test_a_visit_whose_time_is_over_ends_well_and_is_due_at_once(
    parts: Parts, owner: Reader, board: Board, source_id: int
) -> None:
    board.add(*(f"{number}" for number in range(8)))
    board.threads[1].delay = 1.6
    settings = parts.settings
    one_at_a_time = {"visit_seconds": 2.0, "host_gap_seconds": 0.05}  # with a gap, nothing is prefetched
    parts.settings = settings.model_copy(update=one_at_a_time)
    report = await visit_board(parts, source_id)
    assert (report["outcome"], report["unfinished"]) == ("ok", True)
    [source] = parts.db.read_now(sources.watched, owner, parts.now())
    assert source.next_check_at <= parts.now()
    assert checkpoint(parts, board).status == "running"
    parts.settings, board.threads[1].delay = settings, 0.0
    finished = await visit_board(parts, source_id)
    assert (finished["outcome"], finished["unfinished"], finished["new"] > 0) == ("ok", False, True)
    assert stored(parts) == board.all_posts()
    assert len(pages(board)) <= len(set(pages(board))) + 1  # B10: at most the page in flight


async def test_max_pages_limits_a_crawl_and_what_is_missed_then_is_a_gap(
    parts: Parts, owner: Reader, board: Board
) -> None:
    source_id = follow_board(parts, owner, board.address, max_pages=2)
    board.add(*(f"{number}" for number in range(20)))
    report = await visit_board(parts, source_id)
    assert (report["new"], report["gap"]) == (10, False)
    board.add(*(f"{number}" for number in range(20, 40)))
    report = await visit_board(parts, source_id)
    assert (report["new"], report["gap"]) == (10, True)
    report = await visit_board(parts, source_id)
    assert (report["outcome"], report["gap"]) == ("unchanged", False)


async def test_a_page_where_the_crawl_stood_that_is_gone_starts_it_over(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.add(*(f"{number}" for number in range(15)))
    board.on_list = lambda page: Answer("broken", 500) if page == 3 else None
    await visit_board(parts, source_id)
    del board.threads[8:]
    board.on_list = lambda page: Answer("no such page", 404) if page == 3 else None
    board.world.asked.clear()
    report = await visit_board(parts, source_id)
    assert report["outcome"] != "failed"
    assert pages(board) == ["/board?page=3", "/board", "/board?page=2"]
    assert checkpoint(parts, board).status == "completed"


async def test_a_list_that_ends_with_a_missing_page_is_complete(parts: Parts, board: Board, source_id: int) -> None:
    board.add(*(f"{number}" for number in range(15)))
    board.on_list = lambda page: Answer("no such page", 404) if page == 3 else None
    report = await visit_board(parts, source_id)
    assert (report["outcome"], report["new"]) == ("ok", 10)
    assert checkpoint(parts, board).status == "completed"


async def test_a_list_that_leads_back_to_itself_ends(parts: Parts, owner: Reader, board: Board) -> None:
    source_id = follow_board(parts, owner, board.address, max_pages=0)
    round_trip = '{"title": "", "items": [], "posts": [{"id": "1/1", "text": "x"}], "next": "/board?page=%d"}'
    board.on_list = lambda page: Answer(round_trip % (page % 3 + 1))
    report = await visit_board(parts, source_id)
    assert report["outcome"] == "ok"
    assert pages(board) == ["/board", "/board?page=2", "/board?page=3", "/board?page=1"]


async def test_a_list_with_nothing_in_it_is_empty(parts: Parts, board: Board, source_id: int) -> None:
    report = await visit_board(parts, source_id)
    assert report["outcome"] == "empty"


async def test_what_is_no_board_fails_and_says_so_in_the_checkpoint(parts: Parts, board: Board, source_id: int) -> None:
    board.on_list = lambda page: Answer("<html>a login page</html>")
    report = await visit_board(parts, source_id)
    assert report["outcome"] == "failed"
    assert (checkpoint(parts, board).status, checkpoint(parts, board).row.error) == ("error", report["error"])


async def test_a_cleared_checkpoint_looks_through_the_whole_list_and_reads_nothing_twice(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.add(*(f"{number}" for number in range(12)))
    await visit_board(parts, source_id)
    reached = checkpoint(parts, board)
    assert reached.exists
    parts.db.write_now(reached.clear)
    assert not checkpoint(parts, board).exists
    board.world.asked.clear()
    await visit_board(parts, source_id)
    assert pages(board) == ["/board", "/board?page=2", "/board?page=3"]  # B2


async def test_a_resume_page_that_is_gone_makes_the_thread_be_read_from_its_beginning(
    parts: Parts, board: Board, source_id: int
) -> None:
    board.add("1", posts=7)
    await visit_board(parts, source_id)
    board.threads[0].posts = 3  # posts were removed
    board.world.asked.clear()
    await visit_board(parts, source_id)
    assert pages(board) == ["/board", "/t/1?page=3", "/t/1"]


async def test_who_lost_the_lease_stores_nothing(parts: Parts, board: Board, source_id: int) -> None:
    board.add("1")

    def steal(page: int) -> None:
        from sqlalchemy import update

        from headwater.store.tables import sources as table

        parts.db.write_now(lambda conn: conn.execute(update(table).values(lease_owner="another")))

    board.on_list = steal  # type: ignore[assignment]
    report = await visit_board(parts, source_id)
    assert report["outcome"] == "failed"
    assert "Another process" in str(report["error"])
    assert (stored(parts), events(parts).count("post.stored")) == (set(), 0)
    assert not checkpoint(parts, board).exists
