"""The cache in Redis, shared by all processes.

    {key}                     the value, with its version and its signature, until it is too old
    cache:lease:{key}         who computes it, and for which version
    cache:lookups:{span}      how many lookups there were within ten minutes

Redis's own clock measures ages: a value is fresh while it has more time left than it may be stale.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from headwater.coordination.cache import (
    COUNTED_SECONDS,
    COUNTED_SPANS,
    LEASE_SECONDS,
    CachedKind,
    Counts,
    Look,
    total,
)
from headwater.errors import StoreUnavailable

PATIENCE_SECONDS = 0.02

# What is no string, or begins otherwise, is not ours. A value in its last millisecond has no time left, so it is gone.
_LOOK = """
local value = redis.call('TYPE', KEYS[1]).ok == 'string' and redis.call('GET', KEYS[1])
if value and string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then value = false end
local left = redis.call('PTTL', KEYS[1])
if value and left > tonumber(ARGV[4]) then return {value, 1, 0, ''} end
if left <= 0 then value = false end
local lease = ARGV[2] .. ARGV[1]
local held = redis.call('TYPE', KEYS[2]).ok == 'string' and redis.call('GET', KEYS[2])
if held and string.sub(held, #ARGV[2] + 1) == ARGV[1] then return {value, 0, 0, string.sub(held, 1, #ARGV[2])} end
redis.call('SET', KEYS[2], lease, 'PX', ARGV[3])
return {value, 0, 1, ARGV[2]}
"""
_KEEP = """
local held = redis.call('GET', KEYS[2])
if not held or string.sub(held, 1, #ARGV[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[2])
if ARGV[3] ~= '0' then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
"""
_COUNT = """
redis.call('HINCRBY', KEYS[1], 'hits', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'misses', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
local found = {}
for i, key in ipairs(KEYS) do found[i] = redis.call('HMGET', key, 'hits', 'misses') end
return found
"""


class RedisEntries:
    """The `Entries` of one Redis. Each answer must come within `patience` seconds."""

    def __init__(self, url: str, patience: float = PATIENCE_SECONDS) -> None:
        self._redis = redis.Redis.from_url(
            url, socket_timeout=patience, socket_connect_timeout=patience, retry=Retry(NoBackoff(), 0)
        )
        self._look = self._redis.register_script(_LOOK)
        self._keep = self._redis.register_script(_KEEP)
        self._count = self._redis.register_script(_COUNT)

    async def look(self, key: str, header: bytes, owner: str, kind: CachedKind[Any]) -> Look:
        args: list[bytes | str | int] = [header, owner, _milliseconds(LEASE_SECONDS), _milliseconds(kind.stale_for)]
        async with _translated():
            value, is_fresh, leads, holder = await self._look(keys=_keys(key), args=args)
        return Look(value, bool(is_fresh), bool(leads), holder.decode(errors="replace"))

    async def keep(self, key: str, owner: str, value: bytes, kind: CachedKind[Any]) -> bool:
        kept = _milliseconds(kind.fresh_for + kind.stale_for)
        async with _translated():
            return bool(await self._keep(keys=_keys(key), args=[owner, value, kept]))

    async def release(self, key: str, owner: str) -> None:
        async with _translated():
            await self._keep(keys=_keys(key), args=[owner, b"", 0])

    async def forget(self, keys: list[str]) -> None:
        async with _translated():
            await self._redis.unlink(*(name for key in keys for name in _keys(key)))

    async def count(self, span: int, new: Counts) -> Counts:
        keys = [f"cache:lookups:{one}" for one in range(span, span - COUNTED_SPANS, -1)]
        async with _translated():
            found = await self._count(keys=keys, args=[*new, COUNTED_SECONDS * (COUNTED_SPANS + 1)])
        return total(Counts(*(int(number or 0) for number in row)) for row in found)

    async def close(self) -> None:
        await self._redis.aclose()


def _keys(key: str) -> list[str]:
    return [key, f"cache:lease:{key}"]


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        why = str(error) if isinstance(error, ResponseError) else f"it does not answer ({error or 'too slow'})"
        raise StoreUnavailable(f"Redis is not available as a cache right now: {why}.") from error
