"""Budgets of requests over all processes on one database (A10)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.store.db import Database
from headwater.store.sources import limits
from headwater.store.sources.limits import Budget
from support.posts import NOON

MINUTE = timedelta(minutes=1)
FIVE = Budget("five", 5, MINUTE)


def taken(db: Database, now: datetime, budget: Budget = FIVE) -> bool:
    return db.write_now(limits.reserve, budget, now) is None


def test_a_budget_gives_out_what_it_has_and_says_when_there_is_more(db: Database) -> None:
    assert [taken(db, NOON + timedelta(seconds=n)) for n in range(5)] == [True] * 5
    assert db.write_now(limits.reserve, FIVE, NOON + timedelta(seconds=30)) == NOON + MINUTE
    assert taken(db, NOON + MINUTE)
    assert not taken(db, NOON + MINUTE)
    assert db.read_now(limits.used, FIVE, NOON + MINUTE) == 5


def test_two_processes_together_never_get_more_than_there_is(store_url: str, db: Database) -> None:
    others = [Database(store_url), Database(store_url)]
    with ThreadPoolExecutor(8) as threads:
        got = list(threads.map(lambda n: taken(others[n % 2], NOON), range(40)))
    for other in others:
        other.close()
    assert sum(got) <= 5
    # Who found every free place locked at that moment was told to ask again.
    assert sum(got) + sum(taken(db, NOON) for _ in range(5)) == 5


def test_a_hold_lets_nothing_out_before_its_end(db: Database) -> None:
    taken(db, NOON)
    db.write_now(limits.pause, FIVE, NOON + 10 * MINUTE)
    assert db.write_now(limits.reserve, FIVE, NOON + 9 * MINUTE) == NOON + 10 * MINUTE
    assert [taken(db, NOON + 10 * MINUTE) for _ in range(6)] == [True] * 5 + [False]


def test_budgets_do_not_touch_each_other(db: Database) -> None:
    other = Budget("other", 1, MINUTE)
    assert all(taken(db, NOON) for _ in range(5))
    assert [taken(db, NOON, other), taken(db, NOON, other)] == [True, False]


def test_a_smaller_budget_holds_at_once_and_a_larger_one_as_well(db: Database) -> None:
    assert all(taken(db, NOON) for _ in range(5))
    assert not taken(db, NOON, FIVE._replace(requests=2))
    assert taken(db, NOON, FIVE._replace(requests=6))


def test_a_clock_that_goes_back_does_not_close_the_budget(db: Database) -> None:  # H93
    assert all(taken(db, NOON + timedelta(days=1)) for _ in range(5))
    assert taken(db, NOON)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(gaps=st.lists(st.integers(0, 40), max_size=30))
def test_no_stretch_of_the_window_holds_more_requests_than_the_budget(db: Database, gaps: list[int]) -> None:
    name = f"{hash(tuple(gaps))}"
    now, times = NOON, []
    for gap in gaps:
        now += timedelta(seconds=gap)
        if taken(db, now, Budget(name, 3, MINUTE)):
            times.append(now)
    assert all(later - earlier >= timedelta(0) for earlier, later in pairwise(times))
    assert all(end - begin >= MINUTE for begin, end in zip(times, times[3:], strict=False))
