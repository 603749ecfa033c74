"""What machines earn and cost."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.fleet import economics
from headwater.fleet.economics import Day, Machines, Network, subsidy_btc

# The figures of one day, with the hashprice that an index of the trade printed for it.
NETWORK = Network(Decimal("136.6e12"), Decimal("3.125"), Decimal("0.018"), Decimal(76_976))
MODERN = Machines(12, Decimal(234), Decimal(3510), Decimal("0.065"))
OLD = Machines(6, Decimal(70), Decimal(2800), Decimal("0.065"))

amounts = st.decimals("0.01", "100000", places=4)


def test_hashprice_is_what_a_petahash_earns_in_a_day() -> None:
    assert economics.hashprice_usd_per_ph_day(NETWORK) == pytest.approx(Decimal("35.63"), rel=Decimal("0.001"))


@pytest.mark.parametrize(
    ("height", "coins"),
    [(0, "50"), (209_999, "50"), (210_000, "25"), (839_999, "6.25"), (840_000, "3.125"), (1_050_000, "1.5625"),
     (2_100_000, "0.04882812"), (6_930_000, "0"), (50_000_000, "0")],
)  # fmt: skip
def test_the_subsidy_halves_every_210_000_blocks(height: int, coins: str) -> None:
    assert subsidy_btc(height) == Decimal(coins)


def test_no_more_than_21_million_coins_are_created() -> None:
    created = sum(subsidy_btc(start) * 210_000 for start in range(0, 64 * 210_000, 210_000))

    assert Decimal(20_999_999) < created < Decimal(21_000_000)


def test_a_day_of_modern_and_of_old_machines() -> None:
    hashprice = Decimal(35)

    modern, old = economics.day_of(MODERN, hashprice), economics.day_of(OLD, hashprice)

    assert modern.revenue_usd == Decimal("98.28")  # 12 machines, 2.808 PH/s
    assert modern.power_usd == Decimal("65.7072")  # 42.12 kW for 24 h
    assert modern.profit_usd == Decimal("32.5728")
    assert old.profit_usd < 0
    assert economics.total([modern, old]) == Day(modern.revenue_usd + old.revenue_usd, modern.power_usd + old.power_usd)


def test_nothing_earns_nothing() -> None:
    assert economics.total([]) == Day(Decimal(0), Decimal(0))
    assert Day().margin is None
    assert economics.break_even_price_usd(Day(), Decimal(1)) is None
    assert economics.break_even_difficulty(Day(), Decimal(1)) is None
    assert economics.break_even_usd_per_kwh(Machines(1, Decimal(1), Decimal(0), Decimal(1)), Decimal(1)) is None


@given(hashrate=amounts, power=amounts, hashprice=amounts)
def test_at_the_break_even_power_price_there_is_no_profit(
    hashrate: Decimal, power: Decimal, hashprice: Decimal
) -> None:
    machines = Machines(1, hashrate, power, Decimal(0))
    price = economics.break_even_usd_per_kwh(machines, hashprice)
    assert price is not None

    day = economics.day_of(machines._replace(usd_per_kwh=price), hashprice)

    assert abs(day.profit_usd) <= day.revenue_usd * Decimal("1e-20")


@given(difficulty=amounts, price=amounts, power_price=amounts)
def test_break_even_price_and_difficulty_are_where_profit_ends(
    difficulty: Decimal, price: Decimal, power_price: Decimal
) -> None:
    network = NETWORK._replace(difficulty=difficulty * 10**9, price_usd=price)
    machines = MODERN._replace(usd_per_kwh=power_price)
    day = economics.day_of(machines, economics.hashprice_usd_per_ph_day(network))
    even_price = economics.break_even_price_usd(day, network.price_usd)
    even_difficulty = economics.break_even_difficulty(day, network.difficulty)
    assert even_price is not None
    assert even_difficulty is not None

    for changed in (network._replace(price_usd=even_price), network._replace(difficulty=even_difficulty)):
        at_even = economics.day_of(machines, economics.hashprice_usd_per_ph_day(changed))
        assert abs(at_even.profit_usd) <= at_even.revenue_usd * Decimal("1e-20")


def test_growing_difficulty_delays_the_payback() -> None:
    day = Day(Decimal(100), Decimal(20))

    assert economics.payback_days(Decimal(8000), day) == 100
    assert economics.payback_days(Decimal(8000), day, Decimal("0.04")) == 121
    assert economics.payback_days(Decimal(8000), day, Decimal("0.12")) is None  # they are switched off before


def test_payback_of_nothing_and_of_machines_that_lose_money() -> None:
    assert economics.payback_days(Decimal(0), Day()) == 0
    assert economics.payback_days(Decimal(1), Day(Decimal(1), Decimal(1))) is None
    assert economics.payback_days(Decimal(10**9), Day(Decimal(1), Decimal(0))) is None


@given(cost=amounts, revenue=amounts, power=amounts, growth=st.decimals("0", "0.2", places=3))
def test_the_payback_is_the_first_day_on_which_the_cost_is_earned(
    cost: Decimal, revenue: Decimal, power: Decimal, growth: Decimal
) -> None:
    day = Day(revenue, power)

    found = economics.payback_days(cost, day, growth)

    earned = [Decimal(0)]
    for number in range(economics.LONGEST_PAYBACK_DAYS):
        if number and number % 14 == 0:
            revenue /= 1 + growth
        if revenue <= power or earned[-1] > 2 * cost:
            break
        earned.append(earned[-1] + revenue - power)
    if found is None:
        assert earned[-1] < cost * (1 + Decimal("1e-15"))
    else:
        assert earned[found - 1] < cost * (1 + Decimal("1e-15"))
        assert earned[found] >= cost * (1 - Decimal("1e-15"))
