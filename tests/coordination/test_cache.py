"""What takes long is computed once and kept, and a cache that is slow, damaged or gone costs no truth (E7): one suite
for memory and Redis, and what can happen to a Redis."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import redis

from coordination.cached import NUMBER, SECRET
from headwater.coordination import cache as caching
from headwater.coordination.cache import Cache, CachedKind, MemoryEntries
from headwater.coordination.redis_cache import RedisEntries
from support.cluster import OwnRedis

TESTS = Path(__file__).resolve().parents[1]
KEY = "user_portfolio:7"
STALE: CachedKind[int] = CachedKind("stale", int, fresh_for=0, stale_for=60)
SHORT: CachedKind[int] = CachedKind("short", int, fresh_for=0.05)


class Computing:
    """Computes 1, then 2, and so on, each when it is allowed to go on."""

    def __init__(self) -> None:
        self.times = 0
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.begun = asyncio.Event()

    async def __call__(self) -> int:
        self.times += 1
        number = self.times
        self.begun.set()
        await self.may_end.wait()
        return number


@pytest.fixture
async def computing() -> Computing:
    return Computing()


@pytest.fixture(params=["memory", "redis"])
async def cache(request: pytest.FixtureRequest) -> AsyncIterator[Cache]:
    if request.param == "memory":
        made = Cache(MemoryEntries(1_000_000), SECRET)
    else:
        made = patient(request.getfixturevalue("redis_url"))
    yield made
    await made.close()


@pytest.fixture
async def shared(redis_url: str) -> AsyncIterator[Cache]:
    made = patient(redis_url)
    yield made
    await made.close()


def patient(url: str) -> Cache:
    """A cache that waits for a busy machine."""
    return Cache(RedisEntries(url, patience=10), SECRET)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_value_is_computed_once_and_then_kept(cache: Cache, computing: Computing) -> None:
    assert await cache.get(NUMBER, KEY, computing, version="1") == (1, False)
    assert await cache.get(NUMBER, KEY, computing, version="1") == (1, True)
    assert cache.lookups == {("number", "missing"): 1, ("number", "fresh"): 1}


async def test_a_value_counts_only_for_the_version_it_was_made_of(cache: Cache, computing: Computing) -> None:
    await cache.get(NUMBER, KEY, computing, version="1")
    assert await cache.get(NUMBER, KEY, computing, version="2") == (2, False)
    assert await cache.get(NUMBER, KEY, computing, version="12") == (3, False)
    assert await cache.get(NUMBER, KEY, computing, version="1") == (4, False)


async def test_a_stale_value_is_returned_while_it_is_computed_again(cache: Cache, computing: Computing) -> None:
    assert await cache.get(STALE, KEY, computing, version="1") == (1, False)
    computing.may_end.clear()
    for _ in range(5):
        assert await cache.get(STALE, KEY, computing, version="1") == (1, True)
    await until(lambda: computing.times == 2)
    assert await cache.get(STALE, KEY, computing, version="1") == (1, True)
    assert computing.times == 2  # one computes it, however many ask
    computing.may_end.set()
    await cache.close()
    found = await cache.get(STALE, KEY, computing, version="1")
    assert (found.value, found.is_hit) == (2, True)


async def test_a_value_that_is_too_old_is_computed_before_it_is_returned(cache: Cache, computing: Computing) -> None:
    await cache.get(SHORT, KEY, computing, version="1")
    async with asyncio.timeout(60):
        while (found := await cache.get(SHORT, KEY, computing, version="1")).is_hit:
            assert found.value == 1
            await asyncio.sleep(0.01)
    assert found == (2, False)


async def test_many_who_ask_at_once_wait_for_one_computation(
    cache: Cache, computing: Computing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "WAIT_SECONDS", 60)  # a busy machine takes longer to connect fifty times
    found = await asyncio.gather(*(cache.get(NUMBER, KEY, computing, version="1") for _ in range(50)))
    assert {one.value for one in found} == {1}
    assert computing.times == 1


async def test_who_goes_away_does_not_end_what_others_wait_for(cache: Cache, computing: Computing) -> None:
    computing.may_end.clear()
    first = asyncio.create_task(cache.get(NUMBER, KEY, computing, version="1"))
    await computing.begun.wait()
    second = asyncio.create_task(cache.get(NUMBER, KEY, computing, version="1"))
    first.cancel()
    computing.may_end.set()
    assert (await second).value == 1
    assert computing.times == 1


async def test_what_began_before_a_key_was_forgotten_is_not_kept(cache: Cache, computing: Computing) -> None:
    computing.may_end.clear()
    slow = asyncio.create_task(cache.get(NUMBER, KEY, computing, version=""))
    await computing.begun.wait()
    await cache.forget(KEY)
    quick = asyncio.create_task(cache.get(NUMBER, KEY, computing, version=""))
    await until(lambda: computing.times == 2)  # it does not wait for what began too early
    computing.may_end.set()
    assert (await slow).value == 1
    assert (await quick).value == 2
    assert await cache.get(NUMBER, KEY, computing, version="") == (2, True)


async def test_an_older_version_that_ends_late_does_not_replace_a_newer_one(cache: Cache, computing: Computing) -> None:
    computing.may_end.clear()
    old = asyncio.create_task(cache.get(NUMBER, KEY, computing, version="1"))
    await computing.begun.wait()
    new = asyncio.create_task(cache.get(NUMBER, KEY, computing, version="2"))
    await until(lambda: computing.times == 2)
    computing.may_end.set()
    assert ((await old).value, (await new).value) == (1, 2)
    assert await cache.get(NUMBER, KEY, computing, version="2") == (2, True)


async def test_a_computation_that_fails_keeps_nothing_and_nobody_waits_for_it(
    cache: Cache, computing: Computing
) -> None:
    async def failing() -> int:
        raise ValueError("no number")

    for _ in range(2):
        with pytest.raises(ValueError, match="no number"):
            await cache.get(NUMBER, KEY, failing, version="1")
    assert await cache.get(NUMBER, KEY, computing, version="1") == (1, False)


async def test_the_hit_rate_is_that_of_all_lookups(cache: Cache, computing: Computing) -> None:
    assert await cache.hit_rate() == (None, 0)
    for _ in range(4):
        await cache.get(NUMBER, KEY, computing, version="1")
    assert await cache.hit_rate() == (0.75, 4)
    assert await cache.hit_rate() == (0.75, 4)


async def test_memory_is_bounded_and_what_was_used_last_stays(computing: Computing) -> None:
    entries = MemoryEntries(2_000)
    cache = Cache(entries)
    for number in range(100):
        await cache.get(NUMBER, f"{KEY}{number}", computing, version="1")
        await cache.get(NUMBER, f"{KEY}0", computing, version="1")
        assert entries.bytes <= 2_000
    assert (await cache.get(NUMBER, f"{KEY}0", computing, version="1")).is_hit
    assert not (await cache.get(NUMBER, f"{KEY}50", computing, version="1")).is_hit


async def test_values_that_are_too_large_are_not_kept(cache: Cache) -> None:
    kind: CachedKind[str] = CachedKind("text", str, fresh_for=60)

    async def compute() -> str:
        return "x" * caching.MOST_BYTES

    assert not (await cache.get(kind, KEY, compute, version="1")).is_hit
    assert not (await cache.get(kind, KEY, compute, version="1")).is_hit


# Redis.


def ask(url: str, file: Path) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "coordination.cached", url, KEY, str(file)]
    return subprocess.Popen(command, env=env, cwd=TESTS, stdout=subprocess.PIPE, text=True)


def test_a_value_is_computed_once_by_all_processes(redis_url: str, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    processes = [ask(redis_url, file) for _ in range(4)]
    assert [process.communicate(timeout=120)[0].strip() for process in processes] == ["7"] * 4
    assert file.read_text().count("computed") == 1


async def test_a_process_that_is_killed_while_it_computes_holds_up_nobody(
    shared: Cache, redis_url: str, computing: Computing
) -> None:
    with redis.Redis.from_url(redis_url) as server:  # what a killed one leaves behind: its lease
        server.set(f"cache:lease:{KEY}", "0" * 32 + "hw1 1\n", px=60_000)
    assert await shared.get(NUMBER, KEY, computing, version="1") == (1, False)


@pytest.mark.parametrize("damage", ["bytes", "end", "type", "other key", "forged", "nothing"])
async def test_a_damaged_value_is_computed_again(
    shared: Cache, redis_url: str, computing: Computing, damage: str
) -> None:
    await shared.get(NUMBER, KEY, computing, version="1")
    with redis.Redis.from_url(redis_url) as server:
        kept = server.get(KEY)
        assert isinstance(kept, bytes)
        if damage == "bytes":
            server.set(KEY, b"\xff\x00 garbage")
        elif damage == "end":
            server.set(KEY, kept[:-1])
        elif damage == "type":
            server.delete(KEY)
            server.sadd(KEY, "a", "b")
        elif damage == "other key":
            server.set("user_portfolio:8", kept)
        elif damage == "forged":
            server.set(KEY, kept[:-1] + b"9")
    found = await shared.get(NUMBER, "user_portfolio:8" if damage == "other key" else KEY, computing, version="1")
    assert found == ((1, True) if damage == "nothing" else (2, False))
    async with asyncio.timeout(60):
        while not (await shared.get(NUMBER, KEY, computing, version="1")).is_hit:
            await asyncio.sleep(0.01)


async def test_values_of_another_secret_do_not_count(shared: Cache, redis_url: str, computing: Computing) -> None:
    other = Cache(RedisEntries(redis_url, patience=10), b"another")
    await other.get(NUMBER, KEY, computing, version="1")
    await other.close()
    assert (await shared.get(NUMBER, KEY, computing, version="1")).value == 2


async def test_what_was_computed_while_redis_was_emptied_is_not_kept(
    shared: Cache, redis_url: str, computing: Computing
) -> None:
    computing.may_end.clear()
    asking = asyncio.create_task(shared.get(NUMBER, KEY, computing, version=""))
    await computing.begun.wait()
    with redis.Redis.from_url(redis_url) as server:
        server.flushdb()
        computing.may_end.set()
        assert (await asking).value == 1
        assert server.get(KEY) is None
    assert await shared.get(NUMBER, KEY, computing, version="") == (2, False)


async def test_two_processes_count_their_lookups_together(redis_url: str, computing: Computing) -> None:
    one, other = patient(redis_url), patient(redis_url)
    await one.get(NUMBER, KEY, computing, version="1")
    for _ in range(3):
        await other.get(NUMBER, KEY, computing, version="1")
    assert (await one.hit_rate())[1] == 1  # the other one has not told yet
    assert await other.hit_rate() == (0.75, 4) == await one.hit_rate()
    await one.close()
    await other.close()


async def back(cache: Cache, computing: Computing, version: str) -> None:
    """Waits until the cache is used again after its rest."""
    async with asyncio.timeout(60):
        while not (await cache.get(NUMBER, KEY, computing, version=version)).is_hit:
            await asyncio.sleep(0.05)


async def test_a_redis_that_is_killed_and_comes_back_costs_only_time(own_redis: OwnRedis, computing: Computing) -> None:
    cache = patient(own_redis.url)
    await cache.get(NUMBER, KEY, computing, version="1")
    computing.may_end.clear()
    asking = asyncio.create_task(cache.get(NUMBER, "another", computing, version="1"))
    await until(lambda: computing.times == 2)
    own_redis.stop()
    computing.may_end.set()
    assert (await asking).value == 2  # computed while it was killed
    assert await cache.get(NUMBER, KEY, computing, version="1") == (3, False)
    assert cache.lookups["number", "bypassed"] == 1
    assert (await cache.hit_rate())[0] == 0.0  # of this process alone
    own_redis.start()
    await back(cache, computing, "1")
    await cache.close()


async def test_a_redis_that_does_not_answer_is_passed_by(own_redis: OwnRedis, computing: Computing) -> None:
    cache = Cache(RedisEntries(own_redis.url, patience=0.2), SECRET)
    await back(cache, computing, "1")
    own_redis.pause()
    asked_before = computing.times
    for number in range(1, 21):  # the first waits for the time limit, the others do not ask
        assert await cache.get(NUMBER, KEY, computing, version="1") == (asked_before + number, False)
    own_redis.go_on()
    await back(cache, computing, "1")
    await cache.close()


async def test_a_key_that_could_not_be_forgotten_is_forgotten_before_the_cache_is_used_again(
    own_redis: OwnRedis, computing: Computing
) -> None:
    cache = Cache(RedisEntries(own_redis.url, patience=0.2), SECRET)
    await back(cache, computing, "")
    own_redis.pause()
    before = computing.times
    await cache.forget(KEY)
    assert (await cache.get(NUMBER, KEY, computing, version="")).value > before
    own_redis.go_on()
    async with asyncio.timeout(60):
        while not (found := await cache.get(NUMBER, KEY, computing, version="")).is_hit:
            assert found.value > before
            await asyncio.sleep(0.05)
    assert found.value > before
    await cache.close()
