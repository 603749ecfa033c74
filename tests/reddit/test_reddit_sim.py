"""The simulated Reddit, asked as anybody would: by HTTP alone."""

from __future__ import annotations

import json
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.error import HTTPError

import pytest

from headwater.sim.reddit_world import CommunityHabits, SimReddit, history, simulated
from headwater.sim.serving import BEGINS

BUSY = {"news": CommunityHabits(posts_per_day=300, deleted=0.2)}
Serve = Callable[[SimReddit], SimReddit]


def ask(url: str, authorization: str = "", method: str = "GET") -> Any:
    request = urllib.request.Request(url, headers={"Authorization": authorization}, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def token(reddit: SimReddit) -> str:
    basic = b64encode(":".join(reddit.client).encode()).decode()
    given = ask(f"{reddit.url}/api/v1/access_token", f"Basic {basic}", "POST")
    return f"Bearer {given['access_token']}"


def test_the_same_seed_makes_the_same_history_and_another_seed_another() -> None:
    made = [history("news", BEGINS, timedelta(days=1), seed, CommunityHabits()) for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]


def test_pages_show_the_whole_listing_once_even_if_the_post_they_come_after_is_deleted(serve: Serve) -> None:
    reddit = serve(simulated(BUSY, seed=1))
    reddit.clock.advance(timedelta(hours=20))
    key, seen, after = token(reddit), [], ""
    while after is not None:
        page = ask(f"{reddit.url}/r/news/new?limit=30&after={after}", key)["data"]
        seen += [child["data"]["name"] for child in page["children"]]
        after = page["after"]
    there = [post for post in reddit.posts["news"] if post.is_listed(reddit.clock.now())]
    assert sorted(seen) == sorted(post.id for post in there)
    gone = next(post for post in reddit.posts["news"] if post.deleted_at and not post.is_listed(reddit.clock.now()))
    page = ask(f"{reddit.url}/r/news/new?limit=5&after={gone.id}", key)["data"]
    assert all(child["data"]["created_utc"] <= gone.created_at.timestamp() for child in page["children"])


def test_nobody_is_let_in_without_a_token_and_a_token_ends(serve: Serve) -> None:
    reddit = serve(simulated(BUSY))
    key = token(reddit)
    ask(f"{reddit.url}/r/news/top?t=week", key)
    reddit.clock.advance(timedelta(hours=2))
    for authorization in ("", "Bearer guess", key):
        with pytest.raises(HTTPError, match="401") as refused:
            ask(f"{reddit.url}/r/news/new", authorization)
        refused.value.close()
