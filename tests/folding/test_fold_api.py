"""Stories over HTTP and in the terminal: shown with reasons, undone for good, asked for by hand (C5, C8, C9)."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from api.running import Running
from folding.flood import ELECTION, FLOOD, FLOOD_AGAIN, FLOOD_TOLD, begins, decide, fold, joins, publish
from headwater.store import migrate
from support import forked
from support.posts import a_post
from support.services import as_owner

PLACES = ("Halvorsen", "Brekke", "Lindal", "Osterby")


def test_posts_are_folded_by_hand_and_those_decided_are_skipped(on_both: Running) -> None:  # C6, C9
    ids = publish(on_both, FLOOD, FLOOD_AGAIN, ELECTION, FLOOD_TOLD)
    client = on_both.program()
    first = client.post("/api/deduplicate/batch", {"tweet_ids": ids[:2]}).json()
    assert (first["status"], first["decided"], first["already_decided"]) == ("completed", 2, 0)
    assert first["task_id"]
    second = client.post("/api/deduplicate/batch", {"post_ids": ids}).json()
    assert (second["decided"], second["already_decided"]) == (2, 2)
    assert [(one["post_id"], one["rule"]) for one in first["joined"] + second["joined"]] == [
        (ids[1], "exact"),
        (ids[3], "story"),
    ]


def test_a_story_is_shown_with_its_members_and_reasons(on_both: Running) -> None:  # C4, C5, C9
    ids = publish(on_both, FLOOD, FLOOD_AGAIN, ELECTION)
    fold(on_both, ids)
    client = on_both.program()
    story = client.get(f"/api/deduplicate/posts/{ids[1]}").json()
    assert story == client.get(f"/api/deduplicate/tweets/{ids[0]}").json()
    assert client.get(f"/api/deduplicate/tweets/{'9' * 19}").status == 404  # more than a database can hold
    assert story == client.get(f"/api/deduplicate/groups/{story['group_id']}").json()
    assert story["representative"] == ids[0]
    assert [member["repeat_of"] for member in story["members"]] == [None, ids[0]]
    assert [(past["action"], past["post_id"]) for past in story["history"]] == [("joined", ids[1])]
    [_, entry] = client.get("/api/stream").json()["items"]
    assert [member["post_id"] for member in entry["members"]] == ids[:2]
    assert client.get(f"/api/deduplicate/posts/{ids[2]}").status == 404
    assert client.get("/api/deduplicate/groups/999999").status == 404


def test_a_telling_without_a_title_is_shown_by_its_first_words(on_both: Running) -> None:
    ids = []
    for place in ("one", "two"):
        post = a_post(place, content=f"<p>{FLOOD}</p>", created_at=on_both.parts.now())
        ids += on_both.publish(on_both.source(f"https://{place}.example/feed"), post._replace(title=""))
    decide(on_both, begins(ids[0]), joins(ids[1], ids[0]))
    story = on_both.program().get(f"/api/deduplicate/posts/{ids[1]}").json()
    assert [member["title"] for member in story["members"]] == [FLOOD, FLOOD]


def test_a_story_is_undone_once_and_stays_undone(on_both: Running) -> None:  # C5, C9
    ids = publish(on_both, FLOOD, FLOOD_AGAIN, ELECTION)
    fold(on_both, ids)
    client = on_both.program()
    done = client("DELETE", f"/api/deduplicate/groups/{ids[0]}")
    assert (done.status, done.json()) == (200, {"success": True, "post_ids": ids[:2], "for_everybody": False})
    again = client("DELETE", f"/api/deduplicate/groups/{ids[0]}")
    assert (again.status, again.json()["code"]) == (409, "already_undone")
    assert client("DELETE", f"/api/deduplicate/groups/{ids[2]}").status == 404
    client.post("/api/deduplicate/batch", {"post_ids": ids})
    assert len(client.get("/api/stream").json()["items"]) == 3


def test_one_post_is_said_to_be_something_else(on_both: Running) -> None:  # C5
    ids = publish(on_both, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
    fold(on_both, ids)
    client = on_both.program()
    assert client.post(f"/api/deduplicate/posts/{ids[2]}/apart").json()["post_ids"] == [ids[2]]
    assert len(client.get("/api/stream").json()["items"]) == 2
    assert client.post(f"/api/deduplicate/posts/{ids[2]}/apart").status == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"post_ids": [1], "config": {"similarity_threshold": 1.5}}, "config.similarity_threshold"),
        ({"post_ids": [1], "config": {"deduplication_method": "magic"}}, "config.deduplication_method"),
        ({"post_ids": [1], "config": {"batch_size": 0}}, "config.batch_size"),
        ({"post_ids": [1], "config": {"colour": "red"}}, "config.colour"),
        ({"post_ids": [1], "config": {"use_embedding_model": True}}, "config.use_embedding_model"),
        ({"post_ids": []}, "post_ids"),
        ({"post_ids": ["x"]}, "post_ids.0"),
    ],
)
def test_a_wrong_configuration_is_an_error_that_names_the_field(
    headwater: Running, body: dict[str, Any], field: str
) -> None:  # C8, C9
    answer = headwater.program().post("/api/deduplicate/batch", body)
    assert (answer.status, answer.json()["code"]) == (400, "bad_configuration")
    assert field in answer.json()["detail"]


def test_unknown_posts_are_not_found(headwater: Running) -> None:  # C9
    answer = headwater.program().post("/api/deduplicate/batch", {"post_ids": [77]})
    assert (answer.status, answer.json()["missing"]) == (404, [77])


def test_a_lost_store_is_503_on_every_route_of_folding(on_both: Running) -> None:  # C9
    ids = publish(on_both, FLOOD, FLOOD_AGAIN)
    client = on_both.program()
    with as_owner(on_both.parts.db) as db:
        migrate.downgrade(db, "base")
    for method, path, body in (
        ("POST", "/api/deduplicate/batch", {"post_ids": ids}),
        ("GET", f"/api/deduplicate/groups/{ids[0]}", None),
        ("GET", f"/api/deduplicate/posts/{ids[0]}", None),
        ("GET", f"/api/deduplicate/tweets/{ids[0]}", None),
        ("DELETE", f"/api/deduplicate/groups/{ids[0]}", None),
    ):
        answer = client(method, path, body)
        assert answer.status == 503, path
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] in ("store_unavailable", "schema_mismatch"), path


def test_a_manual_run_proposes_and_a_hybrid_one_folds_exact_repeats(on_both: Running) -> None:  # C8
    ids = publish(on_both, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
    client = on_both.program()
    proposed = client.post("/api/deduplicate/batch", {"post_ids": ids, "config": {"deduplication_method": "manual"}})
    assert (proposed.json()["status"], len(proposed.json()["joined"])) == ("proposed", 2)
    assert len(client.get("/api/stream").json()["items"]) == 3
    client.post("/api/deduplicate/batch", {"post_ids": ids, "config": {"deduplication_method": "hybrid"}})
    assert len(client.get("/api/stream").json()["items"]) == 2


def test_a_thousand_posts_are_folded_by_one_request(on_both: Running) -> None:  # C10
    source_id = on_both.source()
    titles = [f"{place} mine number {number} reports its yearly output" for number in range(250) for place in PLACES]
    now = on_both.parts.now()
    ids = on_both.publish(source_id, *(a_post(title, title, content="", created_at=now) for title in titles))
    run = on_both.program().post("/api/deduplicate/batch", {"post_ids": ids, "config": {"batch_size": 400}}).json()
    assert (run["decided"], run["already_decided"]) == (1000, 0)
    again = on_both.program().post("/api/deduplicate/batch", {"post_ids": ids}).json()
    assert (again["decided"], again["already_decided"]) == (0, 1000)


def test_a_reader_chooses_how_much_is_folded(on_both: Running) -> None:  # C8
    ids = publish(on_both, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
    fold(on_both, ids)
    client = on_both.program()
    assert client.get("/api/folding").json() == {"level": "stories", "threshold": 0.0}
    assert client("PUT", "/api/folding", {"level": "repeats"}).json() == {"level": "repeats", "threshold": 0.0}
    assert len(client.get("/api/stream").json()["items"]) == 2
    assert client("PUT", "/api/folding", {"level": "everything"}).status == 422
    assert client("PUT", "/api/folding", {"threshold": 2}).status == 422
    [first, *_] = client.get("/api/sources").json()["items"]
    assert client("PUT", f"/api/folding/sources/{first['id']}", {"fold": False}).json() == {"fold": False}
    assert len(client.get("/api/stream").json()["items"]) == 3
    assert client("PUT", "/api/folding/sources/999", {"fold": False}).status == 404


def test_a_stranger_learns_nothing_of_a_story(headwater: Running) -> None:  # H68
    ids = publish(headwater, FLOOD, FLOOD_AGAIN)
    fold(headwater, ids)
    for method, path in (
        ("GET", f"/api/deduplicate/groups/{ids[0]}"),
        ("DELETE", f"/api/deduplicate/groups/{ids[0]}"),
        ("POST", f"/api/deduplicate/posts/{ids[0]}/apart"),
    ):
        assert headwater.stranger(method, path).status == 401


def test_the_terminal_runs_shows_explains_and_undoes(headwater: Running) -> None:
    a, b, c, d = publish(headwater, FLOOD, FLOOD_AGAIN, ELECTION, FLOOD_TOLD)
    environ = {**os.environ, "HEADWATER_DATABASE_URL": headwater.parts.settings.store_url()}

    def run(*words: object) -> Any:
        result = forked.run("-m", "headwater", "dedup", *map(str, words), "--json", env=environ)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    assert len(run("run", "--dry-run")["joined"]) == 2
    assert run("run")["decided"] == 4
    assert run("run")["decided"] == 0
    assert [member["post_id"] for member in run("show", d)["members"]] == [a, b, d]
    assert run("explain", a, b)["relation"] == "exact"
    assert run("explain", d, a) == run("explain", a, d)
    assert run("explain", a, c)["relation"] == "none"
    assert run("undo", a, "--post", d) == {"post_ids": [d], "for_everybody": False}
    assert run("undo", b) == {"post_ids": [a, b], "for_everybody": False}
    assert run("explain", a, b)["told_apart"]
