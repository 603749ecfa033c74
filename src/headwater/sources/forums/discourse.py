"""Discourse by its JSON: lists of topics, and topics with their posts, twenty to a page."""

from __future__ import annotations

import re
from datetime import datetime
from urllib.parse import parse_qs, urlsplit, urlunsplit

from headwater.errors import ReadFailed
from headwater.model import Facts, Item, Page, Post, Reference, Request, Response
from headwater.sources.forums.dates import moment_of
from headwater.sources.forums.page import MAX_TITLE
from headwater.sources.forums.records import Record, count, document_of, number, record, records, text
from headwater.sources.forums.threads import MAX_NAME, MAX_POSTS, images_in
from headwater.text import clean_html, plain, text_hash
from headwater.urls import safe_link

NAME = "discourse"
POSTS_A_PAGE = 20
LIKE = 2  # the number of this kind of action
_HEADERS = (("Accept", "application/json"),)
_ORDERS = ("latest", "top", "new", "hot")
_LIST_STEP = re.compile(r"/(?:c|tag|tags|latest|top|new|hot|t)(?=[/.?]|$)")
_SPOKEN = (1, 2, 4)  # kinds of post that somebody wrote; the rest are notes that a topic was closed or moved


def list_request(address: str) -> Request:
    """The list that a person means by an address of the forum: all topics, or those of a category or tag."""
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
    document = document_of(response.body)
    listed = record(document, "topic_list")
    if "topics" not in listed:
        raise ReadFailed("The forum answered with JSON that is no list of topics.")
    root = _root(response.url)
    topics = records(listed, "topics")
    items = tuple(item for topic in topics[:MAX_POSTS] if (item := _item(topic, root, response.received_at)))
    more = safe_link(text(listed, "more_topics_url"), response.url)
    facts = Facts(NAME, _name(response.url), root + "/", truncated=len(topics) > MAX_POSTS)
    return Page([], _more(more, response.url) if more and items else None, facts, items)


def _more(address: str, url: str) -> Request | None:
    """The next page of a list, as JSON: the forum names the page for people."""
    parts, here = urlsplit(address), urlsplit(url)
    if parts.netloc != here.netloc:
        return None
    path = parts.path if parts.path.endswith(".json") else parts.path + ".json"
    following = urlunsplit((here.scheme, parts.netloc, path, parts.query, ""))
    return Request(following, _HEADERS) if following != url else None


def _item(topic: Record, root: str, received_at: datetime) -> Item | None:
    id = number(topic, "id")
    if id is None:
        return None
    return Item(
        id=str(id),
        url=f"{root}/t/{id}.json",
        title=plain(text(topic, "title"))[:MAX_TITLE],
        mark=f"{number(topic, 'posts_count') or 0}/{text(topic, 'bumped_at') or text(topic, 'last_posted_at')}"[:100],
        created_at=moment_of(text(topic, "created_at"), received_at),
        pinned=topic.get("pinned") is True or topic.get("pinned_globally") is True,
    )


def read_thread(item: Item, response: Response) -> Page:
    document = document_of(response.body)
    stream = record(document, "post_stream")
    if "posts" not in stream:
        raise ReadFailed("The forum answered with JSON that is no topic.")
    title = plain(text(document, "title"))[:MAX_TITLE] or item.title
    root = _root(response.url)
    told = records(stream, "posts")
    posts = [
        post
        for spoken in told[:MAX_POSTS]
        if spoken.get("post_type", 1) in _SPOKEN and (post := _post(spoken, item.id, title, root, response.received_at))
    ]
    if posts and posts[0].source_post_id == f"{item.id}/1":
        replies = count(document, "posts_count")
        posts[0] = posts[0]._replace(num_comments=max(0, replies - 1) if replies else None)
    facts = Facts(NAME, title, f"{root}/t/{item.id}", truncated=len(told) > MAX_POSTS)
    return Page(posts, _next(document, stream, told, response.url), facts)


def _next(document: Record, stream: Record, told: list[Record], url: str) -> Request | None:
    if not told:
        return None
    page = int(parse_qs(urlsplit(url).query).get("page", ["1"])[0][:9] or 1) if "page=" in url else 1
    everything = stream.get("stream")
    if isinstance(everything, list) and everything:
        is_last = told[-1].get("id") == everything[-1]
    else:
        is_last = page * (number(document, "chunk_size") or POSTS_A_PAGE) >= (number(document, "posts_count") or 0)
    return None if is_last else Request(f"{url.partition('?')[0]}?page={page + 1}", _HEADERS)


def _post(told: Record, topic: str, title: str, root: str, received_at: datetime) -> Post | None:
    place = number(told, "post_number")
    if place is None:
        return None
    url = f"{root}/t/{text(told, 'topic_slug') or '-'}/{topic}/{place}"
    content = clean_html(text(told, "cooked"), url).strip()
    title = title if place == 1 or not title else f"Re: {title}"
    created_at = moment_of(text(told, "created_at"), received_at)
    answered = number(told, "reply_to_post_number")
    return Post(
        source_post_id=f"{topic}/{place}",
        url=safe_link(url, None),
        title=title,
        content=content,
        author=plain(text(told, "username") or text(told, "name"))[:MAX_NAME] or None,
        created_at=created_at or received_at,
        text_hash=text_hash(title, content),
        dated=created_at is not None,
        updated_at=moment_of(text(told, "updated_at"), received_at) if (number(told, "version") or 1) > 1 else None,
        score=_likes(told),
        num_comments=count(told, "reply_count"),
        reference=Reference("reply", f"{topic}/{answered}") if answered else None,
        extra={"thread": topic},
        images=images_in(content),
    )


def _likes(told: Record) -> int | None:
    actions = records(told, "actions_summary")
    likes = next((count(action, "count") for action in actions if action.get("id") == LIKE), None)
    return likes or (0 if actions else None)


def _name(url: str) -> str:
    """What a list is called: its JSON does not say, its address does."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    category = re.search(r"/(?:c|tag)/([^/?#]+)", parts.path)
    return f"{plain(category[1])} ({host})" if category else host


def _root(url: str) -> str:
    """Where the forum begins: it may stand below a path of its own."""
    parts = urlsplit(url)
    found = _LIST_STEP.search(parts.path)
    return f"{parts.scheme}://{parts.netloc}{parts.path[: found.start()] if found else ''}".rstrip("/")
