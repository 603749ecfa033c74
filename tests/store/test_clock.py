"""The time that processes on several machines agree on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from headwater.store.clock import SharedClock, server_time
from headwater.store.db import Database
from support.processes import wait_until
from support.services import fresh_postgres_database, service_url

NOON = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
NEAR = timedelta(minutes=5)


@pytest.fixture
def database(postgres_schema: str) -> Iterator[Database]:
    with fresh_postgres_database(service_url("postgres"), postgres_schema) as url:
        made = Database(url)
        yield made
        made.close()


class Ticks:
    def __init__(self) -> None:
        self.at, self.step = 1000.0, 0.0

    def __call__(self) -> float:
        self.at += self.step
        return self.at


def test_it_is_the_time_of_the_database_whatever_this_machine_believes(database: Database) -> None:  # H93
    there = SharedClock(database, lambda: datetime(1999, 12, 31, tzinfo=UTC))
    assert abs(there() - database.read_now(server_time)) < NEAR
    there.close()


def test_between_two_questions_time_passes_by_what_cannot_be_set(database: Database) -> None:  # H93
    ticks = Ticks()
    there = SharedClock(database, lambda: NOON, ticks)
    first = there()
    ticks.at += 7
    assert there() - first == timedelta(seconds=7)
    there.close()


def test_it_asks_again_after_a_while(database: Database) -> None:
    ticks = Ticks()
    there = SharedClock(database, lambda: NOON, ticks)
    there()
    ticks.at += 86400  # this machine's own count is wrong by a day
    there()
    wait_until(lambda: abs(there() - database.read_now(server_time)) < NEAR)
    there.close()


def test_a_database_that_cannot_be_reached_leaves_the_time_of_this_machine() -> None:
    away = Database("postgresql://nobody@127.0.0.1:1/nothing")
    there = SharedClock(away, lambda: NOON)
    assert there() == NOON
    there.close()
    away.close()


def test_a_database_that_is_back_is_asked_before_anything_is_written(database: Database) -> None:  # H92 H93
    there = SharedClock(Database("postgresql://nobody@127.0.0.1:1/nothing"), lambda: NOON)
    assert there() == NOON
    there._db = database  # it is there a moment later
    assert abs(there() - database.read_now(server_time)) < NEAR
    there.close()


def test_an_answer_that_took_long_is_not_believed(database: Database) -> None:
    ticks = Ticks()
    there = SharedClock(database, lambda: NOON, ticks)
    first, began = there(), ticks.at
    ticks.at += 20
    ticks.step = 30
    there()  # has the database asked, whose answer takes 30 s
    there.close()
    ticks.step = 0
    assert there() - first == timedelta(seconds=ticks.at - began)
