"""A story lives (F7): what is new makes a read story updated, what repeats does not, and nothing unseen is read."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from playwright.sync_api import Page, expect

from api.running import Client, Running
from folding.flood import ELECTION, begins, decide, joins, publish
from folding.test_partings import entries
from support import forked
from support.posts import a_post

CALM = "Fire at the paper mill in Brekke: nobody was hurt"
CALM_AGAIN = "Brekke paper mill: nobody hurt at fire"
GRAVE = "Three dead in fire at the paper mill in Brekke"
CAUSE = "Fire at the paper mill in Brekke: inspector Aldous Quint blames worn cables"
KILLED_BEFORE_COMMIT = """
import os, signal, sys
from headwater.consumers.fold import write_decisions
from headwater.model import Decision
from headwater.store import stories
from headwater.store.db import Database
from headwater.wire import utc_now

def join(conn):
    post_id, story_id = int(sys.argv[2]), int(sys.argv[3])
    one = Decision(post_id, story_id, post_id, "story", 0.9, "")
    write_decisions(conn, [one], stories.texts(conn, [post_id]), utc_now())
    print("written", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

Database(sys.argv[1]).write_now(join)
"""
Open = Callable[..., Page]


def told(client: Client, story_id: int, query: str = "") -> dict[str, Any]:
    [found] = [one for one in client.get(f"/api/stream{query}").json()["items"] if one["story_id"] == str(story_id)]
    return found


def read(client: Client, story: dict[str, Any]) -> None:
    post_id = story["members"][0]["post_id"]
    assert client.patch(f"/api/posts/{post_id}", {"read": True, "as_of": story["as_of"]}).status == 200


def test_a_correction_makes_a_story_that_was_read_updated(on_both: Running) -> None:  # F7
    a, b, c = publish(on_both, CALM, GRAVE, ELECTION)
    client, browser = on_both.program(), on_both.browser()
    decide(on_both, begins(a), begins(c))
    read(client, told(client, a))
    unread = [one["story_id"] for one in client.get("/api/stream?unread=1").json()["items"]]
    assert unread == [str(c), str(b)]
    decide(on_both, joins(b, a))
    story = told(client, a, "?unread=1")
    assert (story["state"], story["title"]) == ("updated", CALM)
    [news] = story["news"]
    assert (news["post_id"], news["sentences"], news["numbers"]) == (b, [GRAVE], ["3"])
    [against] = news["disagrees"]
    assert (against["sentence"], against["other_sentence"], against["other_id"]) == (GRAVE, CALM, a)
    assert not client.get(f"/api/posts/{b}").json()["read"]
    page = browser.get("/?unread=1").text
    assert "Updated: one new fact" in page
    assert "Tellings disagree" in page
    assert page.count(GRAVE) >= 2
    read(client, story)
    assert told(client, a)["state"] == "read"
    assert client.get(f"/api/posts/{b}").json()["read"]


def test_a_telling_that_only_repeats_what_was_read_is_no_update(on_both: Running) -> None:  # F7
    a, b, c = publish(on_both, CALM, CALM_AGAIN, CALM)
    client = on_both.program()
    decide(on_both, begins(a))
    read(client, told(client, a))
    decide(on_both, joins(b, a), joins(c, a, "exact"))
    assert told(client, a)["state"] == "read"
    assert client.get("/api/stream?unread=1").json()["items"] == []
    assert not client.get(f"/api/posts/{b}").json()["read"], "nobody saw it"
    client("DELETE", f"/api/deduplicate/groups/{a}")
    left = client.get("/api/stream?unread=1").json()["items"]
    assert [one["story_id"] for one in left] == [str(c), str(b)], "each by itself is what it was: not read"


def test_what_arrives_while_a_story_is_being_read_stays_unread(on_both: Running) -> None:  # F7
    a, b, c = publish(on_both, CALM, CAUSE, GRAVE)
    client, browser = on_both.program(), on_both.browser()
    decide(on_both, begins(a), joins(b, a))
    seen = told(client, a)
    page = browser.get("/").text
    decide(on_both, joins(c, a))
    read(client, seen)
    assert [client.get(f"/api/posts/{one}").json()["read"] for one in (a, b, c)] == [True, True, False]
    assert told(client, a)["state"] == "updated"
    assert f'name="as_of" value="{seen["as_of"]}"' in page
    client.patch(f"/api/posts/{a}", {"read": False})
    assert told(client, a)["state"] == "unread"


def test_a_story_moves_by_what_is_new_and_keeps_its_title(on_both: Running) -> None:  # F7
    a, b, c, d = publish(on_both, CALM, ELECTION, CAUSE, CALM_AGAIN)
    client = on_both.program()
    decide(on_both, begins(a), begins(b))
    before = [one["story_id"] for one in client.get("/api/stream").json()["items"]]
    assert before == [str(d), str(c), str(b), str(a)]
    decide(on_both, joins(c, a), joins(d, a))
    [first, second] = client.get("/api/stream").json()["items"]
    assert (first["story_id"], first["title"], first["state"]) == (str(a), CALM, "unread")
    told_at = {one["post_id"]: one["published_at"] for one in first["members"]}
    assert (first["updated_at"], first["tellings"]) == (told_at[c], 3), "what repeats does not move it"
    assert second["story_id"] == str(b)
    page = client.get("/api/stream?limit=1").json()
    rest = client.get(f"/api/stream?cursor={page['next_cursor']}").json()["items"]
    assert [one["story_id"] for one in (*page["items"], *rest)] == [str(a), str(b)]


def test_a_copy_with_an_earlier_date_takes_over_neither_title_nor_link(on_both: Running) -> None:  # F8
    [a] = publish(on_both, CALM)
    hostile = on_both.source("https://copycat.example/feed")
    copy = a_post("copy", "You won't believe this fire", created_at=on_both.parts.now() - timedelta(days=2))
    [b] = on_both.publish(hostile, copy)
    decide(on_both, begins(a), joins(b, a))
    story = told(on_both.program(), a)
    assert (story["title"], story["url"]) == (CALM, "https://news.example/0 " + CALM)
    assert [one["post_id"] for one in story["members"]] == [a, b]
    group = on_both.program().get(f"/api/deduplicate/groups/{a}").json()
    assert group["representative"] == a


def test_a_reader_who_does_not_follow_the_first_telling_gets_the_second_as_news(on_both: Running) -> None:  # F7
    a, b, c = publish(on_both, GRAVE, CALM, GRAVE)
    client = on_both.program()
    decide(on_both, begins(a), joins(b, a), joins(c, a))
    [first, *_] = [one for one in client.get("/api/sources").json()["items"] if "paper0" in one["address"]]
    client("DELETE", f"/api/sources/{first['id']}")
    story = told(client, a)
    assert (story["title"], [one["post_id"] for one in story["members"]]) == (CALM, [b, c])
    client.patch(f"/api/posts/{b}", {"read": True, "as_of": story["as_of"]})
    client.patch(f"/api/posts/{c}", {"read": False})
    client.patch(f"/api/posts/{b}", {"read": True, "as_of": 1})
    assert told(client, a)["state"] == "updated", "what it repeats was never shown to this reader"


def test_a_telling_that_is_killed_before_it_commits_leaves_no_trace(on_both: Running) -> None:  # F7, H79
    a, b = publish(on_both, CALM, GRAVE)
    client = on_both.program()
    decide(on_both, begins(a))
    read(client, told(client, a))
    url = on_both.parts.settings.store_url()
    killed = forked.run("-c", KILLED_BEFORE_COMMIT, url, str(b), str(a), env=os.environ)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "written\n"), killed.stderr
    assert told(client, a)["state"] == "read"
    assert entries(client) == [[b], [a]]
    for _ in range(2):  # a second delivery of the same events has no second effect
        decide(on_both, joins(b, a))
        assert (told(client, a)["state"], len(told(client, a)["news"])) == ("updated", 1)


def test_a_large_story_shows_a_few_tellings_and_the_way_to_the_rest(on_both: Running) -> None:  # F1
    papers = [on_both.source(f"https://paper{number}.example/feed") for number in range(6)]
    now = on_both.parts.now()
    ids: list[int] = []
    for number, source_id in enumerate(papers):
        many = 60 if number == 0 else 8
        told_so = (f"Mill fire, report {number} of {n}: {n + 100 * number} metres" for n in range(many))
        ids += on_both.publish(
            source_id,
            *(
                a_post(title, title, content="", created_at=now - timedelta(minutes=n))
                for n, title in enumerate(told_so)
            ),
        )
    decide(on_both, begins(ids[0]), *(joins(one, ids[0]) for one in ids[1:]))
    client = on_both.program()
    story = told(client, ids[0])
    assert (story["tellings"], len(story["members"])) == (100, 6)
    assert len({one["source_id"] for one in story["members"]}) == 6, "one source does not fill it"
    assert "and 94 more" in on_both.browser().get("/").text
    group = client.get(f"/api/deduplicate/groups/{ids[0]}").json()
    assert (group["tellings"], len(group["members"])) == (100, 50)
    seen: list[int] = []
    path = f"/api/deduplicate/groups/{ids[0]}/members?limit=40"
    cursor: str | None = ""
    while cursor is not None:
        answer = client.get(path + (f"&cursor={cursor}" if cursor else "")).json()
        seen += [one["post_id"] for one in answer["items"]]
        cursor = answer["next_cursor"]
    assert sorted(seen) == sorted(ids)
    assert len(seen) == len(set(seen))
    assert "More tellings" in on_both.browser().get(f"/stories/{ids[0]}").text


def test_an_updated_story_is_shown_so_in_a_browser(headwater: Running, opened: Open) -> None:  # F7
    a, b, c = publish(headwater, CALM, GRAVE, ELECTION)
    decide(headwater, begins(a), begins(c))
    page = opened()
    with page.expect_response("**/api/posts/*"):
        page.locator(f"#post-{a}").get_by_role("button", name="Read").click()
    decide(headwater, joins(b, a))
    page.goto(f"{headwater.url}/?unread=1")
    entry = page.locator(f"#post-{a}")
    expect(entry.get_by_text("Updated: one new fact")).to_be_visible()
    expect(entry.locator(".disagree")).to_contain_text("nobody was hurt")
    expect(entry.locator(".disagree")).to_contain_text("Three dead")
    expect(entry.get_by_role("heading")).to_have_text(CALM)
    with page.expect_response("**/api/posts/*"):
        entry.get_by_role("button", name="Read").click()
    page.reload()
    expect(page.locator(".entry")).to_have_count(1)


def test_a_story_says_who_was_first_and_by_how_much(on_both: Running) -> None:  # F8
    a, b = publish(on_both, CALM, CAUSE)  # the second one a minute later
    client = on_both.program()
    late = on_both.source("https://late.example/feed")
    on_both.publish(late, a_post("old", "Something else"))
    copy = a_post("copy", GRAVE, created_at=on_both.parts.now() - timedelta(hours=9))
    [_, c] = on_both.publish(late, a_post("old", "Something else"), copy)
    decide(on_both, begins(a), joins(b, a), joins(c, a))
    first = client.get(f"/api/deduplicate/groups/{a}").json()["first"]
    assert (first["post_id"], first["is_claimed"], first["lead_seconds"]) == (a, True, 60.0)
    assert "First: The News, 1 min before the next" in on_both.browser().get(f"/stories/{a}").text
    leads = client.get("/api/deduplicate/leads").json()
    assert leads["stories"] == 1
    assert [(one["first"], one["stories"], one["median_lead_seconds"]) for one in leads["sources"]] == [
        (1, 1, 60.0),
        (0, 1, None),
        (0, 1, None),
    ]
