"""Posts and comments of Reddit, from the API's JSON or from the public feed. Both give the same post.

Values of the wrong type are skipped, never converted. A post without a usable id is skipped too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape, unescape
from typing import Any

from headwater.model import Enclosure, Post, Reference
from headwater.sources.json_values import LARGEST_COUNT, Json, count, one_line, text
from headwater.text import clean_html, printable, text_as_html, text_hash
from headwater.urls import safe_link

SITE = "https://www.reddit.com"
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


def is_id(id: str) -> bool:
    return _ID.fullmatch(id) is not None


def posts_in(children: Sequence[Any], received_at: datetime) -> list[Post]:
    """The posts of a listing, each once."""
    found = {}
    for child in children:
        data = child.get("data") if isinstance(child, dict) and child.get("kind") == "t3" else None
        if not isinstance(data, dict):
            continue
        id = _id(data)
        if id and id not in found:
            found[id] = _post(id, data, received_at)
    return list(found.values())


def comments_in(children: Sequence[Any], received_at: datetime) -> list[Post]:
    """The comments of a listing, each once, as replies."""
    found = {}
    for child in children:
        data = child.get("data") if isinstance(child, dict) and child.get("kind") == "t1" else None
        if not isinstance(data, dict):
            continue
        id = text(data, "name")
        if is_id(id) and id.startswith("t1_") and id not in found:
            found[id] = _comment(id, data, received_at)
    return list(found.values())


def community_in(children: Sequence[Any]) -> str:
    """The community's name as it spells it itself, taken from one of its posts."""
    for child in children:
        data = child.get("data") if isinstance(child, dict) else None
        if isinstance(data, dict) and text(data, "subreddit_name_prefixed"):
            return one_line(text(data, "subreddit_name_prefixed"), MAX_NAME)
    return ""


def from_feed(post: Post) -> Post:
    """A post of the public feed, without what the feed adds to its text."""
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
    )


def _written(id: str, url: str | None, title: str, content: str, data: Json, received_at: datetime) -> Post:
    """What posts and comments share."""
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
    """Why the text is gone: its author deleted it, or a moderator removed it."""
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
    """The content of a post that is only a link."""
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
    """A time that can be true. `edited` is False if nothing was edited."""
    seconds = data.get(name)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    if not EARLIEST <= seconds <= received_at.timestamp() + TOO_FAR_AHEAD:
        return None
    return datetime.fromtimestamp(seconds, UTC)
