"""Discourse and Flarum by their JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import ReadFailed, TooDeep
from headwater.model import Image, Item, Page, Reference, Response, Source, SourceState
from headwater.sources import forum
from support.posts import NOON

SITE = "https://talk.example"
DISCOURSE = Source(1, "forum", f"{SITE}/c/fans/2", settings={"profile": "discourse"})
FLARUM = Source(1, "forum", f"{SITE}/t/fans", settings={"profile": "flarum"})
TOPIC = {
    "id": 12,
    "title": "Which fan?",
    "posts_count": 3,
    "bumped_at": "2024-03-05T13:00:00.000Z",
    "created_at": "2024-03-05T12:30:00.000Z",
}
POST = {
    "id": 501,
    "post_number": 1,
    "username": "alder",
    "created_at": "2024-03-05T12:30:00.000Z",
    "cooked": '<p>Quiet? <img src="/fan.png" alt="a fan"><script>evil()</script></p>',
    "actions_summary": [{"id": 2, "count": 4}],
}


def answer(document: Any, url: str) -> Response:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return Response(url, 200, {"content-type": "application/json"}, body, NOON)


def listed(document: Any, url: str = f"{SITE}/c/fans/2/l/latest.json") -> Page:
    return forum.read(DISCOURSE, SourceState(), answer(document, url))


def told(document: Any, url: str = f"{SITE}/t/12.json") -> Page:
    return forum.read_item(DISCOURSE, Item("12", url, "Which fan?"), answer(document, url))


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        (f"{SITE}/", f"{SITE}/latest.json"),
        (f"{SITE}/latest", f"{SITE}/latest.json"),
        (f"{SITE}/top?period=weekly", f"{SITE}/top.json?period=weekly"),
        (f"{SITE}/c/fans/2", f"{SITE}/c/fans/2/l/latest.json"),
        (f"{SITE}/c/fans/quiet/7/", f"{SITE}/c/fans/quiet/7/l/latest.json"),
        (f"{SITE}/tag/quiet", f"{SITE}/tag/quiet/l/latest.json"),
        (f"{SITE}/forum/c/fans/2", f"{SITE}/forum/c/fans/2/l/latest.json"),
        (f"{SITE}/latest.json", f"{SITE}/latest.json"),
    ],
)
def test_discourse_is_asked_for_the_list_that_an_address_means(address: str, asked: str) -> None:
    assert forum.first(DISCOURSE._replace(address=address), SourceState()).url == asked


def test_a_list_of_topics_names_them_and_its_next_page() -> None:
    more = {
        "topic_list": {
            "topics": [{**TOPIC, "id": 11, "pinned": True}, TOPIC],
            "more_topics_url": "/c/fans/2/l/latest?page=1",
        }
    }
    page = listed(more)
    assert [(item.id, item.url, item.pinned) for item in page.items] == [
        ("11", f"{SITE}/t/11.json", True),
        ("12", f"{SITE}/t/12.json", False),
    ]
    assert page.items[1].mark == "3/2024-03-05T13:00:00.000Z"
    assert page.items[1].created_at == datetime(2024, 3, 5, 12, 30, tzinfo=UTC)
    assert page.next is not None
    assert page.next.url == f"{SITE}/c/fans/2/l/latest.json?page=1"
    assert page.facts.title == "fans (talk.example)"


def test_a_forum_below_a_path_is_asked_below_it() -> None:
    page = listed({"topic_list": {"topics": [TOPIC]}}, f"{SITE}/forum/latest.json")
    assert page.items[0].url == f"{SITE}/forum/t/12.json"
    assert page.next is None


def test_a_topic_tells_its_posts() -> None:
    reply = {**POST, "id": 502, "post_number": 2, "username": "birch", "reply_to_post_number": 1, "version": 2}
    reply["updated_at"] = "2024-03-05T14:00:00.000Z"
    note = {**POST, "id": 503, "post_number": 3, "post_type": 3, "cooked": ""}
    topic = {
        "title": "Which fan?",
        "posts_count": 3,
        "post_stream": {"posts": [POST, reply, note], "stream": [501, 502, 503]},
    }
    page = told(topic)
    first, second = page.posts
    assert (first.source_post_id, first.author, first.title, first.score) == ("12/1", "alder", "Which fan?", 4)
    assert first.images == (Image(f"{SITE}/fan.png", "a fan"),)
    assert "evil" not in first.content
    assert first.num_comments == 2
    assert first.updated_at is None
    assert (second.title, second.reference) == ("Re: Which fan?", Reference("reply", "12/1"))
    assert second.updated_at == datetime(2024, 3, 5, 14, tzinfo=UTC)
    assert page.next is None


def test_a_long_topic_goes_on_at_its_next_page() -> None:
    stream = {"posts": [POST], "stream": [501, 502]}
    page = told({"title": "t", "post_stream": stream})
    assert page.next is not None
    assert page.next.url == f"{SITE}/t/12.json?page=2"
    page = told({"title": "t", "post_stream": {"posts": [POST]}, "posts_count": 41}, f"{SITE}/t/12.json?page=2")
    assert page.next is not None
    assert page.next.url == f"{SITE}/t/12.json?page=3"
    assert told({"post_stream": {"posts": [POST]}, "posts_count": 41}, f"{SITE}/t/12.json?page=3").next is None


def test_flarum_is_asked_by_its_api() -> None:
    request = forum.first(FLARUM, SourceState())
    assert request.url.startswith(f"{SITE}/api/discussions?sort=-lastPostedAt")
    assert "filter%5Btag%5D=fans" in request.url
    assert "tag" not in forum.first(FLARUM._replace(address=f"{SITE}/"), SourceState()).url


def test_flarum_tells_discussions_and_posts() -> None:
    about = {"title": "Which fan?", "commentCount": 2, "lastPostedAt": "2024-03-05T13:00:00+00:00", "isSticky": True}
    list_url = f"{SITE}/api/discussions?page%5Blimit%5D=20"
    document = {"data": [{"type": "discussions", "id": "12", "attributes": about}] * 20}
    page = forum.read(FLARUM, SourceState(), answer(document, list_url))
    item = page.items[0]
    assert (item.id, item.pinned, item.mark) == ("12", True, "2/2024-03-05T13:00:00+00:00")
    assert page.next is not None
    assert page.next.url.endswith("page%5Boffset%5D=20")
    author = {"user": {"data": {"type": "users", "id": "7"}}}
    words = {
        "number": 1,
        "createdAt": "2024-03-05T12:30:00+00:00",
        "contentType": "comment",
        "contentHtml": "<p>Quiet?</p>",
    }
    reply = {**words, "number": 2, "contentHtml": f'<p><a href="{SITE}/d/12/1">alder</a> The slow one.</p>'}
    posts = {
        "data": [
            {"type": "posts", "id": "501", "attributes": words, "relationships": author},
            {"type": "posts", "id": "502", "attributes": reply, "relationships": author},
            {"type": "posts", "id": "503", "attributes": {"number": 3, "contentType": "discussionRenamed"}},
        ],
        "included": [{"type": "users", "id": "7", "attributes": {"displayName": "alder"}}],
    }
    first, second = forum.read_item(FLARUM, item, answer(posts, item.url)).posts
    assert (first.source_post_id, first.author, first.title) == ("12/1", "alder", "Which fan?")
    assert first.created_at == datetime(2024, 3, 5, 12, 30, tzinfo=UTC)
    assert second.reference == Reference("reply", "12/1")


@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b'{"topic_list": 7}', b'{"post_stream": []}', b"{nope", b'{"data": {}}']
)
@pytest.mark.parametrize("source", [DISCOURSE, FLARUM])
def test_json_that_is_something_else_is_refused_in_words(body: bytes, source: Source) -> None:  # H46
    with pytest.raises(ReadFailed):
        forum.read(source, SourceState(), answer(body, f"{SITE}/latest.json"))
    with pytest.raises(ReadFailed):
        forum.read_item(source, Item("12", SITE), answer(body, f"{SITE}/t/12.json"))


def test_deep_json_is_refused() -> None:  # H49
    with pytest.raises(TooDeep):
        listed(b'{"topic_list":' * 100_000)


def test_half_characters_and_controls_are_left_out() -> None:  # H47
    cooked = (
        b'{"title": "a\\ud800\\u0000b", "post_stream": {"posts": [{"post_number": 1, "cooked": "x\\udfff\\u202ey"}]}}'
    )
    post = told(cooked).posts[0]
    assert (post.title, post.content) == ("ab", "xy")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*TOPIC, *POST, "posts", "stream"]), inner)
    ),
    max_leaves=6,
)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.sampled_from([*TOPIC, *POST, "version", "reply_to_post_number"]), JSON), max_size=4))
def test_wrong_types_lose_a_post_at_most(found: list[dict[str, Any]]) -> None:  # H49
    page = told({"title": "t", "post_stream": {"posts": found, "stream": [1]}})
    assert len(page.posts) <= len(found)
    assert len(listed({"topic_list": {"topics": found}}).items) <= len(found)
