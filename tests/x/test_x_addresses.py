"""Which account or search of X a person means, whatever is typed, and what is asked for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from headwater.errors import BadAddress, BadInput
from headwater.follow.add import kind_and_address
from headwater.model import Request, Source, SourceState
from headwater.sim.x_world import number_at
from headwater.sources import KINDS, x
from support.posts import NOON

ACCOUNT = Source(1, "x", "https://x.com/hashrate")
KNOWN = ACCOUNT._replace(settings={"user_id": "77"})
SEARCH = Source(2, "x", "https://x.com/search?q=%23mining%20lang%3Azh")


def asked(request: Request) -> tuple[str, dict[str, str]]:
    parts = urlsplit(request.url)
    return parts.path, {name: values[0] for name, values in parse_qs(parts.query).items()}


@pytest.mark.parametrize(
    "typed",
    [
        "@HashRate",
        "@hashrate ",
        "x.com/HashRate",
        "https://x.com/hashrate/",
        "https://www.x.com/hashrate?lang=en",
        "http://twitter.com/HASHRATE",
        "https://mobile.twitter.com/hashrate#top",
        "m.twitter.com/hashrate",
        "https://twitter.com/@hashrate",
        "https://x.com/hashrate/with_replies",
        "https://x.com/hashrate/media?s=20",
    ],
)
def test_every_spelling_of_an_account_is_one_address(typed: str) -> None:
    assert kind_and_address(typed) == ("x", "https://x.com/hashrate")


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("https://x.com/search?q=hash%20price&src=typed_query&f=live", "https://x.com/search?q=hash%20price"),
        ("twitter.com/search?f=live&q=hash+price", "https://x.com/search?q=hash%20price"),
        ("x: hash   price", "https://x.com/search?q=hash%20price"),
        ("X:from:hashrate -is:retweet", "https://x.com/search?q=from%3Ahashrate%20-is%3Aretweet"),
        ("https://x.com/hashtag/Mining?src=hashtag_click", "https://x.com/search?q=%23Mining"),
        ("x: 比特币 算力", "https://x.com/search?q=%E6%AF%94%E7%89%B9%E5%B8%81%20%E7%AE%97%E5%8A%9B"),
    ],
)
def test_every_spelling_of_a_search_is_one_address(typed: str, address: str) -> None:
    assert kind_and_address(typed) == ("x", address)
    assert kind_and_address(address) == ("x", address)


@pytest.mark.parametrize(
    "typed",
    [
        "https://x.com/hashrate/status/1",
        "https://x.com/home",
        "https://x.com/i/lists/1",
        "https://x.com/search?q=",
        "https://x.com.evil.example/hashrate",
        "https://evil.example/x.com/hashrate",
        "https://me:secret@x.com/hashrate",
        "https://x.com/averyveryverylongname",
        "https://netflix.com/title",
        "https://x.com/",
    ],
)
def test_what_is_no_account_stays_an_address(typed: str) -> None:
    assert kind_and_address(typed)[0] == "rss"


def test_a_search_that_x_would_not_take_is_refused_at_once() -> None:
    with pytest.raises(BadAddress, match="512"):
        kind_and_address("x: " + "a" * 600)


def test_an_account_is_looked_up_while_its_number_is_unknown() -> None:
    path, _ = asked(x.first(ACCOUNT, SourceState()))
    assert path == "/2/users/by/username/hashrate"
    path, query = asked(x.first(KNOWN, SourceState()))
    assert path == "/2/users/77/tweets"
    assert "since_id" not in query
    assert query["max_results"] == "100"


def test_the_watermark_is_where_a_list_ends() -> None:
    _, query = asked(x.first(KNOWN, SourceState(last_seen_post_id="2117350000000000101")))
    assert query["since_id"] == "2117350000000000101"
    for none in ("0", "not a number", "1" * 30):
        assert "since_id" not in asked(x.first(KNOWN, SourceState(last_seen_post_id=none)))[1]


def test_settings_leave_out_replies_and_reposts() -> None:
    short = KNOWN._replace(settings={**KNOWN.settings, "replies": False, "reposts": False, "page_size": 20})
    _, query = asked(x.first(short, SourceState()))
    assert (query["exclude"], query["max_results"]) == ("retweets,replies", "20")


def test_a_search_asks_for_its_words() -> None:
    path, query = asked(x.first(SEARCH, SourceState()))
    assert (path, query["query"]) == ("/2/tweets/search/recent", "#mining lang:zh")


def test_a_search_is_not_asked_for_more_than_x_remembers() -> None:
    young, old = (str(number_at(NOON - timedelta(days=days), 1)) for days in (6, 8))
    within = x.within_reach(x.first(SEARCH, SourceState(last_seen_post_id=young)), NOON)
    assert asked(within)[1]["since_id"] == young
    beyond = x.within_reach(x.first(SEARCH, SourceState(last_seen_post_id=old)), NOON)
    assert "since_id" not in asked(beyond)[1]
    timeline = x.first(KNOWN, SourceState(last_seen_post_id=old))
    assert x.within_reach(timeline, NOON) == timeline


@pytest.mark.parametrize(
    "settings",
    [
        {"page_size": 5},
        {"page_size": "many"},
        {"user_id": "hashrate"},
        {"user_id": 77},
        {"replies": "no"},
        {"max_pages": -1},
        {"history": -1},
        {"sort": "new"},
    ],
)
def test_settings_that_are_not_understood_are_refused_in_words(settings: dict[str, Any]) -> None:
    check = KINDS["x"].check
    assert check is not None
    with pytest.raises(BadInput, match="The settings of an X source cannot be used"):
        check(settings)
    check({"user_id": "77", "replies": False, "reposts": True, "page_size": 50, "max_pages": 0, "history": 0})


@pytest.mark.parametrize("size", [0, 5, 101, "many", None, 10**30])
def test_settings_that_x_would_not_understand_become_the_usual_ones(size: object) -> None:
    odd = KNOWN._replace(settings={"user_id": "77", "page_size": size})
    assert x.first(odd, SourceState()) == x.first(KNOWN, SourceState())
