"""Coins that were bought, mined and sold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.fleet.inventory import METHODS, Inventory, Method, NotEnough, Side, Trade, settle

START = datetime(2026, 1, 1, tzinfo=UTC)


def trade(day: int, side: Side, btc: str, usd: str) -> Trade:
    return Trade(side, Decimal(btc), Decimal(usd), START + timedelta(days=day))


THREE_LOTS = [trade(0, "buy", "1", "40000"), trade(1, "mine", "1", "60000"), trade(2, "buy", "1", "50000")]
SALE = trade(3, "sell", "1.5", "90000")


@pytest.mark.parametrize(
    ("method", "cost_of_sale"), [("fifo", 70_000), ("lifo", 80_000), ("hifo", 85_000), ("average", 75_000)]
)
def test_the_method_says_which_coins_are_sold(method: Method, cost_of_sale: int) -> None:
    inventory = settle([*THREE_LOTS, SALE], method)

    assert inventory.btc == Decimal("1.5")
    assert inventory.realised_usd == 90_000 - cost_of_sale
    assert inventory.cost_usd == 150_000 - cost_of_sale
    assert inventory.average_usd_per_btc == Decimal(150_000 - cost_of_sale) / Decimal("1.5")
    assert inventory.unrealised_usd(Decimal(60_000)) == 90_000 - inventory.cost_usd


def test_each_trade_says_what_was_there_after_it() -> None:
    inventory = settle([*THREE_LOTS, SALE], "fifo")

    assert [str(one.btc) for one in inventory.settled] == ["1", "2", "3", "1.5"]
    assert [one.realised_usd for one in inventory.settled] == [0, 0, 0, 20_000]


def test_trades_count_in_the_order_of_their_time() -> None:
    assert settle([SALE, *reversed(THREE_LOTS)], "fifo") == settle([*THREE_LOTS, SALE], "fifo")


@pytest.mark.parametrize("method", METHODS)
def test_more_than_there_is_cannot_be_sold(method: Method) -> None:
    with pytest.raises(NotEnough, match=r"3.1 BTC cannot be sold: 3 BTC are there at 2026-01-04 00:00 UTC"):
        settle([*THREE_LOTS, trade(3, "sell", "3.1", "1")], method)


@pytest.mark.parametrize("method", METHODS)
def test_coins_cannot_be_sold_before_they_came(method: Method) -> None:
    with pytest.raises(NotEnough):
        settle([trade(5, "buy", "1", "1"), trade(4, "sell", "1", "1")], method)


def test_nothing_was_traded() -> None:
    assert settle([], "fifo") == Inventory()
    assert Inventory().average_usd_per_btc is None


satoshis = st.integers(1, 10**11).map(lambda number: Decimal(number) / 10**8)
cents = st.integers(0, 10**10).map(lambda number: Decimal(number) / 100)


@st.composite
def histories(draw: st.DrawFn) -> list[Trade]:
    """Trades in which nothing is sold that is not there."""
    trades: list[Trade] = []
    held = Decimal(0)
    for day, (side, btc, usd) in enumerate(
        draw(st.lists(st.tuples(st.sampled_from(["buy", "mine", "sell"]), satoshis, cents), max_size=30))
    ):
        amount = min(btc, held) if side == "sell" else btc
        if amount:
            trades.append(Trade(side, amount, usd, START + timedelta(days=day)))  # type: ignore[arg-type]
            held += -amount if side == "sell" else amount
    return trades


@given(trades=histories(), method=st.sampled_from(METHODS))
def test_no_coin_and_no_cent_is_invented_or_lost(trades: list[Trade], method: Method) -> None:
    inventory = settle(trades, method)

    came = [one for one in trades if one.side != "sell"]
    sold = [one for one in trades if one.side == "sell"]
    assert inventory.btc == sum(one.btc for one in came) - sum(one.btc for one in sold)
    assert sum((lot.btc for lot in inventory.lots), Decimal(0)) == inventory.btc
    assert sum((lot.usd for lot in inventory.lots), Decimal(0)) == inventory.cost_usd
    assert inventory.realised_usd + sum(one.usd for one in came) - inventory.cost_usd == sum(one.usd for one in sold)
    assert all(lot.btc > 0 and lot.usd >= 0 for lot in inventory.lots)


@given(trades=histories())
def test_hifo_realises_the_least_of_a_single_sale(trades: list[Trade]) -> None:
    came = [one for one in trades if one.side != "sell"]
    if not came:
        return
    sale = Trade("sell", sum(one.btc for one in came) / 2, Decimal(0), START + timedelta(days=99))
    realised = {method: settle([*came, sale], method).realised_usd for method in METHODS}

    assert realised["hifo"] <= min(realised.values()) + Decimal("0.00000001")
