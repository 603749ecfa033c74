"""A thread as people and programs meet it: in the stream, on its page, in the API and in the terminal (F7)."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from playwright.sync_api import Page, expect
from typer.testing import CliRunner

from api.running import Client, Running
from headwater.cli.commands import program
from headwater.consumers.search import CONSUMER
from headwater.model import Post
from support import forked
from support.log import consume_all
from support.posts import a_post

PUMPS = "Which pump for a deep well?"
Open = Callable[..., Page]
KILLED_BEFORE_COMMIT = """
import os, signal, sys
from headwater.store.db import Database
from headwater.wire import utc_now
from folding.test_thread_pages import conversation
from support.posts import visited

def bring(conn):
    visited(conn, int(sys.argv[2]), conversation(utc_now(), 3), utc_now())
    print("written", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

Database(sys.argv[1]).write_now(bring)
"""


def conversation(now: Any, replies: int, start: int = 1) -> list[Post]:
    """The first post of a thread and replies to it, or the replies from a number on."""
    begun = now - timedelta(hours=1)
    first = a_post("7/0", PUMPS, created_at=begun, thread="7", opens_thread=True)
    later = [
        a_post(
            f"7/{number}",
            f"Re: {PUMPS}",
            content=f"<p>Answer number{number}, and nothing else.</p>",
            author=f"guest{number}",
            created_at=begun + timedelta(minutes=number),
            thread="7",
        )
        for number in range(start, start + replies)
    ]
    return [*([first] if start == 1 else []), *later]


def entry_of(client: Client, query: str = "") -> dict[str, Any]:
    [found] = [one for one in client.get(f"/api/stream{query}").json()["items"] if one["thread"]]
    return found


def read(client: Client, entry: dict[str, Any]) -> None:
    first = entry["members"][0]["post_id"]
    seen = {"read": True, "as_of": entry["as_of"], "replies_until": [entry["thread"]["replies_until"]]}
    assert client.patch(f"/api/posts/{first}", seen).status == 200


def test_a_program_reads_a_thread_as_one_entry(on_both: Running) -> None:  # F7
    source_id, now = on_both.source(), on_both.parts.now()
    first, *replies = on_both.publish(source_id, *conversation(now, 4))
    client = on_both.program()
    entry = entry_of(client)
    assert (entry["title"], entry["state"], entry["tellings"]) == (PUMPS, "unread", 1)
    assert entry["thread"] == {"first_id": first, "replies": 4, "new_replies": 4, "replies_until": replies[-1]}
    page = client.get(f"/api/posts/{first}/replies?limit=3").json()
    rest = client.get(f"/api/posts/{replies[0]}/replies?limit=3&cursor={page['next_cursor']}").json()
    assert [one["id"] for one in [*page["items"], *rest["items"]]] == replies, "of the thread, whichever post is named"
    assert rest["next_cursor"] is None
    [late] = on_both.publish(source_id, *conversation(now, 1, start=5))
    read(client, entry)
    entry = entry_of(client, "?unread=1")
    assert (entry["state"], entry["thread"]["replies"], entry["thread"]["new_replies"]) == ("updated", 5, 1)
    assert not client.get(f"/api/posts/{late}").json()["read"], "nobody saw it"
    read(client, entry)
    assert client.get("/api/stream?unread=1").json()["items"] == []
    assert entry_of(client)["state"] == "read"


def test_every_reply_is_found_by_its_words(on_both: Running) -> None:
    _, *replies = on_both.publish(on_both.source(), *conversation(on_both.parts.now(), 3))
    consume_all(on_both.parts.db, CONSUMER)
    client = on_both.program()
    for number, post_id in enumerate(replies, 1):
        found = client.get(f"/api/stream?q=number{number}").json()["items"]
        assert [one["story_id"] for one in found] == [str(post_id)]


def test_what_is_no_thread_and_bad_input_are_answered(headwater: Running) -> None:
    [alone] = headwater.publish(headwater.source(), a_post("alone"))
    client = headwater.program()
    assert client.get(f"/api/posts/{alone}/replies").json() == {"items": [], "next_cursor": None}
    assert client.get("/api/posts/999999/replies").status == 404
    assert client.get(f"/api/posts/{alone}/replies?cursor=nonsense").status == 422
    assert headwater.browser().get(f"/posts/{alone}?cursor=nonsense").status == 422
    for wrong in ([0], ["1"], [2**70], 5, [1] * 1001):
        assert client.patch(f"/api/posts/{alone}", {"read": True, "replies_until": wrong}).status == 422
    assert client.patch(f"/api/posts/{alone}", {"read": True, "replies_until": [424242]}).status == 200


def test_the_terminal_shows_a_thread(headwater: Running, sqlite_url: str) -> None:
    first, *replies = headwater.publish(headwater.source(), *conversation(headwater.parts.now(), 2))
    run = CliRunner(env={"HEADWATER_DATABASE_URL": sqlite_url, "COLUMNS": "200"})
    assert f"{PUMPS} (2 replies, 2 new)" in " ".join(run.invoke(program(), ["stream"]).output.split())
    lines = run.invoke(program(), ["replies", str(first), "--json"]).output.splitlines()
    assert [json.loads(line)["id"] for line in lines] == replies
    assert "guest2" in run.invoke(program(), ["replies", str(replies[0])]).output


def test_a_thread_in_a_browser(headwater: Running, opened: Open) -> None:  # F7
    source_id, now = headwater.source(), headwater.parts.now()
    first, *replies = headwater.publish(source_id, *conversation(now, 2))
    page = opened()
    entry = page.locator(f"#post-{first}")
    expect(page.locator(".entry")).to_have_count(1)
    expect(entry).to_contain_text("2 replies · all new")
    with page.expect_response("**/api/posts/*"):
        entry.locator("summary").click()
    page.reload()
    expect(entry).to_contain_text("2 replies · 2 new replies")
    entry.get_by_role("link", name="2 replies").click()
    expect(page.locator("#replies li")).to_have_count(2)
    expect(page.locator("#replies li").first).to_contain_text("guest1")
    headwater.publish(source_id, *conversation(now, 1, start=3))
    page.get_by_role("button", name="Mark these 2 replies read").click()
    expect(page.locator("#replies li")).to_have_count(3)
    expect(page.locator("#replies .label")).to_have_count(1)
    page.goto(f"{headwater.url}/?unread=1")
    expect(entry).to_contain_text("3 replies · 1 new reply")
    page.goto(f"{headwater.url}/posts/{replies[0]}")
    page.get_by_role("link", name=PUMPS).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(PUMPS)
    page.goto(headwater.url)
    with page.expect_response("**/api/posts/*"):
        entry.get_by_role("button", name="Read").click()
    page.goto(f"{headwater.url}/?unread=1")
    expect(page.locator(".entry")).to_have_count(0)


def test_a_thread_works_without_script(headwater: Running, opened: Open) -> None:
    first, *_ = headwater.publish(headwater.source(), *conversation(headwater.parts.now(), 2))
    page = opened(java_script_enabled=False)
    page.locator(f"#post-{first}").get_by_role("button", name="Read").click()
    page.goto(f"{headwater.url}/?unread=1")
    expect(page.locator(".entry")).to_have_count(0)


def test_a_writer_that_is_killed_leaves_no_half_of_a_thread(on_both: Running, store_url: str) -> None:
    source_id = on_both.source()
    killed = forked.run("-c", KILLED_BEFORE_COMMIT, store_url, str(source_id), env=os.environ)
    assert (killed.stdout.strip(), killed.returncode) == ("written", -signal.SIGKILL), killed.stderr
    client = on_both.program()
    assert client.get("/api/stream").json()["items"] == []
    on_both.publish(source_id, *conversation(on_both.parts.now(), 3))
    assert entry_of(client)["thread"]["replies"] == 3
