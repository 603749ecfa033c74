"""The checkpoint object: what its row means, on both databases (B3, B4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from headwater.crawl.visit.walk import MOST_SEEN, Checkpoint
from headwater.model import Image, Post, Reader, Request, Source, StoredPost
from headwater.store import posts
from headwater.store.sql import Prepared
from headwater.store.visits import items
from headwater.store.visits.items import KnownItem
from headwater.wire import Parts
from support.boards import Board, follow_board
from support.posts import NOON

FIRST = Request("https://api.example/list", (("Accept", "application/json"),), "POST", b'{"cursor": null}')
LATER = NOON + timedelta(hours=1)


@pytest.fixture
def source(parts: Parts, owner: Reader, board: Board) -> Source:
    return Source(follow_board(parts, owner, board.address), "board", board.address)


def item(id: str, state: str = "done") -> KnownItem:
    return KnownItem(id, f"/t/{id}", "", "1", None, state, 0, None, 0, 0, None, NOON, NOON)


def loaded(parts: Parts, source: Source) -> Checkpoint:
    return parts.db.read_now(Checkpoint.load, source, NOON)


def save(parts: Parts, checkpoint: Checkpoint, now: object = NOON) -> None:
    parts.db.write_now(checkpoint.save, now)  # type: ignore[arg-type]


def test_what_was_saved_is_loaded_and_the_time_of_the_first_save_stays(parts: Parts, source: Source) -> None:
    # B3, B4
    fresh = loaded(parts, source)
    assert not fresh.exists
    assert not fresh.is_unfinished
    running = fresh.begun(FIRST, NOON)
    save(parts, running)
    again = loaded(parts, source)
    assert (again.exists, again.is_unfinished, again.status) == (True, True, "running")
    assert again.page == FIRST  # with its headers and its body
    save(parts, again.listed(["9", "100"], None), LATER)
    moved = loaded(parts, source)
    assert (moved.row.created_at, moved.row.updated_at) == (NOON, LATER)
    assert (moved.current_page, moved.page, moved.min_id, moved.max_id) == (1, None, "9", "100")


def test_items_and_posts_are_counted_and_the_last_item_is_known(parts: Parts, source: Source) -> None:
    post = Post("1", None, "", "", None, NOON, b"", images=(Image("https://site.example/a.png"),))
    stored = [StoredPost(1, "new", 1, post), StoredPost(2, "edited", 2, post), StoredPost(3, "same", 1, post)]
    step = loaded(parts, source).begun(FIRST, NOON).listed(["1", "2"], FIRST)
    step = step.read(item("1", "waiting")).counted(stored).read(item("1")).read(item("2", "failed"))
    save(parts, step)
    found = loaded(parts, source)
    assert found.stats == {
        "list_pages": 1, "item_pages": 3, "new": 1, "updated": 1, "images": 1, "done": 1, "failed": 1
    }  # fmt: skip
    assert found.last_thread == ("2", "/t/2")
    assert found.seen_ids == {"1", "2"}


def test_an_error_is_kept_with_its_words_until_the_crawl_goes_on(parts: Parts, source: Source) -> None:
    broken = loaded(parts, source).begun(FIRST, NOON).mark_error("The server has a problem.")
    save(parts, broken)
    found = loaded(parts, source)
    assert (found.status, found.row.error, found.is_unfinished) == ("error", "The server has a problem.", True)
    assert found.listed(["1"], None).row.error is None


def test_a_completed_crawl_has_its_final_numbers_and_the_next_one_begins_with_none(
    parts: Parts, source: Source
) -> None:
    done = loaded(parts, source).begun(FIRST, NOON).listed(["1"], None).mark_completed(LATER, skipped=2)
    save(parts, done)
    found = loaded(parts, source)
    assert (found.status, found.row.completed_at) == ("completed", LATER)
    assert found.stats == {"list_pages": 1, "skipped": 2}
    following = found.begun(FIRST, LATER)
    assert (following.stats, following.current_page, following.seen_ids) == ({}, 0, set())
    assert (following.row.completed_at, following.max_id) == (LATER, "1")


def test_a_cleared_one_is_gone(parts: Parts, source: Source) -> None:
    save(parts, loaded(parts, source).begun(FIRST, NOON))
    assert parts.db.write_now(loaded(parts, source).clear)
    assert not loaded(parts, source).exists
    assert not parts.db.write_now(loaded(parts, source).clear)


def test_only_the_latest_seen_ids_are_kept(parts: Parts, source: Source) -> None:
    step = loaded(parts, source).begun(FIRST, NOON)
    for number in range(MOST_SEEN + 50):
        step = step.read(item(str(number)))
    assert step.seen_ids == {str(number) for number in range(50, MOST_SEEN + 50)}


@pytest.mark.parametrize(
    ("statement", "given"),
    [(items._waiting, (1, 10)), (items._failed, (1, 10)), (items._known, (1, ["a"])), (posts._newest, (1,))],
    ids=["waiting", "failed", "known", "newest"],
)
def test_what_a_crawl_asks_of_the_store_is_found_by_an_index(
    parts: Parts, statement: Prepared, given: tuple[Any, ...]
) -> None:
    def plan(conn: Connection) -> str:
        if not parts.db.is_sqlite:
            conn.exec_driver_sql("SET LOCAL enable_seqscan = off")
        return " ".join(str(row) for row in statement.plan(conn, *given))

    found = parts.db.read_now(plan).lower()
    assert "index" in found
    assert not any(slow in found for slow in ("seq scan", "scan items", "scan posts", "temp b-tree"))
