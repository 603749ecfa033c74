"""The pages about webhooks: as plain forms, and in a real Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from api.running import Running, running
from headwater.accounts import tokens
from headwater.app import webhooks as asked
from headwater.store.people import webhooks
from headwater.store.people.webhooks import Webhook
from web import conftest as pages

Open = Callable[..., Page]
HOOK = "https://receiver.example/hook"
HOSTILE = "<script>window.taken = 1</script>"

browser = pages.browser
opened = pages.opened


@pytest.fixture
def headwater(tmp_path: Path) -> Iterator[Running]:
    with running(f"sqlite:///{tmp_path / 'headwater.db'}", HEADWATER_DATA_DIR=str(tmp_path)) as made:
        yield made


def a_webhook(headwater: Running, address: str = HOOK) -> Webhook:
    parts = headwater.parts
    return parts.db.write_now(asked.add, headwater.owner, address, [], parts.seal, parts.now()).webhook


def settle(headwater: Running, state: str, error: str | None = None) -> None:
    """As if what waits had been sent."""
    sql = "UPDATE webhook_deliveries SET attempts = 2, seconds = 0.1, http_status = 500, settled_at = created_at"
    headwater.parts.db.write_now(lambda conn: conn.exec_driver_sql(f"{sql}, state = ?, error = ?", (state, error)))


def test_a_person_adds_tests_and_replays_a_webhook(headwater: Running, opened: Open) -> None:
    # F2
    page = opened("/webhooks")
    expect(page.get_by_text("Nothing is sent anywhere yet.")).to_be_visible()
    page.get_by_label("Address that takes events").fill(HOOK)
    page.get_by_text("Only some kinds of event").click()
    page.get_by_label("post.stored").check()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("Keep this secret: it is not shown again")).to_be_visible()
    expect(page.locator("pre")).to_contain_text("whsec_")
    page.get_by_role("row").get_by_role("link", name=HOOK).click()
    expect(page.locator("pre")).to_have_count(0)
    expect(page.locator(".facts")).to_contain_text("post.stored")
    page.get_by_role("button", name="Send a ping").click()
    expect(page.get_by_role("row", name="ping")).to_contain_text("Waiting")
    settle(headwater, "failed", "The receiver did not take it. (HTTP 500)")
    page.reload()
    expect(page.get_by_role("row", name="ping")).to_contain_text("Failed 2 attempts · 500")
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_role("row", name="ping")).to_contain_text("Waiting")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".facts")).to_contain_text("Paused")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("Nothing is sent anywhere yet.")).to_be_visible()


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_no_page_is_wider_than_the_screen_whatever_stands_on_it(headwater: Running, opened: Open, width: int) -> None:
    webhook = a_webhook(headwater, f"https://receiver.example/{'x' * 300}")
    for _ in range(2):
        headwater.parts.db.write_now(asked.ping, headwater.owner, webhook.id, headwater.parts.now())
    settle(headwater, "failed", HOSTILE + "e" * 300)
    page = opened("/webhooks", viewport={"width": width, "height": 700})
    for path in ("/webhooks", f"/webhooks/{webhook.id}"):
        page.goto(headwater.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.evaluate("window.taken === undefined")  # H60
        assert page.locator("h1").count() == 1
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, a[href], input:not([type=hidden])")]
              .filter((one) => !(one.textContent.trim() || one.labels?.length || one.getAttribute("aria-label")))
              .map((one) => one.outerHTML)"""
        )
        assert nameless == [], path


def form(headwater: Running, path: str, **fields: str) -> tuple[int, str]:
    session = headwater.session()
    body = urlencode({"form_key": tokens.form_key(session), **fields}).encode()
    kind = "application/x-www-form-urlencoded"
    answer = headwater.browser(session).post(path, body, Content_Type=kind, Accept="text/html")
    return answer.status, answer.text


def test_a_wrong_address_is_said_beside_the_field(headwater: Running) -> None:
    status, page = form(headwater, "/webhooks", address="ftp://receiver.example/", kinds="post.stored")
    assert status == 422
    assert "Only http:// and https:// addresses can be used." in page
    assert 'value="ftp://receiver.example/"' in page
    assert 'value="post.stored" checked' in page
    assert headwater.parts.db.read_now(webhooks.of_reader, headwater.owner) == []


def test_forms_without_the_key_of_the_session_change_nothing(headwater: Running) -> None:
    webhook = a_webhook(headwater)
    for path in ("/webhooks", f"/webhooks/{webhook.id}/remove", f"/webhooks/{webhook.id}/test"):
        assert form(headwater, path, address=HOOK, form_key="wrong")[0] == 403
    assert headwater.parts.db.read_now(webhooks.of_reader, headwater.owner) == [webhook]


def test_long_logs_have_pages(headwater: Running) -> None:
    webhook = a_webhook(headwater)
    for _ in range(51):
        headwater.parts.db.write_now(asked.ping, headwater.owner, webhook.id, headwater.parts.now())
    page = headwater.browser().get(f"/webhooks/{webhook.id}", Accept="text/html").text
    assert page.count("<br>") == 50
    older = page.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert headwater.browser().get(older, Accept="text/html").text.count("<br>") == 1
