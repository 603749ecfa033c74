"""The hot store says what the cold one says, and the first pages of the stream need nothing else (A4)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, select

from headwater.model import Decision, Post, Reader
from headwater.store import row_security, stories
from headwater.store.db import Database
from headwater.store.posts import hot, stream
from headwater.store.posts.stream import Filter, StreamPosition, StreamPost
from headwater.store.tables import hot_posts, hot_window, posts, sources
from support.posts import NOON, a_post, a_source, visited
from support.statements import recorded

DAY = timedelta(hours=24)
HOUR = timedelta(hours=1)
COPIED = [column.name for column in hot_posts.columns if column.name != "expires_at"]


def assert_hot_says_what_cold_says(conn: Connection) -> None:
    since = conn.execute(select(hot_window.c.since)).scalar_one()
    hot_rows, cold_rows = (
        select(*(kept.c[name] for name in COPIED)).order_by(kept.c.id) for kept in (hot_posts, posts)
    )
    assert conn.execute(hot_rows).all() == conn.execute(cold_rows.where(posts.c.created_at > since)).all()


def hot_ids(conn: Connection) -> list[str]:
    return sorted(conn.execute(select(hot_posts.c.source_post_id)).scalars())


@contextmanager
def undone(db: Database) -> Iterator[Connection]:
    """A transaction that leaves nothing behind."""
    with db.engine.connect() as conn:
        conn.execution_options(headwater_writes=True)
        with conn.begin() as work:
            row_security.begin(conn, [])
            yield conn
            work.rollback()


def in_cold(conn: Connection, owner: Reader, source_ids: list[int]) -> list[StreamPost]:
    """The whole stream from the cold store: the posts of one source are never read from the hot one."""
    found = [post for one in source_ids for post in stream.posts_page(conn, owner, Filter(source_id=one), limit=1000)]
    return sorted(found, key=lambda post: (post.created_at, post.id), reverse=True)


visits = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 40), st.sampled_from(["", "other words"]), st.integers(0, 3)),
    unique_by=lambda one: one[0],
    max_size=8,
)
steps = st.lists(
    st.tuples(st.integers(0, 1), visits, st.sampled_from([None, 1, 24, 30, 48]), st.integers(0, 20)), max_size=6
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps, limit=st.integers(1, 7), passing=st.integers(0, 15))
def test_hot_and_cold_together_are_the_stream_of_the_cold_store_alone(
    db: Database, owner: Reader, steps: list[Any], limit: int, passing: int
) -> None:  # A4
    with undone(db) as conn:
        now, kept = NOON, DAY
        hot.clean(conn, kept, now)
        watched = [a_source(conn, owner, f"https://{name}.example/feed") for name in "ab"]
        for place, listed, clean_with, hours in steps:
            found = [
                a_post(f"{place}{number}", text, score=score, created_at=NOON - HOUR * age)
                for number, age, text, score in listed
            ]
            visited(conn, watched[place], found, now)
            now += HOUR * hours + timedelta(minutes=1)
            if clean_with:
                kept = HOUR * clean_with
                hot.clean(conn, kept, now)
            assert_hot_says_what_cold_says(conn)
        expected = in_cold(conn, owner, watched)
        seen: list[StreamPost] = []
        after = None
        while page := stream.posts_page(conn, owner, after=after, limit=limit):
            seen += page
            after = StreamPosition(page[-1].created_at, page[-1].id)
            now += HOUR * passing
            hot.clean(conn, kept, now)  # posts expire between two pages
        assert seen == expected


def test_a_post_is_hot_for_a_day_and_then_only_cold(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        hot.clean(conn, DAY, NOON)
        source_id = a_source(conn, owner)
        ages = {"now": 0, "morning": 6, "yesterday": 23, "old": 25}
        visited(conn, source_id, [a_post(name, created_at=NOON - HOUR * age) for name, age in ages.items()])
        assert hot_ids(conn) == ["morning", "now", "yesterday"]
        expiry = dict(conn.execute(select(hot_posts.c.source_post_id, hot_posts.c.expires_at)).all())
        assert expiry["morning"] == NOON + HOUR * 18
        assert hot.clean(conn, DAY, NOON + HOUR * 2) == 1
        assert hot.clean(conn, DAY, NOON + HOUR * 2) == 0
        assert hot_ids(conn) == ["morning", "now"]
        assert len(stream.page(conn, owner)) == 4

    db.write_now(work)


def test_edits_scores_and_deletions_reach_the_hot_post(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        hot.clean(conn, DAY, NOON)
        source_id = a_source(conn, owner)
        visited(conn, source_id, [a_post("a", "Before", score=1), a_post("b", score=1)])
        visited(conn, source_id, [a_post("a", "After", score=1), a_post("b", score=9, num_comments=4)], NOON + HOUR)
        assert_hot_says_what_cold_says(conn)
        edited, touched = conn.execute(select(hot_posts).order_by(hot_posts.c.id)).all()
        assert (edited.title, edited.version) == ("After", 2)
        assert (touched.score, touched.num_comments) == (9, 4)
        conn.execute(delete(sources).where(sources.c.id == source_id))
        assert hot_ids(conn) == []

    db.write_now(work)


def test_a_store_that_has_posts_already_is_filled_when_headwater_starts(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        visited(conn, source_id, [a_post("new"), a_post("old", created_at=NOON - DAY)])
        assert hot_ids(conn) == []
        hot.clean(conn, DAY, NOON)
        assert hot_ids(conn) == ["new"]

    db.write_now(work)


def test_a_clock_that_was_wrong_for_a_while_does_no_harm(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        hot.clean(conn, DAY, NOON)
        source_id = a_source(conn, owner)
        visited(conn, source_id, [a_post("a")])
        hot.clean(conn, DAY, NOON + timedelta(days=365))
        visited(conn, source_id, [a_post("a"), a_post("b")], NOON + HOUR)
        assert hot_ids(conn) == []
        assert len(stream.page(conn, owner)) == 2
        hot.clean(conn, DAY, NOON + HOUR)
        assert hot_ids(conn) == ["a", "b"]

    db.write_now(work)


def test_the_first_pages_do_not_touch_the_cold_store(db: Database, owner: Reader) -> None:  # A4
    def fill(conn: Connection) -> None:
        hot.clean(conn, DAY, NOON)
        source_id = a_source(conn, owner)
        found: list[Post] = [a_post(str(number), created_at=NOON - HOUR / 4 * number) for number in range(40)]
        first, second = [one.id for one in visited(conn, source_id, found).posts][:2]
        told = [
            Decision(second, second, second, "first", 1.0, ""),
            Decision(first, second, second, "exact", 1.0, "the same text"),
        ]
        stories.save(conn, told, NOON)

    db.write_now(fill)
    with recorded(db) as asked:
        first = db.read_now(stream.page, owner, limit=15)
        last = first[-1].post
        second = db.read_now(
            stream.page, owner, Filter(unread=True), after=StreamPosition(last.created_at, last.id), limit=15
        )
    assert len(first) == len(second) == 15
    assert len(first[0].members) == 2
    assert first[0].members[0].title == "Title of 1"
    # The two pages, and the tellings of the one story among them.
    assert len([statement for statement in asked if "hot_posts" in statement]) >= 3
    assert not [statement for statement in asked if re.search(r"\bposts\b", statement)]
