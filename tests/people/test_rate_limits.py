"""How often one person may ask: counted together in one process, and over Redis in several."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.running import Client, Running, running
from headwater.coordination.rate_limits import Limit, RateLimits
from headwater.errors import BadSetting
from headwater.settings import load
from headwater.wire import open_parts
from headwater.wire.checks import plans, scope_limits
from people.test_people_commands import Commands
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


def test_whoever_asks_too_often_is_told_when_to_come_again(store_url: str) -> None:
    # E10
    with running(store_url, HEADWATER_RATE_LIMIT="4") as headwater:
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


def test_a_scope_can_have_a_limit_of_its_own(store_url: str) -> None:
    # E10
    with running(store_url, HEADWATER_RATE_LIMITS="sources:write=2") as headwater:
        client = headwater.program()
        statuses = [client.post("/api/sources/refresh").status for _ in range(5)]
        assert (statuses[:2], statuses[-1]) == ([202, 202], 429)
        assert client.get("/api/sources").status == 200


PLANS = "free requests=5 sources=2, team requests=50 sources:read=3 sources=9"


def test_a_tenant_is_limited_by_its_plan(store_url: str, tmp_path: Path) -> None:
    # E10
    with running(store_url, HEADWATER_PLANS=PLANS, HEADWATER_RATE_LIMITS="people=7") as headwater:
        ann = program_of(headwater, a_person(headwater, "ann", "owner", tenant="Research"))
        first = ann.get("/api/sources")
        assert first.headers["ratelimit-policy"] == '"requests";q=5;w=60;plan="free", "sources";q=2;w=60;plan="free"'
        assert first.headers["ratelimit"].startswith('"requests";r=4;t=')
        assert ', "sources";r=1;t=' in first.headers["ratelimit"]
        assert ann.post("/api/sources/refresh").status == 202
        refused = ann.get("/api/sources")  # what reads and what writes sources is counted together
        assert (refused.status, refused.json()["code"]) == (429, "too_often")
        assert '"sources";r=0' in refused.headers["ratelimit"]
        assert 'q=7;w=60;plan="free"' in ann.get("/api/people").headers["ratelimit-policy"]

        operator = headwater.program()
        [research] = [one for one in operator.get("/api/tenants").json()["items"] if one["name"] == "Research"]
        assert research["plan"] is None
        changed = operator.patch(f"/api/tenants/{research['id']}", {"plan": "team"})
        assert (changed.status, changed.json()["plan"]) == (200, "team")
        # It counts at once, and nobody else's limits have changed.
        assert ann.get("/api/sources").headers["ratelimit-policy"] == (
            '"requests";q=50;w=60;plan="team", "sources:read";q=3;w=60;plan="team"'
        )
        assert 'plan="free"' in operator.get("/api/tenants").headers["ratelimit-policy"]

        run = Commands(store_url, tmp_path)
        run.environ["HEADWATER_PLANS"] = PLANS
        assert run("people", "plan", "Research", "free").code == 0
        assert "free" in next(line for line in run("people", "tenants").out.splitlines() if "Research" in line)
        assert run("people", "plan", "Research").out == "Research: the default plan.\n"
        unknown = run("people", "plan", "Research", "gold")
        assert (unknown.code, "There are: free, team." in unknown.err) == (2, True)
        assert run("people", "plan", "Nobody", "free").code == 1


def test_a_plan_that_the_settings_have_no_more_is_the_default_one(store_url: str) -> None:
    with running(store_url, HEADWATER_PLANS="free requests=5, team requests=50") as headwater:
        tenant = headwater.owner.tenant_id
        assert headwater.program().patch(f"/api/tenants/{tenant}", {"plan": "team"}).status == 200
    with running(store_url, HEADWATER_PLANS="small requests=6") as headwater:
        assert headwater.program().get("/api/stream").headers["ratelimit-policy"] == '"requests";q=6;w=60;plan="small"'


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"plan": "gold"}, 422),
        ({"plan": ""}, 422),
        ({"plan": "x" * 5000}, 422),
        ({"plan": ["free"]}, 422),
        ({"plan": 1}, 422),
        ({"plan": "free\n"}, 422),
        ({"plan": "FREE"}, 422),
        ({"plan": "free", "runs_instance": True, "tenant_id": 1}, 200),
    ],
)
def test_bad_plans_change_nothing(on_plans: Running, body: dict[str, object], status: int) -> None:  # H69
    client = on_plans.program()
    tenant = on_plans.owner.tenant_id
    before = client.get("/api/tenants").json()["items"]
    answer = client.patch(f"/api/tenants/{tenant}", body)
    assert answer.status == status, answer.text
    after = client.get("/api/tenants").json()["items"]
    assert [one | {"plan": None} for one in after] == [one | {"plan": None} for one in before]
    if status != 200:
        assert after == before
    assert client.patch("/api/tenants/999999", {"plan": "free"}).status == 404


def test_only_those_who_run_the_instance_give_plans(on_plans: Running) -> None:  # H68
    ann = a_person(on_plans, "ann", "owner", tenant="Research")
    program = program_of(on_plans, ann)
    answers = [program.patch(f"/api/tenants/{one}", {"plan": "free"}) for one in (ann.tenant_id, 999_999)]
    assert [one.status for one in answers] == [403, 403]
    assert answers[0].json() == answers[1].json()


@pytest.fixture
def on_plans(store_url: str) -> Iterator[Running]:
    with running(store_url, HEADWATER_PLANS="free requests=5000") as made:
        yield made


@pytest.mark.parametrize(
    "text",
    [
        "free requests",
        "free requests=0",
        "free requests=-1",
        "free requests=1e3",
        "free requests=\u0663",
        "free requests=9999999999",
        "free requests=1 requests=2",
        "free everything=1",
        "free =1",
        "Free requests=1",
        "free requests=1, free requests=2",
        'f"ree requests=1',
        "requests=5",
        "free, =",
    ],
)
def test_a_plan_that_cannot_be_read_is_a_wrong_setting(text: str) -> None:
    with pytest.raises(BadSetting, match="HEADWATER_PLANS"):
        open_parts(load({"HEADWATER_CONFIG": "", "HEADWATER_PLANS": text}))


def test_plans_can_be_a_list_in_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "headwater.toml").write_text('plans = ["free requests=5 stories=1", "team"]\nrate_limit = 70\n')
    found = plans(load({"HEADWATER_CONFIG": str(tmp_path / "headwater.toml")}).settings)
    assert [(one.name, one.requests.times, set(one.scopes)) for one in found.values()] == [
        ("free", 5, {"stories:write"}),
        ("team", 70, set()),
    ]


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
