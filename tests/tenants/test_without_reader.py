"""Which work of a request is not bound to a tenant: only what finds out who somebody is, or runs the instance (E10).

A function that is called without a reader sees the rows of all tenants. So each that a request calls is named here.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.running import running
from headwater.accounts.scopes import SCOPES
from headwater.http.auth import SAFE_METHODS, every_route, scope_of
from headwater.model import Reader
from headwater.server import create_app
from headwater.store.db import Database, _given, _name
from people.audited import ROUTES, World
from support.people import a_person

# Functions that look at no row of a tenant, or at those of all, and why.
SHARED = {
    "store.people.tokens.bearer": "finds out whose token it is",
    "store.people.tokens.changes": "one number, for all processes",
    "store.people.tokens.note_use": "of the token that was just found",
    "store.people.accounts.by_email": "finds out who signs in",
    "app.account.has_passwords": "whether the page of signing in asks for one",
    "app.account.sign_in": "a link names its owner",
    "app.account.sign_out": "a session names its owner",
    "app.account._start_if_same_password": "of the person who was just found",
    "app.people.sign_in_as": "an identity at the provider names who signs in",
    "app.instance.stored_oidc_secret": "the secret for the provider belongs to the instance",
    "app.people.invitation": "a link names the invitation",
    "app.people._join": "a link names the invitation",
    "accounts.access_tokens.start_family": "of the token that was just found",
    "accounts.access_tokens.save_key": "keys belong to the instance",
    "store.people.accounts.secrets_named": "keys belong to the instance",
    "store.migrate._current": "whether the schema is the right one",
    "app.groups.named_posts": "posts are shared; whether the reader may see them is asked next",
    "app.groups.post_named": "posts are shared; whether the reader may see it is asked next",
    "app.sources.publishing": "a source is shared; that the reader follows it was asked before",
    "app.fleet.miners.models": "the catalogue of machines is the same for everybody",
    "app.market._forecast_version": "the market is the same for everybody",
    "store.posts.stream.version": "two numbers: the reader's own, which it is given, and the position of the log",
    "consumers.fold.StoryFolding.fold": "posts are folded once for all; that the reader may see them was asked before",
}

ENDLESS = {"/api/live"}  # it sends events until somebody hangs up


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The functions that requests call, and for whom. What the test itself does is left out."""
    found: dict[str, set[str]] = defaultdict(set)

    def noting(original: Any) -> Any:
        def run(self: Database, function: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                has_reader = any(isinstance(one, Reader) for one in _given(function, args, kwargs))
                found[_name(function).removeprefix("headwater.")].add("a reader" if has_reader else "nobody")
            return original(self, function, *args, **kwargs)

        return run

    for name in ("read_now", "write_now", "snapshot_now"):
        monkeypatch.setattr(Database, name, noting(getattr(Database, name)))
    return found


@pytest.fixture
def of_a_tenant(store_url: str, tmp_path: Path) -> Iterator[World]:
    """A Headwater as the owner of a tenant sees it who does not run the instance."""
    with running(store_url, HEADWATER_SECRET_KEY="of a test") as headwater:  # none has to be made meanwhile
        headwater.owner = a_person(headwater, "carl", "owner", tenant="Research")
        yield World(headwater, tmp_path)


def test_a_request_without_a_reader_sees_nothing_of_tenants(
    of_a_tenant: World, called: dict[str, set[str]]
) -> None:  # E10, H68
    """Walks every route that a tenant may use. What is new and takes no reader fails here."""
    walked = 0
    for route in every_route(create_app(of_a_tenant.running.parts)):
        scope = scope_of(route)
        if (scope and SCOPES[scope].instance) or route.path in ENDLESS:
            continue
        for method in sorted(route.methods or ()):
            if method in SAFE_METHODS:
                path = re.sub(r"\{[^}]*\}", str(of_a_tenant.source()), route.path)
                of_a_tenant.api(method, path)
                of_a_tenant.page(method, path)
            if call := ROUTES.get((method, route.path)):
                assert call(of_a_tenant).status < 400, (method, route.path)
            walked += 1
    assert walked > 80
    unbound = {name for name, kinds in called.items() if "nobody" in kinds}
    assert unbound - SHARED.keys() == set(), (
        "these run without a reader, as the instance itself, and see the rows of all tenants. Give them the reader, or "
        "say in SHARED why they need none"
    )
    assert SHARED.keys() - unbound == set(), "these are not called any more"
