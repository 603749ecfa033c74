"""Health: each figure with its limit and state (E9), cheap however long the log is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection

from headwater.consumers import search
from headwater.events import health
from headwater.events.health import Figure, Observed, judge, judge_connector, overall, percentile
from headwater.model import Reader
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.log import health as log_health
from headwater.store.log import outbox
from headwater.store.log.health import Backlog, LogHealth, PartitionBacklog
from headwater.store.log.replication import LogKeeper
from headwater.store.sql import Prepared
from support.log import Recorder, append
from support.posts import NOON, a_post, a_source, visited
from support.statements import analyze

WELL = LogHealth([Backlog("search", 0, None)], 1000, NOON, {}, {}, NOON, NOON, [])
SEEN = Observed(WELL, [0.01], {"ok": 10}, 0, timedelta(days=7), answers=40, unchanged=36, lookups=40, hits=0.9)
LATER = NOON + timedelta(seconds=10)


def figure(name: str, seen: Observed = SEEN, consumer: str | None = None, now: Any = NOON) -> Figure:
    found = judge(seen, [search.CONSUMER], now)
    return next(one for one in found if one.name == name and consumer in (None, one.consumer))


def with_log(**changes: Any) -> Observed:
    return SEEN._replace(log=WELL._replace(**changes))


def test_all_is_well_when_nothing_waits_and_nothing_failed() -> None:  # E9
    figures = judge(SEEN, [search.CONSUMER], NOON)
    assert overall(figures) == "ok"
    assert [one.name for one in figures if one.state == "unknown"] == ["forecast_freshness_sec"]


@pytest.mark.parametrize(
    ("waiting", "seconds", "state"),
    [(99, 60, "ok"), (100, 60, "warning"), (5000, 60, "bad"), (5000, 1, "ok"), (5000, 5.9, "ok"), (5000, 6, "bad")],
)
def test_a_backlog_is_trouble_once_it_has_waited_longer_than_the_consumer_rests(
    waiting: int, seconds: float, state: str
) -> None:  # E9
    seen = with_log(backlogs=[Backlog("search", waiting, NOON - timedelta(seconds=seconds))])
    assert figure("outbox_backlog", seen).state == state
    assert figure("outbox_backlog", seen).limit == 100


@pytest.mark.parametrize(("seconds", "state"), [(0, "ok"), (5.9, "ok"), (6, "warning"), (60, "bad")])
def test_lag_is_measured_against_two_seconds_and_the_consumers_rest(seconds: float, state: str) -> None:  # E9
    found = figure("consumer_lag", with_log(backlogs=[Backlog("search", 5, NOON - timedelta(seconds=seconds))]))
    assert (found.consumer, found.limit, found.state) == ("search", 6.0, state)
    assert bool(found.advice) == (state != "ok")


@pytest.mark.parametrize(("dead", "state"), [(0, "ok"), (1, "warning"), (9, "warning"), (10, "bad")])
def test_dead_letters_are_measured_against_one_in_a_thousand(dead: int, state: str) -> None:  # E9
    seen = with_log(dead={"search": dead} if dead else {}, events=10_000)
    assert (figure("dlq_count", seen).value, figure("dlq_count", seen).state) == (dead, state)
    assert figure("dlq_share", seen).value == pytest.approx(dead / 10_000)


@pytest.mark.parametrize(("seconds", "state"), [(2.9, "ok"), (3.0, "warning"), (31, "bad")])
def test_write_to_visible_is_measured_against_three_seconds(seconds: float, state: str) -> None:  # E9
    assert figure("write_to_visible_p95", SEEN._replace(delays=[seconds] * 100)).state == state


def test_what_was_not_measured_is_not_known_and_says_why() -> None:
    found = figure("write_to_visible_p95", SEEN._replace(delays=[]))
    assert (found.value, found.state) == (None, "unknown")
    assert found.advice


@pytest.mark.parametrize(
    ("answers", "unchanged", "value", "state"),
    [(0, 0, None, "unknown"), (19, 0, 0.0, "ok"), (20, 13, 0.65, "warning"), (20, 14, 0.7, "ok"), (3, 3, 1.0, "ok")],
)
def test_the_share_of_answers_that_we_already_had_is_judged(
    answers: int, unchanged: int, value: float | None, state: str
) -> None:  # E13
    found = figure("answers_unchanged", SEEN._replace(answers=answers, unchanged=unchanged))
    assert (found.value, found.limit, found.state) == (value, 0.7, state)
    assert bool(found.advice) == (state != "ok")


@pytest.mark.parametrize(
    ("hits", "lookups", "state"),
    [(None, 0, "unknown"), (0.5, 999, "ok"), (0.79, 1000, "warning"), (0.8, 1000, "ok")],
)
def test_the_hit_rate_of_the_cache_is_judged_when_there_were_enough_lookups(
    hits: float | None, lookups: int, state: str
) -> None:  # E9 E13
    found = figure("cache_hit_rate", SEEN._replace(hits=hits, lookups=lookups))
    assert (found.value, found.limit, found.state) == (hits, 0.8, state)
    assert bool(found.advice) == (state != "ok")


def test_the_longest_lag_has_the_documents_name(db: Database) -> None:  # E13
    backlogs = [Backlog("search", 5, NOON - timedelta(seconds=3)), Backlog("fold", 5, NOON - timedelta(seconds=2))]
    found = figure("kafka_consumer_lag", with_log(backlogs=backlogs))
    assert (found.value, found.state) == (2.0, "warning"), "search rests on purpose, fold does not"
    assert figure("kafka_consumer_lag", with_log(backlogs=[])).value is None


def test_a_paused_connector_is_named_as_the_cause() -> None:  # E13
    stuck = with_log(backlogs=[Backlog("search", 500, NOON - timedelta(minutes=5))], slot_read=False)
    found = figure("outbox_backlog", stuck._replace(on_kafka=True))
    assert found.state == "warning"
    assert "headwater kafka check" in found.advice
    assert figure("slot_read", stuck._replace(on_kafka=True)).state == "bad"
    assert figure("slot_read", SEEN._replace(on_kafka=True)).state == "ok"
    assert "slot_read" not in [one.name for one in judge(stuck, [search.CONSUMER], NOON)]


def test_sources_in_trouble_a_still_log_and_a_forgotten_slot_are_said() -> None:
    troubled = SEEN._replace(sources_by_status={"ok": 5, "failing": 4, "blocked": 1}, due=6000)
    assert figure("sources_failing", troubled).state == "warning"
    assert figure("sources_blocked", troubled).value == 1
    assert figure("sources_due", troubled).state == "warning"
    assert figure("freshness", now=NOON + timedelta(hours=2)).state == "bad"
    assert figure("oldest_event", now=NOON + timedelta(days=9)).state == "warning"


GIB = 1024**3


@pytest.mark.parametrize(
    ("slot", "state", "words"),
    [
        (LogKeeper("ours", True, "reserved", 5, None, True), "ok", ""),
        (LogKeeper("ours", False, "extended", 2 * GIB, None, True), "warning", "slot ours until the disk is full"),
        (LogKeeper("other", False, "extended", 20 * GIB, None, False), "bad", "the slot other until the disk is full"),
        (LogKeeper("ours", False, "unreserved", 5, 77, True), "bad", "after 77 more bytes. Nobody reads it"),
        (LogKeeper("ours", False, "lost", 0, None, True), "bad", "has dropped the log of the slot ours"),
        (LogKeeper("other", False, "lost", 2, None, False), "ok", ""),
    ],
)
def test_a_slot_that_keeps_too_much_log_is_named_before_the_disk_is_full(
    slot: LogKeeper, state: str, words: str
) -> None:  # E13
    small = LogKeeper("small", True, "reserved", 1, None, False)
    found = figure("slot_bytes", with_log(slots=[small, slot]))
    assert (found.value, found.state) == (slot.bytes, state)
    assert words in found.advice


def test_a_connector_that_does_not_run_or_of_which_nothing_is_known_is_not_called_well() -> None:  # E13
    assert judge_connector("RUNNING").state == "ok"
    assert "connector is PAUSED" in judge_connector("PAUSED").advice
    unknown = judge_connector(None, "Kafka Connect does not answer.")
    assert (unknown.value, overall([unknown])) == (None, "warning")


def test_each_partition_in_which_something_waits_has_its_lag() -> None:  # E13
    waiting = (PartitionBacklog(2, 3, NOON - timedelta(seconds=4)), PartitionBacklog(5, 1, NOON))
    seen = with_log(backlogs=[Backlog("search", 4, NOON - timedelta(seconds=4), waiting)])
    lags = [one for one in judge(seen, [search.CONSUMER], NOON) if one.name == "partition_lag"]
    assert [(one.consumer, one.value) for one in lags] == [("search/2", 4.0), ("search/5", 0.0)]


def test_the_worst_figure_is_the_state_of_all() -> None:
    states: list[health.State] = ["ok", "unknown", "warning"]
    assert overall([Figure("x", 1, 1, "", state) for state in states]) == "warning"
    assert overall([]) == "ok"


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=50))
def test_no_more_than_five_of_a_hundred_exceed_the_percentile(values: list[float]) -> None:
    found = percentile(values, 0.95)
    assert found in values
    assert sum(value > found for value in values) <= 0.05 * len(values)


def test_the_log_is_examined_as_it_is(db: Database, owner: Reader) -> None:  # E9
    def examine(conn: Connection) -> LogHealth:
        return log_health.examine(conn, ["recorder", "newcomer"])

    empty = db.read_now(examine)._replace(slots=[])  # other databases of the server may have some
    assert empty == LogHealth(
        [Backlog("recorder", 0, None), Backlog("newcomer", 0, None)], 0, None, {}, {}, None, None, [], True
    )
    recorder = Recorder(fails=lambda number: number == 2)
    db.write_now(append, 1, 2, 3)
    recorder.catch_up(db)
    recorder.catch_up(db, LATER)
    source_id = db.write_now(a_source, owner)
    db.write_now(visited, source_id, [a_post("1")], NOON)
    seen = db.read_now(examine)
    behind = seen.backlogs[0]
    assert behind[:3] == ("recorder", 3, NOON)  # a source, a subscription and a post were added
    assert [sum(one.events for one in behind.partitions), *{one.oldest_at for one in behind.partitions}] == [3, NOON]
    # Before these, three events of the recorder and the one that says which of them is a dead letter.
    assert seen.backlogs[1] == Backlog("newcomer", 7, NOON)
    assert (seen.dead, seen.waiting, seen.oldest_event_at) == ({"recorder": 1}, {}, NOON)
    assert (seen.last_post_at, seen.last_visit_at) == (NOON, NOON)
    assert seen.events >= 6


def test_events_and_visits_are_counted_for_the_charts(db: Database, owner: Reader) -> None:
    db.write_now(append, 1, 2)
    source_id = db.write_now(a_source, owner)
    db.write_now(visited, source_id, [], NOON)
    minutes = db.read_now(log_health.events_by_minute, NOON + timedelta(seconds=90), 5)
    assert minutes == [0, 0, 0, 4, 0]
    assert db.read_now(log_health.visits_by_outcome, NOON) == {"ok": 1}
    assert db.read_now(log_health.visits_by_outcome, LATER) == {}


def test_counting_stops_at_a_cap(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_health, "CAP", 5)
    monkeypatch.setattr(log_health, "BACKLOG_CAP", 5)
    db.write_now(append, *range(50), key=1)
    db.write_now(outbox.make_cursors, "slow", NOON)
    slow, new = db.read_now(log_health.examine, ["slow", "new"]).backlogs
    assert (slow.events, new.events) == (5, 5)
    assert sum(db.read_now(log_health.events_by_minute, NOON, 5)) == 5


def test_no_figure_reads_the_whole_log(db: Database) -> None:
    db.write_now(append, *range(2000))
    db.write_now(outbox.make_cursors, "slow", NOON)
    analyze(db)
    with db.engine.connect() as conn:
        for statement, given in STATEMENTS:
            plan = explained(conn, statement, given)
            assert "Seq Scan on event_outbox" not in plan
            assert "Index Cond" in plan or "SEARCH" in plan or "LIMIT 1" in statement.sql(conn), plan


def test_what_waits_is_counted_along_the_index_of_its_partition(postgres_url: str) -> None:
    db = Database(postgres_url)
    migrate.upgrade(db)
    db.write_now(append, *range(2000))
    db.write_now(outbox.make_cursors, "slow", NOON)
    analyze(db)
    plan = db.read_now(explained, log_health._unhandled, (10,))
    assert plan.count("using ix_event_outbox_partition") == 2, plan
    db.close()


STATEMENTS: list[tuple[Prepared, tuple[Any, ...]]] = [
    (log_health._unhandled, (10,)),
    (log_health._first, ()),
    (log_health._last, ()),
    (outbox._after_in_all, (0, 1990, 10)),
    (outbox._end, ()),
]


def explained(conn: Connection, statement: Prepared, given: tuple[Any, ...]) -> str:
    words = "EXPLAIN QUERY PLAN " if conn.dialect.name == "sqlite" else "EXPLAIN "
    cursor = conn.connection.cursor()
    cursor.execute(words + statement.sql(conn), given)
    rows = cursor.fetchall()
    cursor.close()
    return "\n".join(str(row[-1]) for row in rows)
