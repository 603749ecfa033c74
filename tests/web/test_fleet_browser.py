"""The operator's page in a real Chromium: figures, what if, live changes, both themes, a phone, and axe-core."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from api.running import Running
from fleet.taking_in import take_in
from headwater import wire
from headwater.app import market
from headwater.app.fleet import desk, miners, telemetry, treasury
from headwater.app.fleet.miners import MinerChange, NewMiner
from headwater.app.fleet.treasury import NewTrade
from headwater.model import MarketDay
from headwater.sim.market import mined
from headwater.store.fleet import telemetry as store
from headwater.store.fleet.telemetry import MachineReading
from support.posts import a_post

Open = Callable[..., Page]


def with_market(headwater: Running) -> None:
    now = headwater.parts.now()
    days = [MarketDay(*one) for one in mined(now.date() - timedelta(days=150), 150, 3)]
    headwater.parts.db.write_now(market.import_days, days, "file", now)
    with ThreadPoolExecutor(1) as elsewhere:  # the browser's event loop runs in this thread
        elsewhere.submit(lambda: asyncio.run(wire.catch_up(headwater.parts))).result()


def with_machines(headwater: Running) -> list[int]:
    """Two sites: the machines of the second lose money, and one of them is silent."""
    kinds = [("Good rigs", "North", 12, "234", "3510", "0.05"), ("Old rigs", "South", 6, "70", "2800", "0.09")]
    return [
        headwater.parts.db.write_now(
            miners.add,
            headwater.owner,
            NewMiner(
                name=name,
                site=site,
                quantity=count,
                actual_hashrate_th=rate,
                actual_power_w=power,
                electricity_usd_per_kwh=price,
            ),
            headwater.parts.now(),
        ).id
        for name, site, count, rate, power, price in kinds
    ]


def with_trades(headwater: Running) -> None:
    now = headwater.parts.now()
    for number, (side, btc, usd) in enumerate([("buy", "0.5", "40000"), ("sell", "0.2", "18000")]):
        wanted = NewTrade(side=side, btc=btc, usd=usd, traded_at=now - timedelta(days=9 - number))  # type: ignore[arg-type]
        headwater.parts.db.write_now(treasury.trade, headwater.owner, wanted, str(number), now)


def shown(page: Page, name: str) -> Any:
    return page.locator(f'[data-then="{name}"]')


def test_the_page_shows_what_the_fleet_earns_by_machine_site_and_in_all(headwater: Running, opened: Open) -> None:
    with_market(headwater)  # E8
    with_machines(headwater)
    with_trades(headwater)
    today = headwater.parts.db.read_now(desk.counted, headwater.owner, "fifo")

    page = opened("/fleet")

    profit = f"{today.total.profit_usd:,.2f}".replace("-", "−")
    expect(page.locator('[data-shown="profit"]')).to_have_text(f"{profit} USD")
    expect(page.get_by_role("row", name=re.compile("Old rigs"))).to_contain_text("−")
    expect(page.locator(".card", has_text="Next difficulty")).to_have_text(
        re.compile(r"[+−]?\d+\.\d % ?in \d+ days?; 80 % between [+−]?\d+\.\d and [+−]?\d+\.\d")
    )
    expect(page.get_by_role("region", name="Sites as a table").get_by_role("row")).to_have_count(4)
    expect(page.get_by_role("img", name=re.compile("Price of the last 60 days"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Profit of the fleet"))).to_be_visible()
    expect(page.locator("#look + ul")).to_contain_text("loses")
    expect(page.get_by_text("Sales have made")).to_contain_text("+2,000.00 USD")
    page.get_by_text("Table", exact=True).click()
    expect(page.get_by_role("region", name="Forecast as a table").get_by_role("row")).to_have_count(30 + 1 + 60 + 1)


def test_what_if_answers_while_one_types_as_the_server_does(headwater: Running, opened: Open) -> None:
    with_market(headwater)
    with_machines(headwater)
    page = opened("/fleet")

    page.get_by_label("Power, USD/kWh").fill("0.03")
    page.get_by_label("Price of the coin, USD").fill("120000")
    page.get_by_label("Difficulty, trillions").fill("150")

    typed = {name: shown(page, name).inner_text() for name in ("profit", "revenue", "power", "losing", "best")}
    page.goto(f"{headwater.url}/fleet?power=0.03&price=120000&difficulty=150")
    assert {name: shown(page, name).inner_text() for name in typed} == typed
    assert typed["losing"] == "0 of 18"


def test_stories_that_name_the_fleet_are_marked_and_listed_with_the_reason(headwater: Running, opened: Open) -> None:
    title = "Bitmain cuts the price of the S21"  # F5
    mine = NewMiner(model="Antminer S21", quantity=3, electricity_usd_per_kwh="0.05")
    headwater.parts.db.write_now(miners.add, headwater.owner, mine, headwater.parts.now())
    posts = [a_post("named", title, content=""), a_post("rivers", "Where rivers begin", content="")]
    headwater.publish(headwater.source(), *posts)
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(take_in, headwater.parts).result()

    page = opened("/fleet")
    listed = page.get_by_role("region", name="In the news").get_by_role("listitem")
    expect(listed).to_have_count(1)
    expect(listed).to_contain_text("“S21”: you have 3 Antminer S21")
    assert Axe().run(page).violations_count == 0
    page.get_by_role("link", name=title).click()
    expect(page).to_have_url(re.compile("/posts/"))

    page.goto(f"{headwater.url}/")
    expect(page.get_by_role("article", name=title)).to_contain_text("Yours “S21”: you have 3 Antminer S21")
    expect(page.get_by_role("article", name="Where rivers begin")).not_to_contain_text("Yours")
    page.get_by_role("link", name="Names your fleet").click()
    expect(page.get_by_role("article")).to_have_count(1)
    assert Axe().run(page).violations_count == 0


def test_what_if_works_without_script(headwater: Running, opened: Open) -> None:
    with_market(headwater)
    with_machines(headwater)
    page = opened("/fleet", java_script_enabled=False)
    before = shown(page, "profit").inner_text()

    page.get_by_label("Power, USD/kWh").fill("0.5")
    page.get_by_role("button", name="Work it out").click()

    expect(shown(page, "losing")).to_have_text("18 of 18")
    assert shown(page, "profit").inner_text() != before


def test_a_power_price_that_changes_in_one_window_shows_in_the_other(headwater: Running, opened: Open) -> None:
    with_market(headwater)
    good, _ = with_machines(headwater)
    page = opened("/fleet")
    profit = page.locator('[data-shown="profit"]')
    before = profit.inner_text()
    page.get_by_label("Price of the coin, USD").fill("1")
    changed = MinerChange(electricity_usd_per_kwh="0.07")

    headwater.parts.db.write_now(miners.change, headwater.owner, good, changed, headwater.parts.now())
    headwater.parts.new_events.send()

    expect(profit).not_to_have_text(before)
    expect(page.get_by_role("row", name=re.compile("Good rigs"))).to_contain_text("0.0700")
    expect(page.get_by_label("Price of the coin, USD")).to_have_value("1"), "what was typed stays"
    expect(shown(page, "losing")).to_have_text("18 of 18")


def test_a_change_between_loading_the_page_and_listening_is_shown(headwater: Running, opened: Open) -> None:
    with_market(headwater)
    good, _ = with_machines(headwater)
    page = opened("/")

    def change_first(route: Route) -> None:
        changed = MinerChange(electricity_usd_per_kwh="0.07")
        headwater.parts.db.write_now(miners.change, headwater.owner, good, changed, headwater.parts.now())
        route.continue_()

    page.route("**/api/live?*", change_first, times=1)
    page.goto(headwater.url + "/fleet")

    expect(page.get_by_role("row", name=re.compile("Good rigs"))).to_contain_text("0.0700")


def test_a_correction_that_is_being_typed_stays_when_the_page_refreshes(headwater: Running, opened: Open) -> None:
    with_trades(headwater)
    good, _ = with_machines(headwater)
    page = opened("/fleet")
    bought = page.get_by_role("row", name=re.compile("bought"))
    bought.get_by_text("Correct", exact=True).click()
    bought.get_by_label("Why").fill("the fee was missing")

    changed = MinerChange(electricity_usd_per_kwh="0.07")
    headwater.parts.db.write_now(miners.change, headwater.owner, good, changed, headwater.parts.now())
    headwater.parts.new_events.send()

    expect(page.get_by_role("row", name=re.compile("Good rigs"))).to_contain_text("0.0700")
    expect(bought.get_by_label("Why")).to_be_visible()
    expect(bought.get_by_label("Why")).to_have_value("the fee was missing")


def test_a_silent_machine_needs_a_look(headwater: Running, opened: Open) -> None:
    with_market(headwater)
    good, _ = with_machines(headwater)
    now = headwater.parts.now()
    heard = now - timedelta(minutes=90)
    headwater.parts.db.write_now(store.save, headwater.owner, [MachineReading(good, heard, 2800.0)], heard)
    for minute in range(70, -1, -1):
        headwater.parts.db.write_now(telemetry.look, now - timedelta(minutes=minute))

    page = opened("/fleet")

    expect(page.locator("#look + ul")).to_contain_text("Good rigs · North: silent since")
    expect(page.get_by_text("Readings were last looked at")).to_be_visible()


def test_somebody_who_reads_news_sees_nothing_of_it_but_a_way_to_start(headwater: Running, opened: Open) -> None:
    page = opened("/")
    places = page.get_by_role("navigation", name="Pages")
    expect(places.get_by_role("link", name="Fleet")).to_have_count(0)
    page.get_by_role("link", name="Mining").click()
    expect(page.get_by_role("heading", name="You have no machines and no coins here")).to_be_visible()
    expect(page.get_by_text("No figures of the market are known")).to_be_visible()

    with_machines(headwater)
    page.reload()

    expect(page.locator("[data-machine]")).to_have_count(2)
    expect(page.locator('[data-shown="profit"]')).to_have_text("– USD")


def test_a_trade_is_corrected_on_a_phone(headwater: Running, opened: Open) -> None:
    with_trades(headwater)
    page = opened("/fleet", viewport={"width": 360, "height": 780})
    bought = page.get_by_role("row", name=re.compile("bought"))

    bought.get_by_text("Correct", exact=True).click()
    bought.get_by_label("USD").fill("41000")
    bought.get_by_label("Why").fill("the fee was missing")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for button in ("Correct the trade", "Cancel the trade"):  # nothing has to be moved aside to see them
        box = bought.get_by_role("button", name=button).bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= 360 - box["width"]
    bought.get_by_role("button", name="Correct the trade").click()

    expect(page.get_by_role("row", name=re.compile("bought"))).to_contain_text("41,000.00")
    page.get_by_text("Corrected trades").click()
    expect(page.get_by_text("the fee was missing")).to_be_visible()


@pytest.mark.parametrize(
    "options",
    [{"color_scheme": "light"}, {"color_scheme": "dark"}, {"viewport": {"width": 360, "height": 780}}],
    ids=["light", "dark", "phone"],
)
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    options: dict[str, Any], headwater: Running, opened: Open
) -> None:
    with_market(headwater)
    with_machines(headwater)
    with_trades(headwater)
    page = opened("/fleet", **options)
    expect(page.locator(".fan")).to_be_visible()
    page.get_by_text("Table", exact=True).click()

    found = Axe().run(page).response["violations"]

    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_names_are_only_text(headwater: Running, opened: Open) -> None:  # H62
    with_market(headwater)
    wanted = NewMiner(
        name="<script>window.taken = 1</script>",
        site="<img src=x onerror='window.taken = 1'>",
        actual_hashrate_th="1",
        actual_power_w="1",
        electricity_usd_per_kwh="0",
    )
    headwater.parts.db.write_now(miners.add, headwater.owner, wanted, headwater.parts.now())

    page = opened("/fleet")

    expect(page.get_by_role("rowheader", name="<script>window.taken = 1</script>")).to_be_visible()
    assert page.evaluate("window.taken") is None


@pytest.mark.parametrize("query", ["power=x", "power=-1", "price=0", "difficulty=nan", "price=inf", "colour=red"])
def test_bad_questions_are_refused(query: str, headwater: Running) -> None:
    assert headwater.browser().get(f"/fleet?{query}", Accept="text/html").status == 422
