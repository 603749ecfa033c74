"""What Redis shows of visits, under the names of the document about feeds: for whoever looks, and to save messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import redis

from headwater.coordination.visit_marks import VisitMarks
from headwater.model import DueSource, Source, SourceState

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=180)


@pytest.fixture
async def marks(redis_url: str) -> AsyncIterator[VisitMarks]:
    made = VisitMarks(redis_url, SECOND, lambda: NOON)
    yield made
    await made.close()


def granted(lease: str) -> DueSource:
    source = Source(111, "rss", "https://example.com/rss.xml")
    return DueSource(source, SourceState(), lease, NOON + LEASE, NOON, "example.com", 1800, 0, "ok")


def shown(redis_url: str, key: str) -> tuple[object, int]:
    """Returns the value of a key, and for how many milliseconds it stays."""
    with redis.Redis.from_url(redis_url, decode_responses=True) as server:
        return server.get(key), int(server.pttl(key))  # type: ignore[arg-type]


async def test_a_visit_holds_its_lock_and_its_domain(redis_url: str) -> None:  # D5, D7
    marks = VisitMarks(redis_url, SECOND, lambda: NOON)
    marks.started([granted("lease-1")])
    await marks.close()
    owner, left = shown(redis_url, "tasklock:feed:111")
    assert owner == "lease-1"
    assert 0 < left <= 180_000
    asked_at, left = shown(redis_url, "ratelimit:domain:example.com")
    assert asked_at in (str(round(NOON.timestamp() * 1000)), None)  # it may be gone again: it stays for a second
    assert left <= 1_000


async def test_only_the_owner_takes_its_lock_away(redis_url: str) -> None:  # D5
    first, second = (VisitMarks(redis_url, SECOND, lambda: NOON) for _ in range(2))
    first.started([granted("lease-1")])
    while shown(redis_url, "tasklock:feed:111")[0] != "lease-1":
        await asyncio.sleep(0.01)
    second.started([granted("lease-2")])
    await second.close()
    first.ended(111)  # it was stopped for longer than its lease
    await first.close()
    assert shown(redis_url, "tasklock:feed:111")[0] == "lease-2"


async def test_a_source_is_sent_once_for_each_time_that_it_is_due(marks: VisitMarks, redis_url: str) -> None:  # D6
    due, kept = {111: NOON, 112: NOON}, timedelta(seconds=1800)
    assert await marks.first_to_send(due, kept) == {111, 112}
    assert await marks.first_to_send(due, kept) == set()
    assert await marks.first_to_send({111: NOON + SECOND}, kept) == {111}
    value, left = shown(redis_url, "tasklock:schedule:111")
    assert value == (NOON + SECOND).isoformat()
    assert 0 < left <= 1_800_000
