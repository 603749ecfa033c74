"""A portfolio equals a calculation from nothing, whatever happened and in whatever order (E6, E8)."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from fleet.taking_in import take_in
from headwater import wire
from headwater.app.fleet import miners, portfolio, treasury
from headwater.app.fleet.amounts import plain
from headwater.app.fleet.miners import MinerChange, NewMiner
from headwater.app.fleet.treasury import NewTrade
from headwater.coordination.cache import Cache, MemoryEntries
from headwater.coordination.locks import hold_free, recalculation
from headwater.crawl.record import record_days
from headwater.fleet.economics import Machines, Network, day_of, hashprice_usd_per_ph_day, total
from headwater.fleet.inventory import METHODS, Trade, settle
from headwater.fleet.portfolio import OwnedMachines, network_on
from headwater.fleet.portfolio import portfolio as calculated
from headwater.ids import uuid7
from headwater.model import MarketDay, Reader
from headwater.store.fleet import market, portfolios
from headwater.store.fleet.portfolios import Changes, Owner
from headwater.store.log.locks import StoreLocks
from headwater.store.tables import event_outbox
from headwater.wire import Parts
from headwater.work.portfolios import LONGEST_PAUSE_SECONDS, CalculationTools, Pauses, calculate
from support.tenants import another_tenant

NOON = datetime(2026, 5, 18, 12, tzinfo=UTC)
DAY = MarketDay(date(2026, 5, 18), 80_000.0, 136.6e12, 950_000, 144, 2.88)
ONE = Changes(1, NOON)
NETWORK = Network(Decimal("136.6e12"), Decimal("3.125"), Decimal("0.02"), Decimal(80_000))

amounts = st.decimals(min_value=0, max_value=5000, places=3)
owned = st.builds(
    OwnedMachines,
    st.integers(1, 500),
    st.decimals(min_value=Decimal("0.001"), max_value=500, places=3),
    amounts,
    st.decimals(min_value=0, max_value=1, places=4),
    st.sampled_from(["", "Hall 1", "Hall 2"]),
    st.sampled_from(["S19", "S21", "own"]),
)


@given(st.lists(owned, max_size=30), st.sampled_from([None, NETWORK]))
def test_sums_are_those_of_machine_by_machine(machines: list[OwnedMachines], network: Network | None) -> None:
    found = calculated(machines, [], network)
    hashprice = hashprice_usd_per_ph_day(network) if network else Decimal(0)
    naive = [(one, day_of(Machines(*one[:4]), hashprice)) for one in machines]
    assert found.machines.quantity == sum(one.quantity for one in machines)
    assert found.machines.power_usd == total(day for _, day in naive).power_usd
    for groups, field in ((found.by_site, "site"), (found.by_model, "model")):
        assert groups.keys() == {getattr(one, field) for one in machines}
        for name, sums in groups.items():
            mine = [(one, day) for one, day in naive if getattr(one, field) == name]
            assert sums.quantity == sum(one.quantity for one, _ in mine)
            assert sums.power_usd == total(day for _, day in mine).power_usd
    assert (found.day is None) == (network is None)
    if found.day:
        assert abs(found.day.revenue_usd - total(day for _, day in naive).revenue_usd) < Decimal("1e-15")
        # Within rounding of the last digit, a machine that just breaks even may be on either side.
        sure = sum(one.quantity for one, day in naive if day.profit_usd < Decimal("-1e-15"))
        near = sum(one.quantity for one, day in naive if day.profit_usd < Decimal("1e-15"))
        assert sure <= found.machines.losing <= near


def test_a_day_of_the_market_is_what_the_network_asks_and_pays() -> None:
    assert network_on(DAY) == NETWORK
    assert network_on(DAY._replace(price_usd=None)) is None
    assert network_on(DAY._replace(blocks=0)) == NETWORK._replace(fees_btc_per_block=Decimal(0))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 50), st.integers(1, 30)),
        st.tuples(st.just("change"), st.integers(0, 9), st.integers(1, 60)),
        st.tuples(st.just("remove"), st.integers(0, 9), st.just(0)),
        st.tuples(st.sampled_from(["buy", "mine", "sell"]), st.integers(1, 10**9), st.integers(0, 90_000)),
        st.tuples(st.just("calculate"), st.just(0), st.just(0)),
    ),
    max_size=25,
)


class Desk:
    """An operator's desk in a store, and beside it a naive model of what was done there."""

    def __init__(self, parts: Parts, reader: Reader) -> None:
        self.parts, self.reader = parts, reader
        self.machines: dict[int, OwnedMachines] = {}
        self.trades: list[Trade] = []

    def do(self, step: tuple[str, int, int]) -> None:
        what, first, second = step
        db, reader, now = self.parts.db, self.reader, NOON + timedelta(minutes=len(self.trades))
        if what == "add":
            price = Decimal(second) / 100
            new = NewMiner(model="Antminer S21 (200T)", quantity=first, electricity_usd_per_kwh=price)
            made = db.write_now(miners.add, reader, new, now)
            self.machines[made.id] = OwnedMachines(first, Decimal(200), Decimal(3500), price, "", made.model or "")
        elif what in ("change", "remove") and self.machines:
            one = sorted(self.machines)[first % len(self.machines)]
            if what == "remove":
                db.write_now(miners.remove, reader, one, now)
                del self.machines[one]
            else:
                price = Decimal(second) / 1000
                db.write_now(miners.change, reader, one, MinerChange(electricity_usd_per_kwh=price, site="Hall"), now)
                self.machines[one] = self.machines[one]._replace(usd_per_kwh=price, site="Hall")
        elif what in ("buy", "mine", "sell"):
            trade = Trade(what, Decimal(first).scaleb(-8), Decimal(second), now)  # type: ignore[arg-type]
            held = settle(self.trades, "fifo").btc
            if what != "sell" or trade.btc <= held:
                wanted = NewTrade(side=what, btc=trade.btc, usd=trade.usd)  # type: ignore[arg-type]
                db.write_now(treasury.trade, reader, wanted, f"{len(self.trades)}", now)
                self.trades.append(trade)
        elif what == "calculate":
            take_in(self.parts)

    def expected(self) -> dict[str, Any]:
        network = NETWORK if self.parts.db.read_now(_has_market) else None
        return as_shown(calculated(self.machines.values(), self.trades, network))


def as_shown(found: Any) -> dict[str, Any]:
    average = found.coins["average"]
    return {
        "btc_inventory": plain(average.btc),
        "avg_cost_basis_usd": plain(average.average_usd_per_btc),
        "monthly_opex_usd": plain(found.monthly_opex_usd),
        "monthly_revenue_usd": plain(found.monthly_revenue_usd),
        "quantity": found.machines.quantity,
        "sites": sorted(found.by_site),
        "realised": [plain(found.coins[method].realised_usd) for method in METHODS],
    }


def shown(parts: Parts, reader: Reader) -> dict[str, Any]:
    figures = parts.db.read_now(portfolios.figures, reader) or {}
    names = ("btc_inventory", "avg_cost_basis_usd", "monthly_opex_usd", "monthly_revenue_usd")
    return {
        **{name: figures[name] for name in names},
        "quantity": figures["machines"]["quantity"],
        "sites": [one["name"] for one in figures["by_site"]],
        "realised": [one["realised_usd"] for one in figures["coins"]],
    }


def _has_market(conn: Any) -> bool:
    return market.latest(conn) is not None


@pytest.fixture
def desk(parts: Parts) -> Desk:
    parts.cache = Cache(MemoryEntries(1_000_000))
    return Desk(parts, wire.prepare_store(parts))


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps, st.booleans())
def test_what_is_shown_equals_a_calculation_from_nothing(
    desk: Desk, done: list[tuple[str, int, int]], is_priced: bool
) -> None:
    """Each example is done by a tenant of its own, in one store."""
    parts = desk.parts
    if is_priced:
        parts.db.write_now(record_days, [DAY], "test", NOON)
    mine = Desk(parts, parts.db.write_now(lambda conn: another_tenant(conn, uuid7())))
    for step in [*done, ("add", 5, 6), ("calculate", 0, 0)]:
        mine.do(step)
    assert shown(parts, mine.reader) == mine.expected()
    state = parts.db.read_now(portfolios.state, mine.reader)
    assert state is not None
    assert (state.calculated, state.stale_since) == (state.wanted, None)


def recalculated(parts: Parts) -> int:
    wanted = event_outbox.c.kind == "portfolio.recalculated"
    return parts.db.read_now(lambda conn: conn.execute(select(func.count()).where(wanted)).scalar_one())


def test_a_burst_of_changes_costs_a_few_calculations_and_the_last_is_right(desk: Desk) -> None:  # E6
    parts = desk.parts
    desk.do(("add", 10, 5))

    async def burst() -> None:
        stop = asyncio.Event()
        following = asyncio.create_task(wire.follow_log(parts, stop))
        for number in range(1000):
            change = MinerChange(quantity=number + 101)
            await parts.db.write(miners.change, desk.reader, next(iter(desk.machines)), change, parts.now())
        while not await _is_current(parts, desk.reader, wanted=1001):
            await asyncio.sleep(0.01)
        stop.set()
        await following

    asyncio.run(burst())
    figures = parts.db.read_now(portfolios.figures, desk.reader)
    assert figures is not None
    assert figures["machines"]["quantity"] == 1100
    assert 1 <= recalculated(parts) < 100


async def _is_current(parts: Parts, reader: Reader, wanted: int) -> bool:
    state = await parts.db.read(portfolios.state, reader)
    return state is not None and state.wanted >= wanted and state.calculated == state.wanted


def test_pauses_grow_while_changes_keep_coming_and_end_when_it_is_calm() -> None:
    pauses, owner, at, calculations = Pauses(), Owner(1, 1), 100.0, 0
    while at < 105.0:  # a change every 5 ms
        if not pauses.left(owner, at):
            pauses.calculated(owner, at)
            calculations += 1
        at += 0.005
    assert calculations < 20
    assert pauses.left(owner, at) <= LONGEST_PAUSE_SECONDS
    pauses.forget_calm(at + 10)
    pauses.calculated(owner, at + 10)
    assert pauses.left(owner, at + 10) < 0.02
    assert pauses.left(Owner(1, 2), at) == 0


def tools(parts: Parts) -> CalculationTools:
    return CalculationTools(parts.db, StoreLocks(parts.db, lambda: parts.now()), parts.cache, lambda: parts.now())


def test_one_calculation_runs_for_a_user_at_a_time(desk: Desk) -> None:  # E6
    desk.do(("add", 1, 1))
    made = tools(desk.parts)
    owner = Owner(desk.reader.tenant_id, desk.reader.user_id)

    async def two() -> tuple[list[Owner], list[Owner]]:
        await desk.parts.db.write(portfolios.mark_stale, {owner: ONE})
        async with hold_free(made.locks, [recalculation(owner.user_id)], timedelta(seconds=30)) as tokens:
            assert list(tokens) == [recalculation(owner.user_id)]
            refused = await calculate(made, [owner])
        return refused, await calculate(made, [owner])

    assert asyncio.run(two()) == ([], [owner])


def test_a_holder_that_slept_too_long_writes_nothing(desk: Desk) -> None:  # E6, H85
    desk.do(("add", 1, 1))
    parts, reader = desk.parts, desk.reader
    owner, name = Owner(reader.tenant_id, reader.user_id), recalculation(reader.user_id)
    parts.db.write_now(portfolios.mark_stale, {owner: ONE})
    late = parts.db.read_now(portfolio.calculate, reader)
    desk.do(("change", 0, 9))
    parts.db.write_now(portfolios.mark_stale, {owner: ONE})
    newer = parts.db.read_now(portfolio.calculate, reader)
    assert parts.db.write_now(portfolio.save_all, [(newer, (name, 8))], NOON) == [owner]
    assert parts.db.write_now(portfolio.save_all, [(late, (name, 7))], NOON) == []  # its lock is older
    assert parts.db.write_now(portfolio.save_all, [(late, (name, 9))], NOON) == []  # it knows less
    assert shown(parts, reader) == desk.expected()


def test_a_change_of_the_market_has_every_portfolio_calculated_again(desk: Desk) -> None:
    desk.do(("add", 10, 5))
    desk.do(("calculate", 0, 0))
    assert shown(desk.parts, desk.reader)["monthly_revenue_usd"] is None
    desk.parts.db.write_now(record_days, [DAY], "test", NOON)
    desk.do(("calculate", 0, 0))
    assert shown(desk.parts, desk.reader) == desk.expected()
    assert shown(desk.parts, desk.reader)["monthly_revenue_usd"] is not None


def test_events_of_somebody_who_is_gone_do_not_stop_the_consumer(desk: Desk) -> None:
    desk.parts.db.write_now(portfolios.mark_stale, {Owner(desk.reader.tenant_id, 999_999): ONE})
    assert desk.parts.db.read_now(portfolios.stale, 10) == []
