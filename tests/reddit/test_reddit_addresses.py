"""Which community a person means, whatever is typed."""

from __future__ import annotations

import pytest

from headwater.crawl.visit.steps import conditional
from headwater.follow.add import kind_and_address
from headwater.model import Source, SourceState
from headwater.sources import reddit
from support.posts import NOON

PYTHON = Source(1, "reddit", "https://www.reddit.com/r/python")


@pytest.mark.parametrize(
    "typed",
    [
        "r/python",
        "/r/Python",
        " r/PYTHON/ ",
        "reddit.com/r/Python/",
        "www.reddit.com/r/python",
        "http://reddit.com/r/python",
        "https://old.reddit.com/r/Python/new/",
        "https://www.reddit.com/r/python/.rss",
        "https://www.reddit.com/r/Python.rss",
        "https://m.reddit.com/r/python?utm_source=share",
        "https://np.reddit.com/r/python#top",
    ],
)
def test_every_spelling_of_a_community_is_one_address(typed: str) -> None:
    assert kind_and_address(typed) == ("reddit", "https://www.reddit.com/r/python")


@pytest.mark.parametrize(
    "typed",
    [
        "https://www.reddit.com/r/a/comments/1x/title/",
        "https://www.reddit.com/user/somebody",
        "https://www.reddit.com/r/python/top",
        "https://www.reddit.com/r/python+rust",
        "https://reddit.com.evil.example/r/python",
        "https://evil.example/r/python",
        "https://www.reddit.com/r/",
        "https://me:secret@www.reddit.com/r/python",
        "https://www.reddit.com/r/pythön",
    ],
)
def test_what_is_no_community_stays_an_address(typed: str) -> None:
    assert reddit.address_of(typed) is None
    assert kind_and_address(typed)[0] == "rss"


def test_the_first_request_asks_for_what_the_settings_say() -> None:
    assert reddit.first(PYTHON, SourceState()).url == "https://oauth.reddit.com/r/python/new?limit=100&raw_json=1"
    top = PYTHON._replace(settings={"sort": "top", "time_filter": "month", "limit": 80})
    assert reddit.first(top, SourceState()).url == "https://oauth.reddit.com/r/python/top?limit=80&raw_json=1&t=month"


@pytest.mark.parametrize("limit", [0, -1, 101, "many", None, 10**30])
def test_settings_that_reddit_would_not_understand_become_the_usual_ones(limit: object) -> None:
    odd = PYTHON._replace(settings={"sort": "../../api", "time_filter": "century", "limit": limit})
    assert reddit.first(odd, SourceState()) == reddit.first(PYTHON, SourceState())


def test_the_feed_of_a_listing_keeps_what_we_have_of_it() -> None:
    state = SourceState(etag='"1"', validated_at=NOON)
    asked = reddit.as_feed(conditional(reddit.first(PYTHON, state), state, NOON))
    assert asked.url == "https://www.reddit.com/r/python/new/.rss?limit=100"
    assert ("If-None-Match", '"1"') in asked.headers
    assert asked.headers[0][1].startswith("application/atom+xml")
