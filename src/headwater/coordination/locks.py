"""Locks across processes, for example one recalculation at a time for each user.

A lock is a lease: it expires by itself if its holder dies. A holder that was paused for longer than its lease may still
believe that it has the lock. So it checks `HeldLock.is_ours` before it goes on, and passes `HeldLock.token` to the
store with what it writes. That is a fencing token: tokens only grow, and `store.log.locks.admit` refuses old ones.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import NamedTuple, Protocol

FIRST_PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 0.5


class Locks(Protocol):
    """Where locks are kept. `owner` tells one holder from every other."""

    async def acquire(self, name: str, owner: str, lease: timedelta) -> int | None:
        """Returns the token of the acquired lock, or None if somebody else holds it."""

    async def is_held(self, name: str, owner: str) -> bool:
        """Whether this owner holds the lock at this moment."""

    async def release(self, name: str, owner: str) -> bool:
        """Releases the lock. Returns False, and does nothing, if this owner no longer holds it."""

    async def acquire_free(self, names: Sequence[str], owner: str, lease: timedelta) -> dict[str, int]:
        """Acquires those of these locks that nobody holds. Returns their tokens by name."""

    async def release_all(self, names: Sequence[str], owner: str) -> None:
        """Releases those of these locks that this owner still holds."""

    async def close(self) -> None:
        """Closes connections that are open for locks alone."""


class HeldLock(NamedTuple):
    """A lock that was acquired."""

    locks: Locks
    name: str
    owner: str
    token: int

    async def is_ours(self) -> bool:
        """Whether the lock is still held: the lease has not expired and was not lost."""
        return await self.locks.is_held(self.name, self.owner)


def recalculation(user_id: int) -> str:
    """Returns the name of the lock for recalculating what a user owns."""
    return f"lock:recalc:{user_id}"


@asynccontextmanager
async def hold(locks: Locks, name: str, lease: timedelta, patience: timedelta) -> AsyncIterator[HeldLock]:
    """Holds a lock for a block. Raises TimeoutError if somebody else holds it for longer than `patience`.

    The lease must outlast the block: it is not renewed.
    """
    owner = uuid.uuid4().hex
    async with asyncio.timeout(patience.total_seconds()):
        token = await _acquire(locks, name, owner, lease)
    try:
        yield HeldLock(locks, name, owner, token)
    finally:
        await locks.release(name, owner)


@asynccontextmanager
async def hold_free(locks: Locks, names: Sequence[str], lease: timedelta) -> AsyncIterator[dict[str, int]]:
    """Holds those of these locks that are free for a block, and yields their tokens by name. The others are left alone.

    The lease must outlast the block: it is not renewed.
    """
    owner = uuid.uuid4().hex
    tokens = await locks.acquire_free(names, owner, lease)
    try:
        yield tokens
    finally:
        await locks.release_all(list(tokens), owner)


async def _acquire(locks: Locks, name: str, owner: str, lease: timedelta) -> int:
    pause = FIRST_PAUSE_SECONDS
    while (token := await locks.acquire(name, owner, lease)) is None:
        await asyncio.sleep(pause * (0.5 + random.random()))
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
    return token
