"""Posts of a simulated X as its API writes them: the requested fields, with authors and media in `includes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from headwater.sim.x_world import LONGER_THAN_USUAL, SimAccount, SimPost, SimX

PROBLEMS = "https://api.x.com/2/problems"
Json = dict[str, Any]


def answer_with(x: SimX, posts: Sequence[SimPost], query: Mapping[str, str], now: datetime) -> Json:
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


def tweet_json(x: SimX, post: SimPost, query: Mapping[str, str], now: datetime) -> Json:
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


def _is_repost(post: SimPost) -> bool:
    return post.relation == "retweeted"


def _said(x: SimX, post: SimPost, now: datetime) -> str:
    other = _other(x, post)
    if _is_repost(post) and other:
        return f"RT @{x.accounts[other.author].handle}: {other.version_at(now).text}"
    return post.version_at(now).text


def _note(said: str, urls: Sequence[Json], tail: str) -> Json:
    return {"text": escape(said, quote=False) + tail, **({"entities": {"urls": list(urls)}} if urls else {})}


def _urls(x: SimX, post: SimPost, id: int) -> list[Json]:
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


def _media_keys(post: SimPost) -> list[str]:
    return [f"3_{post.id}{place}" for place in range(post.images)]


def _media(post: SimPost, query: Mapping[str, str]) -> list[Json]:
    wanted = _wanted(query, "media.fields")
    made = []
    for place, key in enumerate(_media_keys(post)):
        fields = {"url": f"https://pbs.twimg.example/media/{post.id}-{place}.jpg", "alt_text": f"Picture {place + 1}"}
        made.append({"media_key": key, "type": "photo", **{n: v for n, v in fields.items() if n in wanted}})
    return made


def _metrics(post: SimPost, now: datetime) -> Json:
    hours = max(0.0, (now - post.created_at).total_seconds() / 3600)
    likes = int(post.liked * (1 - 0.8**hours))
    counts = {"like_count": likes, "reply_count": likes // 3, "retweet_count": likes // 5, "quote_count": likes // 9}
    return {**counts, "bookmark_count": likes // 20, "impression_count": likes * 40}


def _other(x: SimX, post: SimPost) -> SimPost | None:
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
