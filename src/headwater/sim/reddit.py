"""A simulated Reddit over HTTP: tokens, listings with pages, public feeds, rate limits and faults.

python -m headwater.sim.reddit --port 8900 --seed 1
"""

from __future__ import annotations

import json
from argparse import Namespace
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any, NamedTuple

from headwater.sim.reddit_world import (
    SPANS,
    CommunityHabits,
    ListedPage,
    SimReddit,
    SimRedditPost,
    listed,
    page_of,
    simulated,
)
from headwater.sim.serving import Ask, run, serving_site, with_faults

SITE = "https://www.reddit.com"
DEFAULT_LIMIT = 25
_SORTS = ("new", "top", "hot", "rising")


class RedditAnswer(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}
    shows: tuple[SimRedditPost, ...] = ()
    following: str | None = None


@with_faults
def answer(reddit: SimReddit, asked: Ask, now: datetime, fault: str | None) -> RedditAnswer:
    left, reset = reddit.count_request()
    answer = _answer_or_fault(reddit, asked, now, fault, left)
    if reddit.limits.requests:
        counted = {"x-ratelimit-remaining": f"{max(0, left):.1f}", "x-ratelimit-reset": str(reset)}
        answer = answer._replace(headers={**answer.headers, **counted})
    if reddit.keeps_record:
        with reddit.lock:
            _keep_record(reddit, asked, answer, now, is_whole=answer.status == 200 and fault != "cut")
    return answer


def serving(reddit: SimReddit, port: int = 0) -> AbstractContextManager[SimReddit]:
    """Serves it on loopback and sets its `url`."""
    return serving_site(reddit, answer, port)


def _keep_record(reddit: SimReddit, asked: Ask, answer: RedditAnswer, now: datetime, is_whole: bool) -> None:
    if is_whole:
        reddit.note_shown(answer.shows, now)
    match [step for step in asked.path.split("/") if step]:
        case ["r", name, sort, *_] if sort in _SORTS:
            span, after = asked.query.get("t", "day"), asked.query.get("after")
            page = ListedPage(now, name.lower(), sort, span, after, answer.following, answer.shows, is_whole)
            reddit.pages.append(page)


def _answer_or_fault(reddit: SimReddit, asked: Ask, now: datetime, fault: str | None, left: int) -> RedditAnswer:
    if reddit.limits.requests and left < 0:
        return RedditAnswer(429, b'{"message": "Too Many Requests", "error": 429}')
    if fault == "busy":
        return RedditAnswer(429, b'{"message": "Too Many Requests", "error": 429}', {"Retry-After": "30"})
    if fault in ("broken", "unavailable"):
        status = 500 if fault == "broken" else 503
        return RedditAnswer(status, b"<html><body><h1>whoa there</h1></body></html>", {"Content-Type": "text/html"})
    steps = [step for step in asked.path.split("/") if step]
    if asked.path == "/api/v1/access_token":
        return _token(reddit, asked)
    if steps[:1] == ["r"] and len(steps) > 1:
        return _community(reddit, asked, steps[1:], now)
    if steps == ["subreddits", "search"]:
        found = [{"kind": "t5", "data": {"display_name": name}} for name in reddit.posts]
        return _json({"kind": "Listing", "data": {"after": None, "children": found}})
    return _refusal(404, "Not Found")


def _token(reddit: SimReddit, asked: Ask) -> RedditAnswer:
    wanted = "Basic " + b64encode(":".join(reddit.client).encode()).decode()
    if asked.method != "POST" or asked.authorization != wanted:
        return _refusal(401, "Unauthorized")
    life = int(reddit.limits.token_life.total_seconds())
    return _json({"access_token": reddit.new_token(), "token_type": "bearer", "expires_in": life, "scope": "*"})


def _community(reddit: SimReddit, asked: Ask, steps: list[str], now: datetime) -> RedditAnswer:
    name = steps[0].lower()
    is_feed = steps[-1] == ".rss"
    sort = next((step for step in steps[1:] if step in _SORTS), "hot")
    if not is_feed and not reddit.knows(asked.authorization.removeprefix("Bearer ")):
        return _refusal(401, "Unauthorized")
    everything = reddit.posts.get(name)
    if everything is None:
        return RedditAnswer(302, b"", {"Location": f"/subreddits/search?q={name}"})
    limit = asked.query.get("limit", "")
    wanted = min(100, max(1, int(limit))) if limit.isdigit() else DEFAULT_LIMIT
    if steps[1:] == ["comments"]:
        return _json(_comments([post for post in everything if post.is_listed(now)], now, wanted))
    span = asked.query.get("t", "day")
    there = listed(everything, now, sort, span if span in SPANS else "day")[: reddit.limits.listing]
    page, after = page_of(there, everything, sort, asked.query.get("after"), wanted)
    if is_feed:
        return RedditAnswer(200, _feed(name, page, now), {"Content-Type": "application/atom+xml"}, tuple(page), after)
    children = [{"kind": "t3", "data": as_json(post, now)} for post in page]
    document = {"kind": "Listing", "data": {"after": after, "before": None, "dist": len(page), "children": children}}
    raw = asked.query.get("raw_json") == "1"
    return _json(document if raw else _escaped(document))._replace(shows=tuple(page), following=after)


def _comments(posts: list[SimRedditPost], now: datetime, wanted: int) -> dict[str, Any]:
    """Returns the newest comments of a community, as the API lists them."""
    written = [(post.comment_at(place), place, post) for post in posts for place in range(post.comments_at(now))]
    written.sort(key=lambda one: (one[0], one[2].id, one[1]), reverse=True)
    children = [{"kind": "t1", "data": comment_json(post, place, now)} for _, place, post in written[:wanted]]
    return {"kind": "Listing", "data": {"after": None, "before": None, "dist": len(children), "children": children}}


def comment_json(post: SimRedditPost, place: int, now: datetime) -> dict[str, Any]:
    """Returns a comment as the API writes it. Every third one answers the comment before it."""
    id, version = f"t1_{post.id.removeprefix('t3_')}{place}", post.version_at(now)
    answers = place % 3 == 2
    return {
        "name": id,
        "link_id": post.id,
        "parent_id": f"t1_{post.id.removeprefix('t3_')}{place - 1}" if answers else post.id,
        "link_title": version.title,
        "author": f"commenter{place}",
        "body": f"Comment {place} on {version.title}",
        "body_html": _markdown(f"Comment {place} on {version.title}"),
        "created_utc": int(post.comment_at(place).timestamp()),
        "edited": False,
        "score": 1 + place % 5,
        "permalink": f"/r/{post.community}/comments/{post.id.removeprefix('t3_')}/x/{id.removeprefix('t1_')}/",
    }


def as_json(post: SimRedditPost, now: datetime) -> dict[str, Any]:
    """Returns a post as the API writes it."""
    version, removed = post.version_at(now), post.is_removed(now)
    edited_at = version.since if version.since > post.created_at else None
    permalink = f"/r/{post.community}/comments/{post.id.removeprefix('t3_')}/{version.title.lower().replace(' ', '_')}/"
    return {
        "name": post.id,
        "id": post.id.removeprefix("t3_"),
        "subreddit": post.community,
        "subreddit_name_prefixed": f"r/{post.community}",
        "title": version.title,
        "author": post.author,
        "created_utc": post.created_at.timestamp(),
        "edited": edited_at.timestamp() if edited_at else False,
        "is_self": post.link is None,
        "selftext": version.text,
        "selftext_html": _markdown(version.text) if version.text else None,
        "url": post.link or SITE + permalink,
        "domain": "news.example" if post.link else f"self.{post.community}",
        "permalink": permalink,
        "score": post.score_at(now),
        "ups": post.score_at(now),
        "upvote_ratio": 0.9,
        "num_comments": post.comments_at(now),
        "link_flair_text": post.flair,
        "over_18": False,
        "spoiler": False,
        "stickied": False,
        "locked": removed,
        "removed_by_category": "moderator" if removed else None,
        **({"crosspost_parent": post.crosspost_parent} if post.crosspost_parent else {}),
    }


def _markdown(text: str) -> str:
    paragraphs = "".join(f"<p>{escape(part)}</p>\n\n" for part in text.split("\n\n"))
    return f'<!-- SC_OFF --><div class="md">{paragraphs}</div><!-- SC_ON -->'


def _feed(name: str, posts: list[SimRedditPost], now: datetime) -> bytes:
    entries = "".join(_entry(as_json(post, now)) for post in posts)
    head = '<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom">'
    return f"{head}<id>/r/{name}/new/.rss</id><title>newest submissions : {name}</title>{entries}</feed>".encode()


def _entry(post: dict[str, Any]) -> str:
    author = post["author"]
    text = post["selftext_html"] or ""
    ending = (
        f' &#32; submitted by &#32; <a href="{SITE}/user/{author}"> /u/{author} </a> <br/>'
        f' <span><a href="{post["url"]}">[link]</a></span> &#32;'
        f' <span><a href="{SITE}{post["permalink"]}">[comments]</a></span>'
    )
    published = datetime.fromtimestamp(post["created_utc"], UTC).isoformat()
    return (
        f"<entry><author><name>/u/{author}</name></author><id>{post['name']}</id>"
        f'<link href="{SITE}{post["permalink"]}"/><published>{published}</published><updated>{published}</updated>'
        f'<title>{escape(post["title"])}</title><content type="html">{escape(text + ending)}</content></entry>'
    )


def _refusal(status: int, message: str) -> RedditAnswer:
    return _json({"message": message, "error": status})._replace(status=status)


def _json(document: Any) -> RedditAnswer:
    return RedditAnswer(200, json.dumps(document).encode(), {"Content-Type": "application/json; charset=UTF-8"})


def _escaped(value: Any) -> Any:
    """Escapes all text, as the API does unless the client asks for `raw_json`."""
    match value:
        case str():
            return escape(value, quote=False)
        case dict():
            return {name: _escaped(inner) for name, inner in value.items()}
        case list():
            return [_escaped(inner) for inner in value]
    return value


def _from_arguments(given: Namespace) -> SimReddit:
    return simulated(
        {name.lower(): CommunityHabits() for name in given.communities},
        seed=given.seed,
        lasts=timedelta(days=given.days),
    )


def _addresses(reddit: SimReddit) -> Iterator[str]:
    yield f"HEADWATER_REDDIT_API_URL={reddit.url} HEADWATER_REDDIT_URL={reddit.url}"
    yield f"HEADWATER_REDDIT_CLIENT_ID='{reddit.client[0]}' HEADWATER_REDDIT_CLIENT_SECRET='{reddit.client[1]}'"


if __name__ == "__main__":
    names: dict[str, Any] = {"nargs": "*", "default": ["python", "news", "gardening"]}
    options = {"--days": {"type": float, "default": 7.0}, "communities": names}
    run("A simulated Reddit on loopback.", options, _from_arguments, answer, _addresses)
