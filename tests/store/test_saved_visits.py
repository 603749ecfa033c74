"""What a visit writes: posts once, with their history, fenced by the lease."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection, select

from headwater.accounts.vault import Vault
from headwater.crawl.record import record
from headwater.follow.add import follow
from headwater.model import Facts, Reader, SourceState
from headwater.store import sources, visits
from headwater.store.db import Database
from headwater.store.posts import stream
from headwater.store.sources import leases
from headwater.store.tables import event_outbox, post_versions, posts
from headwater.store.tables import sources as sources_table
from support.posts import LEASE, NO_GAP, NOON, a_claim, a_post, a_source, a_visit, visited

LATER = NOON + timedelta(hours=1)


def test_posts_of_a_first_visit_are_stored_with_their_events_in_one_go(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        saved = visited(conn, source_id, [a_post("1"), a_post("2")])
        assert (saved.accepted, saved.count("new"), saved.watermark_updated) == (True, 2, True)
        kinds = [row.kind for row in conn.execute(select(event_outbox).order_by(event_outbox.c.id))]
        assert kinds == ["source.added", "subscription.added", "post.stored", "post.stored"]  # E1

    db.write_now(work)


def test_the_same_page_again_stores_nothing(db: Database, owner: Reader) -> None:  # D8
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        visited(conn, source_id, [a_post("1"), a_post("2")])
        saved = visited(conn, source_id, [a_post("1"), a_post("2")], LATER)
        assert (saved.count("new"), saved.count("same"), saved.watermark_updated) == (0, 2, False)
        assert len(conn.execute(select(posts.c.id)).all()) == 2

    db.write_now(work)


def test_an_edited_post_is_a_new_version_and_the_old_text_is_kept_with_its_time(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        first = visited(conn, source_id, [a_post("1", "Before")])
        second = visited(conn, source_id, [a_post("1", "After")], LATER)
        third = visited(conn, source_id, [a_post("1", "Before")], LATER + timedelta(hours=1))
        assert [one.posts[0].version for one in (first, second, third)] == [1, 2, 3]
        assert len({one.posts[0].id for one in (first, second, third)}) == 1
        old = conn.execute(select(post_versions).order_by(post_versions.c.version)).all()
        assert [(row.title, row.valid_from, row.valid_to) for row in old] == [
            ("Before", NOON, LATER),
            ("After", LATER, LATER + timedelta(hours=1)),
        ]
        assert stream.page(conn, owner)[0].post.title == "Before"

    db.write_now(work)


def test_a_changed_score_updates_in_place(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        visited(conn, source_id, [a_post("1", score=1, num_comments=0)])
        saved = visited(conn, source_id, [a_post("1", score=9, num_comments=4)], LATER)
        assert saved.count("touched") == 1
        post = stream.page(conn, owner)[0].post
        assert (post.score, post.num_comments, post.version) == (9, 4, 1)

    db.write_now(work)


@pytest.mark.parametrize(
    ("renamed", "changes"),
    [
        (a_post("new-guid", "Title of 1", url="http://www.news.example/1?utm_source=rss"), ["same"]),
        (
            a_post("new-guid", "Another text", url="https://news.example/1", created_at=NOON + timedelta(days=1)),
            ["new"],
        ),
    ],
    ids=["same title at a moved address", "other title and date at the same address"],
)
def test_a_changed_guid_is_the_same_post_only_if_title_or_date_agree(
    db: Database, owner: Reader, renamed: object, changes: list[str]
) -> None:
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        first = a_post("1", "Title of 1", content="<p>The text</p>")
        visited(conn, source_id, [first])
        again = renamed._replace(text_hash=first.text_hash)  # type: ignore[attr-defined]
        assert [post.change for post in visited(conn, source_id, [again], LATER).posts] == changes

    db.write_now(work)


def test_posts_that_share_one_address_stay_apart(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        page = [a_post("1", "One", url="https://news.example/"), a_post("2", "Two", url="https://news.example/")]
        assert visited(conn, source_id, page).count("new") == 2
        assert visited(conn, source_id, page, LATER).count("same") == 2

    db.write_now(work)


def test_a_late_result_is_refused_when_another_process_has_the_lease(db: Database, owner: Reader) -> None:  # H85
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        paused = a_claim(conn, source_id)
        after_expiry = NOON + LEASE + timedelta(seconds=1)
        visited(conn, source_id, [a_post("1")], after_expiry)
        [late] = record(conn, [a_visit(source_id, paused, [a_post("stale")])], after_expiry)
        assert not late.accepted
        assert conn.execute(select(posts.c.source_post_id)).scalars().all() == ["1"]

    db.write_now(work)


def test_a_result_after_the_lease_ran_out_is_refused_even_if_nobody_took_it(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        lease = a_claim(conn, source_id)
        [late] = record(conn, [a_visit(source_id, lease, [a_post("1")])], NOON + LEASE)
        assert not late.accepted
        due = leases.claim_due(conn, now=NOON + LEASE, lease="next", lease_for=LEASE, gap=NO_GAP, limit=10)
        assert [one.source.id for one in due] == [source_id]

    db.write_now(work)


def test_failures_count_and_a_success_forgets_them(db: Database, owner: Reader) -> None:  # D8
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        wrong = {
            "outcome": "failed",
            "status": "failing",
            "error_code": "timed_out",
            "error": "Too slow.",
            "facts": None,
        }
        visited(conn, source_id, [], **wrong)
        visited(conn, source_id, [], LATER, **wrong)
        seen = sources.watched_one(conn, owner, source_id, LATER)
        assert seen is not None
        assert (seen.consecutive_failures, seen.failing_since, seen.last_error) == (2, NOON, "Too slow.")
        visited(conn, source_id, [a_post("1")], LATER + timedelta(hours=1))
        seen = sources.watched_one(conn, owner, source_id, LATER)
        assert seen is not None
        assert (seen.status, seen.consecutive_failures, seen.failing_since, seen.last_error) == ("ok", 0, None, None)
        kinds = conn.execute(select(event_outbox.c.kind).order_by(event_outbox.c.id)).scalars().all()
        assert [kind for kind in kinds if kind.startswith("source.")] == [
            "source.added",
            "source.failed",
            "source.recovered",
        ]

    db.write_now(work)


def test_trouble_of_our_own_network_does_not_count_against_the_source(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        visited(conn, source_id, [a_post("1")])
        visited(
            conn,
            source_id,
            [],
            LATER,
            outcome="failed",
            status="ok",
            error="No route.",
            blames_source=False,
            facts=None,
        )
        row = conn.execute(select(sources_table)).one()
        assert (row.failure_hit, row.consecutive_failures, row.status, row.last_error) == (0, 0, "ok", "No route.")

    db.write_now(work)


def test_a_gone_source_is_retired_and_says_so(db: Database, owner: Reader) -> None:  # H32
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        visited(conn, source_id, [], outcome="failed", status="retired", error="Gone.", facts=None)
        seen = sources.watched_one(conn, owner, source_id, LATER)
        assert seen is not None
        assert (seen.status, seen.active) == ("retired", False)
        assert leases.claim_due(conn, now=LATER, lease="x", lease_for=LEASE, gap=NO_GAP, limit=9) == []
        assert "source.retired" in conn.execute(select(event_outbox.c.kind)).scalars().all()

    db.write_now(work)


def test_a_source_without_new_posts_for_long_is_shown_as_silent(db: Database, owner: Reader) -> None:  # F4
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        visited(conn, source_id, [a_post("1")])
        for days, status in ((59, "ok"), (61, "silent")):
            seen = sources.watched_one(conn, owner, source_id, NOON + timedelta(days=days))
            assert seen is not None
            assert seen.status == status

    db.write_now(work)


def test_a_site_whose_feed_was_found_lives_at_the_feeds_address_and_is_known_by_both(
    db: Database, owner: Reader
) -> None:
    def work(conn: Connection) -> None:  # D1
        source_id = a_source(conn, owner, "https://news.example/")
        visited(conn, source_id, [a_post("1")], moved_to="https://news.example/feed.xml")
        seen = sources.watched_one(conn, owner, source_id, LATER)
        assert seen is not None
        assert seen.address == "https://news.example/feed.xml"
        for address in ("https://news.example/", "https://news.example/feed.xml"):
            assert a_source(conn, owner, address, LATER) == source_id

    db.write_now(work)


@pytest.mark.parametrize(
    ("address", "moved_to", "kept"),
    [
        ("https://news.example/feed", "https://news.example/new", True),
        ("http://news.example/feed", "https://news.example/feed", True),
        ("https://news.example/feed", "https://evil.example/feed", False),
        ("https://news.example/feed", "https://news.example:8443/feed", False),
        ("https://news.example/feed", "http://news.example/feed", False),
    ],
)
def test_a_source_that_moved_to_another_server_leaves_its_password_behind(
    db: Database, owner: Reader, address: str, moved_to: str, kept: bool
) -> None:  # H14
    def work(conn: Connection) -> None:
        protected, vault = address.replace("://", "://me:word@"), Vault("key")
        source_id = follow(conn, owner, protected, NOON, seal=vault.credential).source_id
        visited(conn, source_id, [a_post("1")], moved_to=moved_to)
        [due] = leases.claim_named(conn, [source_id], now=LATER, lease="x", lease_for=LEASE, gap=NO_GAP)
        assert due.source.address == moved_to
        assert (due.credential and vault.open(due.credential)) == ("me:word" if kept else None)

    db.write_now(work)


def test_a_page_that_was_read_in_part_is_said(db: Database, owner: Reader) -> None:  # H43, H46
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        visited(conn, source_id, [a_post("1")], facts=Facts(title="x", truncated=True))
        seen = sources.watched_one(conn, owner, source_id, LATER)
        assert seen is not None
        assert seen.truncated
        assert visits.past_visits(conn, source_id, 1)[0].truncated

    db.write_now(work)


def test_a_site_whose_feed_is_watched_already_becomes_one_with_it(db: Database, owner: Reader) -> None:  # D1
    def work(conn: Connection) -> None:
        feed = a_source(conn, owner, "https://news.example/feed.xml")
        visited(conn, feed, [a_post("1")])
        site = a_source(conn, owner, "https://news.example/")
        saved = visited(conn, site, [a_post("1")], moved_to="https://news.example/feed.xml")
        assert saved.accepted
        assert [one.id for one in sources.watched(conn, owner, LATER)] == [feed]
        assert a_source(conn, owner, "https://news.example/", LATER) == feed
        assert len(conn.execute(select(posts.c.id)).all()) == 1

    db.write_now(work)


def test_a_source_with_posts_keeps_its_own_life_when_it_redirects_to_another(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        feed = a_source(conn, owner, "https://news.example/feed.xml")
        old = a_source(conn, owner, "https://old.example/feed.xml")
        for source_id in (feed, old):
            visited(conn, source_id, [a_post("1")])
        visited(conn, old, [a_post("1")], LATER, moved_to="https://news.example/feed.xml")
        assert len(sources.watched(conn, owner, LATER)) == 2

    db.write_now(work)


def test_validators_and_watermark_are_there_for_the_next_visit(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner)
        newest = a_post("2", created_at=NOON - timedelta(hours=1))
        visited(conn, source_id, [a_post("1", created_at=NOON - timedelta(hours=2)), newest])
        [due] = leases.claim_named(conn, [source_id], now=LATER, lease="x", lease_for=LEASE, gap=NO_GAP)
        assert due.state == SourceState('"1"', None, b"x", "2", newest.created_at, NOON)

    db.write_now(work)
