"""Answers that X would not give, and those that it gives in place of posts."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.access.budget import pause_after, with_retry_after
from headwater.access.x import is_spent, posts_in, refuse, token_from, window_of, words_of
from headwater.errors import BadInput, Blocked, NotAFeed, ReadFailed, SourceFailure, StatusRefused, TooDeep
from headwater.model import Page, Post, Response, Source, SourceState
from headwater.sim.x_world import number_at
from headwater.sources import x
from support.answers import BOT_WALL, COUNTED, NO_OBJECT
from support.posts import NOON

SOURCE = Source(1, "x", "https://x.com/hashrate", settings={"user_id": "77"})
TIMELINE = "https://api.x.com/2/users/77/tweets?max_results=100"
LOOKUP = "https://api.x.com/2/users/by/username/hashrate"
ID = str(number_at(NOON - timedelta(hours=1), 1))
GOOD = {"id": ID, "text": "A text", "author_id": "77", "edit_history_tweet_ids": [ID]}
PROBLEM = "https://api.x.com/2/problems/"


def answer(body: Any, url: str = TIMELINE, status: int = 200, **headers: str) -> Response:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(url, status, {name.replace("_", "-"): value for name, value in headers.items()}, sent, NOON)


def read(body: Any, state: SourceState = SourceState(), url: str = TIMELINE) -> Page:
    return x.read(SOURCE, state, answer(body, url))


def listing(*tweets: Any, includes: Any = None, **meta: Any) -> dict[str, Any]:
    return {"data": list(tweets), "includes": includes or {}, "meta": {"result_count": len(tweets), **meta}}


def one(includes: Any = None, **fields: Any) -> Post:
    [post] = read(listing({**GOOD, **fields}, includes=includes)).posts
    return post


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        *NO_OBJECT,
        (b"{}", NotAFeed),
        (b'{"meta": []}', NotAFeed),
        (b'{"data": {}, "meta": {}}', NotAFeed),
        (b'{"data": [', NotAFeed),
        (b'{"a":' * 100_000, TooDeep),  # H49
        BOT_WALL,  # H29
        (b"<html><body>X is over capacity</body></html>", NotAFeed),
    ],
)
def test_what_is_no_list_is_a_failure_that_says_so(body: bytes, failure: type[SourceFailure]) -> None:
    with pytest.raises(failure):
        read(body)


@pytest.mark.parametrize(
    ("problem", "detail", "failure", "words"),
    [
        ("resource-not-found", "Could not find user with username: [hashrate].", ReadFailed, "no account @hashrate"),
        ("resource-not-found", "User has been suspended: [hashrate].", Blocked, "suspended"),
        ("not-authorized-for-resource", "Sorry, you are not authorized to see the user.", Blocked, "protected"),
        ("resource-unavailable", "The user is withheld in your country.", Blocked, "withholds"),
    ],
)
@pytest.mark.parametrize("url", [TIMELINE, LOOKUP])
def test_an_account_that_shows_nothing_says_why(
    url: str, problem: str, detail: str, failure: type[SourceFailure], words: str
) -> None:
    error = {"title": "x", "detail": detail, "type": PROBLEM + problem, "resource_type": "user"}
    with pytest.raises(failure, match=words):
        read({"errors": [error]}, url=url)


def test_an_account_that_protects_its_posts_is_known_from_its_look_up() -> None:
    with pytest.raises(Blocked, match="protected"):
        read({"data": {"id": "77", "name": "A", "username": "hashrate", "protected": True}}, url=LOOKUP)


@pytest.mark.parametrize("user", [None, [], {"id": 77}, {"id": "../1"}, {}, "77"])
def test_a_look_up_without_a_number_is_a_failure(user: Any) -> None:
    with pytest.raises(NotAFeed):
        read({"data": user}, url=LOOKUP)


@pytest.mark.parametrize("id", [None, 7, "", "0", "-1", "1.5", "1" * 40, ["1"], "1/../2", "١٢"])
def test_a_post_without_a_usable_number_is_left_out_and_the_others_stay(id: Any) -> None:
    page = read(listing({**GOOD, "id": id}, GOOD, None, 3, "x"))
    assert [post.source_post_id for post in page.posts] == [ID]


@pytest.mark.parametrize("history", [None, 7, "x", [], [7], ["1"], [ID, {}]])
def test_a_history_that_does_not_hold_the_post_itself_is_none(history: Any) -> None:
    assert one(edit_history_tweet_ids=history).source_post_id == ID


def test_of_two_versions_of_a_post_on_a_page_the_newer_one_counts() -> None:
    later = str(int(ID) + 1)
    edited = {**GOOD, "id": later, "text": "Another", "edit_history_tweet_ids": [later, ID]}
    for listed in ((GOOD, edited), (edited, GOOD)):
        [post] = read(listing(*listed)).posts
        assert (post.source_post_id, post.content) == (ID, "Another")


@pytest.mark.parametrize("number", [10**400, 10**12, -1, 1.5, "12", True, None, float("inf"), [], {}])
def test_a_count_that_cannot_be_one_is_none(number: Any) -> None:  # H49
    post = one(public_metrics={"like_count": number, "reply_count": number, "impression_count": number})
    assert (post.score, post.num_comments, post.extra) == (None, None, {})


@pytest.mark.parametrize(
    "time", ["", "yesterday", 7, None, "1970-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "2026-11-02T00:00:00"]
)
def test_a_time_that_cannot_be_true_is_the_time_of_arrival(time: Any) -> None:  # H45
    post = one(created_at=time)
    assert (post.created_at, post.dated) == (NOON, False)


def test_a_number_from_the_future_does_not_move_the_watermark() -> None:
    ahead = str(number_at(NOON + timedelta(days=300), 1))
    page = read(listing({**GOOD, "id": ahead, "edit_history_tweet_ids": [ahead]}, GOOD))
    assert page.facts.watermark == ID


def test_what_was_posted_in_the_last_minutes_does_not_move_the_watermark_yet() -> None:
    young = str(number_at(NOON - timedelta(seconds=100), 1))
    page = read(listing({**GOOD, "id": young, "edit_history_tweet_ids": [young]}), SourceState(last_seen_post_id=ID))
    assert page.facts.watermark == ID
    assert len(page.posts) == 1


def test_markup_in_texts_and_names_is_text() -> None:  # H55 H60
    user = {"id": "77", "name": "<i>x</i>\u202e", "username": "hashrate"}
    post = one(text="1 &lt; 2 <script>alert(1)</script> &amp;lt;", includes={"users": [user]})
    assert post.content == "1 &lt; 2 &lt;script&gt;alert(1)&lt;/script&gt; &amp;lt;"
    assert post.author == "<i>x</i> (@hashrate)"


@pytest.mark.parametrize("link", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", 7, None, "\x00"])
def test_a_link_that_may_not_be_shown_leaves_the_short_one(link: Any) -> None:  # H48 H56
    urls = [{"url": "https://t.co/a1", "expanded_url": link, "display_url": '"><script>'}]
    content = one(text="see https://t.co/a1", entities={"urls": urls}).content
    assert content == 'see <a href="https://t.co/a1" rel="noopener noreferrer">https://t.co/a1</a>'


def test_a_link_and_a_picture_cannot_break_out_of_their_attributes() -> None:  # H55
    urls = [{"url": "https://t.co/a1", "expanded_url": 'https://a.example/"onclick="x()', "display_url": "<b>"}]
    media = {"media_key": "1", "url": 'https://a.example/"onerror="x()', "alt_text": '"><script>x()</script>'}
    post = one(
        text="https://t.co/a1",
        entities={"urls": urls},
        attachments={"media_keys": ["1", 7, None, "2"]},
        includes={"media": [media, None, {"media_key": 7}]},
    )
    assert 'onclick="' not in post.content
    assert 'onerror="' not in post.content
    assert "<script" not in post.content
    assert post.images[0].alt == '"><script>x()</script>'


def test_a_handle_that_is_none_is_not_put_into_an_address() -> None:
    user = {"id": "77", "name": "A", "username": "../../evil"}
    assert one(includes={"users": [user]}).url == f"https://x.com/i/status/{ID}"


def test_half_a_character_costs_that_character_alone() -> None:  # H47
    body = json.dumps(listing(GOOD)).replace("A text", "A \\ud800text\\u0000").encode()
    assert read(body).posts[0].content == "A text"


def test_an_answer_with_more_posts_than_x_gives_is_cut_and_says_so() -> None:
    many = [{**GOOD, "id": str(int(ID) - n), "edit_history_tweet_ids": []} for n in range(1500)]
    page = read(listing(*many))
    assert (len(page.posts), page.facts.truncated) == (1000, True)


def test_a_token_that_is_none_ends_the_list() -> None:
    state = SourceState(last_seen_post_id="1000")
    for token in (7, {}, "", "a&b=c", "a b", "x" * 600):
        assert read(listing(GOOD, next_token=token), state).next is None


def test_a_list_that_ends_where_x_ends_it_is_a_gap() -> None:
    marked = SourceState(last_seen_post_id="1000")
    assert not read(listing(GOOD), marked).facts.gap
    assert read(listing(GOOD, next_token="abc"), marked).facts.gap
    assert read(listing(GOOD), marked, TIMELINE + "&since_id=1000#3150").facts.gap
    assert not read(listing(GOOD), SourceState(), TIMELINE + "#3150").facts.gap
    assert read(listing(GOOD), marked, TIMELINE + "&exclude=replies#750").facts.gap
    search = "https://api.x.com/2/tweets/search/recent?query=a"
    assert read(listing(GOOD), marked, search).facts.gap
    assert not read(listing(GOOD), marked, search + "&since_id=1000").facts.gap


def test_the_past_is_read_only_as_far_as_somebody_wants_it() -> None:
    assert read(listing(*[GOOD] * 100, next_token="abc")).next is None
    wanted = SOURCE._replace(settings={"history": 250})
    second = x.read(wanted, SourceState(), answer(listing(*[GOOD] * 100, next_token="abc"), TIMELINE + "#100"))
    assert second.next is not None
    third = x.read(wanted, SourceState(), answer(listing(*[GOOD] * 100, next_token="abc"), second.next.url))
    assert third.next is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just(ID),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = (
    "id text author_id created_at edit_history_tweet_ids public_metrics entities attachments referenced_tweets"
    " note_tweet withheld lang possibly_sensitive"
)
OBJECTS = (
    "urls url expanded_url unwound_url display_url media_keys media_key id type text like_count username name variants"
    " alt_text preview_image_url content_type bit_rate country_codes resource_id detail"
)
FIELD = st.sampled_from(OBJECTS.split())
NESTED = (
    JSON | st.lists(st.dictionaries(FIELD, JSON, max_size=4), max_size=3) | st.dictionaries(FIELD, JSON, max_size=4)
)
TWEETS = st.lists(st.dictionaries(st.sampled_from(NAMES.split()), NESTED, max_size=8), max_size=3)


@settings(max_examples=200, deadline=None)
@given(TWEETS, st.dictionaries(st.sampled_from(["users", "tweets", "media"]), NESTED), NESTED, JSON)
def test_no_value_in_any_field_breaks_reading(tweets: list[Any], includes: Any, errors: Any, token: Any) -> None:
    listed = [{**GOOD, **tweet} for tweet in tweets]
    page = read({**listing(*listed, includes=includes, next_token=token), "errors": errors})
    assert all(post.created_at.tzinfo and post.source_post_id for post in page.posts)


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()), st.sampled_from([TIMELINE, LOOKUP])
)
def test_any_bytes_are_a_page_or_a_failure(body: bytes, url: str) -> None:
    with suppress(SourceFailure):
        read(body, url=url)
    assert posts_in(answer(body)) >= 0
    assert isinstance(words_of(answer(body, status=400)), str)


@pytest.mark.parametrize(("left", "reset", "seconds"), [*COUNTED, ("0", "-500", 1), ("0", "9999999", 86_400)])
def test_xs_count_of_what_is_left_is_heeded(left: str, reset: str, seconds: int | None) -> None:  # H31
    headers = {"x_rate_limit_remaining": left, "x_rate_limit_reset": reset} if left else {}
    if "x_rate_limit_reset" in headers:  # X names the second since 1970
        headers = {**headers, "x_rate_limit_reset": str(int(NOON.timestamp()) + int(headers["x_rate_limit_reset"]))}
    pause = pause_after(200, window_of(answer(b"{}", **headers)), in_flight=2)
    assert pause == (timedelta(seconds=seconds) if seconds else None)


def test_a_refusal_that_only_names_xs_own_header_is_obeyed_all_the_same() -> None:
    reset = str(int(NOON.timestamp()) + 42)
    refused = answer(b"", status=429, x_rate_limit_reset=reset)
    assert with_retry_after(refused, window_of(refused)).headers["retry-after"] == "42"
    told = answer(b"", status=429, x_rate_limit_reset=reset, retry_after="7")
    assert with_retry_after(told, window_of(told)).headers["retry-after"] == "7"
    good = answer(b"", x_rate_limit_reset=reset)
    assert "retry-after" not in with_retry_after(good, window_of(good)).headers


@pytest.mark.parametrize("reset", ["soon", "", "-1", "99999999999999", "inf", "0x10"])
def test_a_reset_that_is_no_time_is_none(reset: str) -> None:  # H31
    assert pause_after(429, window_of(answer(b"", status=429, x_rate_limit_reset=reset)), in_flight=1) is None


def test_a_refusal_is_told_in_xs_words_as_text() -> None:
    said = {"title": "Invalid Request", "detail": "x", "errors": [{"message": "<b>since_id</b> must be later"}]}
    with pytest.raises(StatusRefused, match="since_id must be later") as refused:
        refuse(answer(said, status=400))
    assert refused.value.facts["http_status"] == 400
    assert "<b>" not in refused.value.detail
    with pytest.raises(StatusRefused, match="headwater x token"):
        refuse(answer(b"<html>", status=401))


def test_a_month_that_x_says_is_spent_is_told_from_a_window_that_is() -> None:
    assert is_spent(answer({"title": "UsageCapExceeded", "detail": "Usage cap exceeded"}, status=429))
    assert not is_spent(answer({"title": "Too Many Requests"}, status=429))


def test_posts_are_counted_with_those_that_they_point_at() -> None:
    assert posts_in(answer({"data": [{}, {}], "includes": {"tweets": [{}]}, "meta": {}})) == 3
    assert posts_in(answer({"data": {"id": "77"}})) == 0


@pytest.mark.parametrize(
    "typed", ["", "short", "two words of it", "a" * 5000, "line\nline\nline", "schlüssel-schlüssel"]
)
def test_what_cannot_be_a_token_is_refused(typed: str) -> None:  # H18
    with pytest.raises(BadInput):
        token_from(typed)


def test_a_token_may_be_given_as_it_is_sent() -> None:
    assert token_from(" Bearer AAAAAAAAAA%2Fxyz\n") == "AAAAAAAAAA%2Fxyz"
