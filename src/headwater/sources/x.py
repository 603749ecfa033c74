"""X accounts and searches: which request of the X API v2 comes next, and what its answer says.

An account is looked up once; its id is kept in the source's settings. Posts are listed newest first, page by page, back
to `since_id`. X gives posts ids that grow with time, and an edit has a new id for the same post.

The watermark is the highest id below which no new post will appear. Ids of the last few minutes do not count: X lists
posts from many machines, and a post may appear a little after a later one. Those are read twice and stored once.

What X no longer serves is a gap: a search goes back seven days, and a timeline ends after 3,200 posts. To know how far
down a page is, its address carries a count of the posts before it after `#`, which is never sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, quote, unquote_plus, urlencode, urlsplit

import msgspec

from headwater.errors import BadAddress, BadInput, Blocked, NotAFeed, ReadFailed
from headwater.model import Facts, Page, Request, Response, Source, SourceState
from headwater.sources import x_posts
from headwater.sources.json_values import Json, document_in
from headwater.sources.kind import Kind
from headwater.sources.x_posts import SITE, created_at_of, is_id

API = "https://api.x.com"
PAGE_LIMIT = 100
SETTLED_AFTER = timedelta(minutes=2)
SEARCH_REACH = timedelta(days=7)
TIMELINE_ENDS = 3_200
TIMELINE_ENDS_WITHOUT_REPLIES = 800
SHORT_OF_THE_END = 100  # X does not show all the posts that a timeline counts
LONGEST_QUERY = 512
MOST_POSTS = 1_000  # X never sends more in one answer
FIELDS = {
    "tweet.fields": "attachments,author_id,created_at,edit_history_tweet_ids,entities,lang,note_tweet,"
    "possibly_sensitive,public_metrics,referenced_tweets,withheld",
    "expansions": "attachments.media_keys,author_id,referenced_tweets.id,referenced_tweets.id.attachments.media_keys,"
    "referenced_tweets.id.author_id",
    "user.fields": "name,protected,username",
    "media.fields": "alt_text,media_key,preview_image_url,type,url,variants",
}
PROTECTED = "The account is protected: X shows its posts only to followers it has approved."
_ACCEPT = (("Accept", "application/json"),)
_SITES = r"(?:https?://)?(?:(?:www|mobile|m)\.)?(?:x|twitter)\.com"
_ACCOUNT = re.compile(rf"(?:{_SITES}/@?|@)(?P<name>\w{{1,15}})(?:/(?:with_replies|media))?/?", re.ASCII | re.IGNORECASE)
_SEARCH = re.compile(rf"{_SITES}/search/?\?(?P<query>.*)", re.IGNORECASE)
_HASHTAG = re.compile(rf"{_SITES}/hashtag/(?P<tag>[^/?#]+)/?(?:\?.*)?", re.IGNORECASE)
_WORDS = re.compile(r"x:(?!//)\s*(?P<words>\S.*)", re.IGNORECASE | re.DOTALL)
_PAGES_OF_X = (
    "about compose download explore hashtag home i intent jobs login logout messages notifications privacy search"
    " settings share signup tos"
)
_NO_ACCOUNTS = frozenset(_PAGES_OF_X.split())
_LOOKUP = re.compile(r"/2/users/by/username/\w+")
_TOKEN = re.compile(r"[\w=~.-]{1,500}", re.ASCII)


class XSettings(msgspec.Struct, forbid_unknown_fields=True):
    """The settings of a source. The first visit looks up `user_id` and reads `history` posts.

    Every post that is read costs money, so older ones are read only if somebody wants them.
    """

    user_id: str | None = None
    replies: bool = True
    reposts: bool = True
    page_size: int = PAGE_LIMIT
    max_pages: int | None = None
    history: int = PAGE_LIMIT


def address_of(typed: str) -> str | None:
    """Returns the address of an account or a search, however a person spells it; None if it is something else."""
    typed = typed.strip()
    found = _ACCOUNT.fullmatch(typed.partition("?")[0].partition("#")[0])
    if found and found["name"].lower() not in _NO_ACCOUNTS:
        return f"{SITE}/{found['name'].lower()}"
    query = _searched_for(typed)
    if not query:
        return None
    if len(query) > LONGEST_QUERY:
        raise BadAddress(f"The search has {len(query):,} characters; X allows {LONGEST_QUERY}.")
    return f"{SITE}/search?q={quote(query, safe='')}"


def _searched_for(typed: str) -> str:
    if found := _SEARCH.fullmatch(typed.partition("#")[0]):
        return " ".join(dict(parse_qsl(found["query"])).get("q", "").split())
    if found := _HASHTAG.fullmatch(typed):
        return "#" + unquote_plus(found["tag"]).lstrip("#").strip()
    found = _WORDS.fullmatch(typed)
    return " ".join(found["words"].split()) if found else ""


def check(settings: Mapping[str, Any]) -> None:
    """Raises BadInput for settings that cannot be used."""
    try:
        wanted = msgspec.convert(dict(settings), XSettings)
    except msgspec.ValidationError as error:
        raise BadInput(f"The settings of an X source cannot be used: {error}.") from error
    if wanted.user_id is not None and not is_id(wanted.user_id):
        raise BadInput("The settings of an X source cannot be used: user_id is a number, written as text.")
    if not 10 <= wanted.page_size <= PAGE_LIMIT:
        raise BadInput(f"The settings of an X source cannot be used: page_size is from 10 to {PAGE_LIMIT}.")
    if (wanted.max_pages or 0) < 0 or wanted.history < 0:
        raise BadInput("The settings of an X source cannot be used: max_pages and history are 0 or more.")


def first(source: Source, state: SourceState) -> Request:
    """Returns the request for the first page after the watermark, or for an account's id if it is not known yet."""
    query = _query_of(source)
    if query:
        return _list("/2/tweets/search/recent", {"query": query, **_query_for(source, state)})
    user_id = source.settings.get("user_id")
    if not isinstance(user_id, str) or not is_id(user_id):
        fields = {"user.fields": FIELDS["user.fields"]}
        return Request(f"{API}/2/users/by/username/{_name(source)}?{urlencode(fields)}", _ACCEPT)
    return _timeline(source, user_id, state)


def within_reach(request: Request, now: datetime) -> Request:
    """Returns the same request without a `since_id` that X would refuse because its search does not go back so far."""
    parts = urlsplit(request.url)
    query = dict(parse_qsl(parts.query))
    since = query.get("since_id", "")
    if "query" not in query or not is_id(since):
        return request
    seen_at = created_at_of(since)
    # An hour before X would refuse it, so that a crawl of several pages ends in time.
    if seen_at is not None and seen_at > now - SEARCH_REACH + timedelta(hours=1):
        return request
    return _list(parts.path, {name: value for name, value in query.items() if name != "since_id"}, _depth(request.url))


def read(source: Source, state: SourceState, response: Response) -> Page:
    document = document_in(response.body, "X")
    if not isinstance(document, dict):
        raise NotAFeed("X answered with something other than a list of posts.")
    if _LOOKUP.fullmatch(urlsplit(response.url).path):
        return _read_account(source, state, document)
    data, meta = document.get("data"), document.get("meta")
    if not isinstance(meta, dict) or not isinstance(data, list | None):
        raise _refusal(document, source)
    listed = [tweet for tweet in (data or [])[:MOST_POSTS] if isinstance(tweet, dict)]
    posts = x_posts.posts_in(listed, document, response.received_at)
    following = _next(response.url, meta, len(listed))
    if not _has_watermark(state) and _depth(response.url) + len(listed) >= _history(source):
        following = None
    facts = Facts(
        format="x",
        title=_title(source, document),
        link=source.address,
        truncated=len(data or []) > MOST_POSTS,
        whole=all(_is_settled(post_id, response.received_at) for post_id in _ids(listed)),
        gap=_has_watermark(state) and (following is not None or _ends_early(response.url, len(listed))),
        watermark=_watermark(listed, _since(state), response.received_at),
    )
    return Page(posts, following, facts)


def _read_account(source: Source, state: SourceState, document: Json) -> Page:
    user = document.get("data")
    user_id = user.get("id") if isinstance(user, dict) else None
    if not isinstance(user, dict) or not isinstance(user_id, str) or not is_id(user_id):
        raise _refusal(document, source)
    if user.get("protected") is True:
        raise Blocked(PROTECTED)
    facts = Facts(
        format="x",
        title=x_posts.full_name(user),
        link=source.address,
        settings={"user_id": user_id},
        watermark=_since(state),
    )
    return Page([], _timeline(source, user_id, state), facts)


def _timeline(source: Source, user_id: str, state: SourceState) -> Request:
    excluded = [
        name for name, kept in (("retweets", "reposts"), ("replies", "replies")) if source.settings.get(kept) is False
    ]
    exclude = {"exclude": ",".join(excluded)} if excluded else {}
    return _list(f"/2/users/{user_id}/tweets", {**_query_for(source, state), **exclude})


def _query_for(source: Source, state: SourceState) -> dict[str, str]:
    size = source.settings.get("page_size")
    limit = size if isinstance(size, int) and 10 <= size <= PAGE_LIMIT else PAGE_LIMIT
    since = {"since_id": _since(state)} if _has_watermark(state) else {}
    return {"max_results": str(limit), **since, **FIELDS}


def _list(path: str, query: Mapping[str, str], depth: int = 0) -> Request:
    return Request(f"{API}{path}?{urlencode(query)}" + (f"#{depth}" if depth else ""), _ACCEPT)


def _next(url: str, meta: Json, count: int) -> Request | None:
    token = meta.get("next_token")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        return None
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    name = "next_token" if "query" in query else "pagination_token"
    return _list(parts.path, {**query, name: token}, _depth(url) + count)


def _ends_early(url: str, count: int) -> bool:
    """Whether the last page of a list ends where X cuts it off instead of at the watermark."""
    query = dict(parse_qsl(urlsplit(url).query))
    if "query" in query:
        return "since_id" not in query
    without_replies = "replies" in query.get("exclude", "")
    ends = TIMELINE_ENDS_WITHOUT_REPLIES if without_replies else TIMELINE_ENDS
    return _depth(url) + count >= ends - SHORT_OF_THE_END


def _depth(url: str) -> int:
    """Returns how many posts were on the pages before this one."""
    depth = urlsplit(url).fragment
    return int(depth) if depth.isascii() and depth.isdigit() and len(depth) < 10 else 0


def _watermark(listed: list[Json], before: str, received_at: datetime) -> str:
    return str(max([int(before), *(int(id) for id in _ids(listed) if _is_settled(id, received_at))]))


def _ids(listed: list[Json]) -> list[str]:
    return [id for tweet in listed if isinstance(id := tweet.get("id"), str) and is_id(id)]


def _is_settled(id: str, received_at: datetime) -> bool:
    posted_at = created_at_of(id)
    return posted_at is None or posted_at <= received_at - SETTLED_AFTER


def _since(state: SourceState) -> str:
    return state.last_seen_post_id if state.last_seen_post_id and is_id(state.last_seen_post_id) else "0"


def _has_watermark(state: SourceState) -> bool:
    return _since(state) != "0"


def _history(source: Source) -> int:
    posts = source.settings.get("history")
    return posts if isinstance(posts, int) and posts >= 0 else PAGE_LIMIT


def _name(source: Source) -> str:
    return urlsplit(source.address).path.strip("/")


def _query_of(source: Source) -> str:
    parts = urlsplit(source.address)
    return dict(parse_qsl(parts.query)).get("q", "") if parts.path == "/search" else ""


def _title(source: Source, document: Json) -> str:
    query = _query_of(source)
    return f"X: {query}" if query else x_posts.name_of_account(document, _name(source))


def _refusal(document: Json, source: Source) -> ReadFailed:
    """Returns the failure to report for what X sent instead of posts."""
    reason = x_posts.why_unavailable(document)
    if reason == "protected":
        return Blocked(PROTECTED)
    if reason == "suspended":
        return Blocked("X has suspended the account.")
    if reason == "withheld":
        return Blocked("X withholds the account.")
    if reason == "deleted":
        return ReadFailed(f"X has no account @{_name(source)}: it never existed, or it is gone.")
    return NotAFeed("X answered with something other than a list of posts.")


KIND = Kind(
    "x",
    "account",
    "accounts",
    first,
    read,
    shape="list",
    address_of=address_of,
    at_address=False,
    check=check,
    access="X",
    tells_watermark=True,
)
