"""Operators who all change their machines at once, and one who always fails, until somebody kills the process."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Connection

from headwater import wire
from headwater.app.fleet import miners
from headwater.app.fleet.miners import MinerChange, NewMiner
from headwater.app.instance import owner
from headwater.model import Reader
from headwater.settings import load

MACHINES = 12
CHANGES = 40
CHANGE_UNTIL_KILLED = "from fleet.changing import change_until_killed; change_until_killed()"


def change_until_killed() -> None:
    asyncio.run(_change_all(wire.open_parts(load())))


async def _change_all(parts: wire.Parts) -> None:
    reader = owner(parts.db)
    machines = await parts.db.read(miners.page, reader, after=None, limit=MACHINES)
    print("changing", flush=True)
    await asyncio.gather(*(_change(parts, reader, one.id) for one in machines), _fail(parts, reader))


async def _change(parts: wire.Parts, reader: Reader, miner_id: int) -> None:
    """Says how many machines there are once that is stored."""
    before = (await parts.db.read(miners.find, reader, miner_id)).quantity
    for quantity in range(before + 1, CHANGES + 1):
        await parts.db.write_grouped(miners.change, reader, miner_id, MinerChange(quantity=quantity), parts.now())
        print(miner_id, quantity, flush=True)


async def _fail(parts: wire.Parts, reader: Reader) -> None:
    for _ in range(CHANGES):
        with suppress(LookupError):
            await parts.db.write_grouped(_add_and_fail, reader, parts.now())


def _add_and_fail(conn: Connection, reader: Reader, now: datetime) -> None:
    miners.add(conn, reader, NewMiner(model="Antminer T21", electricity_usd_per_kwh=Decimal(9)), now)
    raise LookupError("after the write")
