"""`/api/stream` and `/api/posts`, asked over HTTP."""

from __future__ import annotations

import base64
import struct
from datetime import timedelta
from urllib.parse import quote

import pytest

from api.running import Client, Running
from headwater.app.shapes import shaped
from headwater.app.tellings import StoryJson
from headwater.consumers.search import CONSUMER
from headwater.follow.add import follow
from headwater.model import Enclosure, Reader
from headwater.store.posts import stream
from support.log import consume_all
from support.posts import NOON, a_post


def titles(client: Client, path: str) -> list[str]:
    return [item["title"] for item in client.get(path).json()["items"]]


def test_posts_and_stories_are_found_by_their_words(on_both: Running) -> None:
    on_both.publish(on_both.source(), *(a_post(str(n), f"Copper {n}") for n in range(5)), a_post("x", "锂价格"))
    consume_all(on_both.parts.db, CONSUMER)
    client = on_both.program()
    first = client.get("/api/posts?q=copper&limit=3").json()
    second = client.get(f"/api/posts?q=copper&limit=3&cursor={first['next_cursor']}").json()
    found = [item["title"] for item in first["items"] + second["items"]]
    assert found == [f"Copper {n}" for n in (4, 3, 2, 1, 0)]
    assert second["next_cursor"] is None
    assert titles(client, f"/api/stream?q={quote('价格')}") == ["锂价格"]
    assert titles(client, "/api/posts?q=copper&starred=true") == []
    assert client.get("/api/posts?q=%3F%21").status == 422


def test_what_is_unread_is_found_however_much_with_the_same_words_was_read(on_both: Running) -> None:
    posts = [a_post(str(n), f"Copper {n}", created_at=NOON + timedelta(minutes=n)) for n in range(200)]
    ids = on_both.publish(on_both.source(), *posts)
    consume_all(on_both.parts.db, CONSUMER)
    client = on_both.program()
    assert client.post("/api/posts/mark", {"ids": ids[2:], "read": True}).json() == {"marked": 198}
    first = client.get("/api/posts?q=copper&unread=true&limit=1").json()
    assert [item["title"] for item in first["items"]] == ["Copper 1"]
    rest = client.get(f"/api/posts?q=copper&unread=true&limit=1&cursor={first['next_cursor']}").json()
    assert ([item["title"] for item in rest["items"]], rest["next_cursor"]) == (["Copper 0"], None)


def test_a_story_has_the_shape_that_every_way_out_shares(on_both: Running) -> None:
    [post_id] = on_both.publish(on_both.source(), a_post("a", "Rivers"))
    member = {
        "post_id": post_id,
        "source_id": 1,
        "source": "The News",
        "url": "https://news.example/a",
        "title": "Rivers",
        "published_at": "2026-11-02T12:00:00Z",
        "read": False,
        "rule": "first",
        "score": 1.0,
        "why": "",
        "repeat_of": None,
    }
    story = {
        "story_id": str(post_id),
        "title": "Rivers",
        "excerpt": "Text of Rivers",
        "url": "https://news.example/a",
        "source": "The News",
        "published_at": "2026-11-02T12:00:00Z",
        "updated_at": "2026-11-02T12:00:00Z",
        "state": "unread",
        "news": [],
        "tellings": 1,
        "members": [member],
        "signals": [],
        "as_of": 0,
        "thread": None,
    }
    assert on_both.program().get("/api/stream").json() == {"items": [story], "next_cursor": None}
    [stored] = on_both.parts.db.read_now(stream.page, on_both.owner)
    assert shaped(StoryJson, stored) == story


def test_pages_follow_each_other_and_new_posts_do_not_shift_them(on_both: Running) -> None:
    source_id = on_both.source()
    posts = [a_post(str(number), created_at=NOON + timedelta(minutes=number // 2)) for number in range(9)]
    on_both.publish(source_id, *posts)
    client = on_both.program()
    first = client.get("/api/stream?limit=4").json()
    on_both.publish(source_id, a_post("newest", created_at=NOON + timedelta(days=1)))
    second = client.get(f"/api/stream?limit=4&cursor={first['next_cursor']}").json()
    third = client.get(f"/api/stream?limit=4&cursor={second['next_cursor']}").json()
    assert third["next_cursor"] is None
    seen = [item["title"] for page in (first, second, third) for item in page["items"]]
    assert seen == [f"Title of {number}" for number in reversed(range(9))]


@pytest.mark.parametrize(
    "cursor",
    ["x", "%%%", "AAAA", "é", base64.urlsafe_b64encode(struct.pack(">qq", 2**62, 1)).decode(), "A" * 5000],
)
def test_a_cursor_that_we_did_not_make_is_refused(program: Client, cursor: str) -> None:
    for path in ("/api/stream", "/api/posts", "/api/sources"):
        answer = program.get(f"{path}?cursor={quote(cursor)}")
        assert (answer.status, answer.json()["code"]) == (422, "bad_cursor")


def test_an_empty_cursor_is_that_of_the_first_page(on_both: Running) -> None:
    on_both.publish(on_both.source(), a_post("1"), a_post("2"))
    client = on_both.program()
    for path in ("/api/stream", "/api/posts", "/api/sources"):
        assert client.get(f"{path}?cursor=").json() == client.get(path).json()


def test_the_stream_can_be_narrowed_down(on_both: Running) -> None:
    db, owner, now = on_both.parts.db, on_both.owner, on_both.parts.now()
    one = db.write_now(follow, owner, "https://one.example/", now, folder="Science").source_id
    two = db.write_now(follow, owner, "https://two.example/", now).source_id
    [first] = on_both.publish(one, a_post("1", "in a folder"))
    [second] = on_both.publish(two, a_post("2", "elsewhere", created_at=NOON - timedelta(hours=1)))
    client = on_both.program()
    client("PATCH", f"/api/posts/{first}", {"read": True})
    client("PATCH", f"/api/posts/{second}", {"starred": True})
    for path in ("/api/stream", "/api/posts"):
        assert titles(client, path) == ["in a folder", "elsewhere"]
        assert titles(client, f"{path}?folder=Science") == ["in a folder"]
        assert titles(client, f"{path}?source_id={two}") == ["elsewhere"]
        assert titles(client, f"{path}?unread=true") == ["elsewhere"]
        assert titles(client, f"{path}?starred=1") == ["elsewhere"]
        assert titles(client, f"{path}?starred=1&folder=Science") == []


@pytest.mark.parametrize("limit", ["0", "201", "-1", "many", "1e3"])
def test_a_page_has_between_1_and_200_items(program: Client, limit: str) -> None:
    answer = program.get(f"/api/posts?limit={limit}")
    assert (answer.status, answer.json()["errors"][0]["field"]) == (422, "limit")


def test_a_post_is_shown_with_its_text_and_attachments(on_both: Running) -> None:
    sound = Enclosure("https://news.example/a.mp3", "audio/mpeg", 1000)
    [post_id] = on_both.publish(on_both.source(), a_post("a", content="<p>Text</p>", enclosures=(sound,), lang="en"))
    post = on_both.program().get(f"/api/posts/{post_id}").json()
    assert (post["content"], post["lang"], post["read"], post["starred"]) == ("<p>Text</p>", "en", False, False)
    assert post["enclosures"] == [sound._asdict()]


def test_read_and_starred_are_set_and_taken_back(on_both: Running) -> None:
    # D8
    [post_id] = on_both.publish(on_both.source(), a_post("a"))
    client = on_both.program()
    for wanted in ({"read": True}, {"starred": True}, {"read": False}, {"starred": False}):
        answer = client("PATCH", f"/api/posts/{post_id}", wanted)
        assert answer.status == 200
        assert wanted.items() <= answer.json().items()
    assert client("PATCH", f"/api/posts/{post_id}", {}).json() == client.get(f"/api/posts/{post_id}").json()
    assert client("PATCH", f"/api/posts/{post_id + 999}", {"read": True}).status == 404


def test_many_posts_are_marked_at_once(on_both: Running) -> None:
    ids = on_both.publish(on_both.source(), *[a_post(str(number)) for number in range(5)])
    client = on_both.program()
    assert client.post("/api/posts/mark", {"ids": [*ids, 999_999], "read": True}).json() == {"marked": 5}
    assert titles(client, "/api/posts?unread=1") == []
    assert client.post("/api/posts/mark", {"ids": [1] * 1001, "read": True}).status == 422
    assert client.post("/api/posts/mark", {"ids": ids}).json() == {"marked": 5}  # which changes nothing
    assert titles(client, "/api/posts?unread=1") == []


def test_a_post_of_a_source_that_only_others_follow_looks_like_none(on_both: Running) -> None:
    # H68
    other = Reader(on_both.owner.tenant_id, on_both.owner.user_id + 1, "other", "owner")
    [post_id] = on_both.publish(on_both.source(), a_post("a"))
    assert on_both.parts.db.read_now(stream.one_post, other, post_id) is None
    assert on_both.parts.db.read_now(stream.page, other) == []


def test_a_folder_with_characters_a_database_cannot_hold_is_harmless(on_both: Running) -> None:
    # H47
    client = on_both.program()
    assert client.get("/api/stream?folder=%00").status == 422
    assert client.get("/api/stream?folder=%ff%fe").json()["items"] == []
