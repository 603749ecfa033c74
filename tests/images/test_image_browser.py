"""A saved image in a real Chromium: it is shown from here, and nobody else is asked for anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, Page, expect

from api.running import Running, running
from headwater import wire
from headwater.model import Image
from headwater.store import images
from images.painted import png
from support.posts import a_post
from support.processes import wait_until
from support.web import ALLOW_LOOPBACK, Answer, Web
from web.conftest import browser

__all__ = ["browser"]


@pytest.fixture
def showing(sqlite_url: str, tmp_path: Path) -> Iterator[Running]:
    environ = {**ALLOW_LOOPBACK, "HEADWATER_IMAGES": "on", "HEADWATER_HOST_GAP_SECONDS": "0"}
    with running(sqlite_url, HEADWATER_DATA_DIR=str(tmp_path / "data"), **environ) as made:
        yield made


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(20_000)
    yield page
    context.close()


def save_all(headwater: Running) -> None:
    """Let the loop run until nothing can be saved any more."""

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.create_task(wire.save_images(headwater.parts, stop))
        while (await headwater.parts.db.read(images.counts))["saved"] < 1:
            await asyncio.sleep(0.02)
        stop.set()
        await loop

    # Playwright has an event loop of its own in this thread.
    thread = Thread(target=lambda: asyncio.run(run()))
    thread.start()
    thread.join()


def publish(headwater: Running, world: Web) -> int:
    world.pages["/spring.png"] = Answer(png(40, 30))
    spring, tracker = world.url("/spring.png"), world.url("/missing.png")
    content = f'<p>Look: <img src="{spring}" alt="The spring"> <img src="{tracker}" alt="Another"></p>'
    post = a_post("1", "Pictures", content=content, images=(Image(spring), Image(tracker)))
    [post_id] = headwater.publish(headwater.source(), post)
    return post_id


def is_drawn(page: Page, name: str) -> bool:
    return bool(page.get_by_alt_text(name).evaluate("image => image.complete && image.naturalWidth > 0"))


def test_a_saved_picture_is_shown_from_here_and_nobody_else_is_asked(showing: Running, world: Web, page: Page) -> None:
    # H59
    post_id = publish(showing, world)
    save_all(showing)
    asked_by_us = len(world.asked)
    elsewhere: list[str] = []
    page.on("request", lambda asked: None if asked.url.startswith(showing.url) else elsewhere.append(asked.url))
    page.goto(f"{showing.url}{showing.login_link()}&next=/")
    page.locator(f"#post-{post_id} summary").click()
    wait_until(lambda: page.get_by_alt_text("The spring").count() and is_drawn(page, "The spring"))
    expect(page.locator(".withheld")).to_have_text("Image: Another")
    page.goto(f"{showing.url}/posts/{post_id}")
    wait_until(lambda: is_drawn(page, "The spring"))
    assert elsewhere == []
    assert len(world.asked) == asked_by_us


def test_the_reader_may_ask_for_what_is_not_saved(showing: Running, world: Web, page: Page) -> None:
    post_id = publish(showing, world)
    page.goto(f"{showing.url}{showing.login_link()}&next=/posts/{post_id}")
    assert world.asked == []
    page.get_by_role("link", name="Show 2 images").click()
    wait_until(lambda: is_drawn(page, "The spring"))
    assert "/spring.png" in world.paths()
    assert all("referer" not in asked.headers for asked in world.asked)


def test_even_a_page_with_a_remote_picture_in_it_loads_none(showing: Running, world: Web, page: Page) -> None:
    """The policy of the page holds whatever its markup says."""
    page.goto(f"{showing.url}{showing.login_link()}&next=/")
    page.evaluate("address => { document.body.append(Object.assign(new Image(), {src: address})); }", world.url("/x"))
    page.wait_for_load_state("networkidle")
    assert world.asked == []
