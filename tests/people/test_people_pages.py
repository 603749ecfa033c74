"""The pages of signing in and of people, in a real browser: nothing for axe to find, at any width, light or dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, Page

from api.running import Running, running
from headwater.app import people
from headwater.store.people import accounts
from people.issuer import Issuer, issuer
from support.people import PASSWORD, a_person
from support.ports import free_port
from web.conftest import PATIENCE

AXE = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text()


@pytest.fixture
def at() -> Iterator[Issuer]:
    with issuer() as found:
        yield found


@pytest.fixture
def headwater(sqlite_url: str, at: Issuer) -> Iterator[Running]:
    """With a provider, people, invitations, tokens and a linked account: everything that these pages can show."""
    port = free_port()
    with running(sqlite_url, port=port, **at.settings(f"http://127.0.0.1:{port}")) as made:
        db, now = made.parts.db, made.parts.now()
        made.program().post("/api/account/tokens", {"name": "dashboard", "scopes": ["posts:read"], "days": 90})
        a_person(made, "ann", "owner", password=PASSWORD)
        a_person(made, "bob", "viewer")
        db.write_now(accounts.link_identity, made.owner, at.address, "owner-1", now)
        db.write_now(people.invite, made.owner, "dora@example.org", "viewer", made.url, now)
        yield made


def check(page: Page, width: int) -> None:
    page.evaluate(AXE)
    found = page.evaluate("axe.run()")["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == [], page.url
    assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(
    headwater: Running, browser: Browser, scheme: Literal["light", "dark"], width: int
) -> None:
    now = headwater.parts.now()
    link = headwater.parts.db.write_now(
        people.invite, headwater.owner, "carl@example.org", "member", headwater.url, now
    ).link
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    for path in ("/login", "/login/provider?error=access_denied&state=x"):
        page.goto(headwater.url + path)
        check(page, width)
    page.goto(f"{headwater.url}/login")
    page.get_by_label("E-mail").fill("ann@example.org")
    page.get_by_label("Password").fill("not the password")
    page.get_by_role("button", name="Sign in", exact=True).click()
    check(page, width)
    page.goto(link)
    check(page, width)
    page.goto(f"{headwater.url}{headwater.login_link()}&next=/account")
    check(page, width)
    page.goto(f"{headwater.url}/people")
    check(page, width)
    page.get_by_label("E-mail address of the person you invite").fill("eve@example.org")
    page.get_by_role("button", name="Invite", exact=True).click()
    check(page, width)
    context.close()
