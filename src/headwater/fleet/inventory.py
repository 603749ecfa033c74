"""Coins that were bought, mined and sold: what they cost, and what each sale made.

Coins are held in lots. A method says which lots a sale takes: the oldest (fifo), the newest (lifo), the dearest (hifo),
or a share of all (average). When a lot is divided, so is its cost, and the parts add up to what it was.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Literal, NamedTuple, Protocol, get_args

Side = Literal["buy", "mine", "sell"]
Method = Literal["fifo", "lifo", "hifo", "average"]
METHODS: tuple[Method, ...] = get_args(Method)
CENT_FRACTION = Decimal("0.00000001")
ZERO = Decimal(0)


class Trade(NamedTuple):
    """Coins that came or went. `usd` is what they cost or brought, fees included, and never negative.

    Mined coins cost what the operator says they cost; the field's custom is their price on the day.
    """

    side: Side
    btc: Decimal
    usd: Decimal
    at: datetime
    id: str = ""


class Lot(NamedTuple):
    """Coins that came together, and what is left of their cost."""

    btc: Decimal
    usd: Decimal
    at: datetime

    @property
    def usd_per_btc(self) -> Decimal:
        return self.usd / self.btc


class Settled(NamedTuple):
    """A trade, what it realised, and what was there after it."""

    trade: Trade
    realised_usd: Decimal
    btc: Decimal
    cost_usd: Decimal


class Inventory(NamedTuple):
    lots: tuple[Lot, ...] = ()
    settled: tuple[Settled, ...] = ()

    @property
    def btc(self) -> Decimal:
        return self.settled[-1].btc if self.settled else ZERO

    @property
    def cost_usd(self) -> Decimal:
        return self.settled[-1].cost_usd if self.settled else ZERO

    @property
    def average_usd_per_btc(self) -> Decimal | None:
        return self.cost_usd / self.btc if self.btc else None

    @property
    def realised_usd(self) -> Decimal:
        return sum((one.realised_usd for one in self.settled), ZERO)

    def unrealised_usd(self, price_usd: Decimal) -> Decimal:
        return self.btc * price_usd - self.cost_usd


class NotEnough(ValueError):
    """A sale of more than there is."""

    def __init__(self, trade: Trade, held: Decimal) -> None:
        super().__init__(f"{trade.btc} BTC cannot be sold: {held} BTC are there at {trade.at:%Y-%m-%d %H:%M} UTC.")
        self.trade = trade
        self.held = held


class Lots(Protocol):
    def add(self, lot: Lot) -> None: ...
    def pop(self) -> Lot: ...
    def put_back(self, lot: Lot) -> None: ...
    def all(self) -> list[Lot]: ...


class _InOrder:
    """Oldest first, or newest first."""

    def __init__(self, newest: bool) -> None:
        self._lots: deque[Lot] = deque()
        self._newest = newest

    def add(self, lot: Lot) -> None:
        self._lots.append(lot)

    def pop(self) -> Lot:
        return self._lots.pop() if self._newest else self._lots.popleft()

    def put_back(self, lot: Lot) -> None:
        (self._lots.append if self._newest else self._lots.appendleft)(lot)

    def all(self) -> list[Lot]:
        return list(self._lots)


class _Dearest:
    """The highest cost per coin first, and of equals the oldest."""

    def __init__(self) -> None:
        self._heap: list[tuple[Decimal, int, Lot]] = []
        self._count = 0

    def add(self, lot: Lot) -> None:
        self._count += 1
        heapq.heappush(self._heap, (-lot.usd_per_btc, self._count, lot))

    def pop(self) -> Lot:
        _, self._taken, lot = heapq.heappop(self._heap)
        return lot

    def put_back(self, lot: Lot) -> None:
        heapq.heappush(self._heap, (-lot.usd_per_btc, self._taken, lot))

    def all(self) -> list[Lot]:
        return [lot for *_, lot in sorted(self._heap, key=lambda entry: entry[1])]


class _Pooled:
    """One lot of everything, so that every coin costs the average."""

    def __init__(self) -> None:
        self._lot: Lot | None = None

    def add(self, lot: Lot) -> None:
        held = self._lot
        self._lot = Lot(held.btc + lot.btc, held.usd + lot.usd, held.at) if held else lot

    def pop(self) -> Lot:
        lot, self._lot = self._lot, None
        if lot is None:
            raise IndexError("there is no lot")
        return lot

    def put_back(self, lot: Lot) -> None:
        self._lot = lot

    def all(self) -> list[Lot]:
        return [self._lot] if self._lot else []


def settle(trades: Iterable[Trade], method: Method) -> Inventory:
    """Goes through the trades in the order of their time. Raises NotEnough for a sale of more than there is."""
    lots = _lots_by(method)
    btc = cost = ZERO
    settled = []
    for trade in sorted(trades, key=lambda one: one.at):
        realised = ZERO
        if trade.side == "sell":
            if trade.btc > btc:
                raise NotEnough(trade, btc)
            taken = _take(lots, trade.btc)
            realised = trade.usd - taken
            btc, cost = btc - trade.btc, cost - taken
        else:
            lots.add(Lot(trade.btc, trade.usd, trade.at))
            btc, cost = btc + trade.btc, cost + trade.usd
        settled.append(Settled(trade, realised, btc, cost))
    return Inventory(tuple(lots.all()), tuple(settled))


def _lots_by(method: Method) -> Lots:
    if method == "average":
        return _Pooled()
    return _Dearest() if method == "hifo" else _InOrder(newest=method == "lifo")


def _take(lots: Lots, btc: Decimal) -> Decimal:
    """Takes coins out of the lots. Returns what they had cost."""
    cost = ZERO
    while btc:
        lot = lots.pop()
        if lot.btc <= btc:
            btc -= lot.btc
            cost += lot.usd
            continue
        part = (lot.usd * btc / lot.btc).quantize(CENT_FRACTION, ROUND_HALF_EVEN)
        lots.put_back(lot._replace(btc=lot.btc - btc, usd=lot.usd - part))
        return cost + part
    return cost
