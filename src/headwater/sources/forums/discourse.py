"""Discourse, read as JSON: lists of topics, and the posts of a topic, twenty to a page."""

from __future__ import annotations

import re
from datetime import datetime
from urllib.parse import parse_qs, urlsplit, urlunsplit

from headwater.errors import ReadFailed
from headwater.model import Facts, Item, Page, Post, Reference, Request, Response
from headwater.sources.dates import parse_forum_date
from headwater.sources.forums.pages import MAX_NAME, MAX_POSTS, MAX_TITLE, images_in, json_document
from headwater.sources.json_values import LARGEST_COUNT, Json, number, record, records, text
from headwater.text import clean_html, plain, text_hash
from headwater.urls import safe_link

NAME = "discourse"
POSTS_A_PAGE = 20
LIKE = 2  # the number of this type of action
_HEADERS = (("Accept", "application/json"),)
_ORDERS = ("latest", "top", "new", "hot")
_LIST_STEP = re.compile(r"/(?:c|tag|tags|latest|top|new|hot|t)(?=[/.?]|$)")
_WRITTEN = (1, 2, 4)  # types of post that somebody wrote; the rest are notes, such as that a topic was closed


def list_request(address: str) -> Request:
    """Returns the request for the list at an address: all topics, or those of a category or tag."""
    parts = urlsplit(address)
    path = parts.path.rstrip("/")
    last = path.rpartition("/")[2]
    if path.endswith(".json"):
        pass
    elif last in _ORDERS:
        path += ".json"
    elif re.search(r"/(?:c|tag)/", path):
        path += "/l/latest.json"
    else:
        path += "/latest.json"
    return Request(urlunsplit((parts.scheme, parts.netloc, path, parts.query, "")), _HEADERS)


def read_list(response: Response) -> Page:
    document = json_document(response)
    listed = record(document, "topic_list")
    if "topics" not in listed:
        raise ReadFailed("The forum answered with JSON that is not a list of topics.")
    root = _root(response.url)
    topics = records(listed.get("topics"))
    items = tuple(item for topic in topics[:MAX_POSTS] if (item := _item(topic, root, response.received_at)))
    more = safe_link(text(listed, "more_topics_url"), response.url)
    facts = Facts(NAME, _name(response.url), root + "/", truncated=len(topics) > MAX_POSTS)
    return Page([], _more(more, response.url) if more and items else None, facts, items)


def _more(address: str, url: str) -> Request | None:
    """Returns the request for the next page as JSON. The forum links to the page for people."""
    parts, here = urlsplit(address), urlsplit(url)
    if parts.netloc != here.netloc:
        return None
    path = parts.path if parts.path.endswith(".json") else parts.path + ".json"
    following = urlunsplit((here.scheme, parts.netloc, path, parts.query, ""))
    return Request(following, _HEADERS) if following != url else None


def _item(topic: Json, root: str, received_at: datetime) -> Item | None:
    id = number(topic, "id")
    if id is None:
        return None
    return Item(
        id=str(id),
        url=f"{root}/t/{id}.json",
        title=plain(text(topic, "title"))[:MAX_TITLE],
        mark=f"{number(topic, 'posts_count') or 0}/{text(topic, 'bumped_at') or text(topic, 'last_posted_at')}"[:100],
        created_at=parse_forum_date(text(topic, "created_at"), received_at),
        pinned=topic.get("pinned") is True or topic.get("pinned_globally") is True,
    )


def read_thread(item: Item, response: Response) -> Page:
    document = json_document(response)
    stream = record(document, "post_stream")
    if "posts" not in stream:
        raise ReadFailed("The forum answered with JSON that is not a topic.")
    title = plain(text(document, "title"))[:MAX_TITLE] or item.title
    root = _root(response.url)
    raw_posts = records(stream.get("posts"))
    posts = [
        post
        for raw in raw_posts[:MAX_POSTS]
        if raw.get("post_type", 1) in _WRITTEN and (post := _post(raw, item.id, title, root, response.received_at))
    ]
    if posts and posts[0].source_post_id == f"{item.id}/1":
        replies = _count(document, "posts_count")
        posts[0] = posts[0]._replace(num_comments=max(0, replies - 1) if replies else None)
    facts = Facts(NAME, title, f"{root}/t/{item.id}", truncated=len(raw_posts) > MAX_POSTS)
    return Page(posts, _next(document, stream, raw_posts, response.url), facts)


def _next(document: Json, stream: Json, raw_posts: list[Json], url: str) -> Request | None:
    if not raw_posts:
        return None
    page = int(parse_qs(urlsplit(url).query).get("page", ["1"])[0][:9] or 1) if "page=" in url else 1
    ids = stream.get("stream")
    if isinstance(ids, list) and ids:
        is_last = raw_posts[-1].get("id") == ids[-1]
    else:
        is_last = page * (number(document, "chunk_size") or POSTS_A_PAGE) >= (number(document, "posts_count") or 0)
    return None if is_last else Request(f"{url.partition('?')[0]}?page={page + 1}", _HEADERS)


def _post(raw: Json, topic: str, title: str, root: str, received_at: datetime) -> Post | None:
    position = number(raw, "post_number")
    if position is None:
        return None
    url = f"{root}/t/{text(raw, 'topic_slug') or '-'}/{topic}/{position}"
    content = clean_html(text(raw, "cooked"), url).strip()
    title = title if position == 1 or not title else f"Re: {title}"
    created_at = parse_forum_date(text(raw, "created_at"), received_at)
    was_edited = (number(raw, "version") or 1) > 1
    reply_to = number(raw, "reply_to_post_number")
    return Post(
        source_post_id=f"{topic}/{position}",
        url=safe_link(url, None),
        title=title,
        content=content,
        author=plain(text(raw, "username") or text(raw, "name"))[:MAX_NAME] or None,
        created_at=created_at or received_at,
        text_hash=text_hash(title, content),
        dated=created_at is not None,
        updated_at=parse_forum_date(text(raw, "updated_at"), received_at) if was_edited else None,
        score=_likes(raw),
        num_comments=_count(raw, "reply_count"),
        reference=Reference("reply", f"{topic}/{reply_to}") if reply_to else None,
        extra={"thread": topic},
        images=images_in(content),
        thread=topic,
        opens_thread=position == 1,
    )


def _likes(raw: Json) -> int | None:
    actions = records(raw.get("actions_summary"))
    likes = next((_count(action, "count") for action in actions if action.get("id") == LIKE), None)
    return likes or (0 if actions else None)


def _count(within: Json, name: str) -> int | None:
    found = number(within, name)
    return found if found is None else min(found, LARGEST_COUNT)


def _name(url: str) -> str:
    """Returns what a list is called. Its JSON does not say; its address does."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    category = re.search(r"/(?:c|tag)/([^/?#]+)", parts.path)
    return f"{plain(category[1])} ({host})" if category else host


def _root(url: str) -> str:
    """Returns the address of the forum itself, which may be below a path."""
    parts = urlsplit(url)
    found = _LIST_STEP.search(parts.path)
    return f"{parts.scheme}://{parts.netloc}{parts.path[: found.start()] if found else ''}".rstrip("/")
