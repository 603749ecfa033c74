"""How often one person may ask: counted together in one process, and over Redis in several."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.running import Client, running
from headwater.coordination.rate_limits import Limit, RateLimits
from headwater.errors import BadSetting
from headwater.settings import load
from headwater.wire import open_parts
from headwater.wire.parts import scope_limits
from support.people import a_person, program_of

FEW = Limit("requests", 3, 60)


@pytest.fixture(params=["memory", "redis"])
def place(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("redis_url") if request.param == "redis" else None


async def test_a_limit_is_shared_by_those_who_count_in_one_place(place: str | None) -> None:
    # E10
    one = RateLimits(place)
    other = RateLimits(place) if place else one
    uses = [await limits.take(FEW, "ann") for limits in (one, other, one, other, one, other)]
    assert [use.is_allowed for use in uses[:3]] == [True, True, True]
    assert not uses[-1].is_allowed
    assert uses[0].remaining == 2
    assert 0 < uses[-1].wait <= 61
    assert (await one.take(FEW, "bob")).is_allowed
    assert (await one.take(Limit("guesses", 3, 60), "ann")).is_allowed
    await other.forget(FEW, "ann")
    assert (await one.take(FEW, "ann")).is_allowed
    await one.close()
    await other.close()


async def test_while_redis_is_away_each_process_counts_for_itself() -> None:
    # H86
    limits = RateLimits("redis://127.0.0.1:1/0")
    allowed = [(await limits.take(FEW, "ann")).is_allowed for _ in range(6)]
    assert (allowed[:3], allowed[-1]) == ([True, True, True], False)
    await limits.close()


def test_whoever_asks_too_often_is_told_when_to_come_again(tmp_path: Path) -> None:
    # E10
    with running(f"sqlite:///{tmp_path / 'headwater.db'}", HEADWATER_RATE_LIMIT="4") as headwater:
        ann = a_person(headwater, "ann")
        first, second = program_of(headwater, ann), program_of(headwater, ann)
        answers = [client.get("/api/stream") for client in (first, second) * 4]
        assert [one.status for one in answers[:4]] == [200] * 4
        assert answers[0].headers["ratelimit-policy"] == '"requests";q=4;w=60'
        assert answers[0].headers["ratelimit"].startswith('"requests";r=3;t=')
        assert answers[-1].json()["code"] == "too_often"
        assert 0 < int(answers[-1].headers["retry-after"]) <= 61
        assert headwater.program().get("/api/stream").status == 200
        assert Client(headwater.port).get("/healthz").status == 200


def test_a_scope_can_have_a_limit_of_its_own(tmp_path: Path) -> None:
    # E10
    url = f"sqlite:///{tmp_path / 'headwater.db'}"
    with running(url, HEADWATER_RATE_LIMITS="sources:write=2") as headwater:
        client = headwater.program()
        statuses = [client.post("/api/sources/refresh").status for _ in range(5)]
        assert (statuses[:2], statuses[-1]) == ([202, 202], 429)
        assert client.get("/api/sources").status == 200


@pytest.mark.parametrize("text", ["everything=1", "posts:read", "posts:read=0", "posts:read=many", "=5"])
def test_a_limit_that_cannot_be_read_is_a_wrong_setting(text: str) -> None:
    with pytest.raises(BadSetting, match="stories:write=60"):
        scope_limits(text)


async def test_processes_that_share_a_broker_count_together(redis_url: str, tmp_path: Path) -> None:
    given = {"HEADWATER_CONFIG": "", "HEADWATER_DATA_DIR": str(tmp_path), "HEADWATER_CELERY_BROKER_URL": redis_url}
    one, other = open_parts(load(given)), open_parts(load(given))
    uses = [await parts.rate_limits.take(FEW, "ann") for parts in (one, other, one, other, one)]
    assert (uses[0].is_allowed, uses[-1].is_allowed) == (True, False)
    for parts in (one, other):
        await parts.rate_limits.close()
        parts.close()
