"""The simulated X, asked as anybody would: by HTTP alone."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

import pytest

from headwater.sim.serving import BEGINS
from headwater.sim.x_world import AccountHabits, SimX, accounts_of, history, number_at, simulated

LIVELY = AccountHabits(posts_per_day=300, deleted=0.2)
EVERYBODY = {"News": LIVELY, "kuangji": LIVELY._replace(lang="zh")}
Serve = Callable[[SimX], SimX]


def ask(url: str, token: str = "", method: str = "GET", **query: str) -> Any:
    request = urllib.request.Request(
        f"{url}?{urlencode(query)}", headers={"Authorization": f"Bearer {token}"}, method=method
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def refused(url: str, token: str, **query: str) -> tuple[int, Any, Any]:
    with pytest.raises(HTTPError) as error:
        ask(url, token, **query)
    with error.value as answer:
        return answer.code, json.load(answer), answer.headers


def test_the_same_seed_makes_the_same_history_and_another_seed_another() -> None:
    made = [history(accounts_of(EVERYBODY), BEGINS, timedelta(hours=6), seed) for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]


def test_an_account_is_found_by_its_name_and_its_pages_show_the_whole_timeline_once(serve: Serve) -> None:
    x = serve(simulated(EVERYBODY, seed=1))
    x.clock.advance(timedelta(hours=20))
    user = ask(f"{x.url}/2/users/by/username/news", x.token)["data"]
    seen: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = ask(f"{x.url}/2/users/{user['id']}/tweets", x.token, max_results="40", **token)
        seen += [tweet["id"] for tweet in page["data"]]
        if "next_token" not in page["meta"]:
            break
        token = {"pagination_token": page["meta"]["next_token"]}
    now = x.clock.now()
    there = [str(post.version_at(now).id) for post in x.posts["news"] if post.is_listed(now)]
    assert seen == sorted(there, key=int, reverse=True)
    middle = seen[len(seen) // 2]
    newer = ask(f"{x.url}/2/users/{user['id']}/tweets", x.token, max_results="100", since_id=middle)
    assert all(int(tweet["id"]) > int(middle) for tweet in newer["data"])


def test_only_what_was_asked_for_is_told(serve: Serve) -> None:
    x = serve(simulated(EVERYBODY, seed=1))
    x.clock.advance(timedelta(hours=20))
    timeline = f"{x.url}/2/users/1000000/tweets"
    bare = ask(timeline, x.token, max_results="100")
    assert all(tweet.keys() == {"id", "text", "edit_history_tweet_ids"} for tweet in bare["data"])
    assert "includes" not in bare
    fields = {"tweet.fields": "author_id,referenced_tweets,note_tweet", "expansions": "author_id,referenced_tweets.id"}
    full = ask(timeline, x.token, max_results="100", **fields)
    named = {one["id"] for tweet in full["data"] for one in tweet.get("referenced_tweets", ())}
    told = {history for tweet in full["includes"]["tweets"] for history in tweet["edit_history_tweet_ids"]}
    gone = {error["resource_id"] for error in full["errors"]}
    assert named <= told | gone
    assert any("note_tweet" in tweet for tweet in full["data"])


def test_a_search_knows_words_accounts_and_languages_of_the_last_week(serve: Serve) -> None:
    x = serve(simulated(EVERYBODY, seed=1, lasts=timedelta(days=9)))
    x.clock.advance(timedelta(days=9))
    search = f"{x.url}/2/tweets/search/recent"
    fields = {"tweet.fields": "lang", "max_results": "50"}
    assert {tweet["lang"] for tweet in ask(search, x.token, query="lang:zh", **fields)["data"]} == {"zh"}
    words = ask(search, x.token, query="rocket from:news -is:retweet", max_results="50")["data"]
    assert words
    assert ask(search, x.token, query="nosuchword")["meta"] == {"result_count": 0}
    old = str(number_at(x.clock.now() - timedelta(days=8), 1))
    status, problem, _ = refused(search, x.token, query="rocket", since_id=old)
    assert (status, "created after" in problem["errors"][0]["message"]) == (400, True)


def test_what_x_would_refuse_is_refused(serve: Serve) -> None:
    x = serve(simulated({**EVERYBODY, "shy": AccountHabits(protected=True), "bad": AccountHabits(suspended=True)}))
    x.clock.advance(timedelta(hours=5))
    timeline = f"{x.url}/2/users/1000000/tweets"
    assert refused(timeline, "guess")[0] == 401
    assert refused(timeline, x.token, max_results="4")[0] == 400
    assert refused(timeline, x.token, colour="red")[0] == 400
    assert refused(timeline, x.token, pagination_token="guess")[0] == 400
    assert refused(f"{x.url}/1.1/statuses", x.token)[0] == 404
    assert "Could not find" in ask(f"{x.url}/2/users/by/username/nobody", x.token)["errors"][0]["detail"]
    assert "suspended" in ask(f"{x.url}/2/users/by/username/bad", x.token)["errors"][0]["detail"]
    assert "not authorized" in ask(f"{x.url}/2/users/1000002/tweets", x.token)["errors"][0]["detail"]


def test_a_window_that_is_used_up_says_when_the_next_begins(serve: Serve) -> None:
    x = serve(simulated(EVERYBODY, limits=simulated({}).limits._replace(requests=2)))
    timeline = f"{x.url}/2/users/1000000/tweets"
    for _ in range(2):
        ask(timeline, x.token)
    status, _, headers = refused(timeline, x.token)
    assert (status, headers["x-rate-limit-remaining"]) == (429, "0")
    ask(f"{x.url}/2/users/by/username/news", x.token)  # each kind of request has its own
    x.clock.advance(timedelta(seconds=int(headers["x-rate-limit-reset"]) - x.clock.now().timestamp()))
    ask(timeline, x.token)
