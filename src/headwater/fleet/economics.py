"""What machines earn and cost. Units are in the names; money is decimal.

Finding a block at difficulty D takes D * 2^32 hashes on average. Everything here follows from that and from what a
block pays.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

SATOSHIS = 100_000_000
FIRST_SUBSIDY_SATOSHIS = 50 * SATOSHIS
BLOCKS_PER_HALVING = 210_000
HASHES_PER_DIFFICULTY = 2**32
HASHES_PER_PH_DAY = Decimal(10) ** 15 * 86_400
TH_PER_PH = 1000
DAYS_PER_EPOCH = 14  # 2,016 blocks at the pace that the network aims at
DAYS_PER_MONTH = Decimal("30.4375")
LONGEST_PAYBACK_DAYS = 3650
KWH_PER_WATT_DAY = Decimal("0.024")
ZERO = Decimal(0)


class Network(NamedTuple):
    """What the network asks and pays at one time."""

    difficulty: Decimal
    subsidy_btc: Decimal
    fees_btc_per_block: Decimal
    price_usd: Decimal


class Machines(NamedTuple):
    """Machines of one model at one power price. `hashrate_th` and `power_w` are those of one machine."""

    quantity: int
    hashrate_th: Decimal
    power_w: Decimal
    usd_per_kwh: Decimal


class Day(NamedTuple):
    """What machines earn and cost in a day at the present conditions."""

    revenue_usd: Decimal = ZERO
    power_usd: Decimal = ZERO

    @property
    def profit_usd(self) -> Decimal:
        return self.revenue_usd - self.power_usd

    @property
    def margin(self) -> Decimal | None:
        """The share of the revenue that is left. None where there is no revenue."""
        return self.profit_usd / self.revenue_usd if self.revenue_usd else None


def subsidy_btc(height: int) -> Decimal:
    """Returns the new coins in the block of this height. They halve every 210,000 blocks, rounded down to satoshis."""
    halvings = height // BLOCKS_PER_HALVING
    return Decimal(FIRST_SUBSIDY_SATOSHIS >> halvings) / SATOSHIS


def hashprice_usd_per_ph_day(network: Network) -> Decimal:
    """Returns what 1 PH/s earns in a day: the blocks that it finds on average, times what a block pays."""
    blocks = HASHES_PER_PH_DAY / (network.difficulty * HASHES_PER_DIFFICULTY)
    return blocks * (network.subsidy_btc + network.fees_btc_per_block) * network.price_usd


def day_of(machines: Machines, hashprice_usd_per_ph: Decimal) -> Day:
    count = machines.quantity
    return Day(
        count * machines.hashrate_th * hashprice_usd_per_ph / TH_PER_PH,
        count * machines.power_w * KWH_PER_WATT_DAY * machines.usd_per_kwh,
    )


def total(days: Iterable[Day]) -> Day:
    revenue = power = ZERO
    for day in days:
        revenue += day.revenue_usd
        power += day.power_usd
    return Day(revenue, power)


def monthly_cost_usd(day: Day) -> Decimal:
    return day.power_usd * DAYS_PER_MONTH


def joules_per_th(machines: Machines) -> Decimal | None:
    return machines.power_w / machines.hashrate_th if machines.hashrate_th else None


def break_even_usd_per_kwh(machines: Machines, hashprice_usd_per_ph: Decimal) -> Decimal | None:
    """Returns the power price at which the machines earn nothing. None for machines that use no power."""
    energy = machines.power_w * KWH_PER_WATT_DAY
    return machines.hashrate_th * hashprice_usd_per_ph / TH_PER_PH / energy if energy else None


def break_even_price_usd(day: Day, price_usd: Decimal) -> Decimal | None:
    """Returns the coin price at which revenue just pays for power. None where there is no revenue at any price."""
    return price_usd * day.power_usd / day.revenue_usd if day.revenue_usd else None


def break_even_difficulty(day: Day, difficulty: Decimal) -> Decimal | None:
    """Returns the difficulty at which revenue just pays for power. None where power costs nothing."""
    return difficulty * day.revenue_usd / day.power_usd if day.power_usd else None


def payback_days(cost_usd: Decimal, day: Day, growth_per_epoch: Decimal = ZERO) -> int | None:
    """Returns after how many days the profit has paid the price of the machines. None if it never does.

    The difficulty grows by this share in each epoch of two weeks, and the revenue shrinks accordingly; power costs the
    same. Machines that no longer pay for their power are switched off and earn nothing more.
    """
    if cost_usd <= 0:
        return 0
    earned, revenue, days = ZERO, day.revenue_usd, 0
    while days < LONGEST_PAYBACK_DAYS:
        profit = revenue - day.power_usd
        if profit <= 0:
            return None
        wanted = ((cost_usd - earned) / profit).to_integral_value(ROUND_CEILING)
        if wanted <= DAYS_PER_EPOCH:
            return days + int(wanted)
        earned += profit * DAYS_PER_EPOCH
        days += DAYS_PER_EPOCH
        revenue /= 1 + growth_per_epoch
    return None
