"""Reddit communities: the request for a listing, and the answer of Reddit's API or of the community's public feed.

The watermark is the newest post before which everything is stored. How it is kept right depends on the sort order:

- `new` is sorted by time. Pages are followed until one shows a post older than the watermark; then nothing newer was
  missed. If the listing ends first, posts were missed: that is a gap, and the visit reports it. Pages are followed for
  another `LOOK_BACK`, because a post that moderators held back appears late, at its original position. If a listing is
  so long that Reddit cuts it off within that time, such a post may be hidden, and that is a gap too.
- `top`, `hot` and `rising` are not sorted by time: what they show first may be newer than much that they do not show.
  The watermark moves only if the whole listing was on the page and its time filter reaches back to the watermark.
  Otherwise it stays. The posts are stored anyway, and the next visit by time starts where the last one ended.

If the source's settings ask for `comments`, the visit ends with one more request, for the newest comments of the
community. They are replies and not part of the listing, so they never move the watermark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from headwater.errors import EmptyAnswer, NotAFeed
from headwater.model import Facts, Page, Post, Request, Response, Source, SourceState
from headwater.sources import reddit_posts, rss
from headwater.sources.json_values import document_in
from headwater.sources.kind import Kind

SITE = "https://www.reddit.com"
API = "https://oauth.reddit.com"
SORTS = ("new", "top", "hot", "rising")
TIME_FILTERS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
    "month": timedelta(days=30),
    "year": timedelta(days=365),
    "all": None,
}
PAGE_LIMIT = 100  # Reddit shows no more on one page
LOOK_BACK = timedelta(hours=2)
LONG_LISTING = 800  # Reddit shows about 1,000 posts; a listing with fewer than this was not cut off
BY_FEED = (
    "Read by its public feed, about one community a minute and without scores, because no credentials for Reddit's API"
    " are set (HEADWATER_REDDIT_CLIENT_ID and HEADWATER_REDDIT_CLIENT_SECRET)."
)
_COMMUNITY = re.compile(
    r"(?:(?:https?://)?(?:(?:www|old|new|np|m|i|sh)\.)?reddit\.com)?/?r/(?P<name>\w{2,24})(?:/new)?/?(?:\.rss)?",
    re.ASCII | re.IGNORECASE,
)


def address_of(typed: str) -> str | None:
    """The address of a community, however a person spells it; None if it is something else."""
    found = _COMMUNITY.fullmatch(typed.strip().partition("?")[0].partition("#")[0])
    return f"{SITE}/r/{found['name'].lower()}" if found else None


def first(source: Source, state: SourceState) -> Request:
    """The listing that the source's settings ask for by `sort`, `time_filter` and `limit`."""
    limit = source.settings.get("limit")
    given = limit if isinstance(limit, int) and 0 < limit <= PAGE_LIMIT else PAGE_LIMIT
    return _listing(source, _sort(source), given)


def as_feed(request: Request) -> Request:
    """The request for the same listing as a public feed."""
    parts = urlsplit(request.url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items() if name != "raw_json"}
    headers = tuple((name, rss.ACCEPT if name == "Accept" else value) for name, value in request.headers)
    return Request(f"{SITE}{parts.path}/.rss?{urlencode(query)}", headers)


def read(source: Source, state: SourceState, response: Response) -> Page:
    body = response.body.strip()
    if not body:
        raise EmptyAnswer("Reddit sent an empty answer.")
    if body[:1] == b"<":
        return _read_feed(source, state, response._replace(body=body))
    children, after = _parsed(body)
    if _is_comments(response.url):
        # This page says nothing about a gap in the listing.
        return Page([], None, Facts(), comments=reddit_posts.comments_in(children, response.received_at))
    posts = reddit_posts.posts_in(children, response.received_at)
    facts = Facts(format="reddit", title=reddit_posts.community_in(children) or _name(source), link=source.address)
    sort, mark = _sort_of(response.url), state.last_seen_created_at
    if sort != "new":
        facts = facts._replace(whole=after is None and _covers(response, mark))
        return Page(posts, _comments(source), facts)
    shown = _shown_before(response.url) + len(posts)
    facts = facts._replace(gap=_is_gap(posts, mark, shown))
    if mark is None or after is None or _goes_back_to(posts, mark - LOOK_BACK):
        return Page(posts, _comments(source), facts)
    return Page(posts, _listing(source, sort, PAGE_LIMIT, after, shown), facts)


def _read_feed(source: Source, state: SourceState, response: Response) -> Page:
    page = rss.read(source, state, response)
    posts = [reddit_posts.from_feed(post) for post in page.posts]
    by_time = _sort_of(response.url) == "new"
    facts = page.facts._replace(title=_name(source), link=source.address, note=BY_FEED, whole=by_time)
    gap = by_time and _is_gap(posts, state.last_seen_created_at, len(posts))
    return Page(posts, None, facts._replace(gap=gap))


def _goes_back_to(posts: Sequence[Post], time: datetime) -> bool:
    """Whether a page sorted by time shows something older. Equal is not enough: one second can hold many posts."""
    return any(post.dated and post.created_at < time for post in posts)


def _is_gap(posts: Sequence[Post], mark: datetime | None, shown: int) -> bool:
    """Whether posts were missed if a listing by time ends with these, after `shown` posts in all."""
    if mark is None or not posts:
        return False
    all_are_new = all(post.created_at > mark for post in posts)
    return all_are_new or (shown >= LONG_LISTING and not _goes_back_to(posts, mark - LOOK_BACK))


def _shown_before(url: str) -> int:
    count = _query(url).get("count", "")
    return int(count) if count.isdecimal() else 0


def _covers(response: Response, mark: datetime | None) -> bool:
    """Whether the listing's time filter reaches back to the watermark. Only `top` has a time filter."""
    if _sort_of(response.url) != "top":
        return False
    span = TIME_FILTERS.get(_query(response.url).get("t", "day"), timedelta(0))
    return span is None or mark is None or response.received_at - span <= mark


def _listing(source: Source, sort: str, limit: int, after: str | None = None, shown: int = 0) -> Request:
    """`shown` is how many posts earlier pages showed; Reddit calls it `count`."""
    query: dict[str, str | int] = {"limit": limit, "raw_json": 1}
    if sort == "top":
        query["t"] = _time_filter(source)
    if after:
        query |= {"after": after, "count": shown}
    path = urlsplit(source.address).path.rstrip("/")
    return Request(f"{API}{path}/{sort}?{urlencode(query)}", (("Accept", "application/json"),))


def _comments(source: Source) -> Request | None:
    if source.settings.get("comments") is not True:
        return None
    path = urlsplit(source.address).path.rstrip("/")
    query = urlencode({"limit": PAGE_LIMIT, "raw_json": 1})
    return Request(f"{API}{path}/comments?{query}", (("Accept", "application/json"),))


def _is_comments(url: str) -> bool:
    return urlsplit(url).path.endswith("/comments")


def _sort(source: Source) -> str:
    sort = source.settings.get("sort")
    return sort if sort in SORTS else "new"


def _time_filter(source: Source) -> str:
    span = source.settings.get("time_filter")
    return span if span in TIME_FILTERS else "week"


def _sort_of(url: str) -> str:
    """The order that an answer is in. The settings may have changed since it was requested."""
    steps = urlsplit(url).path.split("/")
    return next((step for step in steps if step in SORTS), "new")


def _query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def _name(source: Source) -> str:
    return urlsplit(source.address).path.strip("/")


def _parsed(body: bytes) -> tuple[list[Any], str | None]:
    """The children of a listing, and what the next page comes after; None if this is the last page."""
    document = document_in(body, "Reddit")
    data = document.get("data") if isinstance(document, dict) and document.get("kind") == "Listing" else None
    children = data.get("children") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(children, list):
        raise NotAFeed("Reddit answered with something other than a listing of posts.")
    if any(isinstance(child, dict) and child.get("kind") == "t5" for child in children):
        raise NotAFeed("Reddit has no community of this name; it offered a search instead.")
    after = data.get("after")
    return children, after if isinstance(after, str) and reddit_posts.is_id(after) else None


KIND = Kind(
    "reddit",
    "community",
    "communities",
    first,
    read,
    address_of=address_of,
    at_address=False,
    access="Reddit",
    has_listings=True,
    has_comments=True,
)
