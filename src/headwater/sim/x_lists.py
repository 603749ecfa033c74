"""Which posts of a simulated X a request lists: timelines, searches, and their pages."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from headwater.sim.x_accounts import SimAccount, SimPost, number_at
from headwater.sim.x_world import SimX

NOT_YET_FOUND = timedelta(seconds=30)  # a search shows nothing younger
MOST_RESULTS = 100
WITHOUT_REPLIES = 800


class BadPage(Exception):
    """A parameter that X does not accept."""

    def __init__(self, parameter: str, value: str, message: str) -> None:
        super().__init__(message)
        self.parameter, self.value = parameter, value


class ListPage(NamedTuple):
    posts: list[SimPost]
    next: str | None


def timeline_of(x: SimX, account: SimAccount, exclude: str, now: datetime) -> list[SimPost]:
    """An account's posts, newest number first, as far back as a timeline goes."""
    listed = [post for post in x.posts[account.handle.lower()] if post.is_listed(now)]
    listed.sort(key=lambda post: post.version_at(now).id, reverse=True)
    listed = listed[: min(x.limits.timeline, WITHOUT_REPLIES) if "replies" in exclude else x.limits.timeline]
    left_out = {"retweets": "retweeted", "replies": "replied_to"}
    hidden = {left_out[name] for name in exclude.split(",") if name in left_out}
    return [post for post in listed if post.relation not in hidden]


def found_by(x: SimX, query: Mapping[str, str], now: datetime) -> list[SimPost]:
    """What a recent search finds, newest number first."""
    earliest = now - x.limits.search
    since = query.get("since_id", "")
    if since.isdigit() and int(since) < number_at(earliest, 0):
        words = f"'since_id' must be a tweet id created after [{earliest:%Y-%m-%dT%H:%MZ}]."
        raise BadPage(
            "since_id", since, f"{words} Please use a 'since_id' that is larger than {number_at(earliest, 0)}"
        )
    found = [
        post
        for handle, posts in x.posts.items()
        if not (x.accounts[handle].habits.protected or x.accounts[handle].habits.suspended)
        for post in posts
        if post.is_listed(now)
        and earliest <= post.version_at(now).since <= now - NOT_YET_FOUND
        and all(_fits(post, term, now) for term in query["query"].split())
    ]
    return sorted(found, key=lambda post: post.version_at(now).id, reverse=True)


def page_of(
    x: SimX, listed: Sequence[SimPost], query: Mapping[str, str], now: datetime, *, least: int, token: str
) -> ListPage:
    """One page of a list, and the token of the next."""
    limit = _number(query, "max_results", 10)
    if not least <= limit <= MOST_RESULTS:
        value = query.get("max_results", "")
        raise BadPage("max_results", value, f"The `max_results` query parameter value [{value}] is not between")
    since, until = _number(query, "since_id", 0), _number(query, "until_id", 2**63)
    if token in query:
        until = min(until, _opened(x, query, token))
    rest = [post for post in listed if since < post.version_at(now).id < until]
    page = rest[:limit]
    following = _sealed(x, page[-1].version_at(now).id, query, token) if len(rest) > limit else None
    return ListPage(page, following)


def _fits(post: SimPost, term: str, now: datetime) -> bool:
    """The operators of X's search that are simulated: words, from:, lang:, -is:retweet."""
    if term == "-is:retweet":
        return post.relation != "retweeted"
    name, mark, value = term.partition(":")
    if mark and name == "from":
        return post.author == value.lower().lstrip("@")
    if mark and name == "lang":
        return post.lang == value
    return term.lower() in post.version_at(now).text.lower()


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    value = query.get(name)
    if value is None:
        return default
    if not value.isdigit() or len(value) > 19:
        raise BadPage(name, value, f"The `{name}` query parameter value [{value}] is not valid")
    return int(value)


def _sealed(x: SimX, last: int, query: Mapping[str, str], token: str) -> str:
    return urlsafe_b64encode(f"{last}:{x.page_keys}:{_asked_for(query, token)}".encode()).decode().rstrip("=")


def _opened(x: SimX, query: Mapping[str, str], token: str) -> int:
    """Where the page begins that a token stands for. It is good for the list it was given out for, and no other."""
    value = query[token]
    try:
        said = urlsafe_b64decode(value + "=" * (-len(value) % 4)).decode()
    except ValueError:
        said = ""
    last, _, rest = said.partition(":")
    if not last.isdigit() or rest != f"{x.page_keys}:{_asked_for(query, token)}":
        raise BadPage(token, value, f"The `{token}` query parameter value [{value}] is not valid")
    return int(last)


def _asked_for(query: Mapping[str, str], token: str) -> str:
    kept = {name: value for name, value in query.items() if name in ("query", "exclude", "since_id")}
    return str(sum(f"{token}{sorted(kept.items())}".encode()))
