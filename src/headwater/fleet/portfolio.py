"""What a user's machines and coins come to: the whole portfolio, calculated from nothing. Pure.

Sums are made before prices are applied, so a fleet of ten thousand entries costs a few operations each, and nothing is
rounded on the way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple

from headwater.fleet.economics import (
    DAYS_PER_MONTH,
    KWH_PER_WATT_DAY,
    TH_PER_PH,
    ZERO,
    Day,
    Network,
    break_even_difficulty,
    break_even_price_usd,
    hashprice_usd_per_ph_day,
    subsidy_btc,
)
from headwater.fleet.inventory import METHODS, Inventory, Method, Trade, settle
from headwater.model import MarketDay

Place = tuple[str, str]  # the site, and the model
Owned = tuple[int, Decimal, Decimal, Decimal, str, str]  # the fields of OwnedMachines


class OwnedMachines(NamedTuple):
    """Machines of one kind at one place. Hash rate and power are those of one machine."""

    quantity: int
    hashrate_th: Decimal
    power_w: Decimal
    usd_per_kwh: Decimal
    site: str
    model: str


class Sums(NamedTuple):
    """Machines added up. `watt_usd_per_kwh` is the sum of watts times what a kilowatt-hour costs them."""

    quantity: int = 0
    hashrate_th: Decimal = ZERO
    power_w: Decimal = ZERO
    watt_usd_per_kwh: Decimal = ZERO
    losing: int = 0

    @property
    def power_usd(self) -> Decimal:
        """What their power costs in a day."""
        return self.watt_usd_per_kwh * KWH_PER_WATT_DAY

    def day(self, hashprice_usd_per_ph: Decimal) -> Day:
        return Day(self.hashrate_th * hashprice_usd_per_ph / TH_PER_PH, self.power_usd)

    def plus(self, other: Sums) -> Sums:
        return Sums(
            self.quantity + other.quantity,
            self.hashrate_th + other.hashrate_th,
            self.power_w + other.power_w,
            self.watt_usd_per_kwh + other.watt_usd_per_kwh,
            self.losing + other.losing,
        )


class Portfolio(NamedTuple):
    """Everything that follows from machines, trades and the state of the network. Without a network, no revenue."""

    machines: Sums
    by_site: Mapping[str, Sums]
    by_model: Mapping[str, Sums]
    coins: Mapping[Method, Inventory]
    network: Network | None = None
    hashprice_usd_per_ph: Decimal | None = None

    @property
    def day(self) -> Day | None:
        return self.machines.day(self.hashprice_usd_per_ph) if self.hashprice_usd_per_ph is not None else None

    @property
    def monthly_opex_usd(self) -> Decimal:
        return self.machines.power_usd * DAYS_PER_MONTH

    @property
    def monthly_revenue_usd(self) -> Decimal | None:
        return self.day.revenue_usd * DAYS_PER_MONTH if self.day else None

    @property
    def break_even_usd_per_kwh(self) -> Decimal | None:
        """The power price at which the whole fleet earns nothing."""
        energy = self.machines.power_w * KWH_PER_WATT_DAY
        return self.day.revenue_usd / energy if self.day and energy else None

    @property
    def break_even_price_usd(self) -> Decimal | None:
        return break_even_price_usd(self.day, self.network.price_usd) if self.day and self.network else None

    @property
    def break_even_difficulty(self) -> Decimal | None:
        return break_even_difficulty(self.day, self.network.difficulty) if self.day and self.network else None


def network_on(day: MarketDay) -> Network | None:
    """Returns what the network asks and pays on a day. None if its price or its difficulty is not known."""
    if day.price_usd is None or day.difficulty is None:
        return None
    fees = Decimal(str(day.fees_btc)) / day.blocks if day.blocks else ZERO
    return Network(Decimal(str(day.difficulty)), subsidy_btc(day.height), fees, Decimal(str(day.price_usd)))


def portfolio(machines: Iterable[Owned], trades: Iterable[Trade], network: Network | None) -> Portfolio:
    """Calculates everything. Raises NotEnough if the trades sell more than there is."""
    hashprice = hashprice_usd_per_ph_day(network) if network else None
    places = _added_up(machines, hashprice)
    trades = list(trades)
    return Portfolio(
        machines=_total(places.values()),
        by_site=_grouped(places, 0),
        by_model=_grouped(places, 1),
        coins={method: settle(trades, method) for method in METHODS},
        network=network,
        hashprice_usd_per_ph=hashprice,
    )


def _added_up(machines: Iterable[Owned], hashprice_usd_per_ph: Decimal | None) -> dict[Place, Sums]:
    """Adds machines up by site and model. A machine is losing if its power costs more than it earns."""
    # What a kilowatt-hour may cost for each TH/s and watt.
    worth = hashprice_usd_per_ph / TH_PER_PH / KWH_PER_WATT_DAY if hashprice_usd_per_ph is not None else None
    counts: defaultdict[Place, list[int]] = defaultdict(lambda: [0, 0])
    sums: defaultdict[Place, list[Decimal]] = defaultdict(lambda: [ZERO, ZERO, ZERO])
    for quantity, hashrate_th, power_w, usd_per_kwh, site, model in machines:
        count, added = counts[site, model], sums[site, model]
        cost = power_w * usd_per_kwh
        count[0] += quantity
        added[0] += quantity * hashrate_th
        added[1] += quantity * power_w
        added[2] += quantity * cost
        if worth is not None and cost > hashrate_th * worth:
            count[1] += quantity
    found = {}
    for place, (quantity, losing) in counts.items():
        hashrate, power, watt_usd = sums[place]
        found[place] = Sums(quantity, hashrate, power, watt_usd, losing)
    return found


def _grouped(places: Mapping[Place, Sums], by: int) -> dict[str, Sums]:
    groups: defaultdict[str, Sums] = defaultdict(Sums)
    for place, sums in places.items():
        groups[place[by]] = groups[place[by]].plus(sums)
    return dict(sorted(groups.items()))


def _total(sums: Iterable[Sums]) -> Sums:
    whole = Sums()
    for one in sums:
        whole = whole.plus(one)
    return whole
