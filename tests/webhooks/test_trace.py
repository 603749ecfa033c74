"""What became of a visit can be seen in one place: its events, what consumers did with them, and its webhooks."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from api.running import running
from headwater.app import webhooks as asked
from headwater.follow.add import follow
from headwater.model import Reader
from headwater.store.people import accounts
from headwater.wire import Parts
from support import forked
from support.processes import wait_until
from support.web import Answer, Web, rss
from support.whole import headwater_process
from webhooks.receiver import Receiver


@pytest.fixture
def owner(parts: Parts) -> Reader:
    found = parts.db.read_now(accounts.owner)
    assert found is not None
    return found


def told(environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """What `headwater trace` says, in a process of its own."""
    return forked.run("-m", "headwater", "trace", *words, env={**os.environ, **environ})


def test_a_post_can_be_followed_from_its_visit_to_a_webhook(
    environ: dict[str, str], parts: Parts, owner: Reader, world: Web, receiver: Receiver
) -> None:
    """On each database in turn: the visit, both events of the post, three consumers, and two deliveries."""
    world.pages["/feed"] = Answer(rss("one"))
    hook = (f"{receiver.url}/hook?key=secret", ["post.stored"], parts.seal, parts.now())
    parts.db.write_now(asked.add, owner, *hook)
    parts.db.write_now(follow, owner, world.url("/feed"), parts.now())
    with headwater_process("up", environ=environ):
        wait_until(lambda: receiver.got)
        got = receiver.got[0]
        parent = got.headers["traceparent"]

        def steps() -> list[dict[str, Any]]:
            found: dict[str, Any] = json.loads(told(environ, parent, "--json").stdout)
            assert found["trace_id"] == parent.split("-")[1]
            assert found["is_whole"]
            return list(found["steps"])

        wait_until(lambda: {one["step"] for one in steps()} == {"visit", "event", "consumer", "webhook"})
        wait_until(lambda: {one["name"] for one in steps() if one["step"] == "consumer"} >= {"search", "webhooks"})
        wait_until(lambda: [one for one in steps() if one["step"] == "webhook" and "delivered" in one["detail"]])
    found = steps()
    assert [one["at"] for one in found] == sorted(one["at"] for one in found)
    [visit] = [one for one in found if one["step"] == "visit"]
    assert (visit["name"], visit["detail"]) == (world.url("/feed"), "ok, HTTP 200, 1 new, 0 updated")
    [stored] = [one for one in found if one["step"] == "event" and one["name"] == "post.stored"]
    assert stored["event_id"] == got.id
    [delivery] = [one for one in found if one["step"] == "webhook"]
    assert "HTTP 204" in delivery["detail"]
    assert "secret" not in delivery["name"]
    by_event = json.loads(told(environ, got.id, "--json").stdout)
    assert by_event["steps"] == found
    assert "post.stored" in told(environ, parent).stdout
    settings = {name: value for name, value in environ.items() if name != "HEADWATER_DATABASE_URL"}
    with running(environ["HEADWATER_DATABASE_URL"], **settings) as headwater:
        assert headwater.program().get(f"/api/traces/{parent}").json() == by_event


def test_what_is_no_trace_and_what_nobody_knows_is_said(environ: dict[str, str], parts: Parts) -> None:
    for wanted, words in (
        ("everything", "is no trace"),
        ("0af7651916cd43dd8448eb211c80319c", "nothing of the trace"),
        ("019b9a3c-7f00-7c3e-9d5e-1a2b3c4d5e6f", "no event"),
    ):
        said = told(environ, wanted)
        assert said.returncode != 0
        assert words in said.stderr
    settings = {name: value for name, value in environ.items() if name != "HEADWATER_DATABASE_URL"}
    with running(environ["HEADWATER_DATABASE_URL"], **settings) as headwater:
        assert headwater.program().get("/api/traces/everything").status == 422
        assert headwater.program().get("/api/traces/0af7651916cd43dd8448eb211c80319c").status == 404
