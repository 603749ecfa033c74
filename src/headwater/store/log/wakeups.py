"""Hears from PostgreSQL that another process has appended events. Only the speed depends on it, never the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from headwater.store.db import Database
from headwater.store.log.outbox import CHANNEL
from headwater.waiting import TROUBLE_SECONDS, wait

LOOK_SECONDS = 1.0
log = structlog.get_logger()


async def listen(db: Database, wake: Callable[[], None], stop: asyncio.Event) -> None:
    """Calls `wake` at each notification until `stop` is set. Reconnects when the connection is lost."""
    import psycopg  # SQLite does without it

    address = db.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    while not stop.is_set():
        try:
            async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                wake()  # whatever was said before we listened
                while not stop.is_set():
                    async for _ in connection.notifies(timeout=LOOK_SECONDS, stop_after=1):
                        wake()
        except psycopg.Error as error:
            log.warning("wakeups.lost", error=str(error).strip())
            await wait(TROUBLE_SECONDS, stop=stop)
