"""Notes whose portfolio a change makes stale. `work/portfolios.py` calculates them again.

A burst of changes marks a portfolio many times and has it calculated a few times: marking is cheap, and whoever
calculates takes in everything up to then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection

from headwater.events.catalogue import (
    MARKET_UPDATED,
    MINER_ADDED,
    MINER_CHANGED,
    MINER_REMOVED,
    TRADE_CORRECTED,
    TRADED,
)
from headwater.events.delivery import Consumer
from headwater.store.db import after_commit
from headwater.store.fleet import portfolios
from headwater.store.fleet.portfolios import Changes, Owner
from headwater.store.log.outbox import LoggedEvent

OWN = frozenset(kind.name for kind in (MINER_ADDED, MINER_CHANGED, MINER_REMOVED, TRADED, TRADE_CORRECTED))


def consumer(wake: Callable[[], None]) -> Consumer:
    """Returns the consumer. `wake` is called after every transaction in which a portfolio became stale."""

    def mark(conn: Connection, events: list[LoggedEvent]) -> None:
        own: defaultdict[Owner, list[datetime]] = defaultdict(list)
        for event in events:
            if event.kind in OWN and event.tenant_id is not None and event.user_id is not None:
                own[Owner(event.tenant_id, event.user_id)].append(event.created_at)
        portfolios.mark_stale(conn, {owner: Changes(len(times), min(times)) for owner, times in own.items()})
        if market := next((event for event in events if event.kind == MARKET_UPDATED.name), None):
            portfolios.mark_all_stale(conn, market.created_at)
        after_commit(conn, wake)

    return Consumer("portfolio", OWN | {MARKET_UPDATED.name}, mark, is_quick=True)
