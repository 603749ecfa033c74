"""The forecast that is stored: made again when the market moves, once, and kept to be compared with what came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from api.running import Running
from fleet.taking_in import take_in
from headwater import wire
from headwater.app import market as use_cases
from headwater.errors import NotFound
from headwater.events.health import judge
from headwater.fleet.chain import latest_run
from headwater.model import MarketDay
from headwater.sim.market import mined
from headwater.store.fleet import forecasts
from headwater.store.tables import event_outbox, forecast_daily
from headwater.wire import Parts
from support.processes import kill, start, wait_until

START = date(2026, 1, 1)
DAYS = [MarketDay(*one) for one in mined(START, 150)]


async def know(parts: Parts, days: list[MarketDay]) -> None:
    await parts.db.write(use_cases.import_days, days, "file", parts.now())
    await wire.catch_up(parts)


def refreshed(conn: Connection) -> list[dict[str, Any]]:
    found = conn.execute(select(event_outbox).where(event_outbox.c.kind == "forecast.refreshed").order_by("id"))
    return [one.payload for one in found]


async def test_new_figures_make_a_new_forecast_and_the_old_one_stays(parts: Parts) -> None:  # E8
    await know(parts, DAYS[:100])
    await know(parts, DAYS[100:103])

    found = await parts.db.read(use_cases.current_forecast, parts.now())

    assert (found.made_on, found.version, len(found.days)) == (DAYS[102].day, 1, 30)
    assert found.days[0].day == DAYS[103].day
    assert found.days[0].price_usd == DAYS[102].price_usd
    assert found.days[0].difficulty_skill is not None
    assert [event["made_on"] for event in await parts.db.read(refreshed)] == [str(DAYS[99].day), str(DAYS[102].day)]
    outcomes = await parts.db.read(forecasts.outcomes, START)
    assert [(one.made_on.date(), one.forecast_date.date()) for one in outcomes] == [
        (DAYS[99].day, DAYS[place].day) for place in (100, 101, 102)
    ]
    assert [one.price_usd for one in outcomes] == [day.price_usd for day in DAYS[100:103]]
    assert {one.predicted_btc_price for one in outcomes} == {DAYS[99].price_usd}


async def test_the_same_figures_again_make_no_forecast(parts: Parts) -> None:
    await know(parts, DAYS[:100])
    [event] = await parts.db.read(refreshed)

    await know(parts, DAYS[:100])
    await parts.db.write(use_cases.import_days, [DAYS[3]._replace(hashrate_th=7.0)], "file", parts.now())
    await wire.catch_up(parts)

    assert await parts.db.read(refreshed) == [event]
    rows = await parts.db.read(lambda conn: conn.execute(select(func.count()).select_from(forecast_daily)).scalar())
    assert rows == 30


async def test_a_correction_makes_another_version_of_the_same_day(parts: Parts) -> None:
    await know(parts, DAYS[:100])
    await know(parts, [DAYS[99]._replace(price_usd=50_000.0)])

    found = await parts.db.read(use_cases.current_forecast, parts.now())

    assert (found.made_on, found.version, found.days[0].price_usd) == (DAYS[99].day, 2, 50_000.0)


async def test_too_few_days_or_a_gap_make_no_forecast_and_that_is_said(parts: Parts) -> None:
    await know(parts, DAYS[:50] + DAYS[52:100])

    with pytest.raises(NotFound, match="60 days without a gap"):
        await parts.db.read(use_cases.current_forecast, parts.now())

    await know(parts, DAYS[50:52])
    assert (await parts.db.read(use_cases.current_forecast, parts.now())).made_on == DAYS[99].day


def test_a_run_ends_with_the_last_day_that_is_known_in_full() -> None:
    days = [*DAYS[:10], *DAYS[12:20], DAYS[20]._replace(price_usd=None), DAYS[21]._replace(difficulty=None)]

    assert latest_run(days) == DAYS[12:20]
    assert latest_run([]) == []
    assert latest_run([DAYS[0]._replace(price_usd=None)]) == []


async def test_the_past_says_which_ranges_held(parts: Parts) -> None:
    await know(parts, DAYS)

    past = (await parts.db.read(use_cases.current_forecast, parts.now())).past

    assert [one.day for one in past] == [day.day for day in DAYS[-60:]]
    prices = {day.day: day.price_usd for day in DAYS}
    assert all(one.price_usd == prices[one.day] for one in past)
    assert all(one.held == (one.low <= one.price_usd <= one.high) for one in past)
    assert 0.5 < sum(one.held for one in past) / len(past) <= 1


def test_the_api_has_the_forecast_or_says_what_it_needs(headwater: Running) -> None:  # E8
    client, path = headwater.program(), "/api/intelligence/forecast"
    missing = client.get(path)
    assert missing.status == 404
    assert "headwater market import" in missing.json()["detail"]
    headwater.parts.db.write_now(use_cases.import_days, DAYS, "file", headwater.parts.now())
    asyncio.run(wire.catch_up(headwater.parts))

    found = client.get(f"{path}?days=7").json()

    assert found["made_on"] == str(DAYS[-1].day)
    assert len(found["days"]) == 7
    assert found["days"][0]["predicted_btc_price"] == DAYS[-1].price_usd
    assert found["days"][0]["predicted_difficulty"] > 0
    assert 0 <= found["days"][0]["confidence_score"] <= 1
    assert len(found["past"]) == 60
    assert client.get(f"{path}?days=31").status == 422
    assert client.get("/api/health").json()["forecast_freshness_sec"] is not None  # E13
    assert headwater.stranger.get(path).status == 401


def test_the_cache_has_the_forecast_until_a_day_of_the_market_changes(on_both: Running) -> None:  # E7
    client, path, parts = on_both.program(), "/api/intelligence/forecast", on_both.parts
    parts.db.write_now(use_cases.import_days, DAYS, "file", parts.now())
    take_in(parts)
    first, again = client.get(path).json(), client.get(f"{path}?days=2").json()
    assert (first["cache_hit"], again["cache_hit"], len(again["days"])) == (False, True, 2)
    assert {**again, "days": first["days"], "cache_hit": False} == first
    corrected = DAYS[-30]._replace(price_usd=DAYS[-30].price_usd * 3)  # type: ignore[operator]
    parts.db.write_now(use_cases.import_days, [corrected], "file", parts.now())
    seen_at_once = client.get(path).json()
    assert not seen_at_once["cache_hit"]
    assert seen_at_once["past"] != first["past"], "what came is known at once, before the forecast is made again"
    take_in(parts)
    after = client.get(path).json()
    assert (after["version"], after["cache_hit"]) == (2, False)
    assert client.get(path).json() == {**after, "cache_hit": True}


CONSUME_UNTIL_KILLED = """
import asyncio
from headwater import wire
from headwater.settings import load

parts = wire.open_parts(load())
print("consuming", flush=True)
asyncio.run(wire.follow_log(parts, asyncio.Event()))
"""


def test_a_killed_consumer_makes_every_forecast_once(parts: Parts, environ: dict[str, str]) -> None:  # E3
    def versions(conn: Connection) -> list[tuple[datetime, int]]:
        made = forecast_daily.c.made_on, forecast_daily.c.version
        return [tuple(row) for row in conn.execute(select(*made).group_by(*made).order_by(*made))]  # type: ignore[misc]

    for place in range(70, 76):
        parts.db.write_now(
            use_cases.import_days, DAYS[place - 1 : place] if place > 70 else DAYS[:70], "f", parts.now()
        )
        process = start(environ, CONSUME_UNTIL_KILLED, says="consuming")
        if place % 2:
            wait_until(lambda day=DAYS[place - 1].day: _has(parts, versions, day))  # type: ignore[misc]
        kill(process)
    process = start(environ, CONSUME_UNTIL_KILLED, says="consuming")
    wait_until(lambda: _has(parts, versions, DAYS[74].day))
    kill(process)

    made = parts.db.read_now(versions)
    assert {version for _, version in made} == {1}
    assert len(parts.db.read_now(refreshed)) == len(made)


def _has(parts: Parts, versions: Callable[[Connection], list[tuple[datetime, int]]], day: date) -> bool:
    return any(made.date() == day for made, _ in parts.db.read_now(versions))


@pytest.mark.parametrize(("days_ago", "state"), [(1, "ok"), (2, "ok"), (4, "warning"), (400, "warning")])
def test_health_warns_of_a_forecast_that_knows_nothing_of_late(days_ago: int, state: str) -> None:  # E13
    from events.test_health import SEEN
    from headwater.consumers import search
    from support.posts import NOON

    seen = SEEN._replace(forecast_knows=NOON.date() - timedelta(days=days_ago))
    [figure] = [one for one in judge(seen, [search.CONSUMER], NOON) if one.name == "forecast_freshness_sec"]

    assert figure.state == state
    begins = datetime.combine(seen.forecast_knows, time(), NOON.tzinfo)
    assert figure.value == pytest.approx((NOON - begins - timedelta(days=1)).total_seconds())
