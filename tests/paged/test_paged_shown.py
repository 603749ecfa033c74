"""How far the crawl of a list got, and what it brought: on the command line, over HTTP and on the pages."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from api.running import Running, running
from headwater import wire
from headwater.accounts import tokens
from headwater.crawl.visit.walk import Checkpoint
from headwater.model import Reader, Source
from headwater.settings import load
from headwater.store.visits import checkpoints
from headwater.wire import Parts
from support import forked
from support.boards import Board, follow_board, visit_board
from support.web import Answer
from webhooks.sending import a_reader


async def crawled(parts: Parts, board: Board, source_id: int) -> None:
    """A board of which a thread cannot be read, and whose third page of the list breaks."""
    board.add(*(f"{number}" for number in range(12)))
    board.threads[2].error = Answer("broken", 500)
    board.on_list = lambda page: Answer("broken", 500) if page == 3 else None
    await visit_board(parts, source_id)


@pytest.fixture
async def crawled_headwater(parts: Parts, board: Board, source_id: int, store_url: str) -> AsyncIterator[Running]:
    """A running Headwater after that crawl."""
    await crawled(parts, board, source_id)
    with running(store_url) as headwater:
        yield headwater


def test_checkpoints_are_listed_shown_and_cleared_over_http(
    crawled_headwater: Running, board: Board, source_id: int
) -> None:
    program = crawled_headwater.program()
    [listed] = program.get("/api/checkpoints").json()["items"]
    shown = program.get(f"/api/checkpoints/{source_id}").json()
    assert listed == shown
    assert (shown["site"], shown["board"]) == (board.world.address, "/board")
    assert (shown["status"], shown["current_page"]) == ("error", 2)
    assert "HTTP 500" in shown["error"]
    assert shown["page_url"].endswith("/board?page=3")
    assert shown["last_thread_id"] == "2"
    assert shown["stats"]["done"] == 9
    assert program("DELETE", f"/api/checkpoints/{source_id}").status == 204
    cleared = program.get(f"/api/checkpoints/{source_id}")
    assert cleared.status == 404
    assert "it was cleared. The next crawl reads the whole list again" in cleared.json()["detail"]
    document = crawled_headwater.source("https://news.example/feed")
    assert "it is not a list" in program.get(f"/api/checkpoints/{document}").json()["detail"]
    assert program.get("/api/checkpoints/999").status == 404


async def test_statistics_are_counted_in_the_store_board_by_board(
    parts: Parts, owner: Reader, board: Board, source_id: int, store_url: str
) -> None:
    await crawled(parts, board, source_id)  # B9
    other = Board(board.world, "/other", threads=[])
    other.tells = True
    board.world.fallback = lambda asked: (other if asked.path.startswith("/other") else board).answer(asked)
    other.add("a", "b")
    await visit_board(parts, follow_board(parts, owner, other.address))
    with running(store_url) as headwater:
        found = headwater.program().get("/api/crawl/statistics").json()
    assert (found["succeeded"], found["failed"], found["images"]) == (9, 1, {"waiting": 11})
    first, second = found["boards"]
    assert (first["board"], first["done"], first["failed"], first["posts"]) == ("/board", 9, 1, 9)
    assert (second["board"], second["done"], second["posts"], second["status"]) == ("/other", 0, 2, "completed")
    assert (first["images"], second["images"]) == ({"waiting": 9}, {"waiting": 2})


async def test_statistics_count_nothing_that_the_reader_does_not_follow(
    parts: Parts, owner: Reader, board: Board, source_id: int
) -> None:
    await crawled(parts, board, source_id)  # B9, H68
    stranger = parts.db.write_now(a_reader, "stranger")
    assert parts.db.read_now(checkpoints.statistics, stranger) == checkpoints.Statistics([], {})


async def test_all_that_a_crawl_leaves_behind_is_in_the_store(
    parts: Parts, board: Board, source_id: int, environ: dict[str, str], tmp_path: Path
) -> None:
    # B1: results, progress and statistics; whoever opens the store has all of it
    before = {file for file in tmp_path.rglob("*") if file.is_file()}
    await crawled(parts, board, source_id)
    left = {file for file in tmp_path.rglob("*") if file.is_file()} - before
    assert {file.name for file in left} <= {"headwater.db-wal", "headwater.db-shm"}
    opened = wire.open_parts(load({**environ, "HEADWATER_DATA_DIR": str(tmp_path / "elsewhere")}))
    reader = wire.prepare_store(opened)
    found = opened.db.read_now(checkpoints.statistics, reader)
    assert (found.succeeded, found.failed, found.boards[0].posts) == (9, 1, 9)
    reached = opened.db.read_now(Checkpoint.load, Source(source_id, "board", board.address), opened.now())
    assert (reached.status, reached.current_page) == ("error", 2)
    opened.close()


def test_the_page_of_a_source_shows_progress_and_the_crawling_page_what_lists_brought(
    crawled_headwater: Running, board: Board, source_id: int
) -> None:
    session = crawled_headwater.session()
    browser = crawled_headwater.browser(session)
    page = browser.get(f"/sources/{source_id}", Accept="text/html").text
    assert "stopped by an error, 2 pages of the list read" in page
    assert "HTTP 500" in page
    assert "9 new posts, 9 read, 1 failed" in page
    assert "/board?page=3" in page
    crawling = browser.get("/crawling", Accept="text/html").text
    assert "Images: 9 not downloaded." in crawling
    assert f'href="/sources/{source_id}"' in crawling
    body = urlencode({"form_key": tokens.form_key(session)}).encode()
    where = f"/sources/{source_id}/checkpoint/clear"
    form = {"Content_Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
    assert browser.post(where, body, **form).status == 303
    assert "of the list read" not in browser.get(f"/sources/{source_id}", Accept="text/html").text


async def test_commands_show_and_clear_checkpoints_and_count(
    parts: Parts, board: Board, source_id: int, environ: dict[str, str]
) -> None:
    await crawled(parts, board, source_id)

    def run(*words: str) -> str:
        return forked.run("-m", "headwater", *words, env={**os.environ, **environ}, check=True).stdout

    assert json.loads(run("checkpoints", "list", "--json"))["status"] == "error"
    assert "?page=3" in run("checkpoints", "show", str(source_id))
    counted = json.loads(run("stats", "--json"))  # B9
    assert (counted["succeeded"], counted["failed"], counted["boards"][0]["images"]) == (9, 1, {"waiting": 9})
    said = run("stats")
    assert "1 failed" in said
    assert "Images: 9 not downloaded." in said
    assert "HEADWATER_IMAGES=on" in said
    assert "9 not downloaded, 0 saved" in run("images", "count")
    environ["HEADWATER_IMAGES"] = "on"
    assert "Images: 9 waiting." in run("stats")
    assert "9 waiting, 0 saved" in run("images", "count")
    run("checkpoints", "clear", board.address)
    assert run("checkpoints", "list", "--json") == ""
    assert "its checkpoint was cleared" in run("checkpoints", "list")
    shown = forked.run("-m", "headwater", "checkpoints", "show", str(source_id), env={**os.environ, **environ})
    assert (shown.returncode, "it was cleared" in shown.stderr) == (1, True)
