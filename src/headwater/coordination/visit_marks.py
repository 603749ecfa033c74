"""What Redis shows of visits: who visits a source, what was sent to workers, and when a host was last asked.

    tasklock:feed:{id}          the task or lease that visits the source, until its lease ends
    tasklock:schedule:{id}      the due time for which the source was sent to a worker
    ratelimit:domain:{domain}   when the domain was asked last, in milliseconds, until it may be asked again

The store decides about all of this; the keys show it to others and save messages. So nothing waits for Redis here: if
it is slow, empty or gone, nobody sees the keys, and some messages are sent twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import redis.asyncio as redis
import structlog
from redis.exceptions import RedisError

from headwater.model import DueSource

PATIENCE_SECONDS = 1.0
MOST_AT_ONCE = 500
REST_SECONDS = 5.0  # for how long a Redis that did not answer is left alone
log = structlog.get_logger()

# Each key has a value and milliseconds: 0 deletes the key, unless another value took its place.
_WRITE = """
for i, key in ipairs(KEYS) do
    local value, milliseconds = ARGV[2 * i - 1], ARGV[2 * i]
    if milliseconds ~= '0' then redis.call('SET', key, value, 'PX', milliseconds)
    elseif redis.call('GET', key) == value then redis.call('DEL', key) end
end
"""
_FIRST = """
local first = {}
for i, key in ipairs(KEYS) do
    if redis.call('GET', key) ~= ARGV[i + 1] then
        redis.call('SET', key, ARGV[i + 1], 'PX', ARGV[1])
        first[#first + 1] = i
    end
end
return first
"""


class VisitMarks:
    """The keys of one Redis. `task_id` is the task that this process carries out, if it does."""

    def __init__(self, url: str, gap: timedelta, now: Callable[[], datetime]) -> None:
        self._redis = redis.Redis.from_url(
            url, decode_responses=True, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS
        )
        self._gap, self._now = gap, now
        self._held: dict[int, str] = {}
        self._unwritten: list[tuple[str, str, int]] = []  # key, value, milliseconds
        self._writing: asyncio.Task[None] | None = None
        self._rests_until = 0.0
        self.task_id: str | None = None

    def started(self, granted: Sequence[DueSource]) -> None:
        """Shows that this process visits these sources. Returns at once."""
        now = self._now()
        for due in granted:
            owner = self._held[due.source.id] = self.task_id or due.lease
            self._unwritten.append((f"tasklock:feed:{due.source.id}", owner, _milliseconds(due.lease_until - now)))
            if self._gap and due.host:
                at, until = str(round(due.start_at.timestamp() * 1000)), due.start_at + self._gap
                self._unwritten.append((f"ratelimit:domain:{due.host}", at, _milliseconds(until - now)))
        self._write_soon()

    def ended(self, source_id: int) -> None:
        """Shows that the visit is over, unless somebody else visits the source by now. Returns at once."""
        owner = self._held.pop(source_id, None)
        if owner is not None:
            self._unwritten.append((f"tasklock:feed:{source_id}", owner, 0))
            self._write_soon()

    async def first_to_send(self, due: Mapping[int, datetime], kept: timedelta) -> set[int]:
        """Returns those of these sources that nobody sent for this due time, and notes that they are sent now.

        Returns all of them if Redis does not answer.
        """
        ids = list(due)
        if not ids or time.monotonic() < self._rests_until:
            return set(ids)
        times = [due[id].isoformat() for id in ids]
        keys = [f"tasklock:schedule:{id}" for id in ids]
        try:
            found = await self._redis.eval(_FIRST, len(keys), *keys, str(_milliseconds(kept)), *times)
        except (RedisError, OSError, TimeoutError) as error:
            self._rest(error)
            return set(ids)
        return {ids[place - 1] for place in found}

    async def close(self) -> None:
        if self._writing:
            await self._writing
        await self._redis.aclose()

    def _write_soon(self) -> None:
        if self._unwritten and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while self._unwritten:
            written, self._unwritten = self._unwritten[:MOST_AT_ONCE], self._unwritten[MOST_AT_ONCE:]
            if time.monotonic() < self._rests_until:
                continue
            values = [str(part) for _, value, milliseconds in written for part in (value, milliseconds)]
            try:
                await self._redis.eval(_WRITE, len(written), *(key for key, _, _ in written), *values)
            except (RedisError, OSError, TimeoutError) as error:
                self._rest(error)

    def _rest(self, error: BaseException) -> None:
        self._rests_until = time.monotonic() + REST_SECONDS
        log.warning("redis.away", error=str(error), goes_on="visits do not need it")


def _milliseconds(length: timedelta) -> int:
    return max(1, round(length.total_seconds() * 1000))
