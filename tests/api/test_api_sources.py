"""`/api/sources`, `/api/queue` and `/api/opml`, asked over HTTP."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from api.running import Client, Running, running
from headwater.follow import opml
from headwater.store import sources
from headwater.wire import utc_now
from support.posts import a_claim, a_post


def test_following_answers_at_once_with_a_new_source_that_is_due(on_both: Running) -> None:
    # D1, D2
    answer = on_both.program().post("/api/sources", {"address": "https://news.example/", "folder": " World "})
    assert answer.status == 202
    source = answer.json()
    assert (source["address"], source["status"], source["folder"]) == ("https://news.example/", "new", "World")
    assert on_both.parts.woken.is_set()
    assert on_both.parts.db.read_now(sources.count_due, on_both.parts.now()) == 1


def test_following_twice_is_a_conflict_that_names_the_source(on_both: Running) -> None:
    # D1
    client = on_both.program()
    first = client.post("/api/sources", {"address": "https://news.example/feed"}).json()
    again = client.post("/api/sources", {"address": "HTTPS://NEWS.example:443/feed#top"})
    assert again.status == 409
    assert (again.json()["code"], again.json()["source_id"]) == ("already_there", first["id"])


def test_what_a_person_types_is_understood_as_an_address(program: Client) -> None:
    assert (
        program.post("/api/sources", {"address": "news.example/blog"}).json()["address"] == "https://news.example/blog"
    )


@pytest.mark.parametrize(
    "address",
    [
        "http://news.example/\r\nX: y",  # H18
        "http://news.example/\tfeed",
        "https://news.example/" + "a" * 1_000_000,  # H19
        "file:///etc/passwd",
        "javascript:alert(1)",
        "",
        "http://",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_in_words(program: Client, address: str) -> None:
    answer = program.post("/api/sources", {"address": address})
    assert answer.status == 422
    assert answer.json()["code"] == "bad_address"
    assert len(answer.body) < 1000


def test_a_lone_surrogate_in_an_address_is_refused(program: Client) -> None:
    # H47
    answer = program.post(
        "/api/sources", b'{"address": "https://news.example/\\ud800"}', Content_Type="application/json"
    )
    assert (answer.status, answer.json()["code"]) == (422, "bad_document")


def test_members_nobody_asked_for_are_ignored(on_both: Running) -> None:
    # H69
    body = {"address": "https://news.example/", "tenant_id": 99, "user_id": 99, "is_admin": True}
    assert on_both.program().post("/api/sources", body).status == 202
    assert len(on_both.parts.db.read_now(sources.followed_ids, on_both.owner)) == 1


def test_the_list_is_paged_and_every_source_is_in_it_once(on_both: Running) -> None:
    wanted = {on_both.source(f"https://host{number}.example/feed") for number in range(7)}
    client = on_both.program()
    seen: list[int] = []
    path = "/api/sources?limit=3"
    while path:
        page = client.get(path).json()
        seen += [source["id"] for source in page["items"]]
        path = f"/api/sources?limit=3&cursor={page['next_cursor']}" if page["next_cursor"] else ""
    assert len(seen) == 7
    assert set(seen) == wanted


def test_one_source_comes_with_its_past_visits(on_both: Running) -> None:
    source_id = on_both.source()
    on_both.publish(source_id, a_post("a"), a_post("b"))
    shown = on_both.program().get(f"/api/sources/{source_id}").json()
    assert (shown["title"], shown["status"], shown["posts"]) == ("The News", "ok", 2)
    assert [(visit["outcome"], visit["new"]) for visit in shown["visits"]] == [("ok", 2)]


def test_a_failed_visit_is_told_with_its_reason_and_since_when(headwater: Running) -> None:
    # D8
    source_id = headwater.source()
    failure = {"outcome": "failed", "status": "failing", "error_code": "timed_out", "error": "Too slow.", "facts": None}
    headwater.publish(source_id, **failure)
    shown = headwater.program().get(f"/api/sources/{source_id}").json()
    assert (shown["status"], shown["last_error"], shown["last_error_code"]) == ("failing", "Too slow.", "timed_out")
    assert shown["failing_since"] is not None


def test_a_source_is_renamed_and_moved_and_only_what_is_given_changes(on_both: Running) -> None:
    client = on_both.program()
    first = client.post("/api/sources", {"address": "https://news.example/feed", "folder": "World"}).json()
    path = f"/api/sources/{first['id']}"
    assert client.patch(path, {"title": "My news"}).json()["title"] == "My news"
    moved = client.patch(path, {"folder": None}).json()
    assert (moved["title"], moved["folder"]) == ("My news", None)
    unchanged = client.patch(path, {}).json()
    assert (unchanged["title"], unchanged["folder"]) == ("My news", None)
    assert client.patch("/api/sources/999", {}).status == 404
    assert client.patch("/api/sources/999", {"folder": "x"}).status == 404


def test_unfollowing_takes_the_source_and_its_posts_out_of_sight(on_both: Running) -> None:
    source_id = on_both.source()
    [post_id] = on_both.publish(source_id, a_post("a"))
    client = on_both.program()
    assert client("DELETE", f"/api/sources/{source_id}").status == 204
    # H68: what is not followed looks exactly like what does not exist
    unknown = client.get(f"/api/sources/{source_id + 999}").json()
    hidden = client.get(f"/api/sources/{source_id}").json()
    assert {**hidden, "detail": ""} == {**unknown, "detail": ""}
    assert client.get(f"/api/posts/{post_id}").status == 404
    assert client("DELETE", f"/api/sources/{source_id}").status == 404
    assert client.post(f"/api/sources/{source_id}/refresh").status == 404


@pytest.mark.parametrize("source_id", ["0", "-1", "abc", "9" * 30, "1.5"])
def test_an_id_that_cannot_be_one_is_refused(program: Client, source_id: str) -> None:
    answer = program.get(f"/api/sources/{source_id}")
    assert answer.status == 422
    assert answer.json()["errors"][0]["field"] == "source_id"


def test_a_refresh_is_queued_unless_a_visit_is_under_way(on_both: Running) -> None:
    # D3
    source_id = on_both.source()
    on_both.publish(source_id)
    client = on_both.program()
    answer = client.post(f"/api/sources/{source_id}/refresh")
    assert (answer.status, answer.json()) == (202, {"status": "queued"})
    on_both.parts.db.write_now(a_claim, source_id, on_both.parts.now())
    assert client.post(f"/api/sources/{source_id}/refresh").json() == {"status": "already_running"}


def test_refreshing_all_makes_everything_due(headwater: Running) -> None:
    for number in range(3):
        headwater.publish(headwater.source(f"https://host{number}.example/"))
    assert headwater.program().post("/api/sources/refresh").json() == {"asked": 3}
    assert headwater.parts.db.read_now(sources.count_due, headwater.parts.now()) == 3


def test_a_scheduled_visit_waits_for_what_remains_of_the_interval(tmp_path: Path) -> None:
    # D3, D4
    clock = [utc_now()]
    with running(f"sqlite:///{tmp_path / 'headwater.db'}", now=lambda: clock[0]) as headwater:
        source_id = headwater.source()
        headwater.publish(source_id)  # fetched now, next time in 30 minutes
        clock[0] += timedelta(minutes=10)
        client = headwater.program()
        scheduled = client.post("/api/queue/schedule-feed", {"feed_id": source_id}).json()
        assert (scheduled["status"], scheduled["delay_seconds"]) == ("queued", 20 * 60)
        assert scheduled["task_id"]
        assert client.post("/api/queue/schedule-feed", {"feed_id": source_id}).json() == scheduled
        forced = client.post("/api/queue/schedule-feed", {"feed_id": source_id, "force_immediate": True}).json()
        assert (forced["status"], forced["delay_seconds"]) == ("queued", 0)
        headwater.parts.db.write_now(a_claim, source_id, clock[0])
        running_now = client.post("/api/queue/schedule-feed", {"feed_id": source_id, "force_immediate": True}).json()
        assert (running_now["status"], running_now["delay_seconds"]) == ("already_running", 0)


def test_an_opml_list_goes_in_and_comes_out_again(on_both: Running) -> None:
    client = on_both.program()
    document = (
        b"<opml><body><outline text='Science'><outline text='One' xmlUrl='https://one.example/feed'/></outline>"
        b"<outline xmlUrl='https://two.example/feed'/><outline xmlUrl='ftp://three.example/'/></body></opml>"
    )
    report = client.post("/api/opml", document, Content_Type="text/x-opml").json()
    assert (report["added"], report["already"]) == (2, 0)
    assert [refused["address"] for refused in report["refused"]] == ["ftp://three.example/"]
    assert client.post("/api/opml", document).json()["already"] == 2
    answer = client.get("/api/opml")
    assert "attachment" in answer.headers["content-disposition"]
    outlines = opml.read(answer.body)
    assert {(one.address, one.folder) for one in outlines} == {
        ("https://one.example/feed", "Science"),
        ("https://two.example/feed", None),
    }


def test_a_list_of_several_thousand_sources_is_taken_whole(headwater: Running) -> None:
    # H50
    outlines = "".join(f"<outline xmlUrl='https://host{number}.example/feed'/>" for number in range(2000))
    report = headwater.program().post("/api/opml", f"<opml><body>{outlines}</body></opml>".encode()).json()
    assert (report["added"], report["refused"]) == (2000, [])


def test_a_hostile_list_is_refused(program: Client) -> None:
    # H51
    document = b'<!DOCTYPE opml [<!ENTITY x SYSTEM "file:///etc/passwd">]><opml><outline text="&x;" xmlUrl="http://a/"/></opml>'
    answer = program.post("/api/opml", document)
    assert (answer.status, answer.json()["code"]) == (422, "bad_document")
