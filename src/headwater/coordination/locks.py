"""Locks: one at a time, over all processes, such as one recalculation for each user (E6).

A lock is a lease: it ends by itself when its holder died. So a holder that was stopped for longer may wake up and still
believe in it. It asks with `Held.is_ours` before it goes on, and hands `Held.token` to the store with what it writes:
tokens only grow, and `store.log.locks.admit` refuses one that is older than the newest (a fencing token).
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import NamedTuple, Protocol

FIRST_LOOK_SECONDS = 0.01
LAST_LOOK_SECONDS = 0.5


class Locks(Protocol):
    """Where locks are kept. `owner` tells one holder from every other."""

    async def take(self, name: str, owner: str, lease: timedelta) -> int | None:
        """The token of a lock that is ours from now on, or None while it is somebody else's."""

    async def is_held(self, name: str, owner: str) -> bool:
        """Whether it is this owner's at this moment."""

    async def drop(self, name: str, owner: str) -> bool:
        """Give it back; False, and nothing happens, if it is not this owner's any more."""


class HeldLock(NamedTuple):
    """A lock that was taken."""

    locks: Locks
    name: str
    owner: str
    token: int

    async def is_ours(self) -> bool:
        """False once the lease is over, or whoever kept it forgot it."""
        return await self.locks.is_held(self.name, self.owner)


def recalculation(user_id: int) -> str:
    """The name of the lock under which what a user owns is calculated."""
    return f"lock:recalc:{user_id}"


@asynccontextmanager
async def hold(locks: Locks, name: str, lease: timedelta, patience: timedelta) -> AsyncIterator[HeldLock]:
    """Hold a lock for a block. Raises TimeoutError if somebody else has it for longer than `patience`.

    `lease` has to be longer than the block takes: it is not prolonged.
    """
    owner = uuid.uuid4().hex
    async with asyncio.timeout(patience.total_seconds()):
        token = await _taken(locks, name, owner, lease)
    try:
        yield HeldLock(locks, name, owner, token)
    finally:
        await locks.drop(name, owner)


async def _taken(locks: Locks, name: str, owner: str, lease: timedelta) -> int:
    pause = FIRST_LOOK_SECONDS
    while (token := await locks.take(name, owner, lease)) is None:
        await asyncio.sleep(pause * (0.5 + random.random()))
        pause = min(pause * 2, LAST_LOOK_SECONDS)
    return token
