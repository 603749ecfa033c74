"""An operator who trades and changes machines until somebody kills the process, and begins again from the start."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from decimal import Decimal

from headwater import wire
from headwater.app.fleet import miners, treasury
from headwater.app.fleet.miners import MinerChange
from headwater.app.fleet.treasury import NewTrade
from headwater.app.instance import owner
from headwater.settings import load
from headwater.store.fleet import portfolios
from support.posts import NOON

TRADES = 60
TRADE_UNTIL_KILLED = "from fleet.trading import trade_until_killed; trade_until_killed()"


def trade_of(number: int) -> NewTrade:
    """Every third trade sells a part of what the two before it brought."""
    side = ("buy", "mine", "sell")[number % 3]
    at = NOON + timedelta(minutes=number)
    return NewTrade(side=side, btc=Decimal("0.01"), usd=Decimal(600 + number), traded_at=at)  # type: ignore[arg-type]


def trade_until_killed() -> None:
    parts = wire.open_parts(load())
    asyncio.run(_trade(parts))


async def _trade(parts: wire.Parts) -> None:
    reader, stop = owner(parts.db), asyncio.Event()
    following = asyncio.create_task(wire.follow_log(parts, stop))
    print("trading", flush=True)
    [machine] = await parts.db.read(miners.page, reader, after=None, limit=10)
    for number in range(TRADES):
        await parts.db.write(treasury.trade, reader, trade_of(number), f"trade {number}", parts.now())
        await parts.db.write(miners.change, reader, machine.id, MinerChange(quantity=number + 2), parts.now())
        print(number, flush=True)
    while not (state := await parts.db.read(portfolios.state, reader)) or state.calculated < state.wanted:
        await asyncio.sleep(0.02)
    print("current", flush=True)
    stop.set()
    await following
