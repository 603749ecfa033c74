"""Several OpenID Connect providers at once. None of them can answer for another."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.running import Running, running
from headwater.app import people
from headwater.store.people import accounts
from people.issuer import FORM, Coming, Issuer, issuer, left
from people.test_people_commands import Commands
from support.people import a_person, browser_of, program_of
from support.ports import free_port


@pytest.fixture(scope="module")
def first() -> Iterator[Issuer]:
    with issuer() as found:
        yield found


@pytest.fixture(scope="module")
def second() -> Iterator[Issuer]:
    with issuer() as found:
        yield found


@pytest.fixture
def settings(first: Issuer, second: Issuer) -> dict[str, str]:
    return {
        **first.settings(f"http://127.0.0.1:{free_port()}"),
        "HEADWATER_OIDC_PROVIDERS": f"two {second.address} headwater The Second Place",
        "HEADWATER_OIDC_JOIN_TENANT": "default",
        "HEADWATER_OIDC_DOMAINS": "example.org",
    }


@pytest.fixture
def on_each(store_url: str, settings: dict[str, str]) -> Iterator[Running]:
    port = int(settings["HEADWATER_PUBLIC_URL"].rpartition(":")[2])
    with running(store_url, port=port, **settings) as found:
        yield found


def sent_to(headwater: Running, at: Issuer, key: str, **claims: str) -> Coming:
    answer = headwater.stranger.post("/login/provider", f"provider={key}".encode(), Content_Type=FORM)
    return left(headwater, at, answer, **claims)


def test_each_provider_signs_in_those_who_are_known_there(on_each: Running, first: Issuer, second: Issuer) -> None:
    # E10
    page = on_each.stranger.get("/login", Accept="text/html").text
    assert ("Sign in with Example" in page, "Sign in with The Second Place" in page) == (True, True)
    bob = a_person(on_each, "bob")
    on_each.parts.db.write_now(people.link_identity, bob, second.address, "bob-2", on_each.parts.now())
    coming = sent_to(on_each, second, "two", sub="bob-2")
    assert coming.query["redirect_uri"] == f"{on_each.url}/login/provider/two"
    assert coming.back().status == 303
    # Who is called so elsewhere is somebody else.
    assert sent_to(on_each, first, "", sub="bob-2", email="bob@example.org").back().status == 401
    # The domain of an address lets people in from the main provider alone.
    assert sent_to(on_each, second, "two", sub="eve", email="eve@example.org").back().status == 401
    assert sent_to(on_each, first, "", sub="eve", email="eve@example.org").back().status == 303
    unknown = on_each.stranger.post("/login/provider", b"provider=three", Content_Type=FORM)
    assert unknown.status == 404
    assert on_each.stranger.get("/login/provider/three?code=c&state=s").status == 401


def test_no_provider_answers_for_another(on_each: Running, first: Issuer, second: Issuer) -> None:
    # E10, H65
    ann = a_person(on_each, "ann")
    for at in (first, second):
        on_each.parts.db.write_now(people.link_identity, ann, at.address, "ann-1", on_each.parts.now())
    for at, key, elsewhere in ((first, "", "/login/provider/two"), (second, "two", "/login/provider")):
        coming = sent_to(on_each, at, key)
        coming.path = elsewhere
        answer = coming.back()
        assert (answer.status, "not started in this browser" in answer.text) == (401, True), elsewhere
        assert not any(one.startswith("headwater_session=") for one in answer.cookies)
    # A token that one issued is nothing to the other.
    coming = sent_to(on_each, second, "two")
    second.claims = first.honest(coming.query["nonce"])
    assert coming.back().status == 401
    assert sent_to(on_each, second, "two").back().status == 303


def test_the_last_of_several_accounts_stays_linked(on_each: Running, first: Issuer, second: Issuer) -> None:
    dora = a_person(on_each, "dora")
    browser = browser_of(on_each, dora)
    for at, key in ((first, ""), (second, "two")):
        answer = browser.post("/account/identities", f"provider={key}".encode(), Content_Type=FORM)
        coming = left(on_each, at, answer, sub=f"dora-{key}")
        coming.session = browser.headers["Cookie"]
        assert coming.back().status == 303
    page = browser.get("/account", Accept="text/html").text
    assert ("The Second Place <span" in page, "Link another account at Example" in page) == (True, True)
    client = program_of(on_each, dora)
    one, other = client.get("/api/account/identities").json()["items"]
    assert client("DELETE", f"/api/account/identities/{one['id']}").status == 204
    assert client("DELETE", f"/api/account/identities/{other['id']}").status == 409
    assert len(on_each.parts.db.read_now(accounts.identities, dora)) == 1


def test_each_provider_has_a_secret_of_its_own(
    sqlite_url: str, tmp_path: Path, settings: dict[str, str], first: Issuer, second: Issuer
) -> None:
    run = Commands(sqlite_url, tmp_path)
    run.environ |= settings
    assert run("oidc", "secret", "--provider", "two", given="second secret\n").code == 0
    assert "no provider" in run("oidc", "secret", "--provider", "three", given="x\n").err
    assert "/login/provider/two" in run("oidc", "status", "--provider", "two").out
    port = int(settings["HEADWATER_PUBLIC_URL"].rpartition(":")[2])
    with running(sqlite_url, port=port, **settings) as headwater:
        for at, key, secret in ((first, "", "secret"), (second, "two", "second%20secret")):
            sent_to(headwater, at, key).back()
            [given] = [headers["authorization"] for path, headers, _ in at.asked[-3:] if path == "/token"]
            assert base64.b64decode(given.removeprefix("Basic ")).decode() == f"headwater:{secret}"
    assert run("oidc", "forget", "--provider", "two").out == "Deleted.\n"
