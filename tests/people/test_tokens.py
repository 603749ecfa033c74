"""API tokens and sessions: made, listed, revoked; and what ends with them."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

import pytest
import structlog

from api.running import Client, Running, running, served
from headwater import wire
from headwater.accounts.callers import FRESH_SECONDS, USE_NOTED_EVERY
from headwater.app import account, people
from headwater.settings import load
from headwater.wire import utc_now
from support.people import a_person, browser_of, program_of
from support.statements import recorded


def with_token(headwater: Running, secret: str) -> Client:
    return Client(headwater.port, {"Authorization": f"Bearer {secret}"})


def test_a_token_is_made_with_scopes_and_an_end_listed_and_revoked(on_both: Running) -> None:
    # E10, H66
    owner = on_both.program()
    made = owner.post("/api/account/tokens", {"name": "dashboard", "scopes": ["posts:read"], "days": 90})
    assert made.status == 201
    token, secret = made.json()["token"], made.json()["secret"]
    assert (token["name"], token["scopes"]) == ("dashboard", ["posts:read"])
    assert token["expires_at"] > token["created_at"]
    program = with_token(on_both, secret)
    assert program.get("/api/stream").status == 200
    assert program.get("/api/sources").status == 403
    listed = owner.get("/api/account/tokens").json()["items"]
    assert [one["name"] for one in listed] == ["dashboard", "test"]
    assert listed[0]["last_used_at"] is not None
    assert secret not in owner.get("/api/account/tokens").text  # H67
    assert owner("DELETE", f"/api/account/tokens/{token['id']}").status == 204
    assert program.get("/api/stream").status == 401
    assert owner("DELETE", f"/api/account/tokens/{token['id']}").status == 404


def test_a_token_ends(store_url: str) -> None:
    # H65
    clock = [utc_now()]
    with running(store_url, now=lambda: clock[0]) as headwater:
        secret = headwater.program().post("/api/account/tokens", {"name": "brief", "days": 1}).json()["secret"]
        program = with_token(headwater, secret)
        assert program.get("/api/stream").status == 200
        clock[0] += timedelta(days=1, seconds=1)
        assert program.get("/api/stream").status == 401


def test_a_token_in_use_says_when_it_was_last_used(tmp_path: Path) -> None:
    clock = [utc_now()]
    with running(f"sqlite:///{tmp_path / 'headwater.db'}", now=lambda: clock[0]) as headwater:
        program = headwater.program()
        used = []
        for _ in range(3):
            program.get("/api/stream")
            used += [one["last_used_at"] for one in program.get("/api/account/tokens").json()["items"]]
            clock[0] += USE_NOTED_EVERY
        assert len(set(used)) == 3
        assert used == sorted(used)


def test_a_token_cannot_make_one_that_may_do_more(on_both: Running) -> None:
    # H69
    weak = program_of(on_both, on_both.owner, frozenset({"account:write", "posts:read"}))
    refused = weak.post("/api/account/tokens", {"name": "more", "scopes": ["posts:read", "sources:write"]})
    assert (refused.status, refused.json()["code"]) == (403, "forbidden")
    made = weak.post("/api/account/tokens", {"name": "as many", "role": "owner", "tenant_id": 2, "is_admin": True})
    assert sorted(made.json()["token"]["scopes"]) == ["account:write", "posts:read"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["everything"]},
        {"name": "x", "days": 0},
        {"name": "x", "days": "90"},
        {"name": "x" * 101},
        {},
    ],
)
def test_a_wrong_wish_for_a_token_is_answered_with_what_is_wrong(headwater: Running, wrong: dict[str, object]) -> None:
    answer = headwater.program().post("/api/account/tokens", wrong)
    assert answer.status == 422
    assert answer.json()["detail"]


def test_nobody_sees_or_revokes_the_tokens_of_another(on_both: Running) -> None:
    # H68
    ann, bob = a_person(on_both, "ann"), a_person(on_both, "bob", tenant="elsewhere")
    anns, bobs = program_of(on_both, ann), program_of(on_both, bob)
    [token] = anns.get("/api/account/tokens").json()["items"]
    assert token["id"] not in [one["id"] for one in bobs.get("/api/account/tokens").json()["items"]]
    missing, foreign = (bobs("DELETE", f"/api/account/tokens/{one}") for one in (999_999, token["id"]))
    assert (foreign.status, foreign.json()["code"]) == (missing.status, missing.json()["code"]) == (404, "not_found")
    assert anns.get("/api/stream").status == 200


def test_a_change_of_role_counts_from_the_next_request_on(on_both: Running) -> None:
    # H66
    ann = a_person(on_both, "ann", "member")
    program = program_of(on_both, ann)
    assert program.post("/api/sources/refresh").status == 202
    on_both.parts.db.write_now(people.give_role, on_both.owner, ann.user_id, "viewer")
    assert program.post("/api/sources/refresh").status == 403
    on_both.parts.db.write_now(people.give_role, on_both.owner, ann.user_id, "member")
    assert program.post("/api/sources/refresh").status == 202


def test_somebody_who_was_removed_is_nobody_at_once(on_both: Running) -> None:
    # H66
    ann = a_person(on_both, "ann")
    program, browser = program_of(on_both, ann), browser_of(on_both, ann)
    assert (program.get("/api/stream").status, browser.get("/").status) == (200, 200)
    assert on_both.program()("DELETE", f"/api/people/{ann.user_id}").status == 204
    assert (program.get("/api/stream").status, browser.get("/").status) == (401, 401)


def test_signing_out_everywhere_leaves_the_session_that_asked(on_both: Running) -> None:
    # H66
    ann = a_person(on_both, "ann")
    here, there, program = browser_of(on_both, ann), browser_of(on_both, ann), program_of(on_both, ann)
    link = on_both.parts.db.write_now(account.login_link, ann, "", on_both.parts.now())
    assert there.get("/").status == 200
    sessions = here.get("/api/account/sessions").json()["items"]
    assert [one["current"] for one in sessions] == [False, True]
    assert here("DELETE", "/api/account/sessions").json() == {"ended": 2}
    assert (here.get("/").status, there.get("/").status, program.get("/api/stream").status) == (200, 401, 200)
    assert on_both.stranger.get(link).status == 401


def test_one_session_is_ended_from_another(on_both: Running) -> None:
    ann = a_person(on_both, "ann")
    here, there = browser_of(on_both, ann), browser_of(on_both, ann)
    other = next(one["id"] for one in here.get("/api/account/sessions").json()["items"] if not one["current"])
    assert here("DELETE", f"/api/account/sessions/{other}").status == 204
    assert (here.get("/").status, there.get("/").status) == (200, 401)


def test_a_revocation_in_another_process_is_known_within_seconds(store_url: str) -> None:
    # H66
    with running(store_url) as one:
        secret = one.token()
        parts = wire.open_parts(load({"HEADWATER_DATABASE_URL": store_url}))
        with served(parts) as (port, _):
            elsewhere = Client(port, {"Authorization": f"Bearer {secret}"})
            assert elsewhere.get("/api/stream").status == 200
            one.parts.db.write_now(account.revoke_token, one.owner, 1)
            while elsewhere.get("/api/stream").status != 401:
                pass  # ends within FRESH_SECONDS, or the test does not
        parts.close()
    assert FRESH_SECONDS <= 5


def test_a_known_token_needs_no_query(headwater: Running) -> None:
    client = headwater.program()
    client.get("/api/openapi.json")
    with recorded(headwater.parts.db) as seen:
        for _ in range(5):
            assert client.get("/api/openapi.json").status == 200
    assert [one for one in seen if "api_tokens" in one or "users" in one] == []


def test_no_token_is_in_a_log_or_an_error(on_both: Running, caplog: pytest.LogCaptureFixture) -> None:
    # H67
    caplog.set_level(logging.DEBUG)
    owner = on_both.program()
    with structlog.testing.capture_logs() as logged:
        made = owner.post("/api/account/tokens", {"name": "dashboard", "scopes": ["posts:read"]}).json()["secret"]
        link = owner.post("/api/invitations", {"email": "bob@example.org"}).json()["link"]
        answers = [
            with_token(on_both, made).get("/api/sources"),
            with_token(on_both, made + "x").get("/api/stream"),
            on_both.stranger.get(link.partition("8080")[2], Accept="text/html"),
            on_both.stranger.get(link.partition("8080")[2] + "x", Accept="text/html"),
        ]
    secret = link.partition("=")[2]
    assert [one.status for one in answers] == [403, 401, 200, 404]
    assert made not in str(logged) + caplog.text + "".join(one.text for one in answers)
    assert secret not in str(logged) + caplog.text
