"""Signing in at a real OpenID Connect provider (oidc-provider), as a browser does it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest
from playwright.sync_api import Browser, Page, expect

from api.running import Running, running
from headwater.store.people import accounts
from people.test_people_commands import Commands
from support.checkout import ROOT
from support.people import PASSWORD, a_person
from support.ports import free_port, wait_until_open
from web.conftest import PATIENCE


class Provider(NamedTuple):
    """Where the provider is, and where the Headwater has to be that it calls back."""

    issuer: str
    port: int

    def settings(self, **more: str) -> dict[str, str]:
        return {
            "HEADWATER_PUBLIC_URL": f"http://127.0.0.1:{self.port}",
            "HEADWATER_SECRET_KEY": "a key for tests",
            "HEADWATER_OIDC_ISSUER": self.issuer,
            "HEADWATER_OIDC_CLIENT_ID": "headwater",
            "HEADWATER_OIDC_CLIENT_SECRET": "a secret: & of 100 % strength",
            "HEADWATER_OIDC_NAME": "Example",
            **more,
        }


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    at, port = free_port(), free_port()
    script = ROOT / "scripts" / "openid-provider"
    if subprocess.run([script, "install"], timeout=600).returncode == 3:
        pytest.skip("no npm (apt install npm)")
    with (tmp_path_factory.mktemp("provider") / "log").open("w") as log:
        words = [script, str(at), f"http://127.0.0.1:{port}/login/provider"]
        process = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            wait_until_open(at)
            yield Provider(f"http://127.0.0.1:{at}", port)
        finally:
            process.terminate()
            process.wait()


class Visitor:
    """Somebody with a browser that has cookies, follows redirects and fills in forms, and nothing more."""

    def __init__(self, home: str) -> None:
        self._open = build_opener(HTTPCookieProcessor(CookieJar())).open
        self.home, self.address, self.page, self.status = home, home, "", 0

    def go(self, path: str, form: dict[str, str] | None = None) -> Visitor:
        body = urlencode(form).encode() if form is not None else None
        try:
            answer = self._open(Request(urljoin(self.address, path), body, {"Accept": "text/html"}), timeout=60)
        except HTTPError as error:
            answer = error
        with answer:
            self.address, self.status, self.page = answer.url, answer.status, answer.read().decode()
            refresh = answer.headers.get("refresh", "")
        return self.go(refresh.partition("url=")[2]) if refresh else self

    def submit(self, **more: str) -> Visitor:
        """Submits the first form of the page."""
        form = re.search(r"<form.*?</form>", self.page, re.S)
        assert form is not None, self.page
        action = re.search(r'action="([^"]*)"', form[0])
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form[0]))
        return self.go(unescape(action[1]) if action else self.address, {**hidden, **more})

    def sign_in_as(self, name: str) -> Visitor:
        """Signs in on the pages of the provider, and agrees."""
        self.submit(login=name, password="anything")
        return self.submit() if "consent" in self.page else self

    def account(self) -> str:
        return self.go(f"{self.home}/account").page


def at_home(provider: Provider) -> Visitor:
    return Visitor(f"http://127.0.0.1:{provider.port}")


def at_login(provider: Provider) -> Visitor:
    """Somebody who pressed the button of the sign-in page and is at the provider now."""
    visitor = at_home(provider).go("/login")
    assert "Sign in with Example" in visitor.page
    return visitor.submit()


def test_somebody_who_was_invited_joins_by_the_provider_and_comes_again(store_url: str, provider: Provider) -> None:
    # E10
    with running(store_url, port=provider.port, **provider.settings()) as headwater:
        made = headwater.program().post("/api/invitations", {"email": "ann@example.org", "role": "viewer"}).json()
        visitor = at_home(provider).go(made["link"])
        assert "Join with Example" in visitor.page
        visitor.submit().sign_in_as("ann")
        assert visitor.address == f"{visitor.home}/"
        assert "Viewer of default · ann@example.org" in visitor.account()
        again = at_login(provider).sign_in_as("ann")
        assert again.address == f"{again.home}/"
        assert "Ann" in again.account()
        names = [one["name"] for one in headwater.program().get("/api/people").json()["items"]]
        assert names == ["owner", "Ann"]  # nobody came twice
        at_once = at_home(provider)
        headwater.program().post("/api/invitations", {"email": "bob@example.org"})
        at_once.go("/login").submit()  # without the link: the provider has verified the address
        assert at_once.sign_in_as("bob").address == f"{at_once.home}/"


def test_who_is_neither_known_nor_invited_is_told_what_to_do(store_url: str, provider: Provider) -> None:
    # E10
    with running(store_url, port=provider.port, **provider.settings()) as headwater:
        stranger = at_login(provider).sign_in_as("mallory")
        assert stranger.status == 401
        assert "Nobody here is known as mallory@example.org. Ask somebody who is here" in stranger.page
        a_person(headwater, "carl", password=PASSWORD)
        namesake = at_login(provider).sign_in_as("carl")
        assert (namesake.status, "then link it on the page of your account" in namesake.page) == (401, True)
        headwater.program().post("/api/invitations", {"email": "unverified-eve@example.org"})
        unsure = at_login(provider).sign_in_as("unverified-eve")
        assert (unsure.status, "has verified your e-mail" in unsure.page) == (401, True)
        assert [one["name"] for one in headwater.program().get("/api/people").json()["items"]] == ["owner", "carl"]


def test_people_of_a_domain_join_uninvited_where_that_is_wanted(store_url: str, provider: Provider) -> None:
    # E10
    more = {"HEADWATER_OIDC_JOIN_TENANT": "default", "HEADWATER_OIDC_JOIN_ROLE": "viewer"}
    settings = provider.settings(**more, HEADWATER_OIDC_DOMAINS="@Example.ORG, other.example")
    with running(store_url, port=provider.port, **settings):
        assert "Viewer of default" in at_login(provider).sign_in_as("dora").account()
        assert at_login(provider).sign_in_as("unverified-eve").status == 401
    with running(store_url, port=provider.port, **provider.settings(**more, HEADWATER_OIDC_DOMAINS="other.example")):
        assert at_login(provider).sign_in_as("fred").status == 401
        assert at_login(provider).sign_in_as("dora").address.endswith(f":{provider.port}/")  # who is known stays known


def test_somebody_in_two_tenants_chooses_one(store_url: str, provider: Provider) -> None:
    with running(store_url, port=provider.port, **provider.settings()) as headwater:
        for tenant in ("Harbour", "Research"):
            ann = a_person(headwater, "ann", tenant=tenant)
            headwater.parts.db.write_now(accounts.link_identity, ann, provider.issuer, "ann", headwater.parts.now())
        visitor = at_login(provider).sign_in_as("ann")
        assert ("Harbour" in visitor.page, "Research" in visitor.page) == (True, True)
        assert "Which one?" in visitor.submit(tenant="default").page  # where nobody knows her
        assert "Member of Research" in visitor.submit(tenant="Research").account()
        assert at_home(provider).go("/login/tenant", {"tenant": "Research"}).status == 401


def test_a_client_without_a_secret_proves_itself_by_pkce(sqlite_url: str, provider: Provider) -> None:
    settings = provider.settings(HEADWATER_OIDC_CLIENT_ID="headwater-public", HEADWATER_OIDC_CLIENT_SECRET="")
    with running(sqlite_url, port=provider.port, **settings) as headwater:
        headwater.program().post("/api/invitations", {"email": "ann@example.org"})
        assert at_login(provider).sign_in_as("ann").address.endswith(f":{provider.port}/")


def test_a_wrong_secret_or_a_provider_that_is_gone_says_so(sqlite_url: str, provider: Provider) -> None:
    settings = provider.settings(HEADWATER_OIDC_CLIENT_SECRET="wrong")
    with running(sqlite_url, port=provider.port, **settings):
        refused = at_login(provider).sign_in_as("ann")
        assert (refused.status, "client authentication failed" in refused.page) == (401, True)
    settings = provider.settings(HEADWATER_OIDC_ISSUER=f"http://127.0.0.1:{free_port()}")
    with running(sqlite_url, port=provider.port, **settings):
        alone = at_home(provider).go("/login").submit()
        assert (alone.status, "cannot be reached" in alone.page) == (401, True)


def page_of(browser: Browser, headwater: Running) -> Page:
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{headwater.url}{headwater.login_link()}&next=/account")
    return page


def test_an_account_is_linked_used_and_unlinked_in_a_browser(
    sqlite_url: str, provider: Provider, browser: Browser
) -> None:
    # E10
    with running(sqlite_url, port=provider.port, **provider.settings()) as headwater:
        page = page_of(browser, headwater)
        page.get_by_role("button", name="Link your account at Example").click()
        page.get_by_placeholder("Enter any login").fill("owner-elsewhere")
        page.get_by_placeholder("and password").fill("anything")
        page.get_by_role("button", name="Sign-in").click()
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_text("knows you as owner-elsewhere")).to_be_visible()
        page.get_by_role("button", name="Unlink").click()
        expect(page.get_by_role("alert")).to_contain_text("Set a password first")
        page.get_by_role("button", name="Sign out", exact=True).first.click()
        page.get_by_role("button", name="Sign in with Example").click()  # the provider still knows this browser
        expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
        page.goto(f"{headwater.url}/account")
        page.get_by_label("E-mail").fill("me@example.org")
        page.get_by_label("New password").fill(PASSWORD)
        page.get_by_role("button", name="Set").click()
        page.get_by_role("button", name="Unlink").click()
        expect(page.get_by_text("knows you as")).to_have_count(0)
        page.context.close()


def test_the_secret_is_stored_encrypted_and_a_command_asks_the_provider(
    sqlite_url: str, tmp_path: Path, provider: Provider
) -> None:
    run = Commands(sqlite_url, tmp_path)
    assert "HEADWATER_OIDC_ISSUER" in run("oidc", "status").err
    settings = provider.settings(HEADWATER_OIDC_CLIENT_SECRET="")
    run.environ |= settings
    assert "no secret" in run("oidc", "status").out
    assert run("oidc", "secret", given="a secret: & of 100 % strength\n").code == 0
    said = run("oidc", "status").out
    assert f"redirect address http://127.0.0.1:{provider.port}/login/provider" in said
    assert ("There is a secret" in said, "100 %" in said) == (True, False)
    assert b"100 %" not in (tmp_path / "headwater.db").read_bytes()
    with running(sqlite_url, port=provider.port, **settings) as headwater:
        headwater.program().post("/api/invitations", {"email": "ann@example.org"})
        assert at_login(provider).sign_in_as("ann").address.endswith(f":{provider.port}/")
    assert run("oidc", "forget").out == "Deleted.\n"
    assert run("oidc", "secret", given="\n").code == 2
