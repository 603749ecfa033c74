"""A folded story in a real Chromium: it opens, says why, is undone, and stays undone (C5, F1)."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from api.running import Running
from folding.flood import ELECTION, FLOOD, FLOOD_AGAIN, FLOOD_TOLD, fold, publish
from headwater.store import stories

Open = Callable[..., Page]


def test_a_story_opens_says_why_and_is_taken_apart_for_good(headwater: Running, opened: Open) -> None:  # C5, F1
    a, b, c, d = publish(headwater, FLOOD, FLOOD_AGAIN, ELECTION, FLOOD_TOLD)
    fold(headwater, [a, b, c, d])
    page = opened()
    expect(page.locator(".entry")).to_have_count(2)
    page.get_by_text("also told by 2 other sources").click()
    expect(page.locator(".members li")).to_have_count(2)
    expect(page.get_by_text("same text but for the label breaking")).to_be_visible()
    expect(page.get_by_text(re.compile(r"shares copper, mine.* \(\d+ % likely the same event\)"))).to_be_visible()
    page.locator(".members li").nth(1).get_by_role("button", name="Not the same").click()
    expect(page.locator(".entry")).to_have_count(3)
    page.get_by_text("also told by 1 other source").click()
    page.get_by_role("link", name="About this story").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(FLOOD)
    page.get_by_role("button", name="Undo this story").click()
    expect(page.locator(".entry")).to_have_count(4)
    headwater.parts.db.write_now(stories.forget, [a, b, c, d])
    fold(headwater, [a, b, c, d])
    page.reload()
    expect(page.locator(".entry")).to_have_count(4)


def test_reading_one_reads_the_story(headwater: Running, opened: Open) -> None:
    ids = publish(headwater, FLOOD, FLOOD_AGAIN, ELECTION)
    fold(headwater, ids)
    page = opened()
    with page.expect_response("**/api/posts/*"):
        page.locator(f"#post-{ids[0]}").get_by_role("button", name="Read").click()
    page.goto(f"{headwater.url}/?unread=1")
    expect(page.locator(".entry")).to_have_count(1)


def test_folding_is_chosen_on_a_page(headwater: Running, opened: Open) -> None:  # C8
    fold(headwater, publish(headwater, FLOOD, FLOOD_AGAIN, FLOOD_TOLD))
    page = opened("/folding")
    page.get_by_label("Fold nothing").check()
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.get_by_role("button", name="Save").click()
    page.goto(headwater.url)
    expect(page.locator(".entry")).to_have_count(3)
