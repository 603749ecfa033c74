"""What every log promises a consumer: each event has its effect once, in the order of its key, whatever fails (E3, E4).

The tests run on each way in which events reach a consumer: by cursors on SQLite and PostgreSQL, and by Kafka.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer as Member
from confluent_kafka import Message, TopicPartition
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from headwater.events import delivery
from headwater.events.catalogue import EVENT_DEAD, SOURCE_ADDED, SOURCE_RETIRED, DeadEvent, SourceFacts
from headwater.events.delivery import Consumer
from headwater.events.kafka import follow
from headwater.events.kafka.connector import Cluster
from headwater.ids import uuid7
from headwater.store.db import Database
from headwater.store.log import dead_letters, inbox, outbox
from headwater.store.log.dead_letters import DeadLetter
from headwater.store.log.outbox import LoggedEvent, LogPosition
from support.kafka import kafka_address, own_cluster, publish, topics_made
from support.log import Recorder, an_event, append, consume_all, database_with, number_of
from support.posts import NOON
from support.services import fresh_postgres_database, service_url

SOON = NOON + timedelta(seconds=4)
LATER = NOON + timedelta(seconds=7)
LATEST = LATER + timedelta(seconds=7)


class OutboxLog:
    """Events reach the consumer by its cursors on the outbox."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def append(self, *numbers: int, key: int | None = None) -> None:
        self.db.write_now(append, *numbers, key=key)

    def bring(self, consumer: Consumer, now: datetime = NOON) -> None:
        """Let the consumer come to the end of the log."""
        consume_all(self.db, consumer, now)

    def bring_again(self, consumer: Consumer, now: datetime = NOON) -> None:
        """Deliver everything once more, as after a crash that lost the place."""
        rewind = text("UPDATE consumer_cursors SET xid = 0, id = 0 WHERE consumer = :name")
        self.db.write_now(lambda conn: conn.execute(rewind, {"name": consumer.name}))
        consume_all(self.db, consumer, now)


class KafkaLog(OutboxLog):
    """Events reach the consumer as records of a topic, written as the connector writes them."""

    def __init__(self, db: Database, cluster: Cluster) -> None:
        super().__init__(db)
        self.cluster = cluster
        self.places = dict.fromkeys(range(outbox.PARTITIONS), LogPosition(0, 0))
        self.records: list[Message] = []
        self.passed: dict[str, int] = {}
        self.member = Member({"bootstrap.servers": cluster.brokers, "group.id": cluster.name})
        self.member.assign([TopicPartition(cluster.topic("source"), partition, 0) for partition in self.places])

    def bring(self, consumer: Consumer, now: datetime = NOON) -> None:
        self._publish()
        self._deliver(consumer, self.records[self.passed.get(consumer.name, 0) :], now)
        self.passed[consumer.name] = len(self.records)

    def bring_again(self, consumer: Consumer, now: datetime = NOON) -> None:
        self._publish()
        self._deliver(consumer, self.records, now)

    def _deliver(self, consumer: Consumer, records: list[Message], now: datetime) -> None:
        for partition, messages in follow.by_partition(records).items():
            events = follow.readable(messages)
            for start in range(0, len(events), consumer.batch):
                batch = events[start : start + consumer.batch]
                self.db.write_now(follow.deliver_batch, consumer, partition, batch, now)
        for partition in self.db.read_now(dead_letters.due_partitions, consumer.name, now):
            self.db.write_now(follow.deliver_batch, consumer, partition, [], now)

    def _publish(self) -> None:
        """Write what is new in the outbox into the topic, and wait until it can be read there."""
        count = text("SELECT count(*) FROM event_outbox WHERE domain = 'source'")
        wanted = self.db.read_now(lambda conn: conn.execute(count).scalar_one())
        published, deadline = len(self.records), time.monotonic() + 120
        while len(self.records) < wanted:
            assert time.monotonic() < deadline, "the events did not come"
            for partition, place in self.places.items():
                if events := self.db.read_now(outbox.after, partition, place, 1000):
                    publish(self.cluster, events, partition)
                    self.places[partition] = events[-1].position
                    published += sum(event.kind.startswith("source.") for event in events)
            while len(self.records) < published:
                assert time.monotonic() < deadline, "the records did not come"
                self.records += [record for record in self.member.consume(1000, 0.1) if record.error() is None]


EFFECTS = "CREATE TABLE effects (number INTEGER NOT NULL)"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Database]:
    """Made once: a schema takes PostgreSQL a second."""
    with fresh_postgres_database(service_url("postgres")) as url, database_with(url, EFFECTS) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres", "kafka"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OutboxLog]:
    if request.param == "sqlite":
        with database_with(f"sqlite:///{tmp_path / 'headwater.db'}", EFFECTS) as db:
            yield OutboxLog(db)
        return
    db = request.getfixturevalue("postgres")
    tables = "event_outbox, event_dlq, consumer_inbox, consumer_cursors, effects"
    db.write_now(lambda conn: conn.execute(text(f"TRUNCATE {tables}")))
    if request.param == "postgres":
        yield OutboxLog(db)
        return
    with topics_made(own_cluster(kafka_address("kafka"))) as cluster:
        log = KafkaLog(db, cluster)
        yield log
        log.member.close()


class Ledger(Recorder):
    """A consumer that also writes each number into a table, before it fails or not."""

    def handle(self, conn: Connection, events: list[LoggedEvent]) -> None:
        rows = [{"number": number_of(event)} for event in events]
        conn.execute(text("INSERT INTO effects (number) VALUES (:number)"), rows)
        super().handle(conn, events)


def effects(log: OutboxLog) -> list[int]:
    rows = log.db.read_now(lambda conn: conn.execute(text("SELECT number FROM effects ORDER BY number")).all())
    return [number for (number,) in rows]


def kept(log: OutboxLog, state: str) -> list[DeadLetter]:
    """The dead letters in this state, the oldest first."""
    return log.db.read_now(dead_letters.page, state)[::-1]


def numbers(found: list[DeadLetter]) -> list[int]:
    return [number_of(letter.event) for letter in found]


def only(*bad: int) -> Callable[[int], bool]:
    return lambda number: number in bad


# Once, and in order


def test_an_event_that_arrives_a_thousand_times_has_one_effect(log: OutboxLog) -> None:  # E3, H80
    arrived: list[LoggedEvent] = []
    log.append(1)
    log.bring(Consumer("catcher", frozenset({SOURCE_RETIRED.name}), lambda conn, events: arrived.extend(events)))
    ledger = Ledger()
    for _ in range(100):
        log.db.write_now(delivery.deliver, ledger.consumer, 0, arrived * 10, NOON)
    assert effects(log) == [1]


def test_a_log_that_brings_everything_again_has_no_second_effect(log: OutboxLog) -> None:  # E3, H79
    ledger = Ledger(only(4))
    log.append(*range(10))
    log.bring(ledger.consumer)
    for now in (NOON, SOON, LATER, LATEST):
        log.bring_again(ledger.consumer, now)
    assert effects(log) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert numbers(kept(log, "dead")) == [4]


def test_the_events_of_a_key_have_their_effects_in_order(log: OutboxLog) -> None:  # E2, H81
    recorder = Recorder()
    for number in range(0, 60, 6):
        log.append(*range(number, number + 6, 2), key=1)
        log.append(*range(number + 1, number + 6, 2), key=2)
    log.bring(recorder.consumer)
    assert [number for number in recorder.seen if number % 2 == 0] == list(range(0, 60, 2))
    assert [number for number in recorder.seen if number % 2 == 1] == list(range(1, 60, 2))


def test_a_consumer_that_is_added_later_begins_at_the_start(log: OutboxLog) -> None:
    early, late = Recorder(), Recorder(name="late")
    log.append(1, 2, 3, key=1)
    log.bring(early.consumer)
    log.append(4, key=1)
    log.bring(late.consumer)
    log.bring(early.consumer)
    assert late.seen == early.seen == [1, 2, 3, 4]


def test_kinds_that_a_consumer_did_not_ask_for_are_passed_by(log: OutboxLog) -> None:
    recorder = Recorder()
    other = SOURCE_ADDED(SourceFacts(source_id=1, address="https://news.example/1"), once="1")
    log.append(1, key=1)
    log.db.write_now(lambda conn: outbox.append(conn, [other, other._replace(kind="source.of_the_future")], NOON))
    log.append(2, key=1)
    log.bring(recorder.consumer)
    assert recorder.seen == [1, 2]


# Failures


def test_a_bad_event_does_not_hold_its_neighbours(log: OutboxLog) -> None:  # E4, H83
    ledger = Ledger(only(3), batch=500)
    log.append(*range(10))
    log.bring(ledger.consumer)
    assert effects(log) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_a_handler_that_fails_leaves_nothing_behind(log: OutboxLog) -> None:
    ledger = Ledger(only(3), batch=500)
    log.append(1, 2, 3)
    log.bring(ledger.consumer)
    assert ledger.tried.count(3) > 1
    assert effects(log) == [1, 2]


def test_a_failure_is_tried_again_at_once(log: OutboxLog) -> None:  # E4
    tries = iter([True, False])
    ledger = Ledger(lambda number: number == 1 and next(tries))
    log.append(1)
    log.bring(ledger.consumer)
    assert effects(log) == [1]
    assert not kept(log, "retrying")


def test_a_failure_is_tried_again_after_five_seconds_and_forgotten_if_that_works(log: OutboxLog) -> None:  # E4
    healed = False
    ledger = Ledger(lambda number: number == 1 and not healed)
    log.append(1)
    log.bring(ledger.consumer)
    healed = True
    log.bring(ledger.consumer, SOON)
    assert effects(log) == []
    log.bring(ledger.consumer, LATER)
    assert effects(log) == [1]
    assert not log.db.read_now(dead_letters.counts)


def test_what_fails_three_times_is_a_dead_letter_with_error_count_and_first_failure(log: OutboxLog) -> None:  # E4
    ledger = Ledger(only(1))
    log.append(1)
    for now in (NOON, SOON, LATER, LATEST):
        log.bring(ledger.consumer, now)
    (letter,) = kept(log, "dead")
    assert (letter.consumer, number_of(letter.event), letter.event.key) == ("recorder", 1, "source:1")
    assert letter.error is not None
    assert "1 is not to my taste" in letter.error
    assert (letter.attempts, letter.first_failed_at, letter.last_failed_at) == (3, NOON, LATER)
    tried = len(ledger.tried)
    log.bring(ledger.consumer, LATEST + timedelta(days=1))
    assert len(ledger.tried) == tried, "a dead letter is not tried again by itself"


def published_deaths(log: OutboxLog) -> list[DeadEvent]:
    wanted = text("SELECT CAST(payload AS TEXT) FROM event_outbox WHERE domain = 'dlq' ORDER BY id")
    found = log.db.read_now(lambda conn: list(conn.execute(wanted).scalars()))
    return [msgspec.json.decode(payload, type=DeadEvent) for payload in found]


def test_a_dead_letter_is_published_with_the_event_and_its_error(log: OutboxLog) -> None:  # E12
    log.append(1, 2)
    for now in (NOON, LATER, LATEST):
        log.bring(Ledger(only(1)).consumer, now)
    (letter,), (dead,) = kept(log, "dead"), published_deaths(log)
    assert EVENT_DEAD.name == "dlq.added"
    assert (dead.consumer, dead.event_id, dead.event_kind) == ("recorder", letter.event.event_id, "source.retired")
    assert (dead.event_key, dead.attempts, dead.error) == ("source:1", 3, letter.error)
    assert json.loads(dead.payload) == json.loads(letter.event.data)


def test_the_death_of_a_death_is_not_published(log: OutboxLog) -> None:  # E12
    def handle(conn: Connection, events: list[LoggedEvent]) -> None:
        raise RuntimeError("never")

    died = LoggedEvent(LogPosition(0, 1), uuid7(), EVENT_DEAD.name, 1, "consumer:x", None, None, None, NOON, "{}")
    failing = Consumer("failing", frozenset({EVENT_DEAD.name}), handle)
    log.db.write_now(delivery.deliver, failing, 0, [died], NOON)
    log.db.write_now(delivery.retry, failing, 0, LATER)
    assert [letter.event.kind for letter in kept(log, "dead")] == [EVENT_DEAD.name]
    assert published_deaths(log) == []


def test_the_inbox_says_what_was_handled_when_for_whom_and_how_long_it_took(log: OutboxLog) -> None:  # E12
    mine = an_event(3)._replace(tenant_id=1, user_id=7)
    log.append(1, 2)
    log.db.write_now(lambda conn: outbox.append(conn, [mine], NOON))
    slow = Ledger(only(2))
    log.bring(slow.consumer)
    slow.fails = only()
    log.bring(slow.consumer, LATER)
    found = log.db.read_now(inbox.history, "recorder")
    assert sorted((one.kind, one.user_id, one.consumed_at) for one in found if one.user_id is None) == [
        ("source.retired", None, NOON),
        ("source.retired", None, LATER),
    ]
    assert [(one.user_id, one.consumed_at) for one in found if one.user_id] == [(7, NOON)]
    assert all(one.milliseconds is not None and one.milliseconds >= 0 for one in found)
    assert [one.event_id for one in found] == sorted((one.event_id for one in found), reverse=True)


def test_the_jitter_spreads_what_failed_together(log: OutboxLog) -> None:
    log.append(*range(20))
    log.bring(Recorder(lambda number: True, batch=1).consumer)
    times = [letter.next_try_at for letter in kept(log, "retrying")]
    assert len(set(times)) > 1
    assert all(time and NOON + timedelta(seconds=5) <= time <= NOON + timedelta(seconds=6) for time in times)


def test_an_event_that_nobody_can_read_becomes_a_dead_letter(log: OutboxLog) -> None:  # H83
    recorder = Recorder()
    unreadable = an_event(2, key=1)._replace(data='["no","facts"]')
    log.append(1, key=1)
    log.db.write_now(lambda conn: outbox.append(conn, [unreadable], NOON))
    log.append(3, key=1)
    for now in (NOON, LATER):
        log.bring(recorder.consumer, now)
    assert recorder.seen == [1, 3]
    (letter,) = kept(log, "dead")
    assert letter.error is not None
    assert letter.error.startswith("UnreadableEvent: ")
    assert letter.event.data.replace(" ", "") == '["no","facts"]'


@pytest.mark.parametrize("words", ["nothing\0there", "half a sign: \ud83d", "x" * 100_000])
def test_whatever_the_error_says_the_log_goes_on(log: OutboxLog, words: str) -> None:  # H83, H98
    def handle(conn: Connection, events: list[LoggedEvent]) -> None:
        raise RuntimeError(words)

    log.append(1)
    log.bring(Consumer("failing", frozenset({SOURCE_RETIRED.name}), handle))
    (letter,) = kept(log, "retrying")
    assert letter.error is not None
    assert letter.error.startswith("RuntimeError: ")
    assert len(letter.error) <= delivery.LONGEST_ERROR


def test_an_error_that_cannot_even_be_printed_is_a_failure_like_others(log: OutboxLog) -> None:  # H98
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

        __repr__ = __str__

    def handle(conn: Connection, events: list[LoggedEvent]) -> None:
        raise Unprintable

    log.append(1)
    log.bring(Consumer("failing", frozenset({SOURCE_RETIRED.name}), handle))
    (letter,) = kept(log, "retrying")
    assert letter.error is not None
    assert letter.error.startswith("Unprintable: ")


def test_a_handler_that_goes_on_after_an_error_of_the_database_harms_nobody_else(log: OutboxLog) -> None:
    def handle(conn: Connection, events: list[LoggedEvent]) -> None:
        for event in events:
            conn.execute(text("INSERT INTO effects (number) VALUES (:number)"), {"number": number_of(event)})
            if number_of(event) == 2:
                with suppress(IntegrityError):
                    conn.execute(text("INSERT INTO effects (number) VALUES (NULL)"))

    log.append(1, 2, 3, key=1)
    for now in (NOON, LATER):
        log.bring(Consumer("careless", frozenset({SOURCE_RETIRED.name}), handle), now)
    dead = [2] if not log.db.is_sqlite else []  # PostgreSQL takes nothing after an error, SQLite does
    assert numbers(kept(log, "dead")) == dead
    assert sorted(effects(log) + dead) == [1, 2, 3]


# The key of a failed event


def test_the_key_of_a_failed_event_waits_until_it_is_decided_and_then_goes_on_in_order(log: OutboxLog) -> None:  # E4
    ledger = Ledger(only(1))
    log.append(0, 1, 2, 3, 4, key=1)
    log.append(10, 11, key=2)
    log.bring(ledger.consumer)
    log.append(5, key=1)
    log.bring(ledger.consumer, SOON)
    assert effects(log) == [0, 10, 11]
    log.bring(ledger.consumer, LATER)
    assert effects(log) == [0, 2, 3, 4, 5, 10, 11]
    assert [number for number in ledger.seen if number < 10] == [0, 2, 3, 4, 5]
    assert numbers(kept(log, "dead")) == [1]


def test_the_key_of_a_dead_event_waits_for_a_person_if_the_consumer_says_so(log: OutboxLog) -> None:  # E4
    ledger = Ledger(only(1), waits_for_dead=True)
    log.append(0, 1, 2, key=1)
    for now in (NOON, LATER, LATEST):
        log.bring(ledger.consumer, now)
    log.append(3, key=1)
    log.append(10, key=2)
    log.bring(ledger.consumer, LATEST)
    assert effects(log) == [0, 10]
    assert (numbers(kept(log, "dead")), numbers(kept(log, "waiting"))) == ([1], [2, 3])


def test_a_replayed_letter_has_its_effect_and_releases_its_key_in_order(log: OutboxLog) -> None:  # E5
    bad = {1}
    ledger = Ledger(lambda number: number in bad, waits_for_dead=True)
    log.append(0, 1, 2, 3, key=1)
    log.bring(ledger.consumer)
    log.bring(ledger.consumer, LATER)
    (letter,) = kept(log, "dead")
    assert log.db.write_now(delivery.replay_dead_letter, ledger.consumer, letter, LATEST) is not None
    assert effects(log) == [0]
    bad.clear()
    assert log.db.write_now(delivery.replay_dead_letter, ledger.consumer, letter, LATEST) is None
    assert effects(log) == [0, 1, 2, 3]
    assert ledger.seen == [0, 1, 2, 3]
    log.append(4, key=1)
    log.bring_again(ledger.consumer, LATEST)
    assert ledger.seen == [0, 1, 2, 3, 4]
    assert numbers(kept(log, "replayed")) == [1]


def test_a_letter_that_is_replayed_twice_has_one_effect(log: OutboxLog) -> None:  # E5
    bad = {1}
    ledger = Ledger(lambda number: number in bad)
    log.append(1)
    log.bring(ledger.consumer)
    log.bring(ledger.consumer, LATER)
    (letter,) = kept(log, "dead")
    bad.clear()
    for _ in range(2):
        assert log.db.write_now(delivery.replay_dead_letter, ledger.consumer, letter, LATEST) is None
    assert effects(log) == [1]


def test_a_skipped_letter_has_no_effect_and_releases_its_key_in_order(log: OutboxLog) -> None:  # E5
    ledger = Ledger(only(1), waits_for_dead=True)
    log.append(0, 1, 2, 3, key=1)
    log.bring(ledger.consumer)
    log.bring(ledger.consumer, LATER)
    (letter,) = kept(log, "dead")
    log.db.write_now(delivery.skip_dead_letter, ledger.consumer, letter, LATEST)
    log.bring_again(ledger.consumer, LATEST)
    assert effects(log) == [0, 2, 3]
    assert ledger.seen == [0, 2, 3]
    assert numbers(kept(log, "skipped")) == [1]


def test_a_second_failure_among_those_that_waited_holds_the_rest(log: OutboxLog) -> None:  # E4
    ledger = Ledger(only(1, 3))
    log.append(0, 1, 2, 3, 4, key=1)
    log.bring(ledger.consumer)
    log.bring(ledger.consumer, LATER)
    assert effects(log) == [0, 2]
    assert (numbers(kept(log, "retrying")), numbers(kept(log, "waiting"))) == ([3], [4])
    log.bring(ledger.consumer, LATEST)
    assert effects(log) == [0, 2, 4]
    assert [(number_of(letter.event), letter.attempts) for letter in kept(log, "dead")] == [(1, 3), (3, 3)]


def test_many_events_wait_behind_one_and_all_come_after_it(log: OutboxLog) -> None:  # E4
    healed = False
    ledger = Ledger(lambda number: number == 0 and not healed, batch=100)
    log.append(*range(510), key=1)
    log.bring(ledger.consumer)
    assert effects(log) == []
    healed = True
    log.bring(ledger.consumer, LATER)
    assert ledger.seen[-510:] == list(range(510))
    assert effects(log) == list(range(510))
