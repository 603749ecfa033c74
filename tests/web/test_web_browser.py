"""The pages in a real Chromium, with script."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page, expect

from api.running import Running
from headwater.follow.add import follow
from headwater.store import sources
from headwater.store.posts import stream
from support.posts import a_post

Open = Callable[..., Page]

LONG = "A title without an end " * 20 + "OneWordThatIsLongerThanTheScreenOfAnyPhoneThatWasEverMadeAndStillGoesOn"
HOSTILE = "<script>window.taken = 1</script><img src=x onerror='window.taken = 1'>"


def fill(headwater: Running, count: int = 3) -> list[int]:
    """Some posts, the newest first."""
    now = headwater.parts.now()
    posts = [
        a_post(str(number), f"Post {number}", created_at=now - timedelta(minutes=number)) for number in range(count)
    ]
    return headwater.publish(headwater.source(), *posts)


def test_a_newcomer_signs_in_follows_an_address_and_the_posts_appear_by_themselves(
    headwater: Running, opened: Open
) -> None:
    # D10
    page = opened("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Follow everything; read each story once.")
    page.get_by_label("Address of a feed or a site").fill("news.example")
    page.get_by_role("button", name="Follow", exact=True).click()
    expect(page.get_by_text("Nothing here yet.")).to_be_visible()
    [source] = headwater.parts.db.read_now(sources.watched, headwater.owner, headwater.parts.now())
    headwater.publish(source.id, a_post("1", "The first post"))
    expect(page.locator(".entry")).to_have_count(1)
    expect(page.get_by_role("link", name="The first post")).to_have_attribute("rel", "noopener noreferrer")  # H62


def test_posts_are_starred_and_marked_as_read_in_place(headwater: Running, opened: Open) -> None:
    # D8
    first, *_ = fill(headwater)
    page = opened()
    post = page.locator(f"#post-{first}")
    for name in ("Star", "Read"):
        with page.expect_response("**/api/posts/*"):
            post.get_by_role("button", name=name).click()
    expect(post.get_by_role("button", name="Star")).to_have_attribute("aria-pressed", "true")
    page.goto(f"{headwater.url}/?starred=1")
    expect(page.locator(".entry")).to_have_count(1)
    expect(page.locator(f"#post-{first}")).to_have_class(re.compile("is-read"))
    page.goto(f"{headwater.url}/?unread=1")
    expect(page.locator(".entry")).to_have_count(2)


def test_the_page_is_marked_as_read_at_once(headwater: Running, opened: Open) -> None:
    fill(headwater)
    page = opened()
    page.get_by_role("button", name="Mark page read").click()
    expect(page.locator(".entry:not(.is-read)")).to_have_count(0)
    expect(page.get_by_role("status")).to_have_text("3 posts marked as read.")
    assert headwater.parts.db.read_now(stream.page, headwater.owner, stream.Filter(unread=True)) == []


def test_the_keyboard_reads_the_stream(headwater: Running, opened: Open) -> None:
    ids = fill(headwater)
    page = opened()
    for key, chosen in (("j", ids[0]), ("j", ids[1]), ("j", ids[2]), ("j", ids[2]), ("k", ids[1])):
        page.keyboard.press(key)
        expect(page.locator(".is-current")).to_have_id(f"post-{chosen}")
    post = page.locator(f"#post-{ids[1]}")
    page.keyboard.press("s")
    expect(post.get_by_role("button", name="Star")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("m")
    expect(post.get_by_role("button", name="Read")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("m")
    expect(post.get_by_role("button", name="Read")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("Enter")
    expect(post.locator(".article")).to_have_text("Text of Post 1")
    expect(post.get_by_role("button", name="Read")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("o")
    expect(post.locator(".article")).to_be_hidden()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.wait_for_load_state("networkidle")


def test_new_posts_are_announced(headwater: Running, browser_clock: Page) -> None:
    page = browser_clock
    expect(page.locator("#news")).to_be_hidden()
    source_id = headwater.source()
    later = headwater.parts.now() + timedelta(seconds=30)
    headwater.publish(source_id, a_post("new1", created_at=later), a_post("new2", created_at=later))
    page.clock.fast_forward(31_000)
    expect(page.locator("#news")).to_have_text("2 new posts")
    page.locator("#news a").click()
    expect(page.locator(".entry")).to_have_count(5)
    expect(page.locator("#news")).to_be_hidden()


@pytest.fixture
def browser_clock(headwater: Running, opened: Open) -> Page:
    """The stream with three posts, on a page whose clock the test moves."""
    fill(headwater)
    page = opened("/sources")
    page.clock.install()
    page.goto(headwater.url)
    return page


def test_a_source_is_added_without_loading_the_page_and_its_row_follows_it(headwater: Running, opened: Open) -> None:
    # D2, D10
    page = opened("/sources")
    page.evaluate("window.stillHere = true")
    page.get_by_label("Address of a feed or a site").fill("news.example/feed")
    page.get_by_role("button", name="Follow", exact=True).click()
    row = page.locator("tr.source")
    expect(row).to_contain_text("Looking for the feed…")
    source_id = int(row.get_attribute("data-source") or "")
    headwater.publish(source_id, a_post("1"), a_post("2"))
    expect(row).to_contain_text("The News")
    expect(row).to_contain_text("Working")
    expect(row).to_contain_text("in 29 min")
    assert page.evaluate("window.stillHere")


def test_the_summary_of_the_sources_follows_their_rows(headwater: Running, opened: Open) -> None:
    headwater.publish(headwater.source(), a_post("1"))
    page = opened("/sources")
    summary = page.locator("[data-summary]")
    expect(summary).to_have_text("1 followed · all is well")
    page.evaluate("window.stillHere = true")
    page.get_by_label("Address of a feed or a site").fill("broken.example/feed")
    page.get_by_role("button", name="Follow", exact=True).click()
    expect(summary).to_have_text("2 followed · all is well")
    row = page.locator("tr.source[data-unsettled]")
    source_id = int(row.get_attribute("data-source") or "")
    headwater.publish(source_id, outcome="failed", status="failing", error_code="status_refused", error="HTTP 500")
    expect(summary).to_have_text("2 followed · 1 needs attention")
    page.locator(f"#source-{source_id}").get_by_role("button", name="Stop following").click()
    expect(summary).to_have_text("1 followed · all is well")
    assert page.evaluate("window.stillHere")


def test_an_address_that_is_wrong_or_known_is_said_beside_the_field(headwater: Running, opened: Open) -> None:
    source_id = headwater.source("https://news.example/feed")
    headwater.publish(source_id)
    page = opened("/sources")
    field = page.get_by_label("Address of a feed or a site")
    for typed, said in (
        ("ftp://x", "Only http:// and https://"),
        ("news.example/feed", "You follow this address already."),
    ):
        field.fill(typed)
        with page.expect_response("**/api/sources"):
            page.get_by_role("button", name="Follow", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text(said)
        expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("alert").get_by_role("link")).to_have_attribute("href", f"/sources/{source_id}")


def test_sources_are_checked_and_left_without_loading_the_page(headwater: Running, opened: Open) -> None:
    source_id = headwater.source()
    headwater.publish(source_id)
    page = opened("/sources")
    page.evaluate("window.stillHere = true")
    row = page.locator(f"#source-{source_id}")
    row.get_by_role("button", name="Check The News now").click()
    expect(row).to_contain_text("due now")
    headwater.publish(source_id)
    expect(row).to_contain_text("in 29 min")
    page.get_by_role("button", name="Check all now").click()
    expect(row).to_contain_text("due now")
    row.get_by_role("button", name="Stop following The News").click()
    expect(row).to_have_count(0)
    page.get_by_role("button", name="Follow again").click()
    expect(row).to_have_count(1)
    assert page.evaluate("window.stillHere")


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_no_page_is_wider_than_the_screen(headwater: Running, opened: Open, width: int) -> None:
    source_id = headwater.parts.db.write_now(
        follow, headwater.owner, "https://news.example/" + "x" * 300, headwater.parts.now(), folder="F" * 200
    ).source_id
    wide = f"<pre>{'y' * 500}</pre><table><tr>{'<td>cell</td>' * 50}</tr></table><p>{'z' * 500}</p>"
    failure = {"status": "failing", "outcome": "failed", "error": "e" * 500, "facts": None}
    [first, _] = headwater.publish(source_id, a_post("1", LONG, content=wide), a_post("2", "比特币挖矿难度下降" * 20))
    headwater.publish(source_id, **failure)
    page = opened("/", viewport={"width": width, "height": 700})
    page.locator(f"#post-{first} summary").click()
    expect(page.locator(f"#post-{first} .article")).to_be_visible()
    paths = ("/sources", f"/sources/{source_id}", f"/posts/{first}", "/api/docs", "/login", "/?starred=1")
    for path in ("", *paths):
        if path:
            page.goto(headwater.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_dark_and_light_follow_the_system(headwater: Running, opened: Open) -> None:
    fill(headwater)
    background = "getComputedStyle(document.body).backgroundColor"
    light = opened(color_scheme="light").evaluate(background)
    dark = opened(color_scheme="dark").evaluate(background)
    assert brightness(light) > 240
    assert brightness(dark) < 30


def brightness(colour: str) -> float:
    return sum(float(part) for part in re.findall(r"[\d.]+", colour)[:3]) / 3


def test_nothing_from_outside_runs_on_our_pages(headwater: Running, opened: Open) -> None:
    # H60
    db, now = headwater.parts.db, headwater.parts.now()
    named = {"folder": HOSTILE, "title": HOSTILE}
    source_id = db.write_now(
        lambda conn: follow(conn, headwater.owner, "https://news.example/", now, **named).source_id
    )
    headwater.publish(source_id, a_post("1", HOSTILE, author=HOSTILE, content="<p>words</p>"))
    headwater.publish(source_id, status="failing", outcome="failed", error=HOSTILE, facts=None)
    page = opened("/sources")
    for path in ("/sources", f"/sources/{source_id}", f"/sources/rows?id={source_id}", "/", "/posts/1"):
        page.goto(headwater.url + path)
        assert HOSTILE in page.locator("body").inner_text(), path
        assert page.evaluate("window.taken === undefined"), path
        assert page.locator("main script, tbody script, main img").count() == 0, path


def test_a_script_in_a_text_would_not_run_even_if_it_had_not_been_cleaned_away(
    headwater: Running, browser: Browser
) -> None:
    # H56
    [post_id] = headwater.publish(headwater.source(), a_post("1", content=HOSTILE))
    page = browser.new_page()
    page.goto(headwater.url + headwater.login_link())
    page.locator("summary").click()
    expect(page.locator(".article")).to_be_visible()
    assert page.evaluate("window.taken === undefined")
    page.goto(f"{headwater.url}/posts/{post_id}")
    assert page.evaluate("window.taken === undefined")
    page.close()


def test_every_control_has_a_name_and_every_page_its_landmarks(headwater: Running, opened: Open) -> None:
    source_id = headwater.source()
    [post_id] = headwater.publish(source_id, a_post("1"))
    page = opened()
    for path in ("/", "/sources", f"/sources/{source_id}", f"/posts/{post_id}", "/api/docs"):
        page.goto(headwater.url + path)
        assert page.locator("h1").count() == 1, path
        assert page.locator("main").count() == 1, path
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, a[href], input:not([type=hidden])")]
              .filter((one) => !(one.textContent.trim() || one.labels?.length || one.getAttribute("aria-label")))
              .map((one) => one.outerHTML)"""
        )
        assert nameless == [], path
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()


def test_how_often_a_source_is_checked_is_chosen_on_its_page(headwater: Running, opened: Open) -> None:
    # D11
    source_id = headwater.source()
    headwater.publish(source_id, a_post("1"))
    page = opened(f"/sources/{source_id}")
    expect(page.get_by_text(re.compile("^in (29|30) min"))).to_be_visible()
    page.get_by_label("Check every").select_option("360")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text(re.compile("^in [56] h"))).to_be_visible()
    expect(page.get_by_label("Check every")).to_have_value("360")
    [source] = headwater.parts.db.read_now(sources.watched, headwater.owner, headwater.parts.now())
    assert source.refresh_interval == 360
