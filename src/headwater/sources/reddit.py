"""Reddit communities: the request for a listing, and what Reddit's API, or the community's public feed, says in answer.

The watermark is the newest post of which all that came before it is stored. How it stays right depends on the order:

- `new` lists by time. Pages are followed until one shows a post older than the watermark; then nothing newer was left
  out. Where the listing ends first, posts have gone by unseen: that is a gap, and the visit says so. Pages are followed
  `LOOK_BACK` further, because a post that moderators held back appears late, at the place of its older time. A listing
  that is so long that Reddit cut it off within this stretch may hide such a post, which is a gap as well.
- `top`, `hot` and `rising` do not list by time: what they show first may be newer than much that they do not show. The
  watermark moves only where the whole listing was on the page and its time filter reaches back to the watermark.
  Otherwise it stays; the posts are stored all the same, and the next visit by time begins where the last one ended.

Where the source's settings ask for `comments`, the newest comments of the community are one more request at the end of
a visit. They are replies, and stand beside the listing: no watermark moves for them.
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
from headwater.sources.json_answers import document_in

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
PAGE_LIMIT = 100  # the most that Reddit shows on one page
LOOK_BACK = timedelta(hours=2)
LONG_LISTING = 800  # Reddit shows about 1,000 posts; one that ends after fewer than this has ended, not been cut off
BY_FEED = (
    "Read by its public feed, about one community a minute and without scores, because no credentials for Reddit's API"
    " are set (HEADWATER_REDDIT_CLIENT_ID and HEADWATER_REDDIT_CLIENT_SECRET)."
)
_COMMUNITY = re.compile(
    r"(?:(?:https?://)?(?:(?:www|old|new|np|m|i|sh)\.)?reddit\.com)?/?r/(?P<name>\w{2,24})(?:/new)?/?(?:\.rss)?",
    re.ASCII | re.IGNORECASE,
)


def community_address(typed: str) -> str | None:
    """The one address of the community that a person means, in any spelling; None: it is something else."""
    found = _COMMUNITY.fullmatch(typed.strip().partition("?")[0].partition("#")[0])
    return f"{SITE}/r/{found['name'].lower()}" if found else None


def first(source: Source, state: SourceState) -> Request:
    """The listing that the source's settings ask for: `sort`, `time_filter` and `limit`."""
    limit = source.settings.get("limit")
    given = limit if isinstance(limit, int) and 0 < limit <= PAGE_LIMIT else PAGE_LIMIT
    return _listing(source, _sort(source), given)


def as_feed(request: Request) -> Request:
    """The same listing as the feed that anyone may read."""
    parts = urlsplit(request.url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items() if name != "raw_json"}
    headers = tuple((name, rss.ACCEPT if name == "Accept" else value) for name, value in request.headers)
    return Request(f"{SITE}{parts.path}/.rss?{urlencode(query)}", headers)


def read(source: Source, state: SourceState, response: Response) -> Page:
    body = response.body.strip()
    if not body:
        raise EmptyAnswer("Reddit answered, but with nothing.")
    if body[:1] == b"<":
        return _read_feed(source, state, response._replace(body=body))
    children, after = _parsed(body)
    if _is_comments(response.url):
        # Whether the listing had a gap is not for this page to say.
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
    facts = page.facts._replace(title=_name(source), link=source.address, note=BY_FEED, whole=by_time, hub=None)
    gap = by_time and _is_gap(posts, state.last_seen_created_at, len(posts))
    return Page(posts, None, facts._replace(gap=gap))


def _goes_back_to(posts: Sequence[Post], time: datetime) -> bool:
    """Whether a page by time shows something older. Equal is not enough: a second holds many posts."""
    return any(post.dated and post.created_at < time for post in posts)


def _is_gap(posts: Sequence[Post], mark: datetime | None, shown: int) -> bool:
    """Whether posts went by unseen if a listing by time, of which `shown` posts were seen, ends with these."""
    if mark is None or not posts:
        return False
    is_all_news = all(post.created_at > mark for post in posts)
    return is_all_news or (shown >= LONG_LISTING and not _goes_back_to(posts, mark - LOOK_BACK))


def _shown_before(url: str) -> int:
    count = _query(url).get("count", "")
    return int(count) if count.isdecimal() else 0


def _covers(response: Response, mark: datetime | None) -> bool:
    """Whether the listing's time filter reaches back to the watermark. Only `top` has one; the others show a choice."""
    if _sort_of(response.url) != "top":
        return False
    span = TIME_FILTERS.get(_query(response.url).get("t", "day"), timedelta(0))
    return span is None or mark is None or response.received_at - span <= mark


def _listing(source: Source, sort: str, limit: int, after: str | None = None, shown: int = 0) -> Request:
    """`shown` is how many posts the pages before have shown; Reddit calls it `count`."""
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
    """Which order an answer is in: the settings may have changed since it was asked for."""
    steps = urlsplit(url).path.split("/")
    return next((step for step in steps if step in SORTS), "new")


def _query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def _name(source: Source) -> str:
    return urlsplit(source.address).path.strip("/")


def _parsed(body: bytes) -> tuple[list[Any], str | None]:
    """What a listing lists, and what the next page comes after; None: this was the last."""
    document = document_in(body, "Reddit")
    data = document.get("data") if isinstance(document, dict) and document.get("kind") == "Listing" else None
    children = data.get("children") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(children, list):
        raise NotAFeed("Reddit answered with something else than a listing of posts.")
    if any(isinstance(child, dict) and child.get("kind") == "t5" for child in children):
        raise NotAFeed("Reddit has no community of this name: it offered a search instead.")
    after = data.get("after")
    return children, after if isinstance(after, str) and reddit_posts.is_id(after) else None
