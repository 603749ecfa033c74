"""The stream: newest first, paged without loss, seen only through a subscription."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection, insert

from headwater.follow.add import unfollow
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.posts import hot, stream
from headwater.store.posts.stream import Filter, Marks, StreamPosition
from headwater.store.tables import tenants, users
from support.posts import NOON, a_post, a_source, visited
from support.statements import analyze


def fill(conn: Connection, owner: Reader, count: int = 25) -> int:
    source_id = a_source(conn, owner)
    # Several posts share a time: the id decides, and no page may lose or repeat one.
    visited(conn, source_id, [a_post(str(n), created_at=NOON - timedelta(minutes=n // 5)) for n in range(count)])
    return source_id


def test_pages_follow_each_other_without_loss_or_repeat_while_new_posts_arrive(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        source_id = fill(conn, owner)
        seen, after = [], None
        while page := stream.posts_page(conn, owner, after=after, limit=4):
            seen += page
            after = StreamPosition(page[-1].created_at, page[-1].id)
            newer = a_post(f"new {len(seen)}", created_at=NOON + timedelta(hours=len(seen)))
            visited(conn, source_id, [newer], NOON + timedelta(hours=len(seen)))
        assert len(seen) == len({post.id for post in seen}) == 25
        assert seen == sorted(seen, key=lambda post: (post.created_at, post.id), reverse=True)

    db.write_now(work)


def test_a_post_is_seen_only_through_a_subscription(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        source_id = fill(conn, owner)
        [tenant] = conn.execute(insert(tenants).values(name="other", created_at=NOON).returning(tenants.c.id)).one()
        [user] = conn.execute(
            insert(users).values(tenant_id=tenant, name="x", role="owner", created_at=NOON).returning(users.c.id)
        ).one()
        stranger = Reader(tenant, user, "x", "owner")
        post_id = stream.posts_page(conn, owner)[0].id
        assert stream.posts_page(conn, stranger) == []
        assert stream.one_post(conn, stranger, post_id) is None
        assert stream.mark_posts(conn, stranger, [post_id], NOON, Marks(read=True)) == 0
        unfollow(conn, owner, source_id, NOON)
        assert stream.posts_page(conn, owner) == []

    db.write_now(work)


def test_read_and_starred_are_kept_for_each_reader_and_can_be_filtered(db: Database, owner: Reader) -> None:  # D8
    def work(conn: Connection) -> None:
        fill(conn, owner, 3)
        first, second, third = (post.id for post in stream.posts_page(conn, owner))
        assert stream.mark_posts(conn, owner, [first, second], NOON, Marks(read=True)) == 2
        stream.mark_posts(conn, owner, [second], NOON, Marks(starred=True))
        stream.mark_posts(conn, owner, [first], NOON, Marks(read=False))
        assert [post.id for post in stream.posts_page(conn, owner, Filter(unread=True))] == [first, third]
        [starred] = stream.posts_page(conn, owner, Filter(starred=True))
        assert (starred.id, starred.read, starred.starred) == (second, True, True)

    db.write_now(work)


@pytest.mark.parametrize(("table", "index"), [("posts", "ix_posts_stream"), ("hot_posts", "ix_posts_hot_stream")])
def test_the_stream_reads_its_index_and_sorts_nothing(db: Database, owner: Reader, table: str, index: str) -> None:
    def fill(conn: Connection) -> None:
        hot.clean(conn, timedelta(hours=24), NOON)
        for number in range(40):
            visited(conn, a_source(conn, owner, f"https://h{number}.example/"), [a_post(str(n)) for n in range(50)])

    def plan(conn: Connection, owner: Reader) -> str:
        return "\n".join(str(row) for row in stream.page_statement(table).plan(conn, **owner.key, limit=20))

    db.write_now(fill)
    analyze(db)
    found = db.read_now(plan, owner)
    assert index in found
    assert "TEMP B-TREE" not in found
