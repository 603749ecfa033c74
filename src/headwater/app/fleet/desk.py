"""The operator's desk: what machines earn and cost today, by machine, site and in all; and what it would be if."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.app import market as figures
from headwater.app.fleet import miners, treasury
from headwater.app.fleet.treasury import ListedTrade
from headwater.app.market import StoredForecast
from headwater.coordination.cache import Cache
from headwater.errors import NotFound
from headwater.fleet import economics
from headwater.fleet.economics import Day, Machines, Network
from headwater.fleet.inventory import Method
from headwater.model import MarketDay, Reader
from headwater.store.db import Database
from headwater.store.fleet import market, telemetry
from headwater.store.fleet.miners import Miner, has_fleet
from headwater.store.fleet.telemetry import WatchedMachine, WatchLook

MOST_MACHINES = 10_000
LATEST_TRADES = 20
PRICE_DAYS = 60


class WhatIf(NamedTuple):
    """What is to be assumed instead of what is. None: as it is."""

    usd_per_kwh: Decimal | None = None
    price_usd: Decimal | None = None
    difficulty: Decimal | None = None

    @property
    def is_asked(self) -> bool:
        return any(value is not None for value in self)


class MachineRow(NamedTuple):
    """Machines of one kind at one place, and their day."""

    miner: Miner
    machines: Machines
    day: Day
    joules_per_th: Decimal | None
    break_even_usd_per_kwh: Decimal | None
    watched: WatchedMachine | None

    @property
    def loses(self) -> bool:
        return self.day.profit_usd < 0


class SiteRow(NamedTuple):
    site: str
    machines: int
    hashrate_th: Decimal
    day: Day


class Holdings(NamedTuple):
    """The coins that are there, what they cost, and the latest trades."""

    method: Method
    btc: Decimal
    cost_usd: Decimal
    realised_usd: Decimal
    trades: list[ListedTrade]

    @property
    def average_usd(self) -> Decimal | None:
        return self.cost_usd / self.btc if self.btc else None

    def unrealised_usd(self, price_usd: Decimal) -> Decimal:
        return self.btc * price_usd - self.cost_usd


class DifficultyChange(NamedTuple):
    """The next change of the difficulty as a share of the present one, its range of 80 %, and in how many days."""

    days: int
    change: float
    low: float
    high: float


class Desk(NamedTuple):
    """All of it. Without figures of the market `network` is None, and nothing is known about revenue."""

    rows: list[MachineRow]
    sites: list[SiteRow]
    total: Day
    machines: int
    hashrate_th: Decimal
    network: Network | None
    market_day: MarketDay | None
    hashprice_usd: Decimal | None
    break_even_usd_per_kwh: Decimal | None
    average_usd_per_kwh: Decimal | None
    holdings: Holdings
    forecast: StoredForecast | None
    prices: list[MarketDay]
    last_look: WatchLook | None

    @property
    def is_empty(self) -> bool:
        return not self.rows and not self.holdings.trades

    @property
    def losing(self) -> int:
        return sum(row.miner.quantity for row in self.rows if row.loses)

    @property
    def next_difficulty(self) -> DifficultyChange | None:
        """How the difficulty is expected to change when the epoch ends. None: nothing is known about it."""
        now = self.market_day.difficulty if self.market_day else None
        after = next((one for one in self.forecast.days if one.difficulty != now), None) if self.forecast else None
        if not now or not after or not self.market_day:
            return None
        changes = (figure / now - 1 for figure in (after.difficulty, after.difficulty_low, after.difficulty_high))
        return DifficultyChange((after.day - self.market_day.day).days, *changes)

    @property
    def need_a_look(self) -> list[MachineRow]:
        """Machines that are silent or under their rate, and those that lose money."""
        return [row for row in self.rows if row.loses or (row.watched and row.watched.state != "ok")]


def has_something(conn: Connection, reader: Reader) -> bool:
    """Whether the reader has machines or trades: others are shown nothing of the desk."""
    return has_fleet(conn, reader)


async def open_desk(
    db: Database, cache: Cache, reader: Reader, now: datetime, what_if: WhatIf = WhatIf()
) -> tuple[Desk, Desk]:
    """Returns everything that the operator's page shows: as it is, and as it would be if."""
    try:
        forecast = (await figures.cached_forecast(db, cache, now)).value
    except NotFound:
        forecast = None
    today = (await db.read(counted, reader, "fifo"))._replace(forecast=forecast)
    return today, await db.read(counted, reader, "fifo", what_if) if what_if.is_asked else today


def counted(conn: Connection, reader: Reader, method: Method, what_if: WhatIf = WhatIf()) -> Desk:
    """Returns the desk without the forecast."""
    day = market.latest(conn)
    network = _network(day, what_if) if day else None
    hashprice = economics.hashprice_usd_per_ph_day(network) if network else None
    watched = {one.miner_id: one for one in telemetry.watched_of(conn, reader)}
    found = miners.page(conn, reader, after=None, limit=MOST_MACHINES)
    rows = [_row(one, hashprice, what_if, watched.get(one.id)) for one in found]
    energy = sum((row.machines.quantity * row.machines.power_w for row in rows), Decimal(0))
    total = economics.total(row.day for row in rows)
    return Desk(
        rows=rows,
        sites=_sites(rows),
        total=total,
        machines=sum(row.miner.quantity for row in rows),
        hashrate_th=sum((_hashrate(row) for row in rows), Decimal(0)),
        network=network,
        market_day=day,
        hashprice_usd=hashprice,
        break_even_usd_per_kwh=total.revenue_usd / (energy * economics.KWH_PER_WATT_DAY) if energy else None,
        average_usd_per_kwh=total.power_usd / (energy * economics.KWH_PER_WATT_DAY) if energy else None,
        holdings=_holdings(treasury.every(conn, reader, method), method),
        forecast=None,
        prices=figures.known_days(conn, PRICE_DAYS),
        last_look=telemetry.last_look(conn),
    )


def _network(day: MarketDay, what_if: WhatIf) -> Network:
    fees = Decimal(repr(day.fees_btc)) / day.blocks if day.blocks else Decimal(0)
    return Network(
        difficulty=what_if.difficulty or Decimal(repr(day.difficulty)),
        subsidy_btc=economics.subsidy_btc(day.height),
        fees_btc_per_block=fees,
        price_usd=what_if.price_usd if what_if.price_usd is not None else Decimal(repr(day.price_usd)),
    )


def _row(miner: Miner, hashprice: Decimal | None, what_if: WhatIf, watched: WatchedMachine | None) -> MachineRow:
    price = miner.electricity_usd_per_kwh if what_if.usd_per_kwh is None else what_if.usd_per_kwh
    machines = Machines(miner.quantity, miner.actual_hashrate_th, miner.actual_power_w, price)
    return MachineRow(
        miner,
        machines,
        economics.day_of(machines, hashprice or Decimal(0)),
        economics.joules_per_th(machines),
        economics.break_even_usd_per_kwh(machines, hashprice) if hashprice is not None else None,
        watched,
    )


def _hashrate(row: MachineRow) -> Decimal:
    return row.machines.quantity * row.machines.hashrate_th


def _sites(rows: Sequence[MachineRow]) -> list[SiteRow]:
    def site(row: MachineRow) -> str:
        return row.miner.site

    return [
        SiteRow(
            name,
            sum(row.miner.quantity for row in there),
            sum((_hashrate(row) for row in there), Decimal(0)),
            economics.total(row.day for row in there),
        )
        for name, group in groupby(sorted(rows, key=site), site)
        for there in [list(group)]
    ]


def _holdings(trades: list[ListedTrade], method: Method) -> Holdings:
    last = trades[0].settled if trades else None
    return Holdings(
        method,
        last.btc if last else Decimal(0),
        last.cost_usd if last else Decimal(0),
        sum((one.settled.realised_usd for one in trades), Decimal(0)),
        trades[:LATEST_TRADES],
    )


class Point(NamedTuple):
    """What the whole fleet makes in a day at a price of the coin, if machines that lose are switched off."""

    price_usd: Decimal
    profit_usd: Decimal


def break_even_curve(desk: Desk, steps: int = 40) -> list[Point]:
    """Returns the profit of the fleet from a quarter of the present price of the coin to twice it."""
    if desk.network is None:
        return []
    price = desk.network.price_usd
    found = []
    for step in range(steps + 1):
        factor = Decimal("0.25") + Decimal("1.75") * step / steps
        profits = (row.day.revenue_usd * factor - row.day.power_usd for row in desk.rows)
        found.append(Point(price * factor, sum((profit for profit in profits if profit > 0), Decimal(0))))
    return found
