"""The live stream and the page of health in a real Chromium."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from api.running import Running
from live.test_dead_letters import break_an_event
from support.posts import a_post

Open = Callable[..., Page]


def test_new_posts_are_announced_at_once_and_shown_without_loading_the_page(headwater: Running, opened: Open) -> None:
    # D10, F2
    now, source_id = headwater.parts.now(), headwater.source()
    [first] = headwater.publish(source_id, a_post("1", "The first", created_at=now - timedelta(hours=1)))
    page = opened()
    page.evaluate("window.stillHere = true")
    page.locator(f"#post-{first} summary").click()
    expect(page.locator(f"#post-{first} .article")).to_be_visible()
    headwater.publish(source_id, *[a_post(f"new{number}", created_at=now) for number in range(3)])
    expect(page.locator("#news")).to_have_text("3 new posts")
    page.locator("#news a").click()
    expect(page.locator(".entry")).to_have_count(4)
    expect(page.locator("#news")).to_be_hidden()
    expect(page.locator(f"#post-{first} .article")).to_be_visible()
    star = page.locator(".entry").first.get_by_role("button", name="Star")
    with page.expect_response("**/api/posts/*"):
        star.click()
    expect(star).to_have_attribute("aria-pressed", "true")
    headwater.publish(source_id, a_post("newer", created_at=now + timedelta(seconds=1)))
    expect(page.locator("#news")).to_have_text("1 new post")
    assert page.evaluate("window.stillHere")


def test_the_first_posts_appear_by_themselves_without_loading_the_page(headwater: Running, opened: Open) -> None:
    source_id = headwater.source()
    page = opened()
    page.evaluate("window.stillHere = true")
    expect(page.get_by_text("Nothing here yet.")).to_be_visible()
    headwater.publish(source_id, a_post("1", "The first post"))
    expect(page.locator(".entry")).to_have_count(1)
    assert page.evaluate("window.stillHere")


def test_many_events_make_few_looks(headwater: Running, opened: Open) -> None:
    now, source_id = headwater.parts.now(), headwater.source()
    headwater.publish(source_id, a_post("1", created_at=now - timedelta(hours=1)))
    page = opened()
    looks: list[str] = []
    page.on("request", lambda asked: looks.append(asked.url) if "/api/stream" in asked.url else None)
    newer = [a_post(f"new{number}", created_at=now + timedelta(seconds=number)) for number in range(30)]
    headwater.publish(source_id, *newer)
    expect(page.locator("#news")).to_have_text("20 or more new posts")
    assert len(looks) < 15


def test_a_page_that_nobody_sees_gives_its_connection_back_and_catches_up(headwater: Running, opened: Open) -> None:
    now, source_id = headwater.parts.now(), headwater.source()
    headwater.publish(source_id, a_post("1", created_at=now - timedelta(hours=1)))
    page = opened()
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true})"
    changed = "document.dispatchEvent(new Event('visibilitychange'))"
    with page.expect_event("requestfailed", lambda asked: "/api/live" in asked.url):
        page.evaluate(f"{hide % 'true'}; {changed}")
    headwater.publish(source_id, a_post("2", created_at=now))
    page.evaluate(f"{hide % 'false'}; {changed}")
    expect(page.locator("#news")).to_have_text("1 new post")


@pytest.mark.parametrize("width", [320, 1280])
def test_health_is_shown_and_letters_are_replayed_and_skipped(headwater: Running, opened: Open, width: int) -> None:
    # E9, E5
    source_id = headwater.source()
    headwater.publish(source_id, *[a_post(str(number)) for number in range(30)])
    headwater.publish(source_id, status="failing", outcome="failed", error="e" * 300, facts=None)
    first, second = break_an_event(headwater, "1"), break_an_event(headwater, "2")
    page = opened("/health", viewport={"width": width, "height": 900})
    expect(page.get_by_role("heading", level=1)).to_have_text("Health")
    expect(page.locator("svg.chart rect").first).to_be_attached()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name=f"Replay dead letter {second}").click()
    expect(page.locator(".trouble")).to_contain_text("UnreadableEvent")
    page.get_by_role("button", name="Skip").click()
    expect(page.locator(".facts")).to_contain_text("skipped")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("link", name="Health", exact=True).first.click()
    expect(page.get_by_role("button", name=f"Replay dead letter {first}")).to_be_visible()
    expect(page.locator(".letters tbody tr")).to_have_count(1)
