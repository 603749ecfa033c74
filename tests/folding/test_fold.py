"""Folding behind the crawl: one decision for each post, whoever decides and whatever goes wrong (C1-C7)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection, select

from folding.flood import ELECTION, FLOOD, FLOOD_AGAIN, FLOOD_TOLD
from headwater.consumers import fold
from headwater.consumers.fold import StoryFolding
from headwater.model import Reader, Reference
from headwater.store import stories
from headwater.store.db import Database
from headwater.store.posts import stream
from headwater.store.tables import event_outbox, posts, story_members
from support.log import consume_all
from support.posts import NOON, a_post, a_source, visited


def published(conn: Connection, owner: Reader, *titles: str, content: str = "") -> list[int]:
    """One post in each of as many sources, a minute apart; returns their ids."""
    ids = []
    for minute, title in enumerate(titles):
        source_id = a_source(conn, owner, f"https://paper{minute}.example/feed")
        post = a_post(f"{minute} {title}", title, content=content, created_at=NOON + timedelta(minutes=minute))
        visited(conn, source_id, [post])
        ids += conn.execute(select(posts.c.id).where(posts.c.source_id == source_id)).scalars().all()
    return ids


def a_folder() -> StoryFolding:
    return StoryFolding(window=timedelta(hours=72))


def groups(db: Database) -> list[list[int]]:
    rows = db.read_now(
        lambda conn: conn.execute(
            select(story_members.c.story_id, story_members.c.post_id).order_by(story_members.c.post_id)
        ).all()
    )
    found: dict[int, list[int]] = {}
    for story_id, post_id in rows:
        found.setdefault(story_id, []).append(post_id)
    return sorted(found.values())


def test_repeats_and_stories_are_folded_behind_the_crawl(db: Database, owner: Reader) -> None:  # C1, C2, C4, C6
    a, b, c, d = db.write_now(published, owner, FLOOD, FLOOD_AGAIN, ELECTION, FLOOD_TOLD)
    consume_all(db, a_folder().consumer())
    assert groups(db) == [[a, b, d], [c]]
    places = db.read_now(stories.decided, [a, b, c, d])
    assert (places[b].decision.rule, places[b].decision.repeat_id) == ("exact", a)
    assert "BREAKING" in places[b].decision.why.upper()
    assert (places[d].decision.rule, places[d].decision.repeat_id) == ("story", d)
    assert places[d].decision.why.startswith("shares:")
    [told, flood] = db.read_now(stream.page, owner)
    assert [member.post_id for member in flood.members] == [a, b, d]
    assert told.post.title == ELECTION


def test_every_joining_is_an_event(db: Database, owner: Reader) -> None:
    db.write_now(published, owner, FLOOD, FLOOD_AGAIN)
    consume_all(db, a_folder().consumer())
    kinds = db.read_now(lambda conn: conn.execute(select(event_outbox.c.kind, event_outbox.c.key)).all())
    assert [tuple(row) for row in kinds if row.kind == "story.joined"] == [("story.joined", "story:1")]


def test_a_process_that_starts_anew_knows_what_was_decided(db: Database, owner: Reader) -> None:
    a, b = db.write_now(published, owner, FLOOD, ELECTION)
    consume_all(db, a_folder().consumer())
    source_id = db.write_now(a_source, owner, "https://late.example/feed")
    later = a_post("late", FLOOD_AGAIN, content="", created_at=NOON + timedelta(hours=2))
    db.write_now(visited, source_id, [later])
    consume_all(db, a_folder().consumer())
    assert groups(db) == [[a, b + 1], [b]]


def test_two_processes_follow_each_others_decisions(db: Database, owner: Reader) -> None:  # H84
    one, two = a_folder(), a_folder()
    ids = db.write_now(published, owner, FLOOD, ELECTION, FLOOD_AGAIN, FLOOD_TOLD, f"{ELECTION} - The Norland Post")
    for turn, post_id in enumerate(ids):
        db.write_now((one, two)[turn % 2].fold, [post_id], NOON)
    assert groups(db) == [[ids[0], ids[2], ids[3]], [ids[1], ids[4]]]


def test_a_post_that_was_decided_about_is_skipped(db: Database, owner: Reader) -> None:  # C6
    ids = db.write_now(published, owner, FLOOD, FLOOD_AGAIN)
    folder = a_folder()
    assert len(db.write_now(folder.fold, ids, NOON)) == 2
    assert db.write_now(folder.fold, ids, NOON) == []
    assert db.write_now(a_folder().fold, ids, NOON) == []


def test_what_was_not_committed_is_not_remembered(db: Database, owner: Reader) -> None:
    a, b = db.write_now(published, owner, FLOOD, FLOOD_AGAIN)
    folder = a_folder()

    def fold_and_fail(conn: Connection) -> None:
        folder.fold(conn, [a], NOON)
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        db.write_now(fold_and_fail)
    assert [decision.rule for decision in db.write_now(folder.fold, [b], NOON)] == ["first"]
    db.write_now(folder.fold, [a], NOON)
    assert groups(db) == [[a, b]]


def test_what_a_person_told_apart_is_not_folded_again(db: Database, owner: Reader) -> None:  # C5
    a, b, c = db.write_now(published, owner, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
    folder = a_folder()
    db.write_now(folder.fold, [a, b, c], NOON)
    assert groups(db) == [[a, b, c]]
    assert db.write_now(fold.undo, a, owner, NOON) == [a, b, c]
    for again in (folder, a_folder()):
        db.write_now(stories.forget, [a, b, c])
        db.write_now(again.fold, [a, b, c], NOON)
        assert groups(db) == [[a], [b], [c]]


def test_one_post_taken_out_stays_out_and_the_rest_stays(db: Database, owner: Reader) -> None:  # C5
    a, b, c = db.write_now(published, owner, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
    db.write_now(a_folder().fold, [a, b, c], NOON)
    assert db.write_now(fold.part, c, owner, NOON) == [c]
    db.write_now(stories.forget, [c])
    db.write_now(a_folder().fold, [c], NOON)
    assert groups(db) == [[a, b], [c]]


def test_if_stories_cannot_be_found_repeats_still_are(
    db: Database, owner: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:  # C7
    def broken(*_: object) -> None:
        raise ArithmeticError("no story today")

    monkeypatch.setattr("headwater.dedup.stories.StoryIndex.add_many", broken)
    a, b, c = db.write_now(published, owner, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
    folder = a_folder()
    db.write_now(folder.fold, [a, b, c], NOON)
    assert groups(db) == [[a, b], [c]]
    assert folder.trouble == "ArithmeticError: no story today"


def test_a_post_that_passes_another_on_is_its_repeat_whatever_it_says(db: Database, owner: Reader) -> None:  # C1
    def work(conn: Connection) -> None:
        source_id = a_source(conn, owner, "https://one.example/feed")
        other_id = a_source(conn, owner, "https://two.example/feed")
        visited(conn, source_id, [a_post("77", FLOOD, content="")])
        passing_on = a_post("78", "look at this", content="", reference=Reference("repost", "77"))
        visited(conn, other_id, [passing_on])
        first, second = conn.execute(select(posts.c.id).order_by(posts.c.id)).scalars()
        a_folder().fold(conn, [first, second], NOON)
        place = stories.decided(conn, [second])[second].decision
        assert (place.story_id, place.rule) == (first, "exact")

    db.write_now(work)


def test_folding_can_be_switched_off(db: Database, owner: Reader) -> None:  # C8
    ids = db.write_now(published, owner, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
    assert db.write_now(StoryFolding(window=timedelta(hours=72), level="off").fold, ids, NOON) == []
    db.write_now(StoryFolding(window=timedelta(hours=72), level="repeats").fold, ids, NOON)
    assert groups(db) == [ids[:2], ids[2:]]


def test_an_edited_post_that_stood_alone_is_looked_at_again(db: Database, owner: Reader) -> None:
    a, b = db.write_now(published, owner, FLOOD, ELECTION)
    folder = a_folder()
    consume_all(db, folder.consumer())
    assert groups(db) == [[a], [b]]
    edited = a_post(f"1 {ELECTION}", FLOOD_AGAIN, content="", created_at=NOON + timedelta(minutes=1))
    source_id = db.write_now(a_source, owner, "https://paper1.example/feed")
    db.write_now(visited, source_id, [edited])
    consume_all(db, folder.consumer())
    assert groups(db) == [[a, b]]


def test_a_run_may_ask_for_less_and_may_only_look(db: Database, owner: Reader) -> None:  # C8
    ids = db.write_now(published, owner, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
    look = fold.FoldOptions(dry=True)
    assert [one.rule for one in db.write_now(a_folder().fold, ids, NOON, look)] == ["first", "exact", "story"]
    assert groups(db) == []
    folder = a_folder()
    for wanted, rules in (
        (fold.FoldOptions(exact=False, dry=True), ["first", "first", "story"]),
        (fold.FoldOptions(similar=False, dry=True), ["first", "exact", "first"]),
        (fold.FoldOptions(threshold=0.99), ["first", "exact", "first"]),
    ):
        assert [one.rule for one in db.write_now(folder.fold, ids, NOON, wanted)] == rules
    assert groups(db) == [ids[:2], ids[2:]]
