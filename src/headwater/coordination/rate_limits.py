"""How often somebody may do something: a sliding window, in memory for one process, in Redis for several."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog
from limits import RateLimitItemPerSecond
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

if TYPE_CHECKING:
    from limits.aio.storage import RedisStorage

log = structlog.get_logger(__name__)


class Limit(NamedTuple):
    """At most `times` within `seconds`. `name` tells it from other limits."""

    name: str
    times: int
    seconds: int


class RatePlan(NamedTuple):
    """How often each person of a tenant may ask: at all, and for what needs a scope."""

    name: str
    requests: Limit
    scopes: Mapping[str, Limit]


class Use(NamedTuple):
    """What is left of a limit. `wait` is how many seconds until there is more."""

    limit: Limit
    is_allowed: bool
    remaining: int
    wait: int


class RateLimits:
    """Counts by name and by whoever does it. If Redis does not answer, each process counts for itself."""

    def __init__(self, redis_url: str | None = None) -> None:
        self._here = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._redis = _redis(redis_url) if redis_url else None
        self._shared = SlidingWindowCounterRateLimiter(self._redis) if self._redis else None

    async def close(self) -> None:
        """Closes the connections to Redis."""
        if self._redis is not None:
            bridge: Any = self._redis.bridge  # its type does not name the client that it has
            await bridge.storage.aclose()

    async def take(self, limit: Limit, who: str) -> Use:
        """Takes one, if there is one left."""
        if self._shared is not None:
            from redis.exceptions import RedisError

            try:
                return await _take(self._shared, limit, who)
            except (RedisError, OSError) as error:
                log.warning("rate limits are counted by each process: Redis does not answer", detail=str(error))
        return await _take(self._here, limit, who)

    async def forget(self, limit: Limit, who: str) -> None:
        """Starts again from nothing."""
        for limiter in (self._here, self._shared):
            if limiter is not None:
                await limiter.clear(_item(limit), who)


async def _take(limiter: SlidingWindowCounterRateLimiter, limit: Limit, who: str) -> Use:
    item = _item(limit)
    is_allowed = await limiter.hit(item, who)
    left = await limiter.get_window_stats(item, who)
    return Use(limit, is_allowed, left.remaining, max(1, int(left.reset_time - time.time()) + 1))


def _item(limit: Limit) -> RateLimitItemPerSecond:
    return RateLimitItemPerSecond(limit.times, limit.seconds, namespace=f"headwater/{limit.name}")


def _redis(url: str) -> RedisStorage:
    from limits.aio.storage import RedisStorage

    return RedisStorage(f"async+{url}", implementation="redispy")


def headers(uses: Sequence[Use], plan: str | None = None) -> Mapping[str, str]:
    """Returns the headers that tell a program about its limits (draft-ietf-httpapi-ratelimit-headers), and its plan."""
    named = f';plan="{plan}"' if plan else ""
    return {
        "RateLimit-Policy": ", ".join(
            f'"{one.limit.name}";q={one.limit.times};w={one.limit.seconds}{named}' for one in uses
        ),
        "RateLimit": ", ".join(f'"{one.limit.name}";r={one.remaining};t={one.wait}' for one in uses),
    }
