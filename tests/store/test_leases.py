"""Claims: exclusive, fair to hosts, and never lost."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, func, select, update

from headwater.model import DueSource, Reader
from headwater.store import sources
from headwater.store.db import Database
from headwater.store.sources import leases, schedule
from headwater.store.sources.leases import LOOK_AHEAD, HostQueue, WaitingSource, assign_slots
from headwater.store.tables import sources as sources_table
from support.posts import LEASE, NO_GAP, NOON, a_claim, a_post, a_source, visited

SECOND = timedelta(seconds=1)


def claim(
    conn: Connection, now: datetime = NOON, lease: str = "me", gap: timedelta = NO_GAP, limit: int = 100
) -> list[DueSource]:
    return leases.claim_due(conn, now=now, lease=lease, lease_for=LEASE, gap=gap, limit=limit)


def add_many(db: Database, owner: Reader, count: int, host: str = "h{}.example") -> None:
    def work(conn: Connection) -> None:
        for number in range(count):
            a_source(conn, owner, f"https://{host.format(number)}/feed{number}")

    db.write_now(work)


def test_a_source_is_claimed_once_until_its_lease_runs_out(db: Database, owner: Reader) -> None:  # D5
    add_many(db, owner, 1)
    assert len(db.write_now(claim)) == 1
    assert db.write_now(claim, NOON + LEASE - SECOND, "other") == []
    assert len(db.write_now(claim, NOON + LEASE, "other")) == 1


def test_many_claimers_at_once_share_the_sources_without_overlap(db: Database, owner: Reader) -> None:  # H84
    add_many(db, owner, 60)
    taken: list[int] = []

    def work(name: str) -> None:
        while granted := db.write_now(claim, NOON, name, NO_GAP, 7):
            taken.extend(due.source.id for due in granted)

    threads = [threading.Thread(target=work, args=(f"worker {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(set(taken))
    assert len(taken) == 60


def test_sources_of_one_host_take_turns_and_wait_without_failing(db: Database, owner: Reader) -> None:  # D7
    add_many(db, owner, 6, host="one.example")
    granted = db.write_now(claim, NOON, "me", SECOND)
    assert [due.start_at - NOON for due in granted] == [timedelta(0), SECOND, 2 * SECOND]
    waiting = [one for one in db.read_now(sources.watched, owner, NOON) if not one.checking]
    assert {one.waits_for for one in waiting} == {"its turn at one.example"}
    assert {one.consecutive_failures for one in waiting} == {0}
    later = db.write_now(claim, NOON + 3 * SECOND, "other", SECOND)
    assert [due.start_at - NOON for due in later] == [3 * SECOND, 4 * SECOND, 5 * SECOND]


def test_a_host_that_asked_for_quiet_is_left_alone_by_every_process(db: Database, owner: Reader) -> None:  # H31
    add_many(db, owner, 2, host="busy.example")
    until = NOON + timedelta(minutes=10)
    db.write_now(leases.pause_host, "busy.example", NOON, until)
    for gap in (NO_GAP, SECOND):
        assert db.write_now(claim, NOON + SECOND, "me", gap) == []
    assert {one.waits_for for one in db.read_now(sources.watched, owner, NOON)} == {"busy.example asked for a pause"}
    assert len(db.write_now(claim, until + 2 * SECOND, "me", NO_GAP)) == 2


def test_a_given_back_source_is_due_at_once(db: Database, owner: Reader) -> None:  # H97
    add_many(db, owner, 1)
    [due] = db.write_now(claim)
    db.write_now(leases.release, [(due.source.id, "me")], NOON)
    assert len(db.write_now(claim, NOON, "other")) == 1


def test_giving_back_a_lease_that_was_lost_changes_nothing(db: Database, owner: Reader) -> None:
    add_many(db, owner, 1)
    [due] = db.write_now(claim)
    db.write_now(claim, NOON + LEASE, "other")
    db.write_now(leases.release, [(due.source.id, "me")], NOON + LEASE)
    assert db.write_now(claim, NOON + LEASE + SECOND, "third") == []


def test_a_clock_that_went_back_a_day_does_not_stop_the_schedule(db: Database, owner: Reader) -> None:  # H93
    def a_day_ahead(conn: Connection) -> None:
        tomorrow = NOON + timedelta(days=1)
        source_id = a_source(conn, owner, now=tomorrow)
        visited(conn, source_id, [a_post("1")], tomorrow)
        held = a_source(conn, owner, "https://held.example/feed", tomorrow)
        a_claim(conn, held, tomorrow)

    db.write_now(a_day_ahead)
    assert db.write_now(claim) == []
    db.write_now(leases.heal_clock, NOON, LEASE)
    assert len(db.write_now(claim)) == 2


def test_a_clock_that_went_forward_a_day_makes_no_storm(db: Database, owner: Reader) -> None:  # H93, H94
    add_many(db, owner, 50, host="one.example")
    granted = db.write_now(claim, NOON + timedelta(days=1), "me", SECOND)
    assert len(granted) == 3


def test_asking_for_a_visit_of_a_source_that_is_being_visited_leaves_it_alone(db: Database, owner: Reader) -> None:
    add_many(db, owner, 1)
    [due] = db.write_now(claim)
    assert db.write_now(sources.make_due, [due.source.id], NOON + SECOND) == 0
    assert db.write_now(claim, NOON + SECOND, "other") == []


def test_what_a_person_asked_for_takes_the_first_ticket_at_its_host(db: Database, owner: Reader) -> None:  # D7, D12
    add_many(db, owner, 20, host="one.example")
    first = db.write_now(claim, NOON, "me", SECOND)
    [last] = db.read_now(lambda conn: conn.execute(select(func.max(sources_table.c.id))).scalars())
    assert db.write_now(schedule.ask, last, NOON)
    starts = [due.start_at for due in first]
    order = [due.source.id for due in first]
    for second in range(1, 30):
        granted = db.write_now(claim, NOON + second * SECOND, "other", SECOND)
        starts += [due.start_at for due in granted]
        order += [due.source.id for due in granted]
        if any(due.source.id == last for due in granted):
            assert next(due for due in granted if due.source.id == last).is_asked
    assert order.index(last) == len(first)
    assert sorted(order) == sorted(set(order))
    assert len(order) == 20
    assert all(later - earlier >= SECOND for earlier, later in pairwise(sorted(starts)))


def test_what_several_people_asked_for_comes_in_the_order_of_asking(db: Database, owner: Reader) -> None:  # D12
    add_many(db, owner, 20)
    for place, wanted in enumerate((17, 11, 19)):
        assert db.write_now(schedule.ask, wanted, NOON + place * SECOND)
    granted = db.write_now(claim, NOON + 5 * SECOND, "me", NO_GAP, 5)
    assert [due.source.id for due in granted[:3]] == [17, 11, 19]
    assert len(granted) == 5


def test_a_visit_that_was_asked_for_and_had_to_wait_is_still_asked_for(db: Database, owner: Reader) -> None:  # D12
    add_many(db, owner, 5, host="busy.example")
    until = NOON + timedelta(minutes=10)
    db.write_now(leases.pause_host, "busy.example", NOON, until)
    assert db.write_now(schedule.ask, 4, NOON)
    assert db.write_now(claim, NOON, "me", SECOND) == []
    [first, *_] = db.write_now(claim, until + SECOND, "me", SECOND)
    assert (first.source.id, first.is_asked) == (4, True)


def test_looking_for_what_a_person_asked_for_uses_its_index(db: Database, owner: Reader) -> None:
    def plan(conn: Connection) -> str:
        if not db.is_sqlite:
            conn.exec_driver_sql("SET LOCAL enable_seqscan = off")
        return str(leases._count_asked.plan(conn, NOON, NOON))

    add_many(db, owner, 3)
    assert "ix_sources_asked" in db.write_now(plan)


def test_every_source_is_due_or_leased_or_waits_for_a_known_time(db: Database, owner: Reader) -> None:  # D6
    add_many(db, owner, 20, host="one.example")
    db.write_now(claim, NOON, "me", SECOND)
    rows = db.read_now(lambda conn: conn.execute(select(sources_table)).all())
    assert all(row.next_check_at is not None and row.next_check_at <= NOON + LEASE for row in rows)


def test_choosing_what_is_due_uses_its_index(db: Database, owner: Reader) -> None:
    def plan(conn: Connection) -> str:
        conn.execute(update(sources_table).values(next_check_at=NOON))
        explain = "EXPLAIN QUERY PLAN " if db.is_sqlite else "EXPLAIN "
        if not db.is_sqlite:
            conn.exec_driver_sql("SET LOCAL enable_seqscan = off")
        sql = """SELECT id FROM sources WHERE active AND next_check_at <= {0}
            AND (lease_until IS NULL OR lease_until <= {0}) ORDER BY next_check_at LIMIT 10"""
        value = 1 if db.is_sqlite else "now()"
        return str(conn.exec_driver_sql(explain + sql.format(value)).all())

    add_many(db, owner, 3)
    assert "ix_sources_due" in db.write_now(plan)


waiting_sources = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.one_of(st.none(), st.integers(-5, 20))), max_size=40
)


@given(waiting_sources, st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(-10, 10)))
def test_slots_of_one_host_are_never_closer_than_the_gap(
    found: list[tuple[str, int | None]], queues: dict[str, int]
) -> None:
    fresh = [WaitingSource(host, None) for host, _ in found]
    before = {host: HostQueue(NOON + seconds * SECOND) for host, seconds in queues.items()}
    slots, after = assign_slots(fresh, before, NOON, SECOND)
    for host in "abc":
        times = [slot.at for source, slot in zip(fresh, slots, strict=True) if source.host == host]
        assert all(later - earlier >= SECOND for earlier, later in pairwise(times))
        assert all(time >= NOON for time in times)
        if times:
            assert after[host].next_at == times[-1] + SECOND


@given(waiting_sources)
def test_a_ticket_that_was_missed_is_exchanged_and_a_good_one_is_kept(found: list[tuple[str, int | None]]) -> None:
    waiting = [WaitingSource(host, None if turn is None else NOON + turn * SECOND) for host, turn in found]
    slots, _ = assign_slots(waiting, {}, NOON, SECOND)
    for source, slot in zip(waiting, slots, strict=True):
        assert slot.at >= NOON
        if source.turn_at is not None and source.turn_at >= NOON:
            assert slot.at == source.turn_at
        assert slot.granted == (slot.at <= NOON + LOOK_AHEAD)
