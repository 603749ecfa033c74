"""Locks by the address of where they are kept: a database's or a Redis's. Test processes use it as tests do."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headwater.coordination.locks import Locks, hold
from headwater.coordination.redis_locks import RedisLocks
from headwater.store.db import Database
from headwater.store.log.locks import StoreLocks

NAME = "lock:recalc:7"
PATIENCE = timedelta(seconds=60)
LONG = timedelta(seconds=60)
SHORT = timedelta(seconds=1)


@asynccontextmanager
async def kept_at(url: str) -> AsyncIterator[Locks]:
    if url.startswith("redis"):
        locks = RedisLocks(url)
        yield locks
        await locks.close()
        return
    db = Database(url)
    yield StoreLocks(db, lambda: datetime.now(UTC))
    db.close()


async def count_up(url: str, file: Path, times: int) -> None:
    """Read a number, wait, and write the next one: only right if nobody else does so in between."""
    async with kept_at(url) as locks:
        for _ in range(times):
            async with hold(locks, NAME, LONG, PATIENCE):
                number = int(file.read_text())
                await asyncio.sleep(0.005)
                file.write_text(str(number + 1))


async def hold_until_told(url: str) -> None:
    """Take the lock, say so with its token, wait for a word, and say whether it is still ours."""
    async with kept_at(url) as locks, hold(locks, NAME, SHORT, PATIENCE) as ours:
        print(ours.token, flush=True)
        sys.stdin.readline()
        print(await ours.is_ours(), flush=True)


if __name__ == "__main__":
    url, *given = sys.argv[1:]
    asyncio.run(count_up(url, Path(given[0]), int(given[1])) if given else hold_until_told(url))
