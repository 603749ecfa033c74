"""`headwater demo` as a newcomer sees it."""

from __future__ import annotations

import time
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from headwater.sim.internet import PLACES
from support.whole import headwater_runs

PATIENCE = 120
# How a place of each kind is named in the stream.
NAMED = {"feed": "{}", "reddit": "r/{}", "forum": "{} (127.0.0.1)", "news": "{}", "x": "@{}"}


def kinds_shown(page: Page) -> set[str]:
    shown = " | ".join(page.locator(".entry .origin, .entry").all_inner_texts())
    return {place.kind for place in PLACES if NAMED[place.kind].format(place.name) in shown}


def test_a_newcomer_sees_posts_of_every_kind_of_source(browser: Browser, tmp_path: Path) -> None:
    # F6
    with headwater_runs("demo", "--no-browser", environ={"TMPDIR": str(tmp_path)}) as link:
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(link)
        home = page.url
        deadline = time.monotonic() + PATIENCE
        while (shown := kinds_shown(page)) != set(NAMED):
            assert time.monotonic() < deadline, f"only posts of {shown} came"
            page.wait_for_timeout(500)
            page.goto(home)
        expect(page.get_by_role("note").first).to_contain_text("This is a demonstration")
        page.goto(home.rstrip("/") + "/sources")
        expect(page.locator("tr.source")).to_have_count(len(PLACES) + 1)  # and the market
        page.get_by_role("link", name="Fleet").click()  # F6
        expect(page.locator("[data-machine]")).to_have_count(40)
        expect(page.locator("#look + ul")).to_contain_text("silent since")
        while not page.locator(".fan").count():
            assert time.monotonic() < deadline + PATIENCE, "no forecast came"
            page.wait_for_timeout(500)
            page.reload()
        page.close()
        assert list(tmp_path.glob("headwater-demo-*"))
    assert not list(tmp_path.glob("headwater-demo-*")), "its data are gone when it ends"
