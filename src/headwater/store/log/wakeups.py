"""Hears from PostgreSQL that another process has appended events. Only the speed depends on it, never the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from headwater.store.db import Database
from headwater.store.log.outbox import CHANNEL

TROUBLE_SECONDS = 5.0
LOOK_SECONDS = 1.0
log = structlog.get_logger()


async def listen(db: Database, ring: Callable[[], None], stop: asyncio.Event) -> None:
    """Ring at each notification until `stop` is set. A lost connection is made again."""
    import psycopg  # SQLite does without it

    address = db.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    while not stop.is_set():
        try:
            async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                ring()  # whatever was said before we listened
                while not stop.is_set():
                    async for _ in connection.notifies(timeout=LOOK_SECONDS, stop_after=1):
                        ring()
        except psycopg.Error as error:
            log.warning("wakeups.lost", error=str(error).strip())
            await _pause(stop)


async def _pause(stop: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(stop.wait(), TROUBLE_SECONDS)
    except TimeoutError:
        return
