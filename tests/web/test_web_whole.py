"""The whole of Headwater, as somebody uses it who has just installed it: one command, one browser, a small web."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from support.web import ALLOW_LOOPBACK, Answer, rss, web
from support.whole import headwater_runs


def test_an_address_typed_into_the_page_becomes_posts_in_the_stream(tmp_path: Path, browser: Browser) -> None:
    # D1, D2, D10
    environ = {**ALLOW_LOOPBACK, "HEADWATER_DATA_DIR": str(tmp_path), "HEADWATER_HOST_GAP_SECONDS": "0"}
    with web() as world, headwater_runs("up", environ=environ) as link:
        world.pages["/"] = Answer(
            '<html><head><link rel="alternate" type="application/rss+xml" href="/feed.xml"></head></html>',
            headers={"Content-Type": "text/html"},
        )
        world.pages["/feed.xml"] = Answer(rss("first", "second"))
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(link)
        page.get_by_label("Address of a feed or a site").fill(world.url("/"))
        page.get_by_role("button", name="Follow", exact=True).click()
        expect(page.locator(".entry")).to_have_count(2)
        page.get_by_role("link", name="Sources", exact=True).click()
        row = page.locator("tr.source")
        expect(row).to_contain_text("Working")
        expect(row).to_contain_text(world.url("/feed.xml"))
        world.pages["/feed.xml"] = Answer(rss("first", "second", "third"))
        row.get_by_role("button", name="Check The News now").click()
        expect(row.locator(".number")).to_have_text("3")
        page.close()
