"""Webhooks over HTTP and on the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.running import Client, Running, running
from headwater.accounts import tokens
from headwater.consumers.webhooks import CONSUMER
from headwater.store.tables import webhooks
from support import forked
from support.log import consume_all
from webhooks.sending import a_reader

HOOK = "https://receiver.example/hook"


@pytest.fixture
def headwater(store_url: str, tmp_path: Path) -> Iterator[Running]:
    with running(store_url, HEADWATER_DATA_DIR=str(tmp_path)) as made:
        yield made


@pytest.fixture
def program(headwater: Running) -> Client:
    return headwater.program()


def added(program: Client, **wanted: Any) -> Any:
    answer = program.post("/api/webhooks", {"address": HOOK, **wanted})
    assert answer.status == 201, answer.text
    return answer.json()


def test_the_secret_is_shown_once_and_kept_sealed(headwater: Running, program: Client) -> None:
    made = added(program, kinds=["post.changed", "post.stored", "post.stored"])
    assert made["secret"].startswith("whsec_")
    assert made["kinds"] == ["post.stored", "post.changed"]
    assert made["status"] == "new"
    shown = program.get(f"/api/webhooks/{made['id']}").json()
    assert shown == {name: value for name, value in made.items() if name != "secret"}
    assert program.get("/api/webhooks").json() == {"items": [shown]}
    [row] = headwater.parts.db.read_now(lambda conn: conn.execute(webhooks.select()).all())
    assert made["secret"].encode() not in row.secret
    assert headwater.parts.vault.open(row.secret) == made["secret"]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"address": "ftp://receiver.example/"}, "Only http:// and https://"),
        ({"address": "https://name:word@receiver.example/"}, "An address with a password cannot be used."),
        (
            {"address": HOOK, "kinds": ["post.store"]},
            "'post.store' is not a kind of event that can be sent. Did you mean post.stored?",
        ),
        ({"address": HOOK, "kinds": ["zzz"]}, "There are post.stored, "),
        ({}, "address: Field required"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(program: Client, wanted: Any, said: str) -> None:
    answer = program.post("/api/webhooks", wanted)
    assert answer.status == 422
    assert said in answer.json()["detail"]


def test_there_is_a_most_of_webhooks(program: Client) -> None:
    for _ in range(50):
        added(program)
    answer = program.post("/api/webhooks", {"address": HOOK})
    assert (answer.status, answer.json()["code"]) == (409, "not_possible_now")
    assert "50 webhooks" in answer.json()["detail"]


def test_it_is_changed_paused_and_resumed(program: Client) -> None:
    path = f"/api/webhooks/{added(program)['id']}"
    assert program.patch(path, {"active": False}).json()["status"] == "paused"
    refused = program.post(f"{path}/test")
    assert (refused.status, refused.json()["detail"]) == (409, "This webhook is paused. Resume it first.")
    changed = program.patch(
        path, {"active": True, "kinds": ["source.failed"], "address": "http://other.example"}
    ).json()
    assert (changed["status"], changed["kinds"]) == ("new", ["source.failed"])
    assert changed["address"] == "http://other.example/"
    assert program.patch(path, {"kinds": []}).json()["kinds"] == []
    assert program.patch(path, {}).json() == program.get(path).json()  # nothing given, nothing changed
    assert program.patch(path, {"kinds": ["nothing"]}).status == 422


def test_deliveries_are_listed_newest_first_in_pages(headwater: Running, program: Client) -> None:
    path = f"/api/webhooks/{added(program)['id']}"
    pings = [program.post(f"{path}/test").json() for _ in range(3)]
    assert [(one["kind"], one["state"], one["attempts"]) for one in pings] == [("ping", "waiting", 0)] * 3
    first = program.get(f"{path}/deliveries?limit=2").json()
    rest = program.get(f"{path}/deliveries?limit=2&cursor={first['next_cursor']}").json()
    assert [one["id"] for one in [*first["items"], *rest["items"]]] == [one["id"] for one in pings[::-1]]
    assert rest["next_cursor"] is None
    assert [one["next_try_at"] is not None for one in [*first["items"], *rest["items"]]] == [False, False, True]
    headwater.source()
    consume_all(headwater.parts.db, CONSUMER, headwater.parts.now())
    assert program.get(path).json()["waiting"] == 5


def test_only_what_was_settled_is_replayed(headwater: Running, program: Client) -> None:
    # E5
    path = f"/api/webhooks/{added(program)['id']}"
    ping = program.post(f"{path}/test").json()
    replay = f"{path}/deliveries/{ping['id']}/replay"
    assert program.post(replay).status == 409
    settle = "UPDATE webhook_deliveries SET state = 'failed', attempts = 9, error = 'no', http_status = 500"
    headwater.parts.db.write_now(lambda conn: conn.exec_driver_sql(settle))
    again = program.post(replay)
    assert again.status == 202
    assert (again.json()["state"], again.json()["attempts"], again.json()["error"]) == ("waiting", 0, None)
    assert again.json()["event_id"] == ping["event_id"]
    assert program.post(f"{path}/deliveries/999/replay").status == 404


def test_a_stranger_sees_none_of_it(headwater: Running, program: Client) -> None:
    # E10
    made = added(program)
    path = f"/api/webhooks/{made['id']}"
    ping = program.post(f"{path}/test").json()
    db, now = headwater.parts.db, headwater.parts.now()
    token = db.write_now(tokens.issue, db.write_now(a_reader, "stranger"), "api", "test", now)
    stranger = Client(headwater.port, {"Authorization": f"Bearer {token}"})
    assert stranger.get("/api/webhooks").json() == {"items": []}
    answers = [
        stranger.get(path),
        stranger.get(f"{path}/deliveries"),
        stranger.patch(path, {"active": False}),
        stranger("DELETE", path),
        stranger.post(f"{path}/test"),
        stranger.post(f"{path}/deliveries/{ping['id']}/replay"),
    ]
    assert [answer.status for answer in answers] == [404] * 6
    assert program("DELETE", path).status == 204
    assert program.get(path).status == 404


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_the_command_line_does_the_same(headwater: Running, store_url: str, tmp_path: Path) -> None:
    environ = {**os.environ, "HEADWATER_DATABASE_URL": store_url, "HEADWATER_DATA_DIR": str(tmp_path)}

    def said(*words: str) -> str:
        return forked.run("-m", "headwater", "webhooks", *words, env=environ, check=True).stdout

    made = json.loads(said("add", HOOK, "--kind", "post.stored", "--json"))
    assert made["secret"].startswith("whsec_")
    assert made["kinds"] == ["post.stored"]
    assert "whsec_" in said("add", HOOK)
    ping = json.loads(said("test", str(made["id"]), "--json"))
    assert ping["kind"] == "ping"
    assert HOOK in said("list")
    shown = said("show", "1")
    assert "ping" in shown
    assert "post.stored" in shown
    settle = "UPDATE webhook_deliveries SET state = 'delivered'"
    headwater.parts.db.write_now(lambda conn: conn.exec_driver_sql(settle))
    assert json.loads(said("replay", "1", str(ping["id"]), "--json"))["state"] == "waiting"
    said("remove", "1")
    assert [json.loads(line)["id"] for line in said("list", "--json").splitlines()] == [2]
