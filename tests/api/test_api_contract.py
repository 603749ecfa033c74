"""What the API takes and answers: no unknown parameter, no value of another type, and what each address allows."""

from __future__ import annotations

from typing import Any

import pytest

from api.running import Client, Running, routes
from headwater.accounts import openid

UNLISTED = {"/static"}


def concrete(path: str) -> str:
    for name in ("source_id", "post_id", "letter_id", "webhook_id", "delivery_id", "group_id", "tweet_id"):
        path = path.replace(f"{{{name}}}", "1")
    return path.replace("{task_id}", "0199f1de-7a10-7c3e-9d0a-5f3a1c2b4d6e").replace("{content_hash}", "0" * 64)


def test_a_parameter_that_does_not_exist_is_named(program: Client) -> None:
    answer = program.get("/api/stream?unreed=1")
    assert (answer.status, answer.json()["code"]) == (422, "unknown_parameter")
    assert answer.json()["errors"] == [
        {"field": "unreed", "message": "There is no such parameter here. Did you mean unread?"}
    ]
    assert "unreed" in answer.json()["detail"]


def test_no_route_ignores_a_parameter_that_it_does_not_take(headwater: Running) -> None:
    client, browser = headwater.program(), headwater.browser()
    walked = routes(headwater)
    assert len(walked) > 60
    for method, path in walked:
        asker = client if path.startswith("/api/") or method == "GET" else browser
        if asker is browser or path in (openid.CALLBACK, openid.callback_of("{key}")):
            continue  # a form's key is asked for first; providers send along what they like
        answer = asker(method, f"{concrete(path)}?no_such_thing=1&nor_this")
        assert answer.status == 422, f"{method} {path}"
        fields = [error["field"] for error in answer.json()["errors"]]
        assert fields[: len(fields)] == ["no_such_thing"] + ["nor_this"] * (len(fields) - 1), f"{method} {path}"


def test_what_a_route_takes_is_still_taken(program: Client) -> None:
    for path in (
        "/api/stream?unread=true&starred=false&q=x&limit=3&folder=a",
        "/api/sources?limit=3",
        "/api/crawl/metrics?hours=2",
        "/api/dead-letters?state=dead&limit=1",
    ):
        assert program.get(path).status == 200, path


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/api/folding", {"threshold": False}),
        ("PUT", "/api/folding", {"threshold": "0.5"}),
        ("PUT", "/api/folding/sources/{source}", {"fold": 0}),
        ("PUT", "/api/folding/sources/{source}", {"fold": "no"}),
        ("PATCH", "/api/webhooks/{webhook}", {"active": 1}),
        ("PATCH", "/api/webhooks/{webhook}", {"active": "true"}),
        ("PATCH", "/api/posts/{post}", {"starred": 1}),
        ("PATCH", "/api/posts/{post}", {"read": "yes"}),
        ("POST", "/api/posts/mark", {"ids": ["{post}"], "read": True}),
        ("POST", "/api/posts/mark", {"ids": [True], "read": True}),
        ("POST", "/api/queue/schedule-feed", {"feed_id": True}),
        ("POST", "/api/queue/schedule-feed", {"feed_id": 1, "force_immediate": 1}),
        ("POST", "/api/queue/schedule-feed", {"feed_id": 1.5}),
        ("POST", "/api/queue/schedule-feed", {"feed_id": "1"}),
    ],
)
def test_a_value_of_another_type_is_refused(on_both: Running, method: str, path: str, body: dict[str, Any]) -> None:
    client = on_both.program()
    ids = {
        "source": on_both.source(),
        "webhook": client.post("/api/webhooks", {"address": "https://example.org/hook"}).json()["id"],
        "post": 1,
    }
    answer = client(method, path.format(**ids), body)
    assert (answer.status, answer.json()["code"]) == (422, "bad_input"), answer.text


@pytest.mark.parametrize(
    "config",
    [
        {"similarity_threshold": False},
        {"enable_exact_duplicate": 1},
        {"enable_similar_content": "true"},
        {"batch_size": True},
        {"use_embedding_model": 0},
    ],
)
def test_a_run_takes_no_value_of_another_type(program: Client, config: dict[str, Any]) -> None:
    answer = program.post("/api/deduplicate/batch", {"post_ids": [1], "config": config})
    assert (answer.status, answer.json()["code"]) == (400, "bad_configuration")
    assert next(iter(config)) in answer.json()["detail"]


def test_every_address_names_all_methods_it_takes(headwater: Running) -> None:
    client = headwater.program()
    by_path: dict[str, set[str]] = {}
    for method, path in routes(headwater):
        by_path.setdefault(concrete(path), set()).add(method)
    assert sum(len(found) > 1 for found in by_path.values()) >= 9
    for path, methods in by_path.items():
        for method in ("TRACE", *sorted({"PUT", "PATCH", "DELETE"} - methods)):
            answer = client(method, path)
            assert answer.status == 405, f"{method} {path}"
            allowed = set(answer.headers["allow"].split(", "))
            assert allowed >= methods, f"{method} {path}"
            for other in allowed - methods:
                assert client(other, path).status != 405, f"{other} {path}"


def test_files_can_only_be_read(program: Client) -> None:
    answer = program.post("/static/headwater.css")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
