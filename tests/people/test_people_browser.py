"""Two people of two tenants in two real browsers, who see nothing of each other."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from api.running import Running
from folding.flood import ELECTION, FLOOD, FLOOD_AGAIN, FLOOD_TOLD, fold, publish
from headwater.model import Reader
from support.people import PASSWORD, a_person
from support.posts import a_source
from web.conftest import PATIENCE


def signed_in(browser: Browser, headwater: Running, email: str) -> Page:
    """A browser of somebody's own, in which they sign in with their password."""
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{headwater.url}/login")
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    return page


def follow(headwater: Running, reader: Reader, *papers: int) -> None:
    for paper in papers:
        headwater.parts.db.write_now(a_source, reader, f"https://paper{paper}.example/feed", headwater.parts.now())


def test_two_tenants_read_star_and_undo_and_see_nothing_of_each_other(on_both: Running, browser: Browser) -> None:
    # E10, D8, H68
    ann = a_person(on_both, "ann", tenant="Harbour", password=PASSWORD)
    carl = a_person(on_both, "carl", "owner", tenant="Research", password=PASSWORD)
    first, second, third, fourth = publish(on_both, FLOOD, FLOOD_AGAIN, ELECTION, FLOOD_TOLD)
    follow(on_both, ann, 0, 1, 2)
    follow(on_both, carl, 1, 2, 3)
    fold(on_both, [first, second, third, fourth])
    hers, his = (signed_in(browser, on_both, f"{name}@example.org") for name in ("ann", "carl"))
    # Each sees the story as the papers that they follow tell it.
    expect(hers.locator(".entry")).to_have_count(2)
    expect(his.locator(".entry")).to_have_count(2)
    expect(hers.locator(f"#post-{first}")).to_be_visible()
    expect(his.locator(f"#post-{first}")).to_have_count(0)
    # She reads and stars what both follow.
    for name in ("Star", "Read"):
        with hers.expect_response("**/api/posts/*"):
            hers.locator(f"#post-{third}").get_by_role("button", name=name).click()
    his.reload()
    expect(his.locator(f"#post-{third}")).not_to_have_class(re.compile("is-read"))
    expect(his.locator(f"#post-{third}").get_by_role("button", name="Star")).to_have_attribute("aria-pressed", "false")
    # She undoes the story; his stays folded.
    hers.goto(f"{on_both.url}/stories/{first}")
    hers.get_by_role("button", name="Undo this story").click()
    expect(hers.locator(".entry")).to_have_count(3)
    his.reload()
    expect(his.locator(".entry")).to_have_count(2)
    # What is not theirs looks as if it were not there.
    assert his.goto(f"{on_both.url}/posts/{first}").status == 404  # type: ignore[union-attr]
    his.goto(f"{on_both.url}/people")
    expect(his.get_by_text("carl@example.org")).to_be_visible()
    for trace in ("ann", "Harbour", "default"):
        expect(his.get_by_text(trace, exact=True)).to_have_count(0)
    assert his.goto(f"{on_both.url}/health").status == 403  # type: ignore[union-attr]
    for page in (hers, his):
        page.context.close()


def test_somebody_joins_by_a_link_makes_a_token_and_signs_out_elsewhere(headwater: Running, browser: Browser) -> None:
    a_person(headwater, "ann", "owner", password=PASSWORD)
    here, there = (signed_in(browser, headwater, "ann@example.org") for _ in range(2))
    here.goto(f"{headwater.url}/people")
    here.get_by_label("E-mail address of the person you invite").fill("bob@example.org")
    here.get_by_role("button", name="Invite", exact=True).click()
    link = here.locator("pre code").inner_text()
    guest = browser.new_context().new_page()
    guest.goto(f"{headwater.url}/{link.split('/', 3)[3]}")
    guest.get_by_label("Your name").fill("Bob")
    guest.get_by_label("A new password").fill(PASSWORD)
    guest.get_by_role("button", name="Join").click()
    expect(guest.get_by_role("navigation", name="Pages")).to_be_visible()
    here.goto(f"{headwater.url}/account")
    here.get_by_label("What is it for?").fill("reader app")
    here.get_by_role("button", name="Make a token").click()
    secret = here.locator("pre code").inner_text()
    assert headwater.stranger.get("/api/stream", Authorization=f"Bearer {secret}").status == 200
    here.get_by_role("button", name="Revoke reader app").click()
    expect(here.get_by_text("reader app")).to_have_count(0)
    assert headwater.stranger.get("/api/stream", Authorization=f"Bearer {secret}").status == 401
    here.get_by_role("button", name="Sign out everywhere else").click()
    expect(here.get_by_role("button", name="Sign out everywhere else")).to_have_count(0)
    assert there.goto(f"{headwater.url}/").status == 401  # type: ignore[union-attr]
    for page in (here, there, guest):
        page.context.close()
