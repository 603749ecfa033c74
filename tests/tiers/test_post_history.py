"""What a post said, now and before: over HTTP, on its page and on the terminal (A3)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from api.running import Running
from headwater.cli.commands import program
from headwater.follow.add import unfollow
from headwater.store.posts import stream
from support.posts import NOON, a_post, visited

DAY = timedelta(days=1)
TEXTS = ["First words", "Second words", "First words"]


def edited_daily(headwater: Running) -> int:
    """A post that said something else on each of three days; its id."""
    source_id = headwater.source()

    def work(conn: Any) -> int:
        for day, title in enumerate(TEXTS):
            saved = visited(conn, source_id, [a_post("1", title, score=day)], NOON + day * DAY)
        return saved.posts[0].id

    return headwater.parts.db.write_now(work)


def test_every_text_of_a_post_is_kept_with_the_time_in_which_it_held(on_both: Running) -> None:  # A3
    post_id = edited_daily(on_both)
    found = on_both.program().get(f"/api/posts/{post_id}/versions").json()
    assert found["post_id"] == post_id
    assert [(one["version"], one["title"], one["valid_from"], one["valid_to"]) for one in found["versions"]] == [
        (3, "First words", "2026-11-04T12:00:00Z", None),
        (2, "Second words", "2026-11-03T12:00:00Z", "2026-11-04T12:00:00Z"),
        (1, "First words", "2026-11-02T12:00:00Z", "2026-11-03T12:00:00Z"),
    ]


def test_what_a_post_said_then_can_be_asked(on_both: Running) -> None:  # A3
    post_id, client = edited_daily(on_both), on_both.program()
    for at, version in (
        ("2026-11-02T12:00:00Z", 1),
        ("2026-11-03T11:59:59.999999", 1),
        ("2026-11-03T12:00", 2),
        ("2026-11-03", 2),
        ("2026-11-04T12:59:00%2B01:00", 2),
        ("2026-11-04T13:00:00%2B01:00", 3),
        ("2030-01-01", 3),
    ):
        found = client.get(f"/api/posts/{post_id}/versions?at={at}").json()["versions"]
        assert [one["version"] for one in found] == [version], at


def test_before_it_was_seen_nothing_is_known_of_a_post(on_both: Running) -> None:  # A3
    post_id = edited_daily(on_both)
    answer = on_both.program().get(f"/api/posts/{post_id}/versions?at=2026-11-01")
    assert (answer.status, answer.json()["code"]) == (404, "not_found")
    assert "2026-11-02T12:00:00Z" in answer.json()["detail"]


def test_a_time_that_is_none_is_refused(on_both: Running) -> None:
    post_id, client = edited_daily(on_both), on_both.program()
    for at in ("yesterday", "2026-13-01", "0001-01-01T00:00:00%2B10:00"):
        answer = client.get(f"/api/posts/{post_id}/versions?at={at}")
        assert (answer.status, answer.json()["code"]) == (422, "bad_input"), at
    address = f"/api/posts/{post_id}/versions"
    assert client.get(f"{address}?at=").json() == client.get(address).json()


def test_the_history_of_a_post_is_seen_only_through_a_subscription(on_both: Running) -> None:  # A3
    post_id = edited_daily(on_both)
    [source_id] = {post["source_id"] for post in on_both.program().get("/api/posts").json()["items"]}
    on_both.parts.db.write_now(unfollow, on_both.owner, source_id, NOON)
    assert on_both.program().get(f"/api/posts/{post_id}/versions").status == 404
    assert on_both.parts.db.read_now(stream.versions, on_both.owner, post_id) == []


def test_the_page_of_a_post_shows_what_it_said_before(on_both: Running) -> None:  # A3
    post_id = edited_daily(on_both)
    page = on_both.browser().get(f"/posts/{post_id}").text
    assert "What it said before" in page
    assert "Version 2" in page
    assert "Second words" in page
    [once] = on_both.publish(on_both.source("https://other.example/feed"), a_post("2"))
    assert "What it said before" not in on_both.browser().get(f"/posts/{once}").text


def test_what_a_post_said_on_the_terminal(
    on_both: Running, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # A3
    post_id = edited_daily(on_both)
    monkeypatch.setenv("HEADWATER_DATABASE_URL", store_url)
    shown = CliRunner().invoke(program(), ["post", str(post_id), "--json"], catch_exceptions=False).output
    assert [json.loads(line)["version"] for line in shown.splitlines()] == [3, 2, 1]
    then = CliRunner().invoke(program(), ["post", str(post_id), "--at", "2026-11-03"], catch_exceptions=False).output
    assert "Version 2, from 2026-11-03 12:00 until 2026-11-04 12:00 (UTC)" in then
    assert "Second words" in then
    assert "First words" not in then
