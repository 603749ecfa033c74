"""The contract of de-duplication: its group shape, ids of X, tasks, 400 and 409, lists by type and time (C12, C13)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from api.running import Running, running
from folding.flood import ELECTION, FLOOD, FLOOD_AGAIN, FLOOD_TOLD, begins, fold, joins, publish
from headwater import wire
from headwater.app import groups
from headwater.app.groups import GroupFilter
from headwater.cli.commands import program
from headwater.consumers.fold import FoldOptions
from headwater.errors import BadSetting
from headwater.ids import uuid7
from headwater.settings import load
from headwater.store import stories
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
    ids = publish(headwater, FLOOD, "Copper mine at Halvorsen flooded as river bursts banks")
    client = headwater.program()
    manual = {"deduplication_method": "manual"}
    by_document = {"tweet_ids": [str(one) for one in ids], "config": manual}
    assert client.post("/api/deduplicate/batch", by_document).json()["joined"] == []
    [joined] = client.post("/api/deduplicate/batch", {"post_ids": ids, "config": manual}).json()["joined"]
    assert joined["score"] < 0.85
    by_document["config"] = {**manual, "similarity_threshold": 0.7}
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
    words = "SELECT CAST(payload AS TEXT) FROM event_outbox WHERE kind = 'story.run_finished'"
    [payload] = on_both.parts.db.read_now(lambda conn: conn.exec_driver_sql(words).scalars().all())
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


def test_a_dry_run_in_batches_sees_what_its_earlier_batches_would_fold(headwater: Running) -> None:  # C12
    ids = publish(headwater, FLOOD, ELECTION, FLOOD_AGAIN)
    config = {"deduplication_method": "manual", "batch_size": 1}
    run = headwater.program().post("/api/deduplicate/batch", {"post_ids": ids, "config": config}).json()
    assert (run["status"], [(one["post_id"], one["story_id"]) for one in run["joined"]]) == (
        "proposed",
        [(ids[2], ids[0])],
    )


def test_every_story_is_listed_however_many_there_are(on_both: Running) -> None:  # C12
    papers = [on_both.source(f"https://paper{number}.example/feed") for number in range(2)]
    texts = [a_post(f"{number}", f"Notice {number}", content="") for number in range(7)]
    pairs = list(zip(*(on_both.publish(source_id, *texts) for source_id in papers), strict=True))
    told = [one for a, b in pairs for one in (begins(a), joins(b, a, "exact" if a % 2 else "story"))]
    on_both.parts.db.write_now(stories.save, told, on_both.parts.now())
    all_of_them = [a for a, _ in reversed(pairs)]
    client = on_both.program()
    listed, cursor, pages = [], "", 0
    while cursor is not None:
        page = client.get(f"/api/deduplicate/groups?limit=3{cursor}").json()
        listed += [one["group_id"] for one in page["items"]]
        cursor, pages = f"&cursor={page['next_cursor']}" if page["next_cursor"] else None, pages + 1
    assert (listed, pages) == (all_of_them, 3)
    exact, before, pages = [], None, 0
    while pages == 0 or before is not None:  # if few are wanted of many, a page ends early, and says where
        wanted = {"before": before, "limit": 3, "look_at": 2}
        found, before = on_both.parts.db.read_now(groups.page, on_both.owner, GroupFilter("exact_duplicate"), **wanted)
        exact, pages = exact + [one.id for one in found], pages + 1
    assert (exact, pages) == ([a for a in all_of_them if a % 2], 4)
    (one, _), (other, _), *_ = pairs
    assert on_both.parts.db.write_now(stories.meet, one, other, 0.9, "", on_both.parts.now())
    listed = [group["group_id"] for group in client.get("/api/deduplicate/groups").json()["items"]]
    assert len(listed) == len(set(listed)) == 6, "two stories that became one are listed once"
    client("DELETE", f"/api/sources/{papers[1]}")
    assert client.get("/api/deduplicate/groups").json() == {"items": [], "next_cursor": None}


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


ENDLESS_RUN = """
import asyncio, sys
from datetime import timedelta
from headwater import wire
from headwater.app import groups, stories
from headwater.consumers.fold import FoldOptions
from headwater.settings import load

async def endless(*args, **kwargs):
    print("begun", flush=True)
    await asyncio.sleep(3600)

groups.LEASE, groups.RENEW_SECONDS, stories.fold_posts = timedelta(seconds=2), 0.2, endless
parts = wire.open_parts(load({"HEADWATER_DATABASE_URL": sys.argv[1]}))
reader, ids = wire.prepare_store(parts), [int(one) for one in sys.argv[2:]]
asyncio.run(groups.run_task(parts.db, parts.folding, reader, ids, FoldOptions(), parts.now, batch_size=10))
"""


def test_a_run_has_its_posts_until_it_ends_or_its_process_is_killed(store_url: str) -> None:  # C12
    with running(store_url) as headwater:
        ids = publish(headwater, FLOOD, FLOOD_AGAIN)
        client = headwater.program()
        words = [sys.executable, "-c", ENDLESS_RUN, store_url, *map(str, ids)]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            time.sleep(3)  # longer than its lease, which it renews
            assert client.post("/api/deduplicate/batch", {"post_ids": ids}).status == 409
            process.kill()
        deadline = time.monotonic() + 60
        while (answer := client.post("/api/deduplicate/batch", {"post_ids": ids})).status == 409:
            assert time.monotonic() < deadline, "the posts of a dead run are still taken"
            time.sleep(0.2)
        assert answer.json()["decided"] == 2


def joined(headwater: Running, ids: list[int], **config: Any) -> list[str]:
    """The rules by which posts would join others."""
    body = {"post_ids": ids, "config": {"deduplication_method": "manual", **config}}
    answer = headwater.program().post("/api/deduplicate/batch", body)
    assert answer.status == 200, answer.text
    return [one["rule"] for one in answer.json()["joined"]]


def test_the_configuration_of_the_server_holds_for_runs_until_they_say_otherwise(store_url: str) -> None:  # C14
    settings = {"FOLD_EXACT": "false", "FOLD_THRESHOLD": "0.1", "FOLD_METHOD": "hybrid", "FOLD_BATCH_SIZE": "7"}
    with running(store_url, **{f"HEADWATER_{name}": value for name, value in settings.items()}) as headwater:
        ids = publish(headwater, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
        assert joined(headwater, ids) == ["story"]
        assert joined(headwater, ids, enable_exact_duplicate=True) == ["exact", "story"]
        assert joined(headwater, ids, enable_exact_duplicate=True, deduplication_method="hybrid") == ["exact"]
        assert headwater.program().get("/api/folding/runs").json() == {
            "similarity_threshold": 0.1,
            "enable_exact_duplicate": False,
            "enable_similar_content": True,
            "deduplication_method": "hybrid",
            "use_embedding_model": False,
            "embedding_model": "wordllama",
            "batch_size": 7,
        }


def test_what_a_reader_chose_holds_for_their_runs_until_one_says_otherwise(on_both: Running) -> None:  # C8, C14
    ids = publish(on_both, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
    client = on_both.program()
    assert joined(on_both, ids) == ["exact", "story"]
    chosen = client("PUT", "/api/folding/runs", {"enable_similar_content": False, "batch_size": 20})
    assert chosen.json()["enable_similar_content"] is False
    assert client.get("/api/folding/runs").json()["batch_size"] == 20
    assert client.get("/api/folding").json() == {"level": "stories", "threshold": 0.0}
    assert joined(on_both, ids) == ["exact"]
    assert joined(on_both, ids, enable_similar_content=True) == ["exact", "story"]
    assert client("PUT", "/api/folding", {"level": "repeats"}).json() == {"level": "repeats", "threshold": 0.0}
    assert client.get("/api/folding/runs").json()["batch_size"] == 20
    assert client("PUT", "/api/folding/runs", {}).json()["batch_size"] == 1000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("similarity_threshold", 1.5),
        ("similarity_threshold", "0.5"),
        ("enable_exact_duplicate", 1),
        ("enable_similar_content", "no"),
        ("deduplication_method", "magic"),
        ("use_embedding_model", True),
        ("embedding_model", "text-embedding-3-small"),
        ("batch_size", 0),
        ("colour", "red"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_by_its_name(headwater: Running, field: str, value: Any) -> None:  # C8, C14
    client = headwater.program()
    for method, path, body in (
        ("PUT", "/api/folding/runs", {field: value}),
        ("POST", "/api/deduplicate/batch", {"post_ids": [1], "config": {field: value}}),
    ):
        answer = client(method, path, body)
        assert (answer.status, answer.json()["code"]) == (400, "bad_configuration")
        assert answer.json()["field"].endswith(field)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HEADWATER_FOLD_THRESHOLD", "2"),
        ("HEADWATER_FOLD_EXACT", "perhaps"),
        ("HEADWATER_FOLD_SIMILAR", "perhaps"),
        ("HEADWATER_FOLD_METHOD", "magic"),
        ("HEADWATER_FOLD_EMBEDDINGS", "perhaps"),
        ("HEADWATER_FOLD_EMBEDDING_MODEL", "text-embedding-3-small"),
        ("HEADWATER_FOLD_BATCH_SIZE", "0"),
    ],
)
def test_a_setting_of_folding_that_cannot_be_is_refused_by_its_name(variable: str, value: str) -> None:  # C14
    with pytest.raises(BadSetting, match=f"^{variable}: "):
        load({variable: value})


@pytest.mark.parametrize(
    ("method", "entries"),
    [("auto", 1), ("hybrid", 2), ("manual", 3)],
)
def test_the_method_says_what_is_folded_of_what_arrives(store_url: str, method: str, entries: int) -> None:  # C14
    with running(store_url, HEADWATER_FOLD_METHOD=method) as headwater:
        ids = publish(headwater, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
        asyncio.run(wire.catch_up(headwater.parts))
        client = headwater.program()
        assert len(client.get("/api/stream").json()["items"]) == entries
        asked = client.post("/api/deduplicate/batch", {"post_ids": ids, "config": {"deduplication_method": "auto"}})
        assert asked.json()["decided"] == (3 if method == "manual" else 0)


def test_the_terminal_folds_as_it_is_told_and_else_as_chosen(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # C14
    monkeypatch.setenv("HEADWATER_DATABASE_URL", store_url)
    with running(store_url) as headwater:
        publish(headwater, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
        headwater.program()("PUT", "/api/folding/runs", {"enable_exact_duplicate": False})
        for words, count in (((), 1), (("--exact",), 2), (("--exact", "--no-similar"), 1), (("--threshold", "1"), 0)):
            ran = CliRunner().invoke(program(), ["dedup", "run", "--method", "manual", *words], catch_exceptions=False)
            assert ran.output.splitlines()[-1] == f"3 posts decided, {count} would join a story."
        assert CliRunner().invoke(program(), ["dedup", "run", "--method", "magic"]).exit_code != 0
