"""One at a time, wherever locks are kept (E6): one suite for the store on both databases and for Redis."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import redis

from coordination.kept import LONG, NAME, PATIENCE, SHORT, kept_at
from headwater.coordination.locks import Locks, hold, recalculation
from headwater.coordination.redis_locks import RedisLocks
from headwater.errors import StoreUnavailable
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.log import locks as store_locks
from support.posts import NOON
from support.processes import kill

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where locks are kept, on each kind of place in turn."""
    if request.param == "redis":
        found: str = request.getfixturevalue("redis_url")
        return found
    found = f"sqlite:///{tmp_path / 'locks.db'}"
    if request.param == "postgres":
        found = request.getfixturevalue("postgres_url")
    db = Database(found)
    migrate.upgrade(db)
    db.close()
    return found


@pytest.fixture
async def locks(url: str) -> AsyncIterator[Locks]:
    async with kept_at(url) as made:
        yield made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    """Where the holder of a lock writes, which need not be where the lock is kept."""
    db = Database(f"sqlite:///{tmp_path / 'headwater.db'}")
    migrate.upgrade(db)
    yield db
    db.close()


def process(url: str, *given: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "coordination.kept", url, *given]
    return subprocess.Popen(command, env=env, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


async def taken(locks: Locks) -> int:
    """The token of the lock, once it is free."""
    async with hold(locks, NAME, LONG, PATIENCE) as ours:
        return ours.token


def test_the_lock_of_a_recalculation_is_named_after_its_user() -> None:
    assert recalculation(7) == "lock:recalc:7"


async def test_a_lock_is_one_holders_until_it_is_given_back(locks: Locks) -> None:
    assert await locks.acquire(NAME, "one", LONG)
    assert await locks.acquire(NAME, "two", LONG) is None
    assert await locks.is_held(NAME, "one")
    assert not await locks.is_held(NAME, "two")
    assert await locks.acquire("lock:recalc:8", "two", LONG), "another user's is another lock"
    assert await locks.release(NAME, "one")
    assert await locks.acquire(NAME, "two", LONG)


async def test_only_the_owner_gives_it_back(locks: Locks) -> None:
    await locks.acquire(NAME, "one", LONG)
    assert not await locks.release(NAME, "two")
    assert await locks.is_held(NAME, "one")


async def test_tokens_only_grow(locks: Locks) -> None:
    tokens = [await taken(locks) for _ in range(5)]
    assert sorted(set(tokens)) == tokens


async def test_it_is_given_back_even_if_the_work_under_it_fails(locks: Locks) -> None:
    with pytest.raises(ZeroDivisionError):
        async with hold(locks, NAME, LONG, PATIENCE):
            raise ZeroDivisionError
    assert await taken(locks)


async def test_whoever_waits_too_long_is_told(locks: Locks) -> None:
    await locks.acquire(NAME, "one", LONG)
    with pytest.raises(TimeoutError):
        async with hold(locks, NAME, LONG, timedelta(milliseconds=100)):
            raise AssertionError("it is somebody else's")


async def test_many_tasks_go_one_after_the_other(locks: Locks) -> None:
    inside, most = 0, 0

    async def enter() -> None:
        nonlocal inside, most
        async with hold(locks, NAME, LONG, PATIENCE):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(enter() for _ in range(10)))
    assert most == 1


def test_two_processes_exclude_each_other(url: str, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    children = [process(url, str(counter), "20") for _ in range(2)]
    for child in children:
        child.communicate(timeout=200)
    assert [child.returncode for child in children] == [0, 0]
    assert counter.read_text() == "40"


async def test_the_lock_of_a_killed_process_ends_by_itself(url: str, locks: Locks) -> None:
    child = process(url)
    token = int(line(child))
    kill(child)
    assert await taken(locks) > token


async def test_a_holder_that_was_stopped_past_its_lease_is_told_and_cannot_write(
    url: str, locks: Locks, store: Database
) -> None:
    # H85
    child = process(url)
    token = int(line(child))
    child.send_signal(signal.SIGSTOP)
    newer = await taken(locks)
    assert store.write_now(store_locks.admit, NAME, newer)
    child.send_signal(signal.SIGCONT)
    said, _ = child.communicate("\n", timeout=200)
    assert said.strip() == "False"
    assert child.returncode == 0
    assert not store.write_now(store_locks.admit, NAME, token)
    assert store.write_now(store_locks.admit, NAME, newer)


async def test_what_a_late_holder_gives_back_is_not_the_next_ones_lock(locks: Locks) -> None:
    await locks.acquire(NAME, "late", SHORT)
    async with hold(locks, NAME, LONG, PATIENCE) as ours:
        assert not await locks.release(NAME, "late")
        assert await ours.is_ours()


async def test_a_redis_that_was_emptied_costs_a_lock_and_nothing_more(redis_url: str, store: Database) -> None:
    # H86
    async with kept_at(redis_url) as locks, hold(locks, NAME, LONG, PATIENCE) as first:
        with redis.Redis.from_url(redis_url) as server:
            server.flushdb()
        assert not await first.is_ours()
        async with hold(locks, NAME, LONG, PATIENCE) as second:
            assert second.token > first.token
            assert store.write_now(store_locks.admit, NAME, second.token)
            assert not store.write_now(store_locks.admit, NAME, first.token)
            assert await second.is_ours()


async def test_the_store_itself_refuses_a_token_of_its_own_that_is_old(db: Database) -> None:
    first = db.write_now(store_locks.take, NAME, "one", NOON, NOON)
    second = db.write_now(store_locks.take, NAME, "two", NOON, NOON)
    assert first is not None
    assert second is not None
    assert not db.write_now(store_locks.admit, NAME, first)
    assert db.write_now(store_locks.admit, NAME, second)


async def test_a_redis_that_is_away_is_said_in_our_words() -> None:
    locks = RedisLocks("redis://127.0.0.1:1/0")
    with pytest.raises(StoreUnavailable, match="Redis is not available right now"):
        await locks.acquire(NAME, "one", LONG)
    await locks.close()
