"""A simulated X over HTTP: accounts, timelines and searches of its API v2, rate limits and faults.

python -m headwater.sim.x --port 8901 --seed 1
"""

from __future__ import annotations

import json
from argparse import Namespace
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from html import escape
from typing import Any, NamedTuple

from headwater.sim.serving import Ask, run, serving_site, with_faults
from headwater.sim.x_world import LONGER_THAN_USUAL, AccountHabits, SimAccount, SimTweet, SimX, number_at, simulated

NOT_YET_FOUND = timedelta(seconds=30)  # a search shows nothing younger
MOST_RESULTS = 100
WITHOUT_REPLIES = 800
PROBLEMS = "https://api.x.com/2/problems"
Json = dict[str, Any]
_FIELDS = ("tweet.fields", "expansions", "user.fields", "media.fields", "place.fields", "poll.fields")
_LIST = ("max_results", "since_id", "until_id", "start_time", "end_time", "exclude", "pagination_token")
_SEARCH = ("query", "max_results", "since_id", "until_id", "start_time", "end_time", "next_token", "sort_order")


class XAnswer(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}
    shows: tuple[SimTweet, ...] = ()


class RefusedRequest(Exception):
    """A refusal, which becomes a problem document."""

    def __init__(self, status: int, title: str, detail: str, problem: str = "about:blank", **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.document = {"title": title, "detail": detail, "type": problem, "status": status, **more}


class BadPage(Exception):
    """A parameter that X does not accept."""

    def __init__(self, parameter: str, value: str, message: str) -> None:
        super().__init__(message)
        self.parameter, self.value = parameter, value


class ListPage(NamedTuple):
    posts: list[SimTweet]
    next: str | None


@with_faults
def answer(x: SimX, asked: Ask, now: datetime, fault: str | None) -> XAnswer:
    left, reset = x.count_request(_kind_of(asked.path))
    answer = _answer_or_fault(x, asked, now, fault, left)
    if x.limits.requests:
        counted = {
            "x-rate-limit-limit": str(x.limits.requests),
            "x-rate-limit-remaining": str(max(0, left)),
            "x-rate-limit-reset": str(int(reset.timestamp()) + 1),
        }
        answer = answer._replace(headers={**answer.headers, **counted})
    if fault != "cut":
        x.note_shown(answer.shows, now)
    return answer


def serving(x: SimX, port: int = 0) -> AbstractContextManager[SimX]:
    """Serves it on loopback and sets its `url`."""
    return serving_site(x, answer, port)


def _answer_or_fault(x: SimX, asked: Ask, now: datetime, fault: str | None, left: int) -> XAnswer:
    try:
        if fault == "busy" or (x.limits.requests and left < 0):
            raise RefusedRequest(429, "Too Many Requests", "Too Many Requests")
        if fault in ("broken", "unavailable"):
            status = 500 if fault == "broken" else 503
            raise RefusedRequest(status, "Service Unavailable", "Service Unavailable")
        if asked.authorization != f"Bearer {x.token}":
            raise RefusedRequest(401, "Unauthorized", "Unauthorized")
        if x.limits.month and x.read >= x.limits.month:
            problem = f"{PROBLEMS}/usage-capped"
            raise RefusedRequest(
                429, "UsageCapExceeded", "Usage cap exceeded: Monthly product cap", problem, period="Monthly"
            )
        return _answer(x, asked, now)
    except RefusedRequest as refused:
        return _json(refused.document)._replace(status=refused.status)
    except BadPage as error:
        return _invalid(error.parameter, error.value, str(error))


def _answer(x: SimX, asked: Ask, now: datetime) -> XAnswer:
    match [step for step in asked.path.split("/") if step]:
        case ["2", "users", "by", "username", name]:
            _check_names(asked, ("user.fields", "expansions", "tweet.fields"))
            return _account(x, name, asked)
        case ["2", "users", user_id, "tweets"]:
            _check_names(asked, (*_LIST, *_FIELDS))
            return _timeline(x, user_id, asked, now)
        case ["2", "tweets", "search", "recent"]:
            _check_names(asked, (*_SEARCH, *_FIELDS))
            return _search(x, asked, now)
    raise RefusedRequest(404, "Not Found", "Not Found")


def _account(x: SimX, name: str, asked: Ask) -> XAnswer:
    account = x.accounts.get(name.lower())
    about = {"value": name, "resource_id": name, "parameter": "username", "resource_type": "user"}
    if account is None:
        detail = f"Could not find user with username: [{name}]."
        error = {**about, "title": "Not Found Error", "detail": detail, "type": f"{PROBLEMS}/resource-not-found"}
        return _json({"errors": [error]})
    if account.habits.suspended:
        detail = f"User has been suspended: [{name}]."
        error = {**about, "title": "Forbidden", "detail": detail, "type": f"{PROBLEMS}/resource-not-found"}
        return _json({"errors": [error]})
    return _json({"data": user_json(account, asked.query)})


def _timeline(x: SimX, user_id: str, asked: Ask, now: datetime) -> XAnswer:
    account = next((one for one in x.accounts.values() if str(one.id) == user_id), None)
    about = {"value": user_id, "resource_id": user_id, "parameter": "id", "resource_type": "user"}
    if account is None or account.habits.suspended:
        detail = f"Could not find user with id: [{user_id}]."
        if account:
            detail = f"User has been suspended: [{user_id}]."
        error = {**about, "title": "Not Found Error", "detail": detail, "type": f"{PROBLEMS}/resource-not-found"}
        return _json({"errors": [error]})
    if account.habits.protected:
        detail = f"Sorry, you are not authorized to see the user with id: [{user_id}]."
        problem = f"{PROBLEMS}/not-authorized-for-resource"
        return _json({"errors": [{**about, "title": "Authorization Error", "detail": detail, "type": problem}]})
    listed = _timeline_of(x, account, asked.query.get("exclude", ""), now)
    return _listed(x, listed, asked, now, least=5, token="pagination_token")


def _search(x: SimX, asked: Ask, now: datetime) -> XAnswer:
    if not asked.query.get("query"):
        raise BadPage("query", "", "The `query` query parameter can not be empty")
    return _listed(x, _found_by(x, asked.query, now), asked, now, least=10, token="next_token")


def _listed(x: SimX, listed: list[SimTweet], asked: Ask, now: datetime, *, least: int, token: str) -> XAnswer:
    page = _page_of(x, listed, asked.query, now, least=least, token=token)
    document = answer_with(x, page.posts, asked.query, now)
    meta: dict[str, Any] = {"result_count": len(page.posts)}
    if page.posts:
        numbers = [post.version_at(now).id for post in page.posts]
        meta |= {"newest_id": str(max(numbers)), "oldest_id": str(min(numbers))}
    if page.next:
        meta["next_token"] = page.next
    return _json({**document, "meta": meta})._replace(shows=tuple(page.posts))


def _check_names(asked: Ask, known: tuple[str, ...]) -> None:
    for name, value in asked.query.items():
        if name not in known:
            raise BadPage(name, value, f"The query parameter [{name}] is not one of [{','.join(known)}]")


def _kind_of(path: str) -> str:
    steps = path.split("/")
    return "search" if "search" in steps else "lookup" if "by" in steps else "timeline"


def _invalid(parameter: str, value: str, message: str) -> XAnswer:
    document = {
        "errors": [{"parameters": {parameter: [value]}, "message": message}],
        "title": "Invalid Request",
        "detail": "One or more parameters to your request was invalid.",
        "type": f"{PROBLEMS}/invalid-request",
    }
    return _json(document)._replace(status=400)


def _json(document: Any) -> XAnswer:
    return XAnswer(200, json.dumps(document).encode(), {"Content-Type": "application/json; charset=utf-8"})


def _timeline_of(x: SimX, account: SimAccount, exclude: str, now: datetime) -> list[SimTweet]:
    """Returns an account's posts, highest id first, as far back as a timeline goes."""
    listed = [post for post in x.posts[account.handle.lower()] if post.is_listed(now)]
    listed.sort(key=lambda post: post.version_at(now).id, reverse=True)
    listed = listed[: min(x.limits.timeline, WITHOUT_REPLIES) if "replies" in exclude else x.limits.timeline]
    left_out = {"retweets": "retweeted", "replies": "replied_to"}
    hidden = {left_out[name] for name in exclude.split(",") if name in left_out}
    return [post for post in listed if post.relation not in hidden]


def _found_by(x: SimX, query: Mapping[str, str], now: datetime) -> list[SimTweet]:
    """Returns what a recent search finds, highest id first."""
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


def _page_of(
    x: SimX, listed: Sequence[SimTweet], query: Mapping[str, str], now: datetime, *, least: int, token: str
) -> ListPage:
    """Returns a page of a list with the token of the next page."""
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


def _fits(post: SimTweet, term: str, now: datetime) -> bool:
    """Tests one term of a search: a word, from:, lang: or -is:retweet. Other operators are not simulated."""
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
    """Returns the id at which a token's page begins. A token is valid only for the list that it came from."""
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


def _from_arguments(given: Namespace) -> SimX:
    habits = {name: AccountHabits(lang="zh" if name == "kuangji" else "en") for name in given.accounts}
    return simulated(habits, seed=given.seed, lasts=timedelta(days=given.days))


def _addresses(x: SimX) -> Iterator[str]:
    yield f"HEADWATER_X_API_URL={x.url} HEADWATER_X_BEARER_TOKEN={x.token}"


if __name__ == "__main__":
    names: dict[str, Any] = {"nargs": "*", "default": ["hashrate", "ledger", "kuangji"]}
    options = {"--days": {"type": float, "default": 7.0}, "accounts": names}
    run("A simulated X on loopback.", options, _from_arguments, answer, _addresses)


def answer_with(x: SimX, posts: Sequence[SimTweet], query: Mapping[str, str], now: datetime) -> Json:
    """Returns the document for these posts. Like X, it has no `data` if there are none."""
    expansions = _wanted(query, "expansions")
    references = [(post, _other(x, post)) for post in posts]
    seen = {other.id: other for _, other in references if other and other.is_listed(now)}
    referenced = list(seen.values()) if "referenced_tweets.id" in expansions else []
    document: Json = {"data": [tweet_json(x, post, query, now) for post in posts]} if posts else {}
    includes: Json = {}
    with_media = [*posts, *(referenced if "referenced_tweets.id.attachments.media_keys" in expansions else ())]
    media = {one["media_key"]: one for post in with_media for one in _media(post, query)}
    if media and "attachments.media_keys" in expansions:
        includes["media"] = list(media.values())
    authors = {post.author for post in posts} if "author_id" in expansions else set()
    if "referenced_tweets.id.author_id" in expansions:
        authors |= {post.author for post in referenced}
    if authors:
        includes["users"] = [user_json(x.accounts[handle], query) for handle in sorted(authors)]
    if referenced:
        includes["tweets"] = [tweet_json(x, post, query, now) for post in referenced]
    if includes:
        document["includes"] = includes
    gone = {post.other for post, other in references if other and not other.is_listed(now)}
    if gone and "referenced_tweets.id" in expansions:
        document["errors"] = [_gone(id) for id in sorted(id for id in gone if id)]
    return document


def user_json(account: SimAccount, query: Mapping[str, str]) -> Json:
    user: Json = {"id": str(account.id), "name": account.name, "username": account.handle}
    if "protected" in _wanted(query, "user.fields"):
        user["protected"] = account.habits.protected
    return user


def tweet_json(x: SimX, post: SimTweet, query: Mapping[str, str], now: datetime) -> Json:
    version = post.version_at(now)
    said = _said(x, post, now)
    short = escape(said if len(said) <= LONGER_THAN_USUAL else said[: LONGER_THAN_USUAL - 1] + "…", quote=False)
    urls = _urls(x, post, version.id)
    tail = "".join(f" {url['url']}" for url in urls)
    fields: Json = {
        "author_id": str(x.accounts[post.author].id),
        "created_at": version.since.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "lang": post.lang,
        "possibly_sensitive": False,
        "public_metrics": _metrics(post, now),
        "entities": {"urls": urls} if urls else None,
        "attachments": {"media_keys": _media_keys(post)} if post.images else None,
        "referenced_tweets": [{"type": post.relation, "id": str(post.other)}] if post.relation else None,
        "note_tweet": _note(said, urls, tail) if len(said) > LONGER_THAN_USUAL and not _is_repost(post) else None,
    }
    wanted = _wanted(query, "tweet.fields")
    chosen = {name: value for name, value in fields.items() if name in wanted and value is not None}
    return {"id": str(version.id), "text": short + tail, "edit_history_tweet_ids": post.history_at(now), **chosen}


def _is_repost(post: SimTweet) -> bool:
    return post.relation == "retweeted"


def _said(x: SimX, post: SimTweet, now: datetime) -> str:
    other = _other(x, post)
    if _is_repost(post) and other:
        return f"RT @{x.accounts[other.author].handle}: {other.version_at(now).text}"
    return post.version_at(now).text


def _note(said: str, urls: Sequence[Json], tail: str) -> Json:
    return {"text": escape(said, quote=False) + tail, **({"entities": {"urls": list(urls)}} if urls else {})}


def _urls(x: SimX, post: SimTweet, id: int) -> list[Json]:
    """Returns X's short links: to an article, to the quoted post, to the images."""
    urls = []
    if post.link:
        urls.append(_url(id, "a", post.link))
    other = _other(x, post)
    if post.relation == "quoted" and other:
        urls.append(_url(id, "q", f"https://twitter.com/{x.accounts[other.author].handle}/status/{other.id}"))
    if post.images:
        photo = f"https://x.com/{x.accounts[post.author].handle}/status/{id}/photo/1"
        urls += [{**_url(id, "p", photo), "media_key": key} for key in _media_keys(post)[:1]]
    return urls


def _url(id: int, letter: str, target: str) -> Json:
    display = target.split("://")[1]
    shown = display if len(display) < 30 else display[:27] + "…"
    return {
        "start": 0,
        "end": 23,
        "url": f"https://t.co/{letter}{id % 10**9}",
        "expanded_url": target,
        "display_url": shown,
    }


def _media_keys(post: SimTweet) -> list[str]:
    return [f"3_{post.id}{place}" for place in range(post.images)]


def _media(post: SimTweet, query: Mapping[str, str]) -> list[Json]:
    wanted = _wanted(query, "media.fields")
    made = []
    for place, key in enumerate(_media_keys(post)):
        fields = {"url": f"https://pbs.twimg.example/media/{post.id}-{place}.jpg", "alt_text": f"Picture {place + 1}"}
        made.append({"media_key": key, "type": "photo", **{n: v for n, v in fields.items() if n in wanted}})
    return made


def _metrics(post: SimTweet, now: datetime) -> Json:
    hours = max(0.0, (now - post.created_at).total_seconds() / 3600)
    likes = int(post.liked * (1 - 0.8**hours))
    counts = {"like_count": likes, "reply_count": likes // 3, "retweet_count": likes // 5, "quote_count": likes // 9}
    return {**counts, "bookmark_count": likes // 20, "impression_count": likes * 40}


def _other(x: SimX, post: SimTweet) -> SimTweet | None:
    return x.by_id.get(post.other) if post.other else None


def _gone(id: int) -> Json:
    return {
        "value": str(id),
        "detail": f"Could not find tweet with referenced_tweets.id: [{id}].",
        "title": "Not Found Error",
        "resource_type": "tweet",
        "parameter": "referenced_tweets.id",
        "resource_id": str(id),
        "type": f"{PROBLEMS}/resource-not-found",
    }


def _wanted(query: Mapping[str, str], name: str) -> set[str]:
    return set(query.get(name, "").split(","))
