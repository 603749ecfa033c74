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

The API's JSON and the public feed give the same post. Values of the wrong type are skipped, never converted. A post
without a usable id is skipped too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from html import escape, unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from headwater.errors import EmptyAnswer, NotAFeed
from headwater.model import Enclosure, Facts, Page, Post, Reference, Request, Response, Source, SourceState
from headwater.sources import rss
from headwater.sources.json_values import LARGEST_COUNT, Json, count, document_in, one_line, text
from headwater.sources.kind import Kind
from headwater.text import clean_html, printable, text_as_html, text_hash
from headwater.urls import safe_link

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
MAX_TITLE = 1_000
MAX_NAME = 100
MAX_ENCLOSURES = 20
EARLIEST = datetime(2005, 1, 1, tzinfo=UTC).timestamp()  # when Reddit started
TOO_FAR_AHEAD = 600.0  # seconds; a clock may be off by that much

_ID = re.compile(r"t[1-6]_[0-9a-z]{1,20}")
_GONE = {"[deleted]": "deleted", "[removed]": "removed"}
_IMAGE = re.compile(r"\.(jpg|jpeg|png|gif|webp)(?:\?|$)", re.IGNORECASE)
# The end of a feed's entry, after cleaning: its author, its link, its comments.
_SUBMITTED = re.compile(r"\s*(?:&nbsp;|\s)*submitted by\s*(?:&nbsp;|\s)*<a [^>]*>\s*/?u/.*\Z", re.DOTALL)
_FEED_LINK = re.compile(r"<a href=\"([^\"]*)\"[^>]*>\[link\]</a>")


def address_of(typed: str) -> str | None:
    """Returns the address of a community, however a person spells it; None if it is something else."""
    found = _COMMUNITY.fullmatch(typed.strip().partition("?")[0].partition("#")[0])
    return f"{SITE}/r/{found['name'].lower()}" if found else None


def first(source: Source, state: SourceState) -> Request:
    """Returns the request for the listing that the settings `sort`, `time_filter` and `limit` choose."""
    limit = source.settings.get("limit")
    given = limit if isinstance(limit, int) and 0 < limit <= PAGE_LIMIT else PAGE_LIMIT
    return _listing(source, _sort(source), given)


def as_feed(request: Request) -> Request:
    """Returns the request for the same listing as a public feed."""
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
        return Page([], None, Facts(), comments=comments_in(children, response.received_at))
    posts = posts_in(children, response.received_at)
    facts = Facts(format="reddit", title=community_in(children) or _name(source), link=source.address)
    sort, watermark = _sort_of(response.url), state.last_seen_created_at
    if sort != "new":
        facts = facts._replace(whole=after is None and _covers(response, watermark))
        return Page(posts, _comments(source), facts)
    shown = _shown_before(response.url) + len(posts)
    facts = facts._replace(gap=_is_gap(posts, watermark, shown))
    if watermark is None or after is None or _goes_back_to(posts, watermark - LOOK_BACK):
        return Page(posts, _comments(source), facts)
    return Page(posts, _listing(source, sort, PAGE_LIMIT, after, shown), facts)


def _read_feed(source: Source, state: SourceState, response: Response) -> Page:
    page = rss.read(source, state, response)
    posts = [from_feed(post) for post in page.posts]
    by_time = _sort_of(response.url) == "new"
    facts = page.facts._replace(title=_name(source), link=source.address, note=BY_FEED, whole=by_time)
    gap = by_time and _is_gap(posts, state.last_seen_created_at, len(posts))
    return Page(posts, None, facts._replace(gap=gap))


def _goes_back_to(posts: Sequence[Post], time: datetime) -> bool:
    """Whether a page sorted by time shows something older. Equal is not enough: one second can hold many posts."""
    return any(post.dated and post.created_at < time for post in posts)


def _is_gap(posts: Sequence[Post], watermark: datetime | None, shown: int) -> bool:
    """Whether posts were missed if a listing by time ends with these, after `shown` posts in all."""
    if watermark is None or not posts:
        return False
    all_are_new = all(post.created_at > watermark for post in posts)
    return all_are_new or (shown >= LONG_LISTING and not _goes_back_to(posts, watermark - LOOK_BACK))


def _shown_before(url: str) -> int:
    count = _query(url).get("count", "")
    return int(count) if count.isdecimal() else 0


def _covers(response: Response, watermark: datetime | None) -> bool:
    """Whether the listing's time filter reaches back to the watermark. Only `top` has a time filter."""
    if _sort_of(response.url) != "top":
        return False
    span = TIME_FILTERS.get(_query(response.url).get("t", "day"), timedelta(0))
    return span is None or watermark is None or response.received_at - span <= watermark


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
    """Returns the order that an answer is in. The settings may have changed since it was requested."""
    steps = urlsplit(url).path.split("/")
    return next((step for step in steps if step in SORTS), "new")


def _query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def _name(source: Source) -> str:
    return urlsplit(source.address).path.strip("/")


def _parsed(body: bytes) -> tuple[list[Any], str | None]:
    """Returns the children of a listing, and what the next page comes after; None if this is the last page."""
    document = document_in(body, "Reddit")
    data = document.get("data") if isinstance(document, dict) and document.get("kind") == "Listing" else None
    children = data.get("children") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(children, list):
        raise NotAFeed("Reddit answered with something other than a listing of posts.")
    if any(isinstance(child, dict) and child.get("kind") == "t5" for child in children):
        raise NotAFeed("Reddit has no community of this name; it offered a search instead.")
    after = data.get("after")
    return children, after if isinstance(after, str) and is_id(after) else None


def is_id(id: str) -> bool:
    return _ID.fullmatch(id) is not None


def posts_in(children: Sequence[Any], received_at: datetime) -> list[Post]:
    """Returns the posts of a listing, each once."""
    found = {}
    for data in _things(children, "t3"):
        id = _id(data)
        if id and id not in found:
            found[id] = _post(id, data, received_at)
    return list(found.values())


def comments_in(children: Sequence[Any], received_at: datetime) -> list[Post]:
    """Returns the comments of a listing, each once, as replies."""
    found = {}
    for data in _things(children, "t1"):
        id = text(data, "name")
        if is_id(id) and id.startswith("t1_") and id not in found:
            found[id] = _comment(id, data, received_at)
    return list(found.values())


def _things(children: Sequence[Any], type: str) -> Iterator[Json]:
    """Yields the things of a listing that are of one type, as Reddit calls both."""
    for child in children:
        data = child.get("data") if isinstance(child, dict) and child.get("kind") == type else None
        if isinstance(data, dict):
            yield data


def community_in(children: Sequence[Any]) -> str:
    """Returns the community's name as it spells it itself, taken from one of its posts."""
    for child in children:
        data = child.get("data") if isinstance(child, dict) else None
        if isinstance(data, dict) and text(data, "subreddit_name_prefixed"):
            return one_line(text(data, "subreddit_name_prefixed"), MAX_NAME)
    return ""


def from_feed(post: Post) -> Post:
    """Returns a post of the public feed, without what the feed adds to its text."""
    linked = _FEED_LINK.search(post.content)
    target = unescape(linked[1]) if linked else None
    link = target if target and not target.startswith(f"{SITE}/r/") else None
    own, ends = _SUBMITTED.subn("", post.content)
    content = _linked(link) if link and "<table" in own else own if ends else post.content
    if link and not content.strip():
        content = _linked(link)
    return post._replace(
        author=post.author.removeprefix("/u/") if post.author else None,
        content=content,
        text_hash=text_hash(post.title, content),
        extra={**post.extra, "link": link} if link else post.extra,
    )


def _post(id: str, data: Json, received_at: datetime) -> Post:
    url = safe_link(text(data, "permalink"), f"{SITE}/") or f"{SITE}/comments/{id.removeprefix('t3_')}"
    title = one_line(text(data, "title"), MAX_TITLE)
    gone = _gone(data)
    link = None if data.get("is_self") is True or gone else safe_link(text(data, "url"), None)
    content = "" if gone else _content(data, url) or (_linked(link) if link else "")
    parent = text(data, "crosspost_parent")
    return _written(id, url, title, content, data, received_at)._replace(
        num_comments=count(data, "num_comments", least=-LARGEST_COUNT),
        reference=Reference("crosspost", parent) if is_id(parent) else None,
        enclosures=() if gone else tuple(_media(data, link))[:MAX_ENCLOSURES],
        extra=_extra(data, link, gone),
    )


def _comment(id: str, data: Json, received_at: datetime) -> Post:
    thread_title = one_line(text(data, "link_title"), MAX_TITLE)
    url = safe_link(text(data, "permalink"), SITE)
    gone = _GONE.get(text(data, "body").strip())
    html = text(data, "body_html")
    content = clean_html(html, url or SITE).strip() if html else text_as_html(text(data, "body"))
    title, content = f"Re: {thread_title}" if thread_title else "", "" if gone else content
    parent, post = text(data, "parent_id"), text(data, "link_id")
    return _written(id, url, title, content, data, received_at)._replace(
        reference=Reference("reply", parent) if is_id(parent) else None,
        extra={**({"post": post} if is_id(post) else {}), **({"gone": gone} if gone else {})},
        thread=post if is_id(post) else None,
    )


def _written(id: str, url: str | None, title: str, content: str, data: Json, received_at: datetime) -> Post:
    """Returns what posts and comments share."""
    published = _moment(data, "created_utc", received_at)
    author = one_line(text(data, "author"), MAX_NAME)
    return Post(
        source_post_id=id,
        url=url,
        title=title,
        content=content,
        author=author if author and author not in _GONE else None,
        created_at=published or received_at,
        text_hash=text_hash(title, content),
        dated=published is not None,
        updated_at=_moment(data, "edited", received_at),
        score=count(data, "score", least=-LARGEST_COUNT),
    )


def _id(data: Json) -> str | None:
    name = text(data, "name") or f"t3_{text(data, 'id')}"
    return name if is_id(name) and name.startswith("t3_") else None


def _gone(data: Json) -> str | None:
    """Returns why the text is gone: its author deleted it, or a moderator removed it."""
    if gone := _GONE.get(text(data, "selftext").strip()):
        return gone
    by = text(data, "removed_by_category")
    if by:
        return "deleted" if by in ("deleted", "author") else "removed"
    return None


def _content(data: Json, url: str) -> str:
    html = text(data, "selftext_html")
    return clean_html(html, url).strip() if html else text_as_html(text(data, "selftext"))


def _linked(link: str) -> str:
    """Returns the content of a post that is only a link."""
    return clean_html(f'<p><a href="{escape(link)}">{escape(link)}</a></p>', None)


def _extra(data: Json, link: str | None, gone: str | None) -> Json:
    flair = one_line(text(data, "link_flair_text"), MAX_NAME)
    facts = {"flair": flair, "link": link, "gone": gone}
    flags = {name: True for name in ("over_18", "spoiler", "locked") if data.get(name) is True}
    return {name: value for name, value in facts.items() if value} | flags


def _media(data: Json, link: str | None) -> Iterator[Enclosure]:
    if link and (image := _IMAGE.search(link)):
        yield Enclosure(link, "image/" + image[1].lower().replace("jpg", "jpeg"))
    media = data.get("media")
    video = media.get("reddit_video") if isinstance(media, dict) else None
    if isinstance(video, dict) and (stream := safe_link(text(video, "fallback_url"), None)):
        yield Enclosure(stream, "video/mp4")
    gallery = data.get("media_metadata")
    for item in gallery.values() if isinstance(gallery, dict) else ():
        largest = item.get("s") if isinstance(item, dict) else None
        if isinstance(largest, dict) and (image_url := safe_link(text(largest, "u"), None)):
            yield Enclosure(image_url, printable(text(item, "m"))[:MAX_NAME] or None)


def _moment(data: Json, name: str, received_at: datetime) -> datetime | None:
    """Returns a time that can be true. `edited` is False if nothing was edited."""
    seconds = data.get(name)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    if not EARLIEST <= seconds <= received_at.timestamp() + TOO_FAR_AHEAD:
        return None
    return datetime.fromtimestamp(seconds, UTC)


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
