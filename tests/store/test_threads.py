"""Replies belong to their thread: one entry of the stream, with how many replies there are and which are new."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from headwater.model import Decision, Post, Reader, Reference
from headwater.store import migrate, stories
from headwater.store.db import Database
from headwater.store.people import accounts
from headwater.store.posts import hot, stream, threads
from headwater.store.posts.stream import EVERYTHING, Filter, Marks, Story
from headwater.store.stories import folded
from headwater.store.stories.folded import FoldSettings
from support.posts import NOON, a_post, a_source, visited
from support.statements import analyze, recorded

MINUTE = timedelta(minutes=1)
UNREAD = Filter(unread=True)


def opening(name: str, minute: int = 0) -> Post:
    return a_post(f"{name}/1", name, created_at=NOON + minute * MINUTE, thread=name, opens_thread=True)


def reply(name: str, number: int, minute: int) -> Post:
    """A reply of a forum, which names its thread."""
    title = f"Re: {name}"
    content = f"<p>Reply {number} in {name}</p>"
    return a_post(f"{name}/{number}", title, content=content, created_at=NOON + minute * MINUTE, thread=name)


def answer(id: str, to: str, minute: int) -> Post:
    """A reply that names only the post that it answers."""
    return a_post(id, created_at=NOON + minute * MINUTE, reference=Reference("reply", to))


def stored(conn: Connection, owner: Reader, *posts: Post, address: str = "https://news.example/feed") -> list[int]:
    """Stores posts of one visit; returns their ids."""
    source_id = a_source(conn, owner, address)
    saved = visited(conn, source_id, list(posts), NOON + timedelta(hours=1))
    return [post.id for post in saved.posts]


def first_ids(conn: Connection, ids: Sequence[int]) -> list[int | None]:
    found = dict(conn.execute(text("SELECT post_id, first_id FROM thread_posts")).all())
    return [found.get(one) for one in ids]


def shown(conn: Connection, owner: Reader, wanted: Filter = EVERYTHING) -> list[Story]:
    return stream.page(conn, owner, wanted)


def brief(found: Sequence[Story]) -> list[tuple[int, str, int | None, int | None]]:
    """The entries: the post that each is shown as, its state, its replies, and how many are new."""
    return [
        (one.post.id, one.state, one.thread.replies if one.thread else None,
         one.thread.new_replies if one.thread else None)
        for one in found
    ]  # fmt: skip


def test_a_thread_is_one_entry_that_stands_where_its_newest_reply_stands(db: Database, owner: Reader) -> None:  # F7
    def work(conn: Connection) -> None:
        first, one, other, two = stored(
            conn, owner, opening("pumps"), reply("pumps", 2, 1), a_post("other", created_at=NOON + 2 * MINUTE),
            reply("pumps", 3, 3),
        )  # fmt: skip
        entry, alone = shown(conn, owner)
        assert brief([entry, alone]) == [(first, "unread", 2, 2), (other, "unread", None, None)]
        assert (entry.at.post_id, entry.at.created_at) == (two, NOON + 3 * MINUTE)
        assert entry.thread is not None
        assert entry.thread.until == two
        assert [post.id for post in stream.replies(conn, owner, first, limit=10)] == [one, two], "the oldest first"
        after = stream.page(conn, owner, after=entry.at)
        assert [story.post.id for story in after] == [other], "the next page does not show the thread again"

    db.write_now(work)


def test_what_nobody_saw_is_not_marked_read(db: Database, owner: Reader) -> None:  # F7
    def work(conn: Connection) -> None:
        first, one = stored(conn, owner, opening("pumps"), reply("pumps", 2, 1))
        [entry] = shown(conn, owner)
        assert entry.thread is not None
        seen = Marks(read=True, as_of=entry.as_of, replies_until=[entry.thread.until])
        [late] = stored(conn, owner, reply("pumps", 3, 2))
        stream.mark_posts(conn, owner, [first], NOON, seen)
        assert brief(shown(conn, owner, UNREAD)) == [(first, "updated", 2, 1)]
        read = {post.id: post.read for post in stream.posts_by_id(conn, owner, [first, one, late])}
        assert read == {first: True, one: True, late: False}
        stream.mark_posts(conn, owner, [late], NOON, Marks(read=True))
        assert shown(conn, owner, UNREAD) == []
        assert brief(shown(conn, owner)) == [(first, "read", 2, 0)]

    db.write_now(work)


def test_a_first_post_that_was_read_leaves_its_replies_unread(db: Database, owner: Reader) -> None:  # F7
    def work(conn: Connection) -> None:
        first, *_ = stored(conn, owner, opening("pumps"), reply("pumps", 2, 1), reply("pumps", 3, 2))
        stream.mark_posts(conn, owner, [first], NOON, Marks(read=True))
        assert brief(shown(conn, owner, UNREAD)) == [(first, "updated", 2, 2)]

    db.write_now(work)


def test_replies_stand_alone_until_their_first_post_is_stored(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        one, two = stored(conn, owner, reply("pumps", 2, 1), reply("pumps", 3, 2))
        assert brief(shown(conn, owner)) == [(two, "unread", None, None), (one, "unread", None, None)]
        [first] = stored(conn, owner, opening("pumps"))
        assert brief(shown(conn, owner)) == [(first, "unread", 2, 2)]

    db.write_now(work)


def test_a_reply_of_another_source_stands_alone(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        [first] = stored(conn, owner, a_post("100"))
        [away] = stored(conn, owner, answer("101", "100", 1), address="https://other.example/feed")
        assert brief(shown(conn, owner)) == [(away, "unread", None, None), (first, "unread", None, None)]

    db.write_now(work)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
@pytest.mark.parametrize("together", [True, False])
def test_a_chain_of_answers_is_one_thread_in_whatever_order_it_comes(
    db: Database, owner: Reader, order: Sequence[int], together: bool
) -> None:
    chain = [a_post("a"), answer("b", "a", 1), answer("c", "b", 2), answer("d", "c", 3)]

    def work(conn: Connection) -> None:
        given = [chain[place] for place in order]
        batches = [given] if together else [[one] for one in given]
        ids = dict(zip(order, [id for some in batches for id in stored(conn, owner, *some)], strict=True))
        assert first_ids(conn, [ids[place] for place in range(4)]) == [ids[0]] * 4

    db.write_now(work)


def test_an_answer_to_what_is_not_stored_begins_the_thread_of_those_that_answer_it(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        b, c = stored(conn, owner, answer("b", "a", 1), answer("c", "b", 2))
        assert brief(shown(conn, owner)) == [(b, "unread", 1, 1)]
        [a] = stored(conn, owner, a_post("a"))
        assert first_ids(conn, [a, b, c]) == [a, a, a]

    db.write_now(work)


def test_posts_that_answer_each_other_or_themselves_stand_alone(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        [a] = stored(conn, owner, answer("a", "b", 1))
        b, c, own = stored(conn, owner, answer("b", "c", 2), answer("c", "a", 3), answer("own", "own", 4))
        assert first_ids(conn, [a, b, c, own]) == [None] * 4
        assert [story.post.id for story in shown(conn, owner)] == [own, c, b, a]

    db.write_now(work)


def test_a_thread_is_opened_once(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        first, again = stored(conn, owner, opening("pumps"), opening("pumps", 5)._replace(source_post_id="pumps/9"))
        [one] = stored(conn, owner, reply("pumps", 2, 1))
        assert first_ids(conn, [first, again, one]) == [first, None, first]
        assert [story.post.id for story in shown(conn, owner)] == [again, first]

    db.write_now(work)


def test_nothing_is_put_under_its_thread_for_a_reader_who_wants_nothing_folded(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        first, one = stored(conn, owner, opening("pumps"), reply("pumps", 2, 1))
        apart = [(one, "unread", None, None), (first, "unread", None, None)]
        folded.save_settings(conn, owner, FoldSettings("off"))
        assert brief(shown(conn, owner)) == apart
        folded.save_settings(conn, owner, FoldSettings("repeats"))
        assert brief(shown(conn, owner)) == [(first, "unread", 1, 1)]
        [source_id] = {story.post.source_id for story in shown(conn, owner)}
        folded.set_folding(conn, owner, source_id, fold=False)
        assert brief(shown(conn, owner)) == apart

    db.write_now(work)


def test_a_first_post_that_tells_a_story_stands_there_and_its_replies_are_an_entry(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        first, one, two = stored(conn, owner, opening("flood"), reply("flood", 2, 2), reply("flood", 3, 3))
        [paper] = stored(conn, owner, a_post("p", created_at=NOON + MINUTE), address="https://paper.example/feed")
        told = [Decision(first, first, first, "first", 1.0, ""), Decision(paper, first, paper, "story", 0.9, "")]
        stories.save(conn, told, NOON)
        replies, story = shown(conn, owner)
        assert brief([replies]) == [(two, "unread", 2, 2)]
        assert (story.post.id, story.tellings, story.thread) == (first, 2, None)
        assert replies.thread is not None
        assert replies.thread.first_id == first
        stream.mark_posts(conn, owner, [first], NOON, Marks(read=True))
        assert brief(shown(conn, owner, UNREAD)) == [(two, "unread", 2, 2)]
        stream.mark_posts(conn, owner, [two], NOON, Marks(read=True, replies_until=[replies.thread.until]))
        assert shown(conn, owner, UNREAD) == []
        assert all(post.read for post in stream.posts_by_id(conn, owner, [one, two]))

    db.write_now(work)


def test_a_reply_that_another_source_repeats_hides_nothing(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        first, one, _ = stored(conn, owner, opening("flood"), reply("flood", 2, 1), reply("flood", 3, 3))
        [copy] = stored(conn, owner, a_post("c", created_at=NOON + 2 * MINUTE), address="https://copy.example/feed")
        told = [Decision(one, one, one, "first", 1.0, ""), Decision(copy, one, one, "exact", 1.0, "")]
        stories.save(conn, told, NOON)
        thread, story = shown(conn, owner)
        assert brief([thread]) == [(first, "unread", 2, 2)]
        assert (story.story_id, story.at.post_id, story.tellings) == (str(one), copy, 2)

    db.write_now(work)


def test_a_page_of_threads_costs_as_many_statements_as_one_thread(db: Database, owner: Reader) -> None:
    def work(conn: Connection, count: int) -> None:
        for number in range(count):
            name = f"thread {number}"
            stored(conn, owner, opening(name), *(reply(name, place, place) for place in range(2, 6)))

    def asked() -> int:
        with recorded(db) as statements:
            assert all(story.thread for story in db.read_now(stream.page, owner))
        return len(statements)

    db.write_now(work, 1)
    once = asked()
    db.write_now(lambda conn: work(conn, 20))
    assert asked() == once


def test_threads_are_found_by_their_indexes(db: Database, owner: Reader) -> None:
    def fill(conn: Connection) -> None:
        hot.clean(conn, timedelta(hours=24), NOON)
        for number in range(30):
            name = f"thread {number}"
            stored(conn, owner, opening(name), *(reply(name, place, place) for place in range(2, 40)))

    def plans(conn: Connection) -> dict[str, str]:
        own = {**owner.key, "threshold": 0.0, "limit": 20, "ids": [1, 2], "most": 9, "most_new": 9}
        asked = {
            "page": stream.page_statement("posts", fold="stories").plan(conn, **own),
            "unread": stream.page_statement("posts", fold="stories", unread=True).plan(conn, **own),
            "threads": threads.threads_statement("stories", False, False).plan(conn, **own),
            "post": threads.waiting_for_post.plan(conn, [1, 2]),
            "thread": threads.waiting_for_thread.plan(conn, [1, 2]),
        }
        return {name: "\n".join(str(row) for row in plan) for name, plan in asked.items()}

    db.write_now(fill)
    analyze(db)
    found = db.read_now(plans)
    for plan in found.values():
        if db.is_sqlite:
            assert not [line for line in plan.splitlines() if "SCAN" in line and "thread_posts" in line], plan
    assert "ix_posts_stream" in found["page"]
    assert "ix_posts_stream" in found["unread"]
    if db.is_sqlite:
        assert "ix_thread_posts_time" in found["page"]
        assert "ix_thread_posts_arrival" in found["threads"]
        assert "ix_thread_posts_name" in found["post"]
        assert "ix_thread_posts_name" in found["thread"]


@given(st.dictionaries(st.integers(0, 8), st.integers(0, 8)), st.dictionaries(st.integers(0, 8), st.integers(9, 12)))
def test_links_end_at_a_first_post_or_nowhere(links: dict[int, int], firsts: dict[int, int]) -> None:
    found = threads.roots(links, firsts)
    for start, first in found.items():
        at, steps = start, 0
        while at in links and steps < 20:
            at, steps = links[at], steps + 1
        assert at not in links, "not in a circle"
        assert first == firsts.get(at, at)
    assert set(found) == {start for start in links if _ends(links, start)}


def _ends(links: dict[int, int], start: int) -> bool:
    seen: set[int] = set()
    while start in links:
        if start in seen:
            return False
        seen.add(start)
        start = links[start]
    return True


def test_a_page_of_the_stream_says_when_its_threads_were_read(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> datetime:
        stored(conn, owner, opening("pumps"), reply("pumps", 2, -5))
        [entry] = shown(conn, owner)
        assert entry.thread is not None
        assert entry.thread.replies == 1, "a reply that claims to be older than its thread is one, too"
        return entry.at.created_at

    assert db.write_now(work) == NOON


def test_threads_of_what_was_stored_before_are_found_by_the_migration(empty_url: str) -> None:
    def work(conn: Connection, owner: Reader) -> None:
        board = "https://board.example/feed"
        extra = {"thread": "pumps"}
        later = [reply("pumps", number, number)._replace(extra=extra) for number in (3, 2)]
        stored(conn, owner, *later, opening("pumps")._replace(extra=extra), address=board)
        conn.execute(text("UPDATE sources SET kind = 'forum' WHERE address = :board"), {"board": board})
        comments = [a_post(f"t1_{n}", thread="t3_a", extra={"post": "t3_a"}) for n in range(2)]
        stored(conn, owner, a_post("t3_a"), *comments, address="https://community.example/feed")
        chain = [answer("d", "c", 3), answer("c", "b", 2), answer("b", "not stored", 1)]
        stored(conn, owner, *chain, a_post("alone"), answer("away", "elsewhere", 5))

    def found(conn: Connection) -> list[tuple[int, int | None]]:
        return [tuple(row) for row in conn.execute(text("SELECT post_id, first_id FROM thread_posts ORDER BY post_id"))]

    db = Database(empty_url)
    try:
        migrate.upgrade(db)
        db.write_now(work, db.write_now(accounts.make_owner, NOON))
        before = db.read_now(found)
        assert [first for _, first in before].count(None) == 1
        assert len(before) == 10
        migrate.downgrade(db, "0032")
        migrate.upgrade(db)
        assert db.read_now(found) == before
    finally:
        db.close()
