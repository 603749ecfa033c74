"""Stories in the store: each post in one, the earliest shown, every decision on record, undone for good (C3-C5, F1)."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection, insert, select, text

from headwater.model import Decision, Reader
from headwater.store import stories
from headwater.store.db import Database
from headwater.store.posts import stream
from headwater.store.posts.stream import Filter, Marks
from headwater.store.stories import folded
from headwater.store.stories.folded import FoldSettings
from headwater.store.tables import posts, tenants, users
from support.posts import NOON, a_post, a_source, visited
from support.statements import analyze, recorded


def told(conn: Connection, owner: Reader, *titles: str) -> list[int]:
    """One post in each of as many sources, a minute apart; returns their ids."""
    ids = []
    for minute, title in enumerate(titles):
        source_id = a_source(conn, owner, f"https://paper{minute}.example/feed")
        visited(conn, source_id, [a_post(title, title, created_at=NOON + timedelta(minutes=minute))])
        ids.append(conn.execute(select(posts.c.id).where(posts.c.source_id == source_id)).scalar_one())
    return ids


def first(post_id: int) -> Decision:
    return Decision(post_id, post_id, post_id, "first", 1.0, "")


def joins(
    post_id: int, story_id: int, score: float = 0.8, rule: str = "story", repeat_id: int | None = None
) -> Decision:
    return Decision(post_id, story_id, repeat_id or post_id, rule, score, "shares: mine, flood")


def shown(conn: Connection, reader: Reader, wanted: Filter = stream.EVERYTHING) -> list[list[int]]:
    return [[member.post_id for member in story.members] for story in stream.page(conn, reader, wanted)]


def test_the_stream_has_one_entry_for_a_story_shown_as_its_first_post(db: Database, owner: Reader) -> None:
    # F1, C3, C4
    def work(conn: Connection) -> None:
        a, b, c, d = told(conn, owner, "a", "b", "c", "d")
        stories.save(conn, [first(b), first(c), joins(d, b), joins(a, b)], NOON)
        assert shown(conn, owner) == [[b, a, d], [c]]
        [story, _] = stream.page(conn, owner)
        assert (story.post.id, story.at.post_id) == (b, d), "an earlier date takes nothing over"
        assert [(member.rule, member.why) for member in story.members][2] == ("story", "shares: mine, flood")
        assert len(stream.posts_page(conn, owner)) == 4

    db.write_now(work)


def test_a_page_is_full_of_entries_and_the_next_one_goes_on_after_it(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        ids = told(conn, owner, *"abcdefgh")
        stories.save(conn, [first(ids[0]), first(ids[1]), *(joins(id, ids[0]) for id in ids[2:])], NOON)
        [story] = stream.page(conn, owner, limit=1)
        assert story.post.id == ids[0]
        assert [one.post.id for one in stream.page(conn, owner, after=story.at, limit=1)] == [ids[1]]

    db.write_now(work)


def test_a_post_is_in_one_story_whatever_is_decided_later(db: Database, owner: Reader) -> None:  # C3, C6
    def work(conn: Connection) -> None:
        a, b, c = told(conn, owner, "a", "b", "c")
        stories.save(conn, [first(a), joins(b, a)], NOON)
        stories.save(conn, [first(c), joins(b, c)], NOON)
        assert stories.decided(conn, [b])[b].decision.story_id == a

    db.write_now(work)


def test_an_undone_story_stands_apart_and_stays_on_record(db: Database, owner: Reader) -> None:  # C5
    def work(conn: Connection) -> None:
        a, b, c = told(conn, owner, "a", "b", "c")
        stories.save(conn, [first(a), joins(b, a), joins(c, a)], NOON)
        assert stories.undo(conn, a, owner, NOON) == [a, b, c]
        assert shown(conn, owner) == [[c], [b], [a]]
        assert stories.apart_from(conn, [a, c]) == {a: {b, c}, c: {a, b}}
        assert stories.undo(conn, a, owner, NOON) == []
        actions = [(past.action, past.post_id, past.user_id) for past in stories.history(conn, a)]
        assert actions == [("joined", b, None), ("joined", c, None), ("undone", a, owner.user_id)]

    db.write_now(work)


def test_one_post_is_taken_out_of_a_story_with_its_repeats(db: Database, owner: Reader) -> None:  # C5
    def work(conn: Connection) -> None:
        a, b, c, d = told(conn, owner, "a", "b", "c", "d")
        stories.save(conn, [first(a), joins(b, a), joins(c, a, 0.95, "similar", b), joins(d, a)], NOON)
        assert stories.separate(conn, c, owner, NOON) == [b, c]
        assert shown(conn, owner) == [[a, d], [b, c]]
        assert stories.apart_from(conn, [a, b, c, d]) == {a: {b, c}, d: {b, c}, b: {a, d}, c: {a, d}}

    db.write_now(work)


def test_the_first_post_of_a_story_can_be_taken_out_and_the_rest_stays_together(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        a, b, c, d = told(conn, owner, "a", "b", "c", "d")
        stories.save(conn, [first(a), joins(b, a, 1.0, "exact", a), joins(c, a), joins(d, a, 1.0, "exact", a)], NOON)
        assert stories.separate(conn, a, owner, NOON) == [a]
        assert shown(conn, owner) == [[b, c, d], [a]]
        places = stories.decided(conn, [a, b, c, d])
        assert places[b].decision.rule == "first"
        assert places[d].decision.repeat_id == b
        assert {place.decision.story_id for place in places.values()} == {a, b}

    db.write_now(work)


def test_each_reader_folds_as_they_like(db: Database, owner: Reader) -> None:  # C8
    def work(conn: Connection) -> None:
        a, b, c = told(conn, owner, "a", "b", "c")
        stories.save(conn, [first(a), joins(b, a, 1.0, "exact", a), joins(c, a, 0.6)], NOON)
        assert shown(conn, owner) == [[a, b, c]]
        folded.save_settings(conn, owner, FoldSettings("repeats"))
        assert shown(conn, owner) == [[c], [a, b]]
        folded.save_settings(conn, owner, FoldSettings("stories", 0.7))
        assert shown(conn, owner) == [[c], [a, b]]
        folded.save_settings(conn, owner, FoldSettings("off"))
        assert shown(conn, owner) == [[c], [b], [a]]
        folded.save_settings(conn, owner, FoldSettings())
        source_id = conn.execute(select(posts.c.source_id).where(posts.c.id == b)).scalar_one()
        assert folded.set_folding(conn, owner, source_id, fold=False)
        assert shown(conn, owner) == [[a, c], [b]]

    db.write_now(work)


def test_a_story_shows_only_the_members_one_may_see(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        a, b, c = told(conn, owner, "a", "b", "c")
        [tenant] = conn.execute(insert(tenants).values(name="other", created_at=NOON).returning(tenants.c.id)).one()
        [user] = conn.execute(
            insert(users).values(tenant_id=tenant, name="x", role="owner", created_at=NOON).returning(users.c.id)
        ).one()
        other = Reader(tenant, user, "x", "owner")
        a_source(conn, other, "https://paper1.example/feed")
        a_source(conn, other, "https://paper2.example/feed")
        stories.save(conn, [first(a), joins(b, a), joins(c, a)], NOON)
        assert shown(conn, other) == [[b, c]]
        assert shown(conn, owner) == [[a, b, c]]

    db.write_now(work)


def test_within_one_source_or_folder_only_its_own_posts_are_folded(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        a, b = told(conn, owner, "a", "b")
        stories.save(conn, [first(a), joins(b, a)], NOON)
        source_id = conn.execute(select(posts.c.source_id).where(posts.c.id == b)).scalar_one()
        [story] = stream.page(conn, owner, Filter(source_id=source_id))
        assert story.post.id == b

    db.write_now(work)


def test_reading_one_post_reads_the_story_and_not_what_joins_it_later(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        a, b, c = told(conn, owner, "a", "b", "c")
        stories.save(conn, [first(b), joins(c, b)], NOON)
        stream.mark_posts(conn, owner, [b], NOON, Marks(read=True))
        stories.save(conn, [joins(a, b)], NOON)
        [story] = stream.page(conn, owner, Filter(unread=True))
        assert [(member.post_id, member.read) for member in story.members] == [(b, True), (a, False), (c, True)]
        assert (story.state, [one.post_id for one in story.news]) == ("updated", [a])
        stream.mark_posts(conn, owner, [c], NOON, Marks(read=True, as_of=story.as_of))
        assert shown(conn, owner, Filter(unread=True)) == []
        stream.mark_posts(conn, owner, [a], NOON, Marks(read=False))
        assert shown(conn, owner, Filter(unread=True)) == [[b, a, c]]

    db.write_now(work)


def test_the_folded_stream_reads_its_index_and_sorts_nothing(db: Database, owner: Reader) -> None:
    def fill(conn: Connection) -> None:
        for number in range(40):
            visited(conn, a_source(conn, owner, f"https://h{number}.example/"), [a_post(str(n)) for n in range(50)])
        ids = list(conn.execute(select(posts.c.id)).scalars())
        stories.save(conn, [first(id) if id % 3 else joins(id, id - 1) for id in ids], NOON)

    def plan(conn: Connection, owner: Reader) -> str:
        own = {"tenant_id": owner.tenant_id, "user_id": owner.user_id, "threshold": 0.0, "limit": 20}
        return "\n".join(str(row) for row in stream.page_statement("posts", fold="stories").plan(conn, **own))

    db.write_now(fill)
    analyze(db)
    found = db.read_now(plan, owner)
    assert "ix_posts_stream" in found
    assert "TEMP B-TREE" not in found
    assert "story_members" in found


def test_decisions_can_be_followed_from_a_time_on(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        ids = told(conn, owner, *"abcdefg")
        assert stories.seq_before(conn, NOON) == 0
        for hour, id in enumerate(ids):
            stories.save(conn, [first(id)], NOON + timedelta(hours=hour))
        for hour in range(8):
            seq = stories.seq_before(conn, NOON + timedelta(hours=hour))
            assert [member.decision.post_id for member in stories.decided_after(conn, seq)] == ids[hour:]

    db.write_now(work)


def test_a_large_story_is_read_with_as_many_statements_and_as_little_text_as_a_small_one(
    db: Database, owner: Reader
) -> None:  # F1
    def tell(conn: Connection, first: int, last: int) -> None:
        """Six sources tell it in turn."""
        for number in range(6):
            source_id = a_source(conn, owner, f"https://paper{number}.example/feed")
            mine = range(first + number, last, 6)
            told = [a_post(f"{n:04}", created_at=NOON + timedelta(minutes=n)) for n in mine]
            ids = [post.id for post in visited(conn, source_id, told, NOON + timedelta(hours=first)).posts]
            begun = conn.execute(text("SELECT min(story_id) FROM story_members")).scalar() or ids[0]
            rules = [(one, "first" if one == begun else "story") for one in ids]
            stories.save(conn, [Decision(one, begun, one, rule, 0.9, "") for one, rule in rules], NOON)

    def read() -> tuple[int, int]:
        with recorded(db) as statements:
            [story] = db.read_now(stream.page, owner)
        assert len(story.members) == 6
        return len(statements), len(repr(story))

    db.write_now(tell, 0, 6)
    asked, size = read()
    db.write_now(tell, 6, 300)
    asked_now, size_now = read()
    assert asked_now == asked
    assert size_now < 1.1 * size


def test_a_source_that_tells_a_story_again_and_again_does_not_fill_it(db: Database, owner: Reader) -> None:  # F1
    def tell(conn: Connection, source: str, first: int, last: int) -> None:
        told = [a_post(f"{n:04}", created_at=NOON + timedelta(minutes=n)) for n in range(first, last)]
        ids = [post.id for post in visited(conn, a_source(conn, owner, f"https://{source}.example/feed"), told).posts]
        begun = conn.execute(text("SELECT min(story_id) FROM story_members")).scalar() or ids[0]
        rules = [(one, "first" if one == begun else "story") for one in ids]
        stories.save(conn, [Decision(one, begun, one, rule, 0.9, "") for one, rule in rules], NOON)

    papers = ["first", "second", "third", "fourth"]
    for minute, paper in enumerate(papers):
        db.write_now(tell, paper, minute, minute + 1)
    db.write_now(tell, "loud", 10, 70)
    [story] = db.read_now(stream.page, owner)
    assert story.tellings == 64
    assert len(story.members) == 6
    assert len({one.source_id for one in story.members}) == len(papers) + 1
    assert [one.created_at for one in story.members[1:]] == sorted(one.created_at for one in story.members[1:])
