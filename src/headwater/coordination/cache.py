"""A cache for what takes long to compute, in memory for one process, in Redis for several.

A value is kept under a key together with the version of what it was made of, which is read from the store beforehand.
It counts only for that version. So whatever happens to the cache, to a message or to a process, nobody gets a value
from before a change that the version tells of: a cache that is slow, damaged or gone costs time, never truth.

    fresh      the value is returned
    stale      the value is returned, and one process computes it again
    missing    one process computes it; others wait for that, but not for long

Whoever computes holds a lease on the key and may keep the value only while the lease is theirs. To forget a key ends
the lease as well. So a computation that began before a key was forgotten, and ends afterwards, keeps nothing.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
import structlog

from headwater.errors import StoreUnavailable

LEASE_SECONDS = 5.0  # how long others leave a computation to whoever began it
WAIT_SECONDS = 0.25  # how long they wait for it
FIRST_PAUSE_SECONDS = 0.005
REST_SECONDS = 1.0  # for how long a cache that did not answer is left alone
MOST_BYTES = 2_000_000  # of one value
MOST_UNFORGOTTEN = 10_000  # keys that could not be forgotten yet
NOTED_EVERY_SECONDS = 10.0
COUNTED_SECONDS = 600  # lookups are counted by spans of ten minutes, and the last six are one hour
COUNTED_SPANS = 6
HITS = ("fresh", "stale")  # not: missing, bypassed

log = structlog.get_logger()
T = TypeVar("T")
Load = Callable[[], Coroutine[Any, Any, T]]


class CachedKind(Generic[T]):
    """What is kept: its type, for how many seconds it is fresh, and for how many more it may be returned as stale."""

    def __init__(self, name: str, type: Any, *, fresh_for: float, stale_for: float = 0.0) -> None:
        self.name, self.fresh_for, self.stale_for = name, fresh_for, stale_for
        self._encoder, self._decoder = msgspec.json.Encoder(), msgspec.json.Decoder(type)

    def encode(self, value: T) -> bytes:
        return self._encoder.encode(value)

    def decode(self, body: bytes) -> T:
        """Raises msgspec.MsgspecError if this is no such value."""
        found: T = self._decoder.decode(body)
        return found


class Cached(NamedTuple, Generic[T]):
    """A value, and whether it came from the cache at once."""

    value: T
    is_hit: bool


class Look(NamedTuple):
    """What is under a key: the value of the wanted version, and who computes it. `leads`: we do, from now on."""

    value: bytes | None
    is_fresh: bool
    leads: bool
    owner: str


class Counts(NamedTuple):
    """Lookups: those that the cache answered at once, and the others."""

    hits: int = 0
    misses: int = 0

    @property
    def rate(self) -> float | None:
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else None


class Entries(Protocol):
    """Where values are kept. All of this raises StoreUnavailable if it cannot be used at the moment."""

    async def look(self, key: str, header: bytes, owner: str, kind: CachedKind[Any]) -> Look:
        """Returns the value that begins with this header. Leases the key to `owner` if it is missing or stale, unless
        it is leased for the same header."""

    async def keep(self, key: str, owner: str, value: bytes, kind: CachedKind[Any]) -> bool:
        """Keeps a value and ends the lease. Returns False, and does nothing, if the lease is not `owner`'s."""

    async def release(self, key: str, owner: str) -> None:
        """Ends the lease, if it is `owner`'s."""

    async def forget(self, keys: list[str]) -> None:
        """Removes values and leases."""

    async def count(self, span: int, new: Counts) -> Counts:
        """Adds to the lookups of a span. Returns all lookups of the last hour, of all processes."""

    async def close(self) -> None: ...


class Cache:
    """Returns values from where they are kept, or computes them. `secret` signs them, so that only ours count."""

    def __init__(self, entries: Entries, secret: bytes = b"") -> None:
        self._entries, self._secret = entries, secret[:64]
        self._flights: dict[str, asyncio.Task[Any]] = {}  # by the owner of the lease
        self._tasks: set[asyncio.Task[Any]] = set()
        self._unforgotten: set[str] = set()
        self._rests_until = 0.0
        self._is_away = False
        self._uncounted = Counts()
        self._counted = Counts()  # as `Entries` last said
        self._noted_at = 0.0
        self._counting = asyncio.Lock()
        self.lookups: dict[tuple[str, str], int] = {}  # of this process, by kind and by what was found

    async def get(self, kind: CachedKind[T], key: str, load: Load[T], *, version: str) -> Cached[T]:
        """Returns the value of a key for this version, which `load` computes if need be.

        Read the version before, in the same store. An empty one is for what only its age can make wrong.
        """
        header = f"hw1 {version}\n".encode()
        if not await self._may_ask():
            return await self._alone(kind, key, header, load)
        owner = uuid.uuid4().hex
        ends_at, pause, is_first = time.monotonic() + WAIT_SECONDS, FIRST_PAUSE_SECONDS, True
        while True:
            try:
                seen = await self._entries.look(key, header, owner, kind)
            except StoreUnavailable as error:
                self._rest(error)
                return await self._alone(kind, key, header, load)
            self._is_away, self._rests_until = False, 0.0
            if seen.value is not None:
                value = self._opened(kind, key, header, seen.value)
                if value is None:
                    await self.forget(key)
                    return await self._alone(kind, key, header, load)
                if seen.leads:
                    self._fly(kind, key, header, owner, load)
                self._count(kind, ("fresh" if seen.is_fresh else "stale") if is_first else "missing")
                return Cached(value.value, is_first)
            flight = self._fly(kind, key, header, owner, load) if seen.leads else self._flights.get(seen.owner)
            if flight is not None or time.monotonic() >= ends_at:
                self._count(kind, "missing")
                return Cached(await (asyncio.shield(flight) if flight is not None else load()), False)
            is_first = False
            await asyncio.sleep(pause)
            pause *= 2

    async def forget(self, *keys: str) -> None:
        """Removes these keys, and keeps what is being computed for them from being kept.

        If the cache does not answer, this process does it as soon as it does. Until then, a value without a version
        can be returned for as long as its kind is kept.
        """
        self._unforgotten.update(keys)
        await self._may_ask()

    async def hit_rate(self) -> tuple[float | None, int]:
        """Returns the share of lookups that the cache answered at once, and how many there were within the last hour.

        Of all processes; of this one alone, if the cache does not answer.
        """
        await self._note_counts()
        found = total([self._counted, self._uncounted])
        return found.rate, sum(found)

    async def close(self) -> None:
        """Waits for what is being computed, and closes connections."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._entries.close()

    async def _may_ask(self) -> bool:
        """Whether to ask the cache. After a failure it rests; then one lookup tries it. Forgets what is to forget."""
        if time.monotonic() < self._rests_until:
            return False
        if self._is_away:
            self._rests_until = time.monotonic() + REST_SECONDS
        if self._unforgotten:
            keys = list(self._unforgotten)
            try:
                await self._entries.forget(keys)
            except StoreUnavailable as error:
                self._rest(error)
                return False
            self._unforgotten.difference_update(keys)
        if time.monotonic() - self._noted_at >= NOTED_EVERY_SECONDS and any(self._uncounted):
            self._noted_at = time.monotonic()
            self._begin(self._note_counts())
        return True

    def _fly(self, kind: CachedKind[T], key: str, header: bytes, owner: str, load: Load[T]) -> asyncio.Task[T]:
        """Computes and keeps a value. It goes on if whoever asked for it goes away."""
        flight = self._flights[owner] = self._begin(self._compute(kind, key, header, owner, load))
        flight.add_done_callback(lambda _: self._flights.pop(owner, None))
        return flight

    async def _compute(self, kind: CachedKind[T], key: str, header: bytes, owner: str, load: Load[T]) -> T:
        value, body = None, None
        try:
            value = await load()
            body = kind.encode(value)
            return value
        finally:
            try:
                if body is not None and len(body) <= MOST_BYTES:
                    await self._entries.keep(key, owner, self._sealed(key, header, body), kind)
                else:
                    await self._entries.release(key, owner)
            except StoreUnavailable as error:
                self._rest(error)

    async def _alone(self, kind: CachedKind[T], key: str, header: bytes, load: Load[T]) -> Cached[T]:
        """Computes a value without the cache. Those who want the same version at once wait for one computation."""
        self._count(kind, "bypassed")
        if header == b"hw1 \n":
            return Cached(await load(), False)
        name = f"{key} {header!r}"
        flight = self._flights.get(name)
        if flight is None:
            flight = self._flights[name] = self._begin(load())
            flight.add_done_callback(lambda _: self._flights.pop(name, None))
        return Cached(await asyncio.shield(flight), False)

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.debug("cache.computation_failed", error=str(error))  # whoever waits for it gets it as well

    def _sealed(self, key: str, header: bytes, body: bytes) -> bytes:
        return header + self._signature(key, header, body) + b"\n" + body

    def _opened(self, kind: CachedKind[T], key: str, header: bytes, value: bytes) -> Cached[T] | None:
        """Returns what is kept, or None if it is damaged, or was not kept by us under this key."""
        signature, _, body = value[len(header) :].partition(b"\n")
        if signature == self._signature(key, header, body):
            try:
                return Cached(kind.decode(body), True)
            except msgspec.MsgspecError:
                pass  # kept by another version of Headwater
        log.warning("cache.damaged", key=key, goes_on="it is computed again")
        return None

    def _signature(self, key: str, header: bytes, body: bytes) -> bytes:
        signed = blake2b(key.encode() + b"\n" + header, key=self._secret, digest_size=16)
        signed.update(body)
        return signed.hexdigest().encode()

    def _count(self, kind: CachedKind[Any], found: str) -> None:
        name = (kind.name, found)
        self.lookups[name] = self.lookups.get(name, 0) + 1
        self._uncounted = total([self._uncounted, Counts(found in HITS, found not in HITS)])

    async def _note_counts(self) -> None:
        async with self._counting:  # what somebody else has taken along must have arrived
            new, self._uncounted = self._uncounted, Counts()
            try:
                self._counted = await self._entries.count(int(time.time()) // COUNTED_SECONDS, new)
            except StoreUnavailable:
                self._uncounted = total([self._uncounted, new])
                self._counted = Counts()

    def _rest(self, error: StoreUnavailable) -> None:
        if not self._is_away:
            log.warning("cache.away", error=error.detail, goes_on="values are computed")
        self._is_away, self._rests_until = True, time.monotonic() + REST_SECONDS
        if len(self._unforgotten) > MOST_UNFORGOTTEN:
            log.error("cache.unforgotten", keys=len(self._unforgotten), then="some are old until they expire")
            self._unforgotten = set(list(self._unforgotten)[:MOST_UNFORGOTTEN])


class _Entry(NamedTuple):
    value: bytes
    fresh_until: float
    kept_until: float


class _Lease(NamedTuple):
    owner: str
    header: bytes
    until: float


class MemoryEntries:
    """The `Entries` of one process. What was not used for longest goes first when there are too many bytes."""

    def __init__(self, most_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most_bytes, clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._leases: dict[str, _Lease] = {}
        self._spans: dict[int, Counts] = {}
        self.bytes = 0

    async def look(self, key: str, header: bytes, owner: str, kind: CachedKind[Any]) -> Look:
        now = self._clock()
        entry = self._entries.get(key)
        if entry is not None and entry.kept_until <= now:
            self._remove(key)
            entry = None
        value = entry.value if entry is not None and entry.value.startswith(header) else None
        is_fresh = value is not None and entry is not None and now < entry.fresh_until
        if value is not None:
            self._entries.move_to_end(key)
        if is_fresh:
            return Look(value, True, False, "")
        lease = self._leases.get(key)
        if lease is not None and lease.until > now and lease.header == header:
            return Look(value, False, False, lease.owner)
        self._leases[key] = _Lease(owner, header, now + LEASE_SECONDS)
        return Look(value, False, True, owner)

    async def keep(self, key: str, owner: str, value: bytes, kind: CachedKind[Any]) -> bool:
        if not self._end_lease(key, owner):
            return False
        self._remove(key)
        now = self._clock()
        self._entries[key] = _Entry(value, now + kind.fresh_for, now + kind.fresh_for + kind.stale_for)
        self.bytes += _size(key, value)
        while self.bytes > self._most:
            self._remove(next(iter(self._entries)))
        return True

    async def release(self, key: str, owner: str) -> None:
        self._end_lease(key, owner)

    async def forget(self, keys: list[str]) -> None:
        for key in keys:
            self._remove(key)
            self._leases.pop(key, None)

    async def count(self, span: int, new: Counts) -> Counts:
        self._spans[span] = total([self._spans.get(span, Counts()), new])
        self._spans = {one: counts for one, counts in self._spans.items() if one > span - COUNTED_SPANS}
        return total(self._spans.values())

    async def close(self) -> None:
        """Nothing is open."""

    def _end_lease(self, key: str, owner: str) -> bool:
        lease = self._leases.get(key)
        if lease is None or lease.owner != owner or lease.until <= self._clock():
            return False
        del self._leases[key]
        return True

    def _remove(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.bytes -= _size(key, entry.value)


def _size(key: str, value: bytes) -> int:
    return len(key) + len(value) + 200  # about what an entry itself takes


def total(spans: Iterable[Counts]) -> Counts:
    """Adds lookups up."""
    hits, misses = zip(*spans, strict=True)
    return Counts(sum(hits), sum(misses))
