"""The watch over machines: one event when one goes silent or falls under its rate, one when it recovers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from fleet.test_telemetry import a_miner
from headwater.app.fleet import telemetry
from headwater.app.fleet.telemetry import Looked
from headwater.fleet import watch
from headwater.fleet.watch import Heard, Judgement
from headwater.model import Reader
from headwater.store.fleet import telemetry as store
from headwater.store.fleet.telemetry import MachineReading
from headwater.store.tables import event_outbox
from headwater.wire import Parts
from support.posts import NOON

MINUTE = timedelta(minutes=1)


class Fleet:
    """Machines that send readings every five minutes while a watch looks every minute."""

    def __init__(self, parts: Parts, owner: Reader, machines: int) -> None:
        self.parts, self.owner, self.now = parts, owner, NOON
        self.miners = [a_miner(parts, owner, name=f"rig {number}") for number in range(machines)]

    def live(self, minutes: int, rates: dict[int, float | None] | None = None) -> list[Looked]:
        """Lets time pass. A rate of None sends nothing; machines that are not named run at 200 TH/s."""
        looks = []
        for _ in range(minutes):
            self.now += MINUTE
            if self.now.minute % 5 == 0:
                rate = dict.fromkeys(self.miners, 200.0) | (rates or {})
                readings = [
                    MachineReading(miner, self.now, value) for miner, value in rate.items() if value is not None
                ]
                self.parts.db.write_now(store.save, self.owner, readings, self.now)
            looks.append(self.parts.db.write_now(telemetry.look, self.now))
        return looks

    def events(self) -> list[tuple[str, int, str]]:
        def found(conn: Connection) -> list[Any]:
            kinds = event_outbox.c.kind.in_(["miner.offline", "miner.recovered"])
            return list(conn.execute(select(event_outbox).where(kinds).order_by("id")))

        rows = self.parts.db.read_now(found)
        assert {(row.tenant_id, row.user_id) for row in rows} <= {(self.owner.tenant_id, self.owner.user_id)}
        return [(row.kind, row.payload["miner_id"], row.payload["state"]) for row in rows]


@pytest.fixture
def fleet(parts: Parts) -> Fleet:
    from headwater import wire

    return Fleet(parts, wire.prepare_store(parts), 3)


def test_a_silent_machine_is_reported_once_and_again_when_it_is_heard(fleet: Fleet) -> None:  # E8
    first = fleet.miners[0]
    fleet.live(60)
    fleet.live(120, {first: None})
    assert fleet.events() == [("miner.offline", first, "silent")]
    fleet.live(30)
    assert fleet.events() == [("miner.offline", first, "silent"), ("miner.recovered", first, "ok")]


def test_a_machine_under_its_rate_is_reported_and_one_that_hovers_is_not_reported_again_and_again(fleet: Fleet) -> None:
    first = fleet.miners[0]
    fleet.live(60)
    fleet.live(90, {first: 100.0})
    for rate in (165.0, 155.0, 170.0, 150.0):  # 0.8 of its rate is 160 TH/s
        fleet.live(60, {first: rate})
    assert fleet.events() == [("miner.offline", first, "low")]
    fleet.live(60, {first: 195.0})
    assert fleet.events()[1:] == [("miner.recovered", first, "ok")]


@pytest.mark.parametrize("jump", [timedelta(hours=5), timedelta(days=400), -timedelta(hours=5)])
def test_a_clock_that_jumps_raises_no_alarm_and_the_watch_says_that_it_did_not_look(  # H93
    fleet: Fleet, jump: timedelta
) -> None:
    fleet.live(60)
    fleet.now += jump

    [look] = fleet.live(1)

    assert "Nobody looked since" in look.skipped
    fleet.live(120)
    assert fleet.events() == []


def test_a_machine_that_was_silent_all_along_is_found_after_a_pause_of_the_watch(fleet: Fleet) -> None:
    first = fleet.miners[0]
    fleet.live(30)
    fleet.now += timedelta(hours=3)
    fleet.live(60, {first: None})
    assert fleet.events() == [("miner.offline", first, "silent")]


def test_the_first_look_says_that_it_knows_nothing(parts: Parts) -> None:
    assert parts.db.write_now(telemetry.look, NOON) == Looked(0, 0, 0, "This is the first look.")
    assert parts.db.write_now(telemetry.look, NOON + MINUTE) == Looked(0, 0, 0)


def test_two_processes_that_look_at_once_look_once(fleet: Fleet) -> None:  # H84
    fleet.live(10)
    again = fleet.parts.db.write_now(telemetry.look, fleet.now + timedelta(seconds=5))
    assert again.skipped == "Somebody looked just now."


@given(st.lists(st.sampled_from(["ok", "silent", "low"]), max_size=40))
def test_one_look_alone_never_changes_what_is_thought(seen: list[watch.State]) -> None:
    thought, changes = Judgement("ok"), 0
    for saw in seen:
        after = watch.judged(thought, saw)
        if after.state != thought.state:
            changes += 1
            assert after.state == saw
        thought = after
    assert changes <= len(seen) // watch.LOOKS


@given(st.integers(-100_000, 100_000), st.integers(0, 100_000), st.integers(0, 100_000))
def test_nobody_is_silent_before_somebody_has_looked_for_half_an_hour(heard: int, since: int, now: int) -> None:
    def moment(seconds: int) -> datetime:
        return NOON + timedelta(seconds=seconds)

    saw = watch.seen(Heard(moment(heard), None, 1.0), "ok", moment(since), moment(now))

    assert (saw == "silent") == (now - max(heard, since) > watch.SILENT_AFTER.total_seconds())
