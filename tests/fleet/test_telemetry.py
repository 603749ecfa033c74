"""Readings of machines through the API: late and repeated ones are harmless, and what they come to is exact."""

from __future__ import annotations

import asyncio
import json
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Table, func, select

from api.running import Client, Running
from headwater.app.fleet import miners, telemetry
from headwater.app.fleet.miners import NewMiner
from headwater.model import Reader
from headwater.store.fleet import telemetry as store
from headwater.store.fleet.telemetry import MachineReading
from headwater.store.tables import miner_telemetry, telemetry_days, telemetry_heard, telemetry_hours
from headwater.wire import JOBS, Parts, periodic_tools
from support.people import a_person
from support.processes import kill, start, wait_until
from support.tenants import another_tenant

DAY = timedelta(days=1)
KEPT = timedelta(days=35)


def a_miner(parts: Parts, reader: Reader, **given: Any) -> int:
    wanted = NewMiner(actual_hashrate_th="200", actual_power_w="3500", electricity_usd_per_kwh="0.06", **given)
    return parts.db.write_now(miners.add, reader, wanted, parts.now()).id


def at(headwater: Running, minutes_ago: float) -> datetime:
    return headwater.parts.now().replace(microsecond=0) - timedelta(minutes=minutes_ago)


def sent(client: Client, *readings: dict[str, Any]) -> Any:
    return client.post("/api/telemetry", {"readings": list(readings)})


def a_reading(miner_id: int, when: datetime, hashrate: float = 200.0, **more: Any) -> dict[str, Any]:
    return {"miner_id": miner_id, "at": when.isoformat(), "hashrate_th": hashrate, **more}


def test_readings_go_in_and_come_out_by_the_hour_and_day(on_both: Running) -> None:  # E8
    client, miner = on_both.program(), a_miner(on_both.parts, on_both.owner)
    noon = (on_both.parts.now() - DAY).replace(hour=12, minute=0, second=0, microsecond=0)
    readings = [
        a_reading(miner, noon + timedelta(minutes=10 * place), 190.0 + place, power_w=3500 + place, temperature_c=60)
        for place in range(9)
    ]
    readings[3].pop("power_w")

    answer = sent(client, *readings)

    assert answer.json() == {"received": 9, "stored": 9, "repeated": 0, "too_old": 0}
    since, until = (noon - DAY).isoformat().replace("+", "%2B"), (noon + DAY).isoformat().replace("+", "%2B")
    query = f"/api/telemetry?miner_id={miner}&since={since}&until={until}"
    hours = client.get(f"{query}&bucket=1h").json()["buckets"]
    assert [one["readings"] for one in hours] == [6, 3]
    assert [(one["hashrate_min"], one["hashrate_avg"], one["hashrate_max"]) for one in hours] == [
        (190.0, pytest.approx(192.5), 195.0),
        (196.0, pytest.approx(197.0), 198.0),
    ]
    assert hours[0]["power_avg"] == pytest.approx((3500 + 3501 + 3502 + 3504 + 3505) / 5)
    [day] = client.get(f"{query}&bucket=1d").json()["buckets"]
    assert (day["readings"], day["hashrate_min"], day["hashrate_max"]) == (9, 190.0, 198.0)
    assert day["hashrate_avg"] == pytest.approx(194.0)
    assert day["start"] == noon.replace(hour=0).isoformat().replace("+00:00", "Z")
    tens = client.get(f"{query}&bucket=10m").json()["buckets"]
    assert [one["hashrate_avg"] for one in tens] == [190.0 + place for place in range(9)]
    assert tens[3]["power_avg"] is None


def test_late_and_repeated_readings_change_nothing_twice(on_both: Running) -> None:
    client, miner = on_both.program(), a_miner(on_both.parts, on_both.owner)
    chance = random.Random(4)
    all_of_them = [a_reading(miner, at(on_both, place), 100 + chance.random()) for place in range(0, 5000, 7)]
    shuffled = [*all_of_them, *all_of_them[:200]]
    chance.shuffle(shuffled)

    stored = [sent(client, *shuffled[start : start + 100]).json()["stored"] for start in range(0, len(shuffled), 100)]

    assert sum(stored) == len(all_of_them)
    on_both.parts.db.read_now(assert_exact)


def assert_exact(conn: Connection) -> None:
    """What is kept by the hour and by the day is what the readings come to."""
    readings = conn.execute(select(miner_telemetry)).all()
    for table, width in ((telemetry_hours, timedelta(hours=1)), (telemetry_days, DAY)):
        wanted: dict[tuple[int, datetime], list[Any]] = {}
        for one in readings:
            start = one.at - (one.at - datetime(1970, 1, 1, tzinfo=UTC)) % width
            wanted.setdefault((one.miner_id, start), []).append(one)
        kept = {(row.miner_id, row.start): row for row in conn.execute(select(table))}
        assert kept.keys() == wanted.keys()
        for key, group in wanted.items():
            for name, column in (("hashrate", "hashrate_th"), ("power", "power_w"), ("temperature", "temperature_c")):
                values = [value for one in group if (value := getattr(one, column)) is not None]
                count, least, total, most = (
                    getattr(kept[key], f"{name}_{what}") for what in ("count", "min", "sum", "max")
                )
                assert count == len(values)
                assert (least, most) == (min(values, default=None), max(values, default=None))
                assert total == (pytest.approx(sum(values)) if values else None)


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.integers(0, 1),  # which machine
                st.integers(0, 40),  # how many quarters of an hour ago
                st.floats(0, 1e6),
                st.none() | st.floats(0, 1e6),
                st.none() | st.floats(-200, 900),
            ),
            min_size=1,
            max_size=15,
        ),
        min_size=1,
        max_size=3,
    )
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_chart_is_what_its_readings_come_to_in_whatever_order_they_come(
    on_both: Running, batches: list[list[tuple[int, int, float, float | None, float | None]]]
) -> None:  # E8
    parts, owner = on_both.parts, on_both.owner
    ids, until = [a_miner(parts, owner), a_miner(parts, owner)], parts.now().replace(microsecond=0)
    first: dict[tuple[int, datetime], tuple[float, float | None, float | None]] = {}
    for batch in batches:
        readings = [
            MachineReading(ids[which], until - timedelta(minutes=15 * ago), rate, power, heat)
            for which, ago, rate, power, heat in batch
        ]
        known = len(first)
        for one in readings:  # of two readings of one machine and one time, the first one counts
            first.setdefault((one.miner_id, one.at), (one.hashrate_th, one.power_w, one.temperature_c))
        taken = parts.db.write_now(telemetry.take, owner, readings, KEPT, until)
        assert (taken.stored, taken.repeated) == (len(first) - known, len(readings) - taken.stored)

    for miner_id in ids:
        for width, seconds in (("10m", 600), ("1h", 3600), ("1d", 86400)):
            chart = parts.db.read_now(telemetry.series, owner, miner_id, until - DAY * 3, until + DAY, width)
            wanted = charted({when: what for (whose, when), what in first.items() if whose == miner_id}, seconds)
            assert [one.start for one in chart] == [start for start, *_ in wanted]
            assert [one[1:] for one in chart] == [close_to(figures) for _, *figures in wanted]


def close_to(figures: list[float | None]) -> tuple[Any, ...]:
    return tuple(None if figure is None else pytest.approx(figure, rel=1e-9) for figure in figures)


def charted(readings: dict[datetime, tuple[float, float | None, float | None]], seconds: int) -> list[tuple[Any, ...]]:
    """What a chart shows, computed from single readings."""
    buckets: dict[datetime, list[tuple[float, float | None, float | None]]] = {}
    for when, what in sorted(readings.items()):
        start = datetime.fromtimestamp(when.timestamp() // seconds * seconds, UTC)
        buckets.setdefault(start, []).append(what)
    rows = []
    for start, group in buckets.items():
        figures: list[float | None] = []
        for column in zip(*group, strict=True):
            values = [value for value in column if value is not None]
            figures += [min(values), sum(values) / len(values), max(values)] if values else [None, None, None]
        rows.append((start, len(group), *figures))
    return rows


def test_two_senders_of_the_same_machines_do_not_wait_for_each_other_for_ever(on_both: Running) -> None:
    parts, owner, now = on_both.parts, on_both.owner, on_both.parts.now()
    ids = [a_miner(parts, owner) for _ in range(30)]

    def send(way: int) -> int:
        ordered = ids if way % 2 else ids[::-1]
        batch = [MachineReading(one, now - timedelta(minutes=way // 2), 100.0 + way) for one in ordered]
        return parts.db.write_now(telemetry.take, owner, batch, KEPT, now).stored

    with ThreadPoolExecutor(6) as ways:
        assert sum(ways.map(send, range(24))) == 12 * len(ids)

    parts.db.read_now(assert_exact)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"hashrate_th": -1}, "Expected `float` >= 0"),
        ({"hashrate_th": "200"}, "Expected `float`, got `str`"),
        ({"hashrate_th": None}, "Expected `float`, got `null`"),
        ({"power_w": -3}, "Expected `float` >= 0"),
        ({"temperature_c": -300}, "Expected `float` >= -273.15"),
        ({"at": "yesterday"}, "Invalid RFC3339"),
        ({"at": "2026-01-01T00:00:00"}, "Expected `datetime` with a timezone"),
        ({"at": "2999-01-01T00:00:00Z"}, "is in the future"),
        ({"miner_id": 0}, "Expected `int` >= 1"),
        ({"miner_id": 99_999}, "You have no machine 99999."),
        ({"colour": "red"}, "unknown field `colour`"),
    ],
)
def test_bad_readings_are_named_by_their_place_and_nothing_is_stored(
    wrong: dict[str, Any], says: str, headwater: Running
) -> None:
    client, miner = headwater.program(), a_miner(headwater.parts, headwater.owner)
    good = [a_reading(miner, at(headwater, place + 1)) for place in range(3)]

    answer = sent(client, good[0], good[1] | wrong, good[2])

    assert answer.status == 422
    [error] = answer.json()["errors"]
    assert error["field"] == "readings[1]"
    assert says in error["message"]
    assert count(headwater.parts) == 0


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"[]", "Send an object"),
        (b'{"readings": []}', "1 to 10,000 readings"),
        (b'{"readings": 7}', "Send an object"),
        (b'{"readings": [{"miner_id": 1, "at": "2026-01-01T00:00:00Z", "hashrate_th": NaN}]}', "not JSON"),
        (b'{"readings": [' + b",".join([b"1"] * 10_001) + b"]}", "this one has 10,001"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "Send an object"),
    ],
)
def test_what_is_no_batch_is_refused(body: bytes, says: str, headwater: Running) -> None:
    answer = headwater.program().post("/api/telemetry", body, Content_Type="application/json")

    assert answer.status == 422
    assert says in answer.json()["detail"]


def test_a_batch_may_have_ten_thousand_readings(on_both: Running) -> None:
    client, miner = on_both.program(), a_miner(on_both.parts, on_both.owner)
    readings = [a_reading(miner, at(on_both, place), 123.456789, power_w=3456.789) for place in range(10_000)]

    assert sent(client, *readings).json()["stored"] == 10_000
    assert count(on_both.parts) == 10_000


def count(parts: Parts) -> int:
    found = parts.db.read_now(lambda conn: conn.execute(select(func.count()).select_from(miner_telemetry)).scalar())
    assert found is not None
    return found


def test_the_machine_of_another_tenant_is_as_unknown_as_one_that_is_not_there(on_both: Running) -> None:  # E10
    client, theirs = on_both.program(), on_both.parts.db.write_now(another_tenant)
    mine, other = a_miner(on_both.parts, on_both.owner), a_miner(on_both.parts, theirs)
    reading = a_reading(other, at(on_both, 5))
    batch = telemetry.read_batch(json.dumps({"readings": [reading]}).encode())
    on_both.parts.db.write_now(telemetry.take, theirs, batch, KEPT, on_both.parts.now())

    for unknown in (other, 99_999):
        refused = sent(client, a_reading(mine, at(on_both, 5)), a_reading(unknown, at(on_both, 5)))
        assert (refused.status, refused.json()["errors"]) == (
            422,
            [{"field": "readings[1]", "message": f"You have no machine {unknown}."}],
        )
        shown = client.get(f"/api/telemetry?miner_id={unknown}")
        assert (shown.status, shown.json()["detail"]) == (404, f"You have no machine {unknown}.")
    assert count(on_both.parts) == 1


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 422),
        ("?miner_id=x", 422),
        ("?miner_id={miner}&bucket=7m", 422),
        ("?miner_id={miner}&since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", 422),
        ("?miner_id={miner}&since=2020-01-01T00:00:00Z&until=2026-01-01T00:00:00Z&bucket=1h", 422),
        ("?miner_id={miner}&since=2025-01-01T00:00:00Z&until=2026-01-01T00:00:00Z&bucket=10m", 422),
        ("?miner_id={miner}&since=2026-01-01T00:00:00", 422),
        ("?miner_id={miner}", 200),
    ],
)
def test_a_bad_question_is_refused(query: str, status: int, headwater: Running) -> None:
    miner = a_miner(headwater.parts, headwater.owner)

    assert headwater.program().get(f"/api/telemetry{query.format(miner=miner)}").status == status


def test_readings_that_are_too_old_are_left_out_and_old_ones_are_deleted_by_and_by(on_both: Running) -> None:
    parts, owner = on_both.parts, on_both.owner
    miner, now = a_miner(parts, owner), parts.now()
    old, late = (
        MachineReading(miner, now - timedelta(days=40), 1.0),
        MachineReading(miner, now - timedelta(days=20), 2.0),
    )
    parts.db.write_now(store.save, owner, [old, late], now)

    client = on_both.program()
    answer = sent(client, a_reading(miner, now - timedelta(days=36)), a_reading(miner, now - timedelta(days=1))).json()
    assert (answer["stored"], answer["too_old"]) == (1, 1)
    parts.db.write_now(telemetry.forget_old, KEPT, timedelta(days=800), now)

    left = parts.db.read_now(lambda conn: conn.execute(select(miner_telemetry.c.at)).scalars().all())
    assert len(left) == 2
    days = parts.db.read_now(lambda conn: conn.execute(select(telemetry_days.c.hashrate_sum)).scalars().all())
    assert sorted(days)[:2] == [1.0, 2.0], "what readings came to by the day stays"


def test_readings_of_machines_that_are_gone_are_deleted(on_both: Running) -> None:
    parts, owner = on_both.parts, on_both.owner
    gone, stays = a_miner(parts, owner), a_miner(parts, owner)
    for miner in (gone, stays):
        parts.db.write_now(store.save, owner, [MachineReading(miner, parts.now(), 1.0)], parts.now())
    parts.db.write_now(miners.remove, owner, gone, parts.now())

    assert on_both.program().get(f"/api/telemetry?miner_id={gone}").status == 404
    forget_gone(parts)

    assert [miners_in(parts, table) for table in KEPT_IN] == [{stays}] * len(KEPT_IN)


KEPT_IN = (miner_telemetry, telemetry_hours, telemetry_days, telemetry_heard)


def miners_in(parts: Parts, table: Table) -> set[int]:
    return parts.db.read_now(lambda conn: set(conn.execute(select(table.c.miner_id)).scalars()))


def forget_gone(parts: Parts, at_once: int = 100) -> list[int]:
    """Does what the periodic job does. Returns how many rows each transaction deleted."""
    counts = []
    while (count := parts.db.write_now(store.forget_gone, at_once)) is not None:
        counts.append(count)
    return counts


def test_the_readings_of_somebody_who_was_removed_are_deleted_a_few_at_a_time(on_both: Running) -> None:  # E8, E10
    parts, now = on_both.parts, on_both.parts.now()
    leaving, other = a_person(on_both, "lea"), parts.db.write_now(another_tenant)
    gone, stays, theirs = a_miner(parts, leaving), a_miner(parts, on_both.owner), a_miner(parts, other)
    for reader, miner in ((leaving, gone), (on_both.owner, stays), (other, theirs)):
        readings = [MachineReading(miner, now - timedelta(minutes=place), 1.0) for place in range(0, 300, 2)]
        parts.db.write_now(store.save, reader, readings, now)
    assert forget_gone(parts) == []
    assert on_both.program()("DELETE", f"/api/people/{leaving.user_id}").status == 204

    counts = forget_gone(parts, 40)

    assert max(counts) <= 3 * 40
    assert sum(counts) > 150
    assert len(counts) >= 5
    assert [miners_in(parts, table) for table in KEPT_IN] == [{stays, theirs}] * len(KEPT_IN)
    parts.db.read_now(assert_exact)
    job = next(one for one in JOBS if one.name == "forget-gone-machines")
    parts.db.write_now(miners.remove, on_both.owner, stays, now)
    asyncio.run(job.work(periodic_tools(parts)))
    assert miners_in(parts, miner_telemetry) == {theirs}


FORGET_UNTIL_KILLED = """
import time
from headwater import wire
from headwater.settings import load
from headwater.store.fleet import telemetry

parts = wire.open_parts(load())
print("forgetting", flush=True)
while parts.db.write_now(telemetry.forget_gone, 3) is not None:
    time.sleep(0.02)
"""


def test_whoever_is_killed_while_deleting_leaves_the_rest_to_the_next(
    parts: Parts, environ: dict[str, str], owner: Reader
) -> None:  # D6, H79
    gone, stays = a_miner(parts, owner), a_miner(parts, owner)
    for miner in (gone, stays):
        readings = [MachineReading(miner, parts.now() - timedelta(minutes=place), 1.0) for place in range(1500)]
        parts.db.write_now(store.save, owner, readings, parts.now())
    parts.db.write_now(miners.remove, owner, gone, parts.now())
    for _ in range(2):
        before = count(parts)
        process = start(environ, FORGET_UNTIL_KILLED, says="forgetting")
        wait_until(lambda most=before: count(parts) < most)  # type: ignore[misc]
        kill(process)
        assert gone in miners_in(parts, telemetry_heard), "it is known still, so that the rest is found"
    forget_gone(parts)
    assert [miners_in(parts, table) for table in KEPT_IN] == [{stays}] * len(KEPT_IN)
    parts.db.read_now(assert_exact)


def test_months_are_partitions_that_show_nothing_by_themselves(store_url: str, parts: Parts) -> None:  # E11
    if not store_url.startswith("postgresql"):
        return
    owner = parts.db.write_now(another_tenant)
    miner, now = a_miner(parts, owner), parts.now()
    months = [now - timedelta(days=31 * back) for back in range(3)]
    parts.db.write_now(store.save, owner, [MachineReading(miner, when, 1.0) for when in months], now)

    with psycopg.connect(store_url) as as_application:
        as_application.execute("SELECT set_config('headwater.scope', 'system', true)")
        found = as_application.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = 'miner_telemetry'::regclass ORDER BY 1"
        ).fetchall()
        assert [name for (name,) in found] == sorted({f"miner_telemetry_{when:%Y_%m}" for when in months})
        assert as_application.execute("SELECT count(*) FROM miner_telemetry").fetchone() == (3,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_application.execute(f"SELECT count(*) FROM {found[0][0]}")
    parts.db.write_now(telemetry.forget_old, timedelta(days=2), timedelta(days=800), now)
    names = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'miner_telemetry'::regclass"
    with psycopg.connect(store_url) as as_application:
        row = as_application.execute(names).fetchone()
        assert row is not None
        assert row[0] >= 3, "the months to come are there before anything happens in them"


def test_readings_of_one_hour_that_come_at_once_by_several_ways_are_all_counted(on_both: Running) -> None:
    parts, owner = on_both.parts, on_both.owner
    miner, now = a_miner(parts, owner), parts.now()
    batches = [
        [
            MachineReading(miner, now - timedelta(seconds=40 * place + way), 100.0 + place)
            for place in range(way, way + 3)
        ]
        for way in range(40)
    ]

    with ThreadPoolExecutor(4) as ways:
        list(ways.map(lambda batch: parts.db.write_now(telemetry.take, owner, batch, KEPT, now), batches))

    parts.db.read_now(assert_exact)


TAKE_UNTIL_KILLED = """
import sys
from datetime import timedelta
from headwater import wire
from headwater.app import instance
from headwater.settings import load
from headwater.store.fleet import telemetry
from headwater.store.fleet.telemetry import MachineReading

parts = wire.open_parts(load())
owner, miner, now = instance.owner(parts.db), int(sys.argv[1]), parts.now()
print("taking", flush=True)
for batch in range(10_000):
    readings = [MachineReading(miner, now - timedelta(seconds=batch * 50 + place), 1.0 + place) for place in range(100)]
    parts.db.write_now(telemetry.save, owner, readings, now)
"""


def test_what_readings_come_to_is_exact_after_kills(parts: Parts, environ: dict[str, str], owner: Reader) -> None:  # D6
    miner = a_miner(parts, owner)
    for _ in range(4):
        before = count(parts)
        process = start(environ, TAKE_UNTIL_KILLED, str(miner), says="taking")
        wait_until(lambda least=before + 150: count(parts) > least)  # type: ignore[misc]
        kill(process)
        parts.db.read_now(assert_exact)


@pytest.fixture
def owner(parts: Parts) -> Reader:
    from headwater import wire

    return wire.prepare_store(parts)
