"""Answers that Reddit would not give: wrong types, missing fields, huge numbers, markup where text should be."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.access.budget import pause_after, with_retry_after
from headwater.access.reddit import token_in, window_of
from headwater.errors import AnswerBroken, NotAFeed, SourceFailure, TooDeep
from headwater.model import Page, Post, Response, Source, SourceState
from headwater.sources import reddit
from support.answers import BOT_WALL, COUNTED, NO_OBJECT
from support.posts import NOON

SOURCE = Source(1, "reddit", "https://www.reddit.com/r/python")
GOOD = {"name": "t3_abc", "title": "A title", "permalink": "/r/python/comments/abc/a_title/", "created_utc": 1.79e9}


def answer(body: bytes, url: str = "https://oauth.reddit.com/r/python/new?limit=100") -> Response:
    return Response(url, 200, {}, body, NOON)


def read(body: Any, state: SourceState = SourceState()) -> Page:
    return reddit.read(SOURCE, state, answer(body if isinstance(body, bytes) else json.dumps(body).encode()))


def listing(*posts: Any, after: Any = None) -> dict[str, Any]:
    children = [{"kind": "t3", "data": post} for post in posts]
    return {"kind": "Listing", "data": {"after": after, "children": children}}


def one(**fields: Any) -> Post:
    [post] = read(listing({**GOOD, **fields})).posts
    return post


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        *NO_OBJECT,
        (b'{"kind": "Listing"}', NotAFeed),
        (b'{"kind": "Listing", "data": {"children": {}}}', NotAFeed),
        (b'{"kind": "t5", "data": {"children": []}}', NotAFeed),
        (b'{"kind": "Listing", "data": {"children": [', NotAFeed),
        (b"[" * 100_000, TooDeep),  # H49
        (b"<html><body>whoa there, pardner!</body></html>", NotAFeed),
        BOT_WALL,  # H29
    ],
)
def test_what_is_no_listing_is_a_failure_that_says_so(body: bytes, failure: type[SourceFailure]) -> None:
    with pytest.raises(failure):
        read(body)


@pytest.mark.parametrize("name", [None, 7, "", "t3_", "t1_abc", "t3_ABC/..", "t3_" + "a" * 50, ["t3_abc"]])
def test_a_post_without_a_usable_id_is_left_out_and_the_others_stay(name: Any) -> None:
    page = read(listing({**GOOD, "name": name, "id": name}, GOOD))
    assert [post.source_post_id for post in page.posts] == ["t3_abc"]


def test_children_of_the_wrong_kind_are_left_out() -> None:
    odd = {"kind": "Listing", "data": {"children": [None, 3, "x", {"kind": "t3"}, {"kind": "t1", "data": GOOD}]}}
    assert read(odd).posts == []


@pytest.mark.parametrize("number", [10**400, 10**12, -(10**12), 1.5, "12", True, None, float("inf"), [], {}])
def test_a_number_that_cannot_be_one_is_none(number: Any) -> None:  # H49
    post = one(score=number, num_comments=number)
    assert (post.score, post.num_comments) == (None, None)


@pytest.mark.parametrize("time", [0, -1, 10**400, 10**11, 9.9e99, "yesterday", True, None, 1e308])
def test_a_time_that_cannot_be_true_is_the_time_of_arrival(time: Any) -> None:  # H45
    post = one(created_utc=time, edited=time)
    assert (post.created_at, post.dated, post.updated_at) == (NOON, False, None)


def test_a_time_that_was_made_up_does_not_end_the_way_back_to_the_watermark() -> None:
    state = SourceState(last_seen_created_at=NOON - timedelta(days=1))
    ahead = {**GOOD, "created_utc": 1}
    assert read(listing(ahead, after="t3_abc"), state).next is not None


def test_titles_names_and_flairs_are_text_and_stay_text() -> None:  # H60
    post = one(title="<b>bold</b> &amp;\n<script>alert(1)</script>", author="<i>x</i>", link_flair_text="<u>y</u>")
    assert post.title == "<b>bold</b> &amp; <script>alert(1)</script>"
    assert (post.author, post.extra["flair"]) == ("<i>x</i>", "<u>y</u>")


def test_the_text_of_a_post_is_cleaned() -> None:  # H55 H56
    links = '<a href="java&#115;cript:x()">l</a><a href="/r/x">r</a>'
    html = f'<div onclick="x()">fine<script>alert(1)</script>{links}</div>'
    content = one(selftext_html=html).content
    assert "script" not in content
    assert "onclick" not in content
    assert 'href="https://www.reddit.com/r/x"' in content
    assert one(selftext="1 < 2\n<b>").content == "1 &lt; 2<br>\n&lt;b&gt;"


@pytest.mark.parametrize("link", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", 7, None, "\x00"])
def test_a_link_that_may_not_be_shown_is_dropped(link: Any) -> None:  # H48
    post = one(url=link, permalink=link)
    assert post.url == "https://www.reddit.com/comments/abc"
    assert "link" not in post.extra
    assert post.content == ""


def test_half_a_character_costs_that_character_alone() -> None:  # H47
    body = json.dumps(listing(GOOD)).replace("A title", "A \\ud800title\\u0000").encode()
    assert read(body).posts[0].title == "A title"


def test_a_cursor_that_is_none_ends_the_listing() -> None:
    state = SourceState(last_seen_created_at=NOON - timedelta(days=900))
    for after in (7, {}, "../../x?y=", "t3_abc&limit=1"):
        assert read(listing(GOOD, after=after), state).next is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("t3_abc"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = (
    "name id title author created_utc edited is_self selftext selftext_html url permalink score num_comments media"
    " media_metadata link_flair_text crosspost_parent removed_by_category over_18 subreddit_name_prefixed"
)
FIELDS = st.sampled_from(NAMES.split())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.dictionaries(FIELDS, JSON, max_size=12), max_size=3), JSON)
def test_no_value_in_any_field_breaks_reading(records: list[dict[str, Any]], after: Any) -> None:
    page = read(listing(*({**GOOD, **record} for record in records), after=after))
    assert all(post.created_at.tzinfo and post.source_post_id for post in page.posts)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_page_or_a_failure(body: bytes) -> None:
    with suppress(SourceFailure):
        read(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"access_token": 7}',
        b'{"access_token": ""}',
        b'{"access_token": "a\\r\\nX: y"}',
        b'{"access_token": "x", "expires_in": "soon"}',
        b"<html>",
    ],
)
def test_what_is_no_token_is_a_failure(body: bytes) -> None:  # H18
    with pytest.raises(AnswerBroken):
        token_in(body)


@pytest.mark.parametrize(
    ("left", "reset", "seconds"),
    [*COUNTED, ("0.0", "300", 300), ("1.0", "300", 300), ("0", "-5", None), ("0", "999999999", 86_400)],
)
def test_reddits_count_of_what_is_left_is_heeded(left: str, reset: str, seconds: int | None) -> None:  # H31
    headers = {"x-ratelimit-remaining": left, "x-ratelimit-reset": reset} if left else {}
    answer = Response("https://oauth.reddit.com/", 200, headers, b"", NOON)
    pause = pause_after(answer.status, window_of(answer), in_flight=2)
    assert pause == (timedelta(seconds=seconds) if seconds else None)


def test_a_refusal_that_only_names_reddits_own_header_is_obeyed_all_the_same() -> None:
    refused = Response("https://oauth.reddit.com/", 429, {"x-ratelimit-reset": "42"}, b"", NOON)
    assert with_retry_after(refused, window_of(refused)).headers["retry-after"] == "42"
    told = refused._replace(headers={"x-ratelimit-reset": "42", "retry-after": "7"})
    assert with_retry_after(told, window_of(told)).headers["retry-after"] == "7"
