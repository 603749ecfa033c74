"""Posts that name machines, and machines that are added, until somebody kills the process."""

from __future__ import annotations

import asyncio
from decimal import Decimal

from sqlalchemy import func, select

from headwater import wire
from headwater.app.fleet import miners
from headwater.app.fleet.miners import NewMiner
from headwater.app.instance import owner
from headwater.settings import load
from headwater.store.tables import consumer_inbox, event_outbox, mention_scans
from support.posts import a_post, visited

POSTS = 60
NAME_UNTIL_KILLED = "from fleet.naming import name_until_killed; name_until_killed()"
KINDS = ("post.stored", "miner.added")


def is_named(number: int) -> str:
    """Every third post names the machines."""
    return f"Bitmain sells S21 number {number}" if number % 3 == 0 else f"Rivers rise for the {number}th time"


def name_until_killed() -> None:
    asyncio.run(_name(wire.open_parts(load())))


async def _name(parts: wire.Parts) -> None:
    reader, stop = owner(parts.db), asyncio.Event()
    following = asyncio.create_task(wire.follow_log(parts, stop))
    print("naming", flush=True)
    for number in range(POSTS // 2, POSTS):
        await parts.db.write(visited, 1, [a_post(str(number), is_named(number), content="")])
        if number == POSTS // 2 + 10 and not await parts.db.read(miners.page, reader, after=None, limit=1):
            mine = NewMiner(model="Antminer S21", electricity_usd_per_kwh=Decimal("0.05"))
            await parts.db.write(miners.add, reader, mine, parts.now())
        print(number - POSTS // 2, flush=True)
    while not await parts.db.read(_is_all_in):
        await asyncio.sleep(0.02)
    print("done", flush=True)
    stop.set()
    await following


def _is_all_in(conn: object) -> bool:
    handled = select(consumer_inbox.c.event_id).where(consumer_inbox.c.consumer == "mentions")
    ahead = select(func.count()).where(event_outbox.c.kind.in_(KINDS), event_outbox.c.event_id.not_in(handled))
    scans = select(func.count()).where(mention_scans.c.next_id > 0)
    return all(conn.execute(one).scalar_one() == 0 for one in (ahead, scans))  # type: ignore[attr-defined]
