"""Locks in Redis, for many processes that lock often. Flushing Redis loses locks, but never the order of tokens.

A token is one more than the last one, and at least Redis's clock in microseconds. So tokens grow even if Redis forgot
the last one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import redis.asyncio as redis
from redis.exceptions import RedisError

from headwater.errors import StoreUnavailable

_ACQUIRE = """
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return false end
local now = redis.call('TIME')
local clock = now[1] * 1000000 + now[2]
local token = math.max(clock, tonumber(redis.call('GET', KEYS[2]) or 0) + 1)
redis.call('SET', KEYS[2], string.format('%.0f', token))
return string.format('%.0f', token)
"""
_RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class RedisLocks:
    """The `Locks` of one Redis. A lock's name is its key; the last token is kept under `name:token`."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(url, decode_responses=True)
        self._acquire = self._redis.register_script(_ACQUIRE)
        self._release = self._redis.register_script(_RELEASE)

    async def acquire(self, name: str, owner: str, lease: timedelta) -> int | None:
        milliseconds = int(lease.total_seconds() * 1000)
        async with _translated():
            token = await self._acquire(keys=[name, f"{name}:token"], args=[owner, milliseconds])
        return int(token) if token else None

    async def is_held(self, name: str, owner: str) -> bool:
        async with _translated():
            return bool(await self._redis.get(name) == owner)

    async def release(self, name: str, owner: str) -> bool:
        async with _translated():
            return bool(await self._release(keys=[name], args=[owner]))

    async def acquire_free(self, names: Sequence[str], owner: str, lease: timedelta) -> dict[str, int]:
        tokens = {name: await self.acquire(name, owner, lease) for name in names}
        return {name: token for name, token in tokens.items() if token is not None}

    async def release_all(self, names: Sequence[str], owner: str) -> None:
        for name in names:
            await self.release(name, owner)

    async def close(self) -> None:
        await self._redis.aclose()


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    except RedisError as error:
        raise StoreUnavailable(f"Redis is not available right now: {error}") from error
