"""Dead letters and windows of the log are replayed without a double effect, and a consumer can be rebuilt (E5)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from headwater.errors import AlreadyThere, BadInput, NotFound, StoreUnavailable
from headwater.events import delivery, replay
from headwater.events.catalogue import SOURCE_RETIRED
from headwater.events.delivery import Consumer
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.log import dead_letters, outbox
from headwater.store.log.outbox import LoggedEvent, Window
from support.log import Recorder, append, consume_all, number_of
from support.posts import NOON

RETIRED = frozenset({SOURCE_RETIRED.name})
THE_DAY = Window(NOON - timedelta(hours=12), NOON + timedelta(hours=12), RETIRED)
LATER = NOON + timedelta(seconds=10)


def now() -> datetime:
    return LATER


def with_dead(db: Database, recorder: Recorder) -> list[int]:
    """Lets what fails become dead. Returns the ids of the dead letters."""
    recorder.catch_up(db)
    consume_all(db, recorder.consumer, LATER)
    return db.read_now(replay.dead_letter_ids)


def test_a_dead_letter_is_replayed_once(db: Database) -> None:
    recorder = Recorder(fails=lambda number: number == 2)
    db.write_now(append, 1, 2, 3)
    [letter_id] = with_dead(db, recorder)
    recorder.fails = lambda number: False
    assert db.write_now(replay.replay_dead_letter, [recorder.consumer], letter_id, LATER) is None
    assert sorted(recorder.seen) == [1, 2, 3]
    with pytest.raises(AlreadyThere):
        db.write_now(replay.replay_dead_letter, [recorder.consumer], letter_id, LATER)
    assert replay.replay_window(db, recorder.consumer, THE_DAY, now).delivered == 0
    assert sorted(recorder.seen) == [1, 2, 3]


def test_a_letter_that_fails_again_stays_dead_and_says_why(db: Database) -> None:
    recorder = Recorder(fails=lambda number: number == 2)
    db.write_now(append, 2)
    [letter_id] = with_dead(db, recorder)
    error = db.write_now(replay.replay_dead_letter, [recorder.consumer], letter_id, LATER)
    assert error == "RuntimeError: 2 is not to my taste"
    assert db.read_now(replay.dead_letter_ids) == [letter_id]


def test_a_skipped_letter_has_no_effect_and_its_key_goes_on(db: Database) -> None:
    recorder = Recorder(fails=lambda number: number == 1, waits_for_dead=True)
    db.write_now(append, 1, 2, 3, key=7)
    [letter_id] = with_dead(db, recorder)
    assert recorder.seen == []
    db.write_now(replay.skip_dead_letter, [recorder.consumer], letter_id, LATER)
    assert recorder.seen == [2, 3]
    recorder.fails = lambda number: False
    assert replay.replay_window(db, recorder.consumer, THE_DAY, now).delivered == 0


def test_all_letters_are_found_oldest_first_and_by_consumer_and_kind(db: Database) -> None:
    recorder = Recorder(fails=lambda number: True)
    db.write_now(append, *range(5))
    ids = with_dead(db, recorder)
    assert ids == sorted(ids)
    assert len(ids) == 5
    assert db.read_now(replay.dead_letter_ids, "recorder", SOURCE_RETIRED.name) == ids
    assert (
        db.read_now(replay.dead_letter_ids, "search") == db.read_now(replay.dead_letter_ids, None, "post.stored") == []
    )


def test_a_letter_that_is_not_there_or_of_a_consumer_that_is_gone_is_an_error_that_says_so(db: Database) -> None:
    recorder = Recorder(fails=lambda number: True)
    db.write_now(append, 1)
    [letter_id] = with_dead(db, recorder)
    with pytest.raises(NotFound):
        db.write_now(replay.replay_dead_letter, [recorder.consumer], 12345, LATER)
    with pytest.raises(BadInput, match="There is no consumer recorder"):
        db.write_now(replay.replay_dead_letter, [], letter_id, LATER)


def test_a_window_delivers_what_a_consumer_did_not_want_before(db: Database) -> None:
    recorder = Recorder(kinds=frozenset())
    db.write_now(append, 1, 2, 3, key=7)
    recorder.catch_up(db)
    wiser = recorder.consumer._replace(kinds=RETIRED)
    assert replay.replay_window(db, wiser, THE_DAY, now, dry_run=True) == replay.Replayed("recorder", 3, 0, 3, 0)
    assert recorder.seen == []
    assert replay.replay_window(db, wiser, THE_DAY, now) == replay.Replayed("recorder", 3, 0, 3, 0)
    assert recorder.seen == [1, 2, 3]
    assert replay.replay_window(db, wiser, THE_DAY, now) == replay.Replayed("recorder", 3, 3, 0, 0)
    assert recorder.seen == [1, 2, 3]


def test_a_window_is_bounded_by_time_kind_and_key(db: Database) -> None:
    recorder = Recorder(kinds=frozenset())
    db.write_now(append, 1, key=1)
    db.write_now(append, 2, key=2)
    recorder.catch_up(db)
    wiser = recorder.consumer._replace(kinds=RETIRED)
    for window, found in (
        (THE_DAY._replace(end=NOON), 0),
        (THE_DAY._replace(start=NOON + timedelta(seconds=1)), 0),
        (THE_DAY._replace(start=NOON, end=NOON + timedelta(seconds=1)), 2),
        (THE_DAY._replace(kinds=frozenset({"post.stored"})), 0),
        (THE_DAY._replace(key="source:2"), 1),
    ):
        assert replay.replay_window(db, wiser, window, now, dry_run=True).found == found


def test_what_a_consumer_has_not_reached_is_left_to_it(db: Database) -> None:
    recorder = Recorder()
    db.write_now(append, 1, key=7)
    recorder.catch_up(db)
    db.write_now(append, 2, 3, key=7)
    Recorder(name="another").catch_up(db)  # until PostgreSQL shows them
    done = replay.replay_window(db, recorder.consumer, THE_DAY, now)
    assert done == replay.Replayed("recorder", found=3, handled=1, delivered=0, unreached=2)
    assert recorder.catch_up(db) == [1, 2, 3]


def test_a_consumer_without_cursors_gets_the_whole_window(db: Database) -> None:
    recorder = Recorder()
    db.write_now(append, 1, 2, key=7)
    Recorder(name="another").catch_up(db)
    assert replay.replay_window(db, recorder.consumer, THE_DAY, now, has_cursors=False).delivered == 2
    assert recorder.seen == [1, 2]


def test_a_window_larger_than_a_batch_is_delivered_in_order(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "BATCH", 4)
    recorder = Recorder(kinds=frozenset())
    db.write_now(append, *range(11), key=7)
    recorder.catch_up(db)
    replay.replay_window(db, recorder.consumer._replace(kinds=RETIRED), THE_DAY, now)
    assert recorder.seen == list(range(11))


def test_a_consumer_that_cannot_be_emptied_is_not_rebuilt(db: Database) -> None:
    with pytest.raises(BadInput, match="cannot be rebuilt"):
        db.write_now(replay.rebuild, Recorder().consumer, NOON)


class Ledger:
    """A consumer that writes each number down in a table of its own, in the order of its key."""

    def __init__(self, db: Database, fails: Callable[[int], bool] = lambda number: False, batch: int = 3) -> None:
        self.db, self.fails = db, fails
        self.consumer = Consumer(
            "ledger", RETIRED, self.handle, batch=batch, waits_for_dead=True, reset=lambda conn: self.empty(conn)
        )
        with db.engine.begin() as conn:
            conn.execute(text("CREATE TABLE IF NOT EXISTS ledger (place INTEGER, key TEXT, number INTEGER)"))

    def handle(self, conn: Connection, events: list[LoggedEvent]) -> None:
        for event in events:
            number = number_of(event)
            place = conn.execute(text("SELECT count(*) FROM ledger WHERE key = :key"), {"key": event.key}).scalar()
            row = {"place": place, "key": event.key, "number": number}
            conn.execute(text("INSERT INTO ledger (place, key, number) VALUES (:place, :key, :number)"), row)
            if self.fails(number):
                raise RuntimeError(f"{number} cannot be written")

    def empty(self, conn: Connection) -> None:
        conn.execute(text("DELETE FROM ledger"))

    def run(self, now: datetime) -> None:
        consume_all(self.db, self.consumer, now)

    def state(self) -> list[tuple[str, int, int]]:
        with self.db.engine.connect() as conn:
            rows = conn.execute(text("SELECT key, place, number FROM ledger ORDER BY key, place")).all()
        return [(row.key, row.place, row.number) for row in rows]


def first_run_with_trouble(ledger: Ledger, stream: list[int], bad: set[int], patience: int) -> None:
    """Some numbers fail so many times; what died of it is replayed by hand, again and again, until it works."""
    failures: dict[int, int] = {}

    def fails(number: int) -> bool:
        if number not in bad or failures.get(number, 0) >= patience:
            return False
        failures[number] = failures.get(number, 0) + 1
        return True

    ledger.fails = fails
    clock = NOON
    for number, key in enumerate(stream):
        ledger.db.write_now(append, number, key=key)
        if number % 4 == 3:
            ledger.run(clock)
            clock += timedelta(seconds=7)
    for _ in range(patience * len(stream) + 2):
        ledger.run(clock)
        clock += timedelta(seconds=7)
        for letter_id in ledger.db.read_now(replay.dead_letter_ids):
            ledger.db.write_now(replay.replay_dead_letter, [ledger.consumer], letter_id, clock)
        replay.replay_window(ledger.db, ledger.consumer, THE_DAY, lambda at=clock: at)  # type: ignore[misc]
        if not ledger.db.read_now(dead_letters.counts):
            return
    raise AssertionError("something is still not settled")


def check_rebuilt(db: Database, stream: list[int], bad: set[int], patience: int, batch: int) -> None:
    ledger = Ledger(db, batch=batch)
    first_run_with_trouble(ledger, stream, bad, patience)
    expected = sorted(
        (f"source:{key}", place, number)
        for key in set(stream)
        for place, number in enumerate(number for number, one in enumerate(stream) if one == key)
    )
    assert ledger.state() == expected, "an effect is missing, twice, or out of its key's order"
    ledger.fails = lambda number: False
    db.write_now(replay.rebuild, ledger.consumer, NOON)
    assert ledger.state() == []
    ledger.run(NOON)
    assert ledger.state() == expected


@settings(max_examples=25, deadline=None)
@given(
    stream=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    bad=st.sets(st.integers(0, 11), max_size=4),
    patience=st.integers(1, 5),
    batch=st.integers(1, 5),
)
def test_a_rebuilt_consumer_has_the_state_of_the_first_run(
    stream: list[int], bad: set[int], patience: int, batch: int
) -> None:  # E5
    with tempfile.TemporaryDirectory() as folder:
        db = Database(f"sqlite:///{Path(folder) / 'headwater.db'}")
        migrate.upgrade(db)
        check_rebuilt(db, stream, bad, patience, batch)
        db.close()


def test_a_rebuilt_consumer_has_the_state_of_the_first_run_on_both_databases(db: Database) -> None:  # E5
    check_rebuilt(db, [0, 1, 0, 2, 1, 0, 0, 2, 1], {0, 4, 5}, 4, 3)


def test_rebuilding_goes_on_by_itself_until_the_end_of_the_log(db: Database) -> None:
    ledger = Ledger(db)
    db.write_now(append, *range(10))
    ledger.run(NOON)
    before = ledger.state()
    db.write_now(replay.rebuild, ledger.consumer, NOON)
    assert sum(replay.catch_up(db, ledger.consumer, now)) == 10
    assert ledger.state() == before
    assert db.read_now(delivery.pending, ledger.consumer, NOON) == []


def test_a_rebuild_waits_for_a_process_that_is_at_it(postgres_url: str) -> None:
    # H84
    db = Database(postgres_url)
    migrate.upgrade(db)
    ledger = Ledger(db)
    db.write_now(append, *range(10), key=7)
    ledger.run(NOON)
    other = Database(postgres_url)

    def rebuild_impatiently(conn: Connection) -> None:
        conn.execute(text("SET LOCAL lock_timeout = '50ms'"))
        replay.rebuild(conn, ledger.consumer, NOON)

    with other.engine.begin() as busy:
        partition = next(
            one for one in range(outbox.PARTITIONS) if outbox.after(busy, one, outbox.LogPosition(0, 0), 1)
        )
        outbox.take_cursor(busy, "ledger", partition)
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            db.write_now(rebuild_impatiently)
    other.close()
    assert len(ledger.state()) == 10, "half of a rebuild was kept"
    db.close()
