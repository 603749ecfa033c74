"""What a user's machines and coins come to: calculating it, storing it once for each change, and showing it.

Whoever asks gets what was last calculated, and is told whether a change is still being taken in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app.fleet.amounts import plain
from headwater.app.fleet.treasury import as_trade
from headwater.app.shapes import Example, Time, example, shaped
from headwater.coordination.cache import Cache, CachedKind
from headwater.events.catalogue import PORTFOLIO_RECALCULATED, PortfolioFacts
from headwater.fleet.economics import Day, Network
from headwater.fleet.inventory import Inventory
from headwater.fleet.portfolio import Portfolio, Sums, network_on, portfolio
from headwater.model import MarketDay, Reader
from headwater.store.db import Database
from headwater.store.fleet import market, portfolios, treasury
from headwater.store.fleet.portfolios import Owner, PortfolioState, Saved
from headwater.store.log import locks, outbox

MAIN: CachedKind[dict[str, Any]] = CachedKind("portfolio", dict[str, Any], fresh_for=600, stale_for=3600)
NO_MARKET = (
    "There are no figures of the market yet, so revenue and break-even are unknown. Import them with "
    "`headwater market import FILE`, or follow an address that publishes them."
)
NOTHING = PortfolioState(0, 0, None, None)


class Calculated(NamedTuple):
    """A portfolio, and the changes that it takes in."""

    reader: Reader
    state: PortfolioState
    portfolio: Portfolio
    saved: Saved


class Analytics(NamedTuple):
    """A portfolio as it was last calculated. `is_current`: no change is known that it does not take in."""

    portfolio: Mapping[str, Any]
    cache_hit: bool
    is_current: bool
    last_updated: datetime | None

    @property
    def missing(self) -> str | None:
        return None if self.portfolio["market"] else NO_MARKET


def reader_of(owner: Owner) -> Reader:
    """Returns somebody who sees exactly what the owner of a portfolio has."""
    return Reader(owner.tenant_id, owner.user_id, "", "")


def cache_key(reader: Reader) -> str:
    return f"user_portfolio:{reader.user_id}"


def calculate(conn: Connection, reader: Reader) -> Calculated:
    """Calculates a portfolio from nothing. It takes in at least the changes that are noted when it begins."""
    state = portfolios.state(conn, reader) or NOTHING
    day = market.latest(conn)
    found = portfolio(
        portfolios.holdings(conn, reader),
        map(as_trade, treasury.every(conn, reader)),
        network_on(day) if day else None,
    )
    average = found.coins["average"]
    shown = dict(shaped(PortfolioJson, Shown(found, day)))
    return Calculated(
        reader, state, found, Saved(average.btc, average.average_usd_per_btc, found.monthly_opex_usd, shown)
    )


def calculate_all(conn: Connection, owners: Sequence[Owner]) -> list[Calculated]:
    return [calculate(conn, reader_of(owner)) for owner in owners]


def save_all(conn: Connection, found: Sequence[tuple[Calculated, tuple[str, int]]], now: datetime) -> list[Owner]:
    """Stores portfolios with their events, each under its lock, which has a name and a token.

    A portfolio is left out if somebody with a newer lock or with more changes came before. Returns the others.
    """
    events, saved = [], []
    for one, (lock, token) in found:
        reader, wanted = one.reader, one.state.wanted
        if locks.admit(conn, lock, token) and portfolios.save(conn, reader, one.saved, wanted, now):
            once = f"{reader.user_id}:{wanted}"
            events.append(PORTFOLIO_RECALCULATED(_event(one, now), once=once, reader=reader))
            saved.append(Owner(reader.tenant_id, reader.user_id))
    outbox.append(conn, events, now)
    return saved


async def main(db: Database, cache: Cache, reader: Reader) -> Analytics:
    """Returns the portfolio of a reader. One that was never calculated is calculated here."""
    state = await db.read(portfolios.state, reader) or NOTHING
    found = await cache.get(
        MAIN, cache_key(reader), lambda: db.read(_figures, reader), version=f"{reader.tenant_id}.{state.calculated}"
    )
    return Analytics(found.value, found.is_hit, state.calculated == state.wanted, state.last_updated)


def calculate_now(conn: Connection, reader: Reader) -> Analytics:
    """Returns the portfolio of a reader with every change there is, for those who cannot wait for a server."""
    return Analytics(calculate(conn, reader).saved.figures, cache_hit=False, is_current=True, last_updated=None)


def as_json(found: Analytics) -> AnalyticsJson:
    return shaped(AnalyticsJson, found, portfolio=found.portfolio)


def _figures(conn: Connection, reader: Reader) -> dict[str, Any]:
    return portfolios.figures(conn, reader) or dict(calculate(conn, reader).saved.figures)


def _event(found: Calculated, now: datetime) -> PortfolioFacts:
    day = found.portfolio.day
    since = found.state.stale_since or now
    return PortfolioFacts(
        btc_inventory=found.saved.btc_inventory,
        monthly_opex_usd=found.saved.monthly_opex_usd,
        profit_usd_per_day=day.profit_usd if day else None,
        changes=found.state.wanted - found.state.calculated,
        milliseconds=round((now - since).total_seconds() * 1000, 1),
    )


class Market(NamedTuple):
    """The day of the market that a portfolio is calculated for."""

    day: date
    network: Network
    hashprice_usd_per_ph: Decimal


class Shown(NamedTuple):
    """A portfolio as it is shown."""

    portfolio: Portfolio
    day: MarketDay | None

    @property
    def market(self) -> Market | None:
        network, hashprice = self.portfolio.network, self.portfolio.hashprice_usd_per_ph
        return Market(self.day.day, network, hashprice) if self.day and network and hashprice is not None else None

    @property
    def totals(self) -> MachineGroup:
        return MachineGroup("", self.portfolio.machines, self.portfolio.hashprice_usd_per_ph)

    def groups(self, sums: Mapping[str, Sums]) -> list[MachineGroup]:
        return [MachineGroup(name, one, self.portfolio.hashprice_usd_per_ph) for name, one in sums.items()]

    @property
    def coins(self) -> list[Coins]:
        price = self.portfolio.network.price_usd if self.portfolio.network else None
        return [Coins(method, one, price) for method, one in self.portfolio.coins.items()]


class MachineGroup(NamedTuple):
    """Machines that belong together."""

    name: str
    sums: Sums
    hashprice_usd_per_ph: Decimal | None

    @property
    def day(self) -> Day | None:
        return self.sums.day(self.hashprice_usd_per_ph) if self.hashprice_usd_per_ph is not None else None


class Coins(NamedTuple):
    """What coins cost and made, if sales take them by this method."""

    method: str
    inventory: Inventory
    price_usd: Decimal | None

    @property
    def unrealised_usd(self) -> Decimal | None:
        return self.inventory.unrealised_usd(self.price_usd) if self.price_usd is not None else None


class MachinesJson(TypedDict):
    """Machines added up, and what they earn and cost in a day. Decimal numbers are texts."""

    name: Annotated[str, Example("Hall 2", "the site or the model; empty: none, or all machines together")]
    quantity: Annotated[int, Example(40, of="sums.quantity")]
    hashrate_th: Annotated[str, Example("4400", of=lambda one: plain(one.sums.hashrate_th))]
    power_w: Annotated[str, Example("130000", of=lambda one: plain(one.sums.power_w))]
    power_usd_per_day: Annotated[str, Example("171.6", of=lambda one: plain(one.sums.power_usd))]
    revenue_usd_per_day: Annotated[
        str | None, Example("156.77", "null: no market", of=lambda one: plain(one.day and one.day.revenue_usd))
    ]
    profit_usd_per_day: Annotated[str | None, Example("-14.83", of=lambda one: plain(one.day and one.day.profit_usd))]
    margin: Annotated[
        str | None, Example("-0.0946", "profit / revenue", of=lambda one: plain(one.day and one.day.margin))
    ]
    losing: Annotated[int, Example(40, "how many machines use power that costs more than they earn", of="sums.losing")]


class CoinsJson(TypedDict):
    """What coins cost, and what sales made, if these take lots by this method."""

    method: Annotated[str, Example("average", "fifo, lifo, hifo or average")]
    cost_usd: Annotated[str, Example("72110.9", of=lambda one: plain(one.inventory.cost_usd))]
    avg_cost_basis_usd: Annotated[
        str | None, Example("57688.72", "for one coin", of=lambda one: plain(one.inventory.average_usd_per_btc))
    ]
    realised_usd: Annotated[str, Example("0", of=lambda one: plain(one.inventory.realised_usd))]
    unrealised_usd: Annotated[
        str | None, Example("14263.3", "null: no market", of=lambda one: plain(one.unrealised_usd))
    ]


class MarketJson(TypedDict):
    """The day of the market that the figures are of. Decimal numbers are texts."""

    day: Annotated[str, Example("2026-05-18", of=lambda one: one.day.isoformat())]
    price_usd: Annotated[str, Example("69099", of=lambda one: plain(one.network.price_usd))]
    difficulty: Annotated[str, Example("136600000000000", of=lambda one: plain(one.network.difficulty))]
    subsidy_btc: Annotated[str, Example("3.125", "new coins in a block", of=lambda one: plain(one.network.subsidy_btc))]
    fees_btc_per_block: Annotated[str, Example("0.02", of=lambda one: plain(one.network.fees_btc_per_block))]
    hashprice_usd_per_ph_day: Annotated[
        str, Example("35.63", "what 1 PH/s earns in a day", of=lambda one: plain(one.hashprice_usd_per_ph))
    ]


class PortfolioJson(TypedDict):
    """What machines and coins come to. Decimal numbers are texts."""

    btc_inventory: Annotated[str, Example("1.25", of=lambda one: plain(one.portfolio.coins["average"].btc))]
    avg_cost_basis_usd: Annotated[
        str | None,
        Example("57688.72", "of one coin", of=lambda one: plain(one.portfolio.coins["average"].average_usd_per_btc)),
    ]
    monthly_opex_usd: Annotated[
        str,
        Example("5223.08", "power for a month of 30.4375 days", of=lambda one: plain(one.portfolio.monthly_opex_usd)),
    ]
    monthly_revenue_usd: Annotated[
        str | None, Example("4771.66", "null: no market", of=lambda one: plain(one.portfolio.monthly_revenue_usd))
    ]
    break_even_usd_per_kwh: Annotated[
        str | None, Example("0.05024679", of=lambda one: plain(one.portfolio.break_even_usd_per_kwh))
    ]
    break_even_price_usd: Annotated[
        str | None, Example("75635.9", of=lambda one: plain(one.portfolio.break_even_price_usd))
    ]
    break_even_difficulty: Annotated[
        str | None, Example("124792000000000", of=lambda one: plain(one.portfolio.break_even_difficulty))
    ]
    machines: Annotated[MachinesJson, Example(of="totals")]
    by_site: Annotated[list[MachinesJson], Example(of=lambda one: one.groups(one.portfolio.by_site))]
    by_model: Annotated[list[MachinesJson], Example(of=lambda one: one.groups(one.portfolio.by_model))]
    coins: list[CoinsJson]
    market: Annotated[MarketJson | None, Example(example(MarketJson), "null: none is known", of="market")]


class AnalyticsJson(TypedDict):
    """What your machines and coins come to, as it was last calculated."""

    cache_hit: Annotated[bool, Example(True, "whether the cache had it")]
    is_current: Annotated[bool, Example(True, "false: a change is being taken in")]
    last_updated: Annotated[Time | None, Example("2026-05-18T09:30:01Z", "null: it was calculated for this answer")]
    missing: Annotated[str | None, Example(None, "what is not known, and what to do about it")]
    portfolio: PortfolioJson
