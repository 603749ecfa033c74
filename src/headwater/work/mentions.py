"""Searches the posts of the last weeks for what somebody has only just got."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

import structlog

from headwater.consumers import mentions
from headwater.errors import HeadwaterError
from headwater.store.db import Database
from headwater.waiting import TROUBLE_SECONDS, WakeUpSignal, wait

LOOK_SECONDS = 30.0  # how often to look for what a process left undone that has died
log = structlog.get_logger()


async def keep_searched(db: Database, now: Callable[[], datetime], wanted: WakeUpSignal, stop: asyncio.Event) -> None:
    """Runs until `stop` is set. Each step is a transaction: whoever comes next goes on where the last one ended."""
    with wanted.listening() as woken:
        while not stop.is_set():
            rest = LOOK_SECONDS
            try:
                while not stop.is_set() and await db.write(mentions.search_earlier, now()):
                    pass
            except HeadwaterError as error:
                log.warning("mentions.wait", error=error.detail)
                rest = TROUBLE_SECONDS
            await wait(rest, woken, stop=stop)


async def catch_up(db: Database, now: Callable[[], datetime]) -> None:
    """Searches all that is left."""
    while await db.write(mentions.search_earlier, now()):
        pass
