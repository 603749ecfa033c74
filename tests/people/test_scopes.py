"""Scopes: every route names one, roles and tokens have some, and without the right one nothing happens."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.running import Client, Running
from headwater.accounts import tokens
from headwater.accounts.scopes import ROLES, SCOPES, allowed, may, parse, scopes_of
from headwater.api.document import openapi
from headwater.errors import BadInput
from headwater.http.auth import OPEN_PATHS, UNSCOPED_PATHS, every_route, scope_of
from headwater.model import Reader
from headwater.server import create_app

ALL = frozenset(SCOPES)
some_scopes = st.frozensets(st.sampled_from(sorted(SCOPES)))
some_readers = st.builds(
    Reader,
    st.just(1),
    st.just(1),
    st.just("ann"),
    st.sampled_from([*ROLES, "nobody"]),
    some_scopes | st.none(),
    st.booleans(),
)


def a_program(headwater: Running, scopes: frozenset[str]) -> Client:
    db, now = headwater.parts.db, headwater.parts.now()
    secret = db.write_now(tokens.issue, headwater.owner, "api", "test", now, scopes=scopes)
    return Client(headwater.port, {"Authorization": f"Bearer {secret}"})


def test_every_route_refuses_a_token_that_has_all_scopes_but_the_one_it_needs(headwater: Running) -> None:
    # E10
    walked = [(route, scope_of(route)) for route in every_route(create_app(headwater.parts))]
    without = {scope: a_program(headwater, ALL - {scope}) for scope in SCOPES}
    assert {scope for _, scope in walked} >= {"posts:read", "sources:write", "log:write"}
    for route, scope in walked:
        if scope is None:
            assert route.path in OPEN_PATHS | UNSCOPED_PATHS
            continue
        path = re.sub(r"\{[^}]*\}", "1", route.path)
        for method in route.methods or ():
            answer = without[scope](method, path)
            assert (answer.status, answer.json()["code"]) == (403, "insufficient_scope"), (method, path)
            assert answer.json()["scope"] == scope
            assert f'scope="{scope}"' in answer.headers["www-authenticate"]


def test_a_token_with_the_scope_alone_is_enough(on_both: Running) -> None:
    # E10
    source_id = on_both.source()
    assert a_program(on_both, frozenset({"sources:read"})).get(f"/api/sources/{source_id}").status == 200
    assert a_program(on_both, frozenset({"posts:read"})).get("/api/stream").status == 200
    writer = a_program(on_both, frozenset({"sources:write"}))
    assert writer.post("/api/sources/refresh").status == 202
    assert writer.get("/api/sources").status == 403


def test_the_document_names_the_scope_of_every_operation() -> None:
    for path, methods in openapi()["paths"].items():
        for operation in methods.values():
            assert operation.get("x-scope") in ({None} if path in OPEN_PATHS else ALL), path


@given(some_readers)
def test_a_token_never_has_more_than_its_role(reader: Reader) -> None:
    has = scopes_of(reader)
    assert has <= allowed(reader.role, runs_instance=reader.runs_instance)
    assert has == {scope for scope in SCOPES if may(reader, scope)}
    assert reader.runs_instance or not {"health:read", "log:read", "log:write", "admin"} & has


def test_each_role_may_do_what_the_lesser_one_may() -> None:
    owner, operator, member, viewer = (allowed(role, runs_instance=True) for role in ROLES)
    assert viewer < member < operator < owner == ALL
    assert "sources:write" not in viewer
    assert "people:write" not in operator


@pytest.mark.parametrize("names", [["posts:reed"], ["posts:read", "everything"], [], [""]])
def test_scopes_that_do_not_exist_are_refused_with_those_that_do(names: list[str]) -> None:
    with pytest.raises(BadInput, match="posts:read"):
        parse(names)
