"""Records of images: written with the posts that show them, one for each address (B7, B9)."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select, text

from headwater.model import Image, Reader
from headwater.store import images
from headwater.store.db import Database
from headwater.store.images import ImageRecord, queue
from headwater.store.images.queue import ImageOutcome, SavedFile
from headwater.store.sources import leases
from headwater.store.tables import images as images_table
from support.posts import NOON, a_post, a_source, visited

SPRING = "https://pictures.example/spring.jpg"
FILE = SavedFile("ab" * 32, "ab/" + "ab" * 31 + ".png", "image/png", 80, 4, 3)


def publish(db: Database, source_id: int, *shown: tuple[str, list[Image]]) -> list[int]:
    posts = [a_post(id, images=tuple(images)) for id, images in shown]
    return [one.id for one in db.write_now(visited, source_id, posts).posts]


def of_post(db: Database, post_id: int) -> list[ImageRecord]:
    return db.read_now(images.of_post, post_id)


def claimed(db: Database, now: datetime = NOON, gap: timedelta = timedelta(0)) -> list[queue.ImageClaim]:
    ids = db.read_now(queue.due, now, 10)
    return db.write_now(queue.claim, ids, now=now, lease="mine", lease_for=timedelta(minutes=5), gap=gap)


def count(db: Database) -> int:
    return db.read_now(lambda conn: conn.execute(select(func.count()).select_from(images_table)).scalar_one())


def test_pictures_of_a_post_are_recorded_with_it_in_order_and_once(db: Database, owner: Reader) -> None:
    # B7
    source_id = db.write_now(a_source, owner)
    shown = [Image(SPRING, "The spring"), Image("https://pictures.example/b.png"), Image(SPRING + "#top", "Again")]
    [post_id] = publish(db, source_id, ("1", shown))
    found = of_post(db, post_id)
    assert [(one.url, one.alt, one.state) for one in found] == [
        (SPRING, "The spring", "waiting"),
        ("https://pictures.example/b.png", "", "waiting"),
    ]
    assert publish(db, source_id, ("1", shown)) == [post_id]
    assert of_post(db, post_id) == found


def test_posts_that_show_the_same_address_share_its_record(db: Database, owner: Reader) -> None:
    one, two = (db.write_now(a_source, owner, f"https://news.example/{name}") for name in ("one", "two"))
    [first, second] = publish(db, one, ("1", [Image(SPRING, "Here")]), ("2", [Image(SPRING, "There")]))
    [third] = publish(db, two, ("1", [Image(SPRING)]))
    assert count(db) == 1
    assert len({of_post(db, post_id)[0].id for post_id in (first, second, third)}) == 1
    assert [of_post(db, post_id)[0].alt for post_id in (first, second, third)] == ["Here", "There", ""]
    assert [(found.source_id, found.counts["waiting"]) for found in db.read_now(images.counts_by_source)] == [
        (one, 1),
        (two, 1),
    ]  # B9


def test_an_address_that_cannot_be_asked_for_is_skipped_and_says_why(db: Database, owner: Reader) -> None:
    source_id = db.write_now(a_source, owner)
    hostile = [Image("data:image/png;base64,AAAA"), Image("https://[nowhere"), Image("https://a.example/\0b", "\0alt")]
    [post_id] = publish(db, source_id, ("1", hostile))
    assert {one.state for one in of_post(db, post_id)} == {"skipped"}
    assert all(one.error for one in of_post(db, post_id))
    assert claimed(db) == []


def test_a_name_and_password_in_an_address_are_not_kept(db: Database, owner: Reader) -> None:
    source_id = db.write_now(a_source, owner)
    [post_id] = publish(db, source_id, ("1", [Image("https://me:secret@pictures.example/a.png")]))
    assert of_post(db, post_id)[0].url == "https://pictures.example/a.png"


def test_a_post_with_thousands_of_pictures_gets_so_many_records_and_no_more(db: Database, owner: Reader) -> None:
    source_id = db.write_now(a_source, owner)
    [post_id] = publish(db, source_id, ("1", [Image(f"https://pictures.example/{n}.png") for n in range(5000)]))
    assert len(of_post(db, post_id)) == images.MOST_OF_A_POST


def test_posts_without_pictures_cost_no_statement(db: Database, owner: Reader) -> None:
    source_id = db.write_now(a_source, owner)
    publish(db, source_id, ("1", []))
    assert count(db) == 0


def test_each_host_is_asked_for_one_picture_at_a_time(db: Database, owner: Reader) -> None:
    source_id = db.write_now(a_source, owner)
    many = [Image(f"https://busy.example/{number}.png") for number in range(100)]
    publish(db, source_id, ("1", [*many, Image("https://small.example/1.png")]))
    gap = timedelta(seconds=1)
    assert sorted(claim.host for claim in claimed(db, gap=gap)) == ["busy.example", "small.example"]
    assert claimed(db, gap=gap) == []
    assert [claim.host for claim in claimed(db, NOON + gap, gap)] == ["busy.example"]


def test_a_host_that_asked_for_quiet_is_left_alone(db: Database, owner: Reader) -> None:
    source_id = db.write_now(a_source, owner)
    publish(db, source_id, ("1", [Image(f"https://busy.example/{number}.png") for number in range(2)]))
    [claim] = claimed(db)
    busy = ImageOutcome("waiting", error="Come less often.", hold_for=timedelta(hours=2))
    assert db.write_now(queue.record_outcome, claim, busy, NOON, 0.0)
    assert claimed(db, NOON + timedelta(minutes=119)) == []
    assert len(claimed(db, NOON + timedelta(minutes=121))) == 1


def test_pictures_never_push_the_visits_of_their_host_back(db: Database, owner: Reader) -> None:
    source_id = db.write_now(a_source, owner, "https://forum.example/")
    publish(db, source_id, ("1", [Image(f"https://forum.example/{number}.png") for number in range(50)]))
    gap = timedelta(seconds=1)
    claimed(db, gap=gap)
    claimed(db, gap=gap)
    later = NOON + timedelta(hours=1)
    [due] = db.write_now(leases.claim_due, now=later, lease="visit", lease_for=gap, gap=gap, limit=5)
    assert due.start_at == later


def test_a_lost_lease_writes_nothing_and_is_due_again_by_itself(db: Database, owner: Reader) -> None:
    # H85
    source_id = db.write_now(a_source, owner)
    [post_id] = publish(db, source_id, ("1", [Image(SPRING)]))
    [lost] = claimed(db)
    assert claimed(db) == []
    later = NOON + timedelta(minutes=6)
    [mine] = claimed(db, later)
    mine = mine._replace(lease="another")
    db.write_now(lambda conn: conn.execute(text("UPDATE images SET lease_owner = 'another'")))
    assert not db.write_now(queue.record_outcome, lost, ImageOutcome("saved", FILE), later, 0.0)
    assert of_post(db, post_id)[0].state == "waiting"
    assert db.write_now(queue.record_outcome, mine, ImageOutcome("saved", FILE), later, 0.0)
    assert of_post(db, post_id)[0].state == "saved"


def test_a_failure_is_tried_three_times_more_and_a_person_may_ask_again(db: Database, owner: Reader) -> None:
    source_id = db.write_now(a_source, owner)
    [post_id] = publish(db, source_id, ("1", [Image(SPRING)]))
    now, waits = NOON, []
    while claims := claimed(db, now):
        db.write_now(queue.record_outcome, claims[0], ImageOutcome("waiting", error="No."), now, 0.0)
        [after] = db.read_now(lambda conn: list(conn.execute(select(images_table.c.next_try_at)).scalars()))
        if after:
            waits.append((after - now).total_seconds())
            now = after
    assert waits == [60, 600, 3600]
    [record] = of_post(db, post_id)
    assert (record.state, record.attempts, record.error) == ("failed", 4, "No.")
    assert db.write_now(queue.retry_failed, now) == 1
    assert len(claimed(db, now)) == 1


def test_what_was_not_the_pictures_fault_is_not_counted(db: Database, owner: Reader) -> None:
    source_id = db.write_now(a_source, owner)
    [post_id] = publish(db, source_id, ("1", [Image(SPRING)]))
    now = NOON
    for _ in range(10):
        [claim] = claimed(db, now)
        db.write_now(queue.record_outcome, claim, ImageOutcome("waiting", error="No network.", counts=False), now, 0.0)
        now += queue.HINDERED
    assert (of_post(db, post_id)[0].state, of_post(db, post_id)[0].attempts) == ("waiting", 0)


def test_after_the_clock_went_back_pictures_are_due_again(db: Database, owner: Reader) -> None:
    # H93
    source_id = db.write_now(a_source, owner)
    publish(db, source_id, ("1", [Image(SPRING)]))
    long_ago = NOON - timedelta(days=30)
    assert claimed(db, long_ago) == []
    assert db.write_now(queue.heal_clock, long_ago) == 1
    assert len(claimed(db, long_ago)) == 1


def test_one_content_under_two_addresses_counts_once(db: Database, owner: Reader) -> None:
    source_id = db.write_now(a_source, owner)
    publish(db, source_id, ("1", [Image(SPRING), Image("https://mirror.example/spring.jpg")]))
    for claim in claimed(db):
        db.write_now(queue.record_outcome, claim, ImageOutcome("saved", FILE), NOON, 0.0)
    assert db.read_now(images.counts)["saved"] == 2
    assert db.read_now(images.total_bytes) == FILE.size


def test_what_is_due_is_found_by_an_index(sqlite_url: str) -> None:
    db = Database(sqlite_url)

    def plan(conn: Connection) -> list[str]:
        cursor = conn.connection.cursor()
        cursor.execute("EXPLAIN QUERY PLAN " + queue._due.sql(conn), (NOON, NOON, NOON, 10))
        return [row[3] for row in cursor.fetchall()]

    steps = db.read_now(plan)
    db.close()
    assert not [step for step in steps if step.startswith("SCAN") and step.split()[1] not in ("waiting", "first")]
    images_read = [step for step in steps if step.startswith(("SEARCH images", "SEARCH i "))]
    assert len(images_read) == 4
    assert all("ix_images_waiting" in step or "PRIMARY KEY" in step for step in images_read)
