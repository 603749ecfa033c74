"""The contract of de-duplication: its group shape, ids of X, tasks, 400 and 409, lists by type and time (C12, C13)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from api.running import Running, running
from folding.flood import ELECTION, FLOOD, FLOOD_AGAIN, FLOOD_TOLD, fold, publish
from headwater.consumers.fold import FoldOptions
from headwater.ids import uuid7
from headwater.store.stories import runs
from headwater.wire import utc_now
from support.posts import a_post

SHAPE = {
    "group_id",
    "representative_tweet_id",
    "deduplication_type",
    "similarity_score",
    "tweet_ids",
    "created_at",
}


def of_x(headwater: Running, *tweets: tuple[str, str]) -> list[int]:
    """Posts of two accounts of X: (id at X, text) each. Returns their ids here."""
    now = headwater.parts.now() - timedelta(hours=1)
    ids = []
    for number, (tweet_id, words) in enumerate(tweets):
        source_id = headwater.source(f"@account{number}")
        post = a_post(tweet_id, words, content="", created_at=now + timedelta(minutes=number))
        ids += headwater.publish(source_id, post)
    return ids


def test_a_group_has_the_shape_of_the_document_beside_ours(on_both: Running) -> None:  # C12
    ids = of_x(on_both, ("1876543210987654321", FLOOD), ("1876543210987654999", FLOOD_AGAIN))
    client = on_both.program()
    run = client.post("/api/deduplicate/batch", {"tweet_ids": ["1876543210987654321", "1876543210987654999"]})
    assert (run.status, run.json()["status"], run.json()["decided"]) == (200, "completed", 2)
    group = client.get("/api/deduplicate/tweets/1876543210987654999").json()
    assert group.keys() >= SHAPE
    assert group["group_id"] == ids[0]
    assert group["representative_tweet_id"] == "1876543210987654321"
    assert group["tweet_ids"] == ["1876543210987654321", "1876543210987654999"]
    assert (group["deduplication_type"], group["similarity_score"]) == ("exact_duplicate", None)
    assert group["created_at"] == group["history"][0]["at"]
    assert group == client.get(f"/api/deduplicate/tweets/{ids[1]}").json(), "an id here is taken as well"


def test_posts_from_elsewhere_are_named_by_their_ids_here(on_both: Running) -> None:  # C12
    ids = publish(on_both, FLOOD, FLOOD_TOLD)
    fold(on_both, ids)
    group = on_both.program().get(f"/api/deduplicate/groups/{ids[0]}").json()
    assert group["tweet_ids"] == [str(one) for one in ids]
    assert (group["deduplication_type"], group["similarity_score"]) == ("similar_content", group["members"][1]["score"])


def test_the_threshold_of_the_document_is_its_default(headwater: Running) -> None:  # C12
    ids = publish(headwater, FLOOD, FLOOD_TOLD)
    client = headwater.program()
    manual = {"deduplication_method": "manual"}
    by_document = {"tweet_ids": [str(one) for one in ids], "config": manual}
    assert client.post("/api/deduplicate/batch", by_document).json()["joined"] == []
    [joined] = client.post("/api/deduplicate/batch", {"post_ids": ids, "config": manual}).json()["joined"]
    assert joined["score"] < 0.85
    by_document["config"] = {**manual, "similarity_threshold": 0.8}
    assert len(client.post("/api/deduplicate/batch", by_document).json()["joined"]) == 1


def test_a_run_is_a_task_whose_result_can_be_asked_for(on_both: Running) -> None:  # C12
    ids = publish(on_both, FLOOD, FLOOD_AGAIN)
    client = on_both.program()
    run = client.post("/api/deduplicate/batch", {"post_ids": ids}).json()
    task = client.get(f"/api/deduplicate/tasks/{run['task_id']}").json()
    assert (task["task_id"], task["status"], task["error"]) == (run["task_id"], "completed", None)
    assert task["result"] == run
    assert task["started_at"] <= task["finished_at"]
    assert client.get(f"/api/deduplicate/tasks/{uuid7()}").status == 404


def test_a_finished_run_publishes_an_event(on_both: Running) -> None:  # C13
    ids = publish(on_both, FLOOD, FLOOD_AGAIN)
    run = on_both.program().post("/api/deduplicate/batch", {"post_ids": ids}).json()
    with on_both.parts.db.engine.connect() as conn:
        rows = conn.exec_driver_sql("SELECT CAST(payload AS TEXT) FROM event_outbox WHERE kind = 'story.run_finished'")
        [payload] = rows.scalars()
    assert run["task_id"] in payload


def test_the_same_posts_are_not_decided_twice_at_once(store_url: str) -> None:  # C12
    clock = [utc_now()]
    with running(store_url, now=lambda: clock[0]) as headwater:
        ids = publish(headwater, FLOOD, FLOOD_AGAIN, ELECTION)
        client, db = headwater.program(), headwater.parts.db
        other = uuid7()  # as another process would begin it
        assert db.write_now(runs.begin, headwater.owner, other, ids[:2], clock[0], timedelta(minutes=10)) == []
        refused = client.post("/api/deduplicate/batch", {"post_ids": ids})
        assert (refused.status, refused.json()["code"]) == (409, "being_decided")
        assert refused.json()["post_ids"] == ids[:2]
        assert client.post("/api/deduplicate/batch", {"post_ids": ids[2:]}).status == 200
        assert client.get(f"/api/deduplicate/tasks/{other}").json()["status"] == "running"
        clock[0] += timedelta(minutes=11)  # it was killed, and its lease is over
        assert client.get(f"/api/deduplicate/tasks/{other}").json()["status"] == "failed"
        assert client.post("/api/deduplicate/batch", {"post_ids": ids}).json()["decided"] == 2
        clock[0] += timedelta(hours=24)
        assert client.get(f"/api/deduplicate/tasks/{other}").status == 404


def test_groups_are_listed_by_type_and_time(store_url: str) -> None:  # C13
    clock = [utc_now() - timedelta(hours=5)]
    with running(store_url, now=lambda: clock[0]) as headwater:
        exact = publish(headwater, FLOOD, FLOOD_AGAIN)
        fold(headwater, exact)
        clock[0] += timedelta(hours=1)
        between = clock[0].isoformat().replace("+00:00", "Z")
        clock[0] += timedelta(hours=1)
        other = "Grain ship Alba runs aground off Cape Torvald with nine sailors aboard"
        told = "Nine sailors aboard grain ship Alba, aground off Cape Torvald"
        similar = publish(headwater, other, told)
        fold(headwater, similar)
        client = headwater.program()

        def listed(query: str = "") -> list[int]:
            return [one["group_id"] for one in client.get(f"/api/deduplicate/groups{query}").json()["items"]]

        assert listed() == [similar[0], exact[0]]
        assert listed("?type=exact_duplicate") == [exact[0]]
        assert listed("?type=similar_content") == [similar[0]]
        assert listed(f"?since={between}") == [similar[0]]
        assert listed(f"?until={between}") == [exact[0]]
        page = client.get("/api/deduplicate/groups?limit=1").json()
        assert [one["group_id"] for one in page["items"]] == [similar[0]]
        assert listed(f"?limit=1&cursor={page['next_cursor']}") == [exact[0]]
        client("DELETE", f"/api/deduplicate/groups/{exact[0]}")
        assert listed() == [similar[0]]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/deduplicate/groups/abc", None),
        ("GET", "/api/deduplicate/groups/0", None),
        ("DELETE", "/api/deduplicate/groups/abc", None),
        ("GET", "/api/deduplicate/tweets/abc", None),
        ("GET", "/api/deduplicate/posts/x", None),
        ("GET", "/api/deduplicate/tasks/nothing", None),
        ("GET", "/api/deduplicate/groups?type=other", None),
        ("GET", "/api/deduplicate/groups?since=yesterday", None),
        ("POST", "/api/deduplicate/batch", b"{"),
        ("POST", "/api/deduplicate/batch", b"[]"),
        ("POST", "/api/deduplicate/batch", {"tweet_ids": ["abc"]}),
        ("POST", "/api/deduplicate/batch", {"tweet_ids": [True]}),
        ("POST", "/api/deduplicate/batch", {}),
    ],
)
def test_a_body_or_an_id_of_the_wrong_form_is_a_400(headwater: Running, method: str, path: str, body: Any) -> None:
    # C12
    given = {"Content_Type": "application/json"} if isinstance(body, bytes) else {}
    answer = headwater.program()(method, path, body, **given)
    assert (answer.status, answer.json()["status"]) == (400, 400), answer.text


def test_a_search_for_stories_that_takes_too_long_falls_back_to_repeats(store_url: str) -> None:  # C13
    with running(store_url, HEADWATER_FOLD_RUN_SECONDS="0") as headwater:
        ids = publish(headwater, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
        client = headwater.program()
        run = client.post("/api/deduplicate/batch", {"post_ids": ids}).json()
        assert [(one["post_id"], one["rule"]) for one in run["joined"]] == [(ids[1], "exact")]
        assert "too long" in run["degraded"]
        assert client.get(f"/api/deduplicate/tasks/{run['task_id']}").json()["result"]["degraded"] == run["degraded"]
    assert FoldOptions().story_seconds is None, "what is folded after the crawl takes its time"
