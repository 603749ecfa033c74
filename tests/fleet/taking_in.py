"""What the loops of `headwater up` do by themselves, until every change is taken in and every post is searched."""

from __future__ import annotations

import asyncio

from sqlalchemy import Connection, func, select

from headwater import wire
from headwater.consumers.portfolio import OWN
from headwater.store.tables import consumer_inbox, event_outbox, mention_scans, user_portfolios
from headwater.wire import Parts


def take_in(parts: Parts) -> None:
    """On PostgreSQL an event can be read only when all older transactions of the server have ended, also of others."""
    asyncio.run(_take_in(parts))


async def _take_in(parts: Parts) -> None:
    while True:
        await wire.catch_up(parts)
        if await parts.db.read(_is_all_in):
            return
        await asyncio.sleep(0.01)


def _is_all_in(conn: Connection) -> bool:
    handled = select(consumer_inbox.c.event_id).where(consumer_inbox.c.consumer == "portfolio")
    kinds = event_outbox.c.kind.in_([*OWN, "market.updated"])
    ahead = select(func.count()).where(kinds, event_outbox.c.event_id.not_in(handled))
    stale = select(func.count()).where(user_portfolios.c.calculated < user_portfolios.c.wanted)
    named = select(consumer_inbox.c.event_id).where(consumer_inbox.c.consumer == "mentions")
    unread = select(func.count()).where(
        event_outbox.c.kind.in_([*OWN, "post.stored", "post.changed"]), event_outbox.c.event_id.not_in(named)
    )
    unsearched = select(func.count()).where(mention_scans.c.next_id > 0)
    return all(conn.execute(one).scalar_one() == 0 for one in (ahead, stale, unread, unsearched))
