"""`/analytics/main`: what machines and coins come to, from the cache and never older than the last calculation
(E7, E8)."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from html import unescape
from typing import Any

import pytest

from api.running import Client, Running
from fleet.taking_in import take_in
from headwater.accounts import tokens
from headwater.app.fleet import portfolio
from headwater.app.market import FORECAST, StoredForecast
from headwater.coordination.cache import Cache, CachedKind, MemoryEntries
from headwater.crawl.record import record_days
from headwater.fleet import economics
from headwater.model import MarketDay
from headwater.store.fleet import portfolios
from headwater.store.fleet.portfolios import Changes, Owner
from support.tenants import another_tenant

NOON = datetime(2026, 5, 18, 12, tzinfo=UTC)
DAY = MarketDay(date(2026, 5, 18), 69_110.0, 136.6e12, 950_000, 144, 2.88)
FLEET = {"model": "Antminer S21 (200T)", "quantity": 10, "site": "Hall 1", "electricity_usd_per_kwh": "0.05"}
BOUGHT = {"side": "buy", "btc": "0.5", "usd": 30_000, "traded_at": "2024-03-01T12:00:00Z"}


def main(client: Client) -> dict[str, Any]:
    answer = client.get("/analytics/main")
    assert answer.status == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_portfolio_without_a_market_says_what_is_missing(on_both: Running) -> None:
    client = on_both.program()
    nothing = main(client)
    assert (nothing["portfolio"]["btc_inventory"], nothing["last_updated"]) == ("0", None)
    client.post("/api/miners", FLEET)
    client.post("/api/treasury/trade", BOUGHT, Idempotency_Key="1")
    take_in(on_both.parts)
    found = main(client)
    shown = found["portfolio"]
    assert (found["is_current"], "headwater market import" in found["missing"]) == (True, True)
    assert (shown["btc_inventory"], shown["avg_cost_basis_usd"]) == ("0.5", "60000")
    assert (shown["monthly_opex_usd"], shown["monthly_revenue_usd"], shown["market"]) == ("1278.375", None, None)
    assert [one["name"] for one in shown["by_site"]] == ["Hall 1"]


def test_with_a_market_there_is_revenue_and_break_even(headwater: Running) -> None:
    client = headwater.program()
    client.post("/api/miners", FLEET)
    headwater.parts.db.write_now(record_days, [DAY], "test", NOON)
    take_in(headwater.parts)
    found = main(client)
    shown = found["portfolio"]
    assert found["missing"] is None
    assert shown["market"]["day"] == "2026-05-18"
    # 8.64e19 / (136.6e12 * 2^32) * 3.145 * 69110 is about 32 USD for 1 PH/s and day; the fleet has 2 PH/s.
    hashprice = float(shown["market"]["hashprice_usd_per_ph_day"])
    assert abs(hashprice - 8.64e19 / (136.6e12 * 2**32) * 3.145 * 69_110) < 1e-6
    day = shown["machines"]
    assert abs(float(day["revenue_usd_per_day"]) - 2 * hashprice) < 1e-6
    assert abs(float(shown["break_even_usd_per_kwh"]) - 2 * hashprice / (35 * 24)) < 1e-6
    revenue, power, profit = (Decimal(day[f"{name}_usd_per_day"]) for name in ("revenue", "power", "profit"))
    assert profit == revenue - power


def test_the_cache_answers_until_something_changes(on_both: Running) -> None:  # E7
    client = on_both.program()
    mine = client.post("/api/miners", FLEET).json()
    take_in(on_both.parts)
    first, second = main(client), main(client)
    assert (first["cache_hit"], second["cache_hit"]) == (False, True)
    assert first["portfolio"] == second["portfolio"]
    client.patch(f"/api/miners/{mine['id']}", {"electricity_usd_per_kwh": "0.1"})
    take_in(on_both.parts)
    changed = main(client)
    assert (changed["cache_hit"], changed["portfolio"]["monthly_opex_usd"]) == (False, "2556.75")
    assert main(client)["cache_hit"]


@pytest.mark.parametrize(
    ("kind", "value", "seconds"),
    [
        (portfolio.MAIN, {"btc_inventory": "1"}, 600),
        (FORECAST, StoredForecast(DAY.day, 1, "as today", NOON, 0, [], []), 1800),
    ],
    ids=["portfolio", "forecast"],
)
async def test_what_is_kept_is_made_again_after_its_time_and_nobody_waits_for_that(  # E7
    kind: CachedKind[Any], value: Any, seconds: int
) -> None:
    at, made = [0.0], list[float]()
    cache = Cache(MemoryEntries(1_000_000, lambda: at[0]))

    async def make() -> Any:
        made.append(at[0])
        return value

    for at[0] in (0, seconds - 1, seconds + 1):
        found = await cache.get(kind, kind.name, make, version="1")
        assert (found.value, found.is_hit) == (value, at[0] > 0)
    await cache.close()  # waits for what is under way
    assert made == [0, seconds + 1]


def test_a_change_that_is_not_taken_in_yet_is_said(on_both: Running) -> None:
    client = on_both.program()
    client.post("/api/miners", FLEET)
    take_in(on_both.parts)
    owner = Owner(on_both.owner.tenant_id, on_both.owner.user_id)
    on_both.parts.db.write_now(portfolios.mark_stale, {owner: Changes(1, NOON)})
    assert not main(client)["is_current"]
    take_in(on_both.parts)
    assert main(client)["is_current"]


def test_two_tenants_do_not_share_what_is_cached(on_both: Running) -> None:  # H68
    on_both.program().post("/api/miners", FLEET)
    other = on_both.parts.db.write_now(another_tenant)
    token = on_both.parts.db.write_now(tokens.issue, other, "api", "test", on_both.parts.now())
    stranger = Client(on_both.port, {"Authorization": f"Bearer {token}"})
    take_in(on_both.parts)
    assert main(on_both.program())["portfolio"]["machines"]["quantity"] == 10
    assert main(stranger)["portfolio"]["machines"]["quantity"] == 0


def test_the_figures_of_the_page_are_those_of_the_api(on_both: Running) -> None:  # E8
    """The page works them out for each machine, the API reads what was last calculated: both come to the same."""
    client = on_both.program()
    client.post("/api/miners", FLEET)
    client.post("/api/miners", {**FLEET, "site": "Hall 2", "quantity": 3, "electricity_usd_per_kwh": "0.09"})
    client.post("/api/treasury/trade", BOUGHT, Idempotency_Key="1")
    sold = {"side": "sell", "btc": "0.1", "usd": 9_000, "traded_at": "2024-04-01T12:00:00Z"}
    client.post("/api/treasury/trade", sold, Idempotency_Key="2")
    on_both.parts.db.write_now(record_days, [DAY], "test", NOON)
    take_in(on_both.parts)
    shown = main(client)["portfolio"]
    page = unescape(on_both.browser().get("/fleet").text).replace("\u2212", "-")
    words = " ".join(re.sub(r"<[^>]+>", " ", page).split())

    def money(text: str, digits: int = 2) -> str:
        return f"{Decimal(text):,.{digits}f}"

    machines, fifo = shown["machines"], next(one for one in shown["coins"] if one["method"] == "fifo")
    assert f"Profit today {money(machines['profit_usd_per_day'])} USD" in words
    assert f"revenue {money(machines['revenue_usd_per_day'])}, power {money(machines['power_usd_per_day'])}" in words
    assert f"Hashprice {money(shown['market']['hashprice_usd_per_ph_day'])}" in words
    assert f"Break-even power {money(shown['break_even_usd_per_kwh'], 4)}" in words
    assert f"Inventory {money(shown['btc_inventory'], 4)} BTC cost {money(fifo['cost_usd'], 0)}" in words
    assert f"Sales have made +{money(fifo['realised_usd'])} USD" in words
    for site in shown["by_site"]:
        row = next(line for line in page.split("<tr>") if line.startswith(f'<th scope="row">{site["name"]}</th>'))
        cells = re.findall(r"<td[^>]*>([^<]*)</td>", row)
        figures = [site[f"{name}_usd_per_day"] for name in ("revenue", "power", "profit")]
        assert [cells[0], *(cell.lstrip("+") for cell in cells[2:5])] == [f"{site['quantity']:,}", *map(money, figures)]


def test_what_if_answers_as_the_economics_do(headwater: Running) -> None:  # E8
    headwater.program().post("/api/miners", FLEET)
    headwater.parts.db.write_now(record_days, [DAY], "test", NOON)
    page = headwater.browser().get("/fleet?power=0.07&price=120000&difficulty=150").text.replace("\u2212", "-")
    network = economics.Network(Decimal("150e12"), Decimal("3.125"), Decimal("0.02"), Decimal(120_000))
    wanted = economics.day_of(
        economics.Machines(10, Decimal(200), Decimal(3500), Decimal("0.07")),
        economics.hashprice_usd_per_ph_day(network),
    )
    then = dict(re.findall(r'data-then="(profit|revenue|power)">([^<]*) USD<', page))
    assert then == {
        "profit": f"{wanted.profit_usd:,.2f}",
        "revenue": f"{wanted.revenue_usd:,.2f}",
        "power": f"{wanted.power_usd:,.2f}",
    }
