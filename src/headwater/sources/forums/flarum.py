"""Flarum, read through its JSON:API: discussions, and the posts of a discussion, twenty to a page."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from headwater.errors import ReadFailed
from headwater.model import Facts, Item, Page, Post, Reference, Request, Response
from headwater.sources.dates import parse_forum_date
from headwater.sources.forums.pages import MAX_NAME, MAX_POSTS, MAX_TITLE, images_in, json_document
from headwater.sources.json_values import Json, number, record, records, text
from headwater.text import clean_html, plain, text_hash
from headwater.urls import safe_link

NAME = "flarum"
PAGE_SIZE = 20
_HEADERS = (("Accept", "application/vnd.api+json, application/json"),)


def list_request(address: str) -> Request:
    """Returns the request for the discussions of the forum, or of the tag in its address, sorted by last post."""
    parts = urlsplit(address)
    root, tag, slug = parts.path.rstrip("/").partition("/t/")
    query = {"sort": "-lastPostedAt", "page[limit]": str(PAGE_SIZE), **({"filter[tag]": slug} if tag else {})}
    root = root.removesuffix("/all")
    return Request(urlunsplit((parts.scheme, parts.netloc, f"{root}/api/discussions", urlencode(query), "")), _HEADERS)


def read_list(response: Response) -> Page:
    discussions = _data(json_document(response))
    root = response.url.partition("/api/")[0]
    items = tuple(item for raw in discussions[:MAX_POSTS] if (item := _item(raw, root, response.received_at)))
    name = urlsplit(response.url).hostname or ""
    facts = Facts(NAME, name, root + "/", truncated=len(discussions) > MAX_POSTS)
    return Page([], _next(response, len(discussions)), facts, items)


def read_thread(item: Item, response: Response) -> Page:
    document = json_document(response)
    raw_posts = _data(document)
    root = response.url.partition("/api/")[0]
    names = {
        text(who, "id"): text(record(who, "attributes"), "displayName") or text(record(who, "attributes"), "username")
        for who in records(document.get("included"))
        if who.get("type") == "users"
    }
    posts = [post for raw in raw_posts[:MAX_POSTS] if (post := _post(raw, names, item, root, response.received_at))]
    facts = Facts(NAME, item.title, f"{root}/d/{item.id}", truncated=len(raw_posts) > MAX_POSTS)
    return Page(posts, _next(response, len(raw_posts)), facts)


def _data(document: Json) -> list[Json]:
    if not isinstance(document.get("data"), list):
        raise ReadFailed("The forum answered with JSON that is neither a list nor a discussion.")
    return records(document.get("data"))


def _next(response: Response, listed: int) -> Request | None:
    """Returns the request for the next page, whose address differs only in the offset."""
    if listed < PAGE_SIZE:
        return None
    parts = urlsplit(response.url)
    query = dict(parse_qsl(parts.query))
    offset = query.get("page[offset]", "0")
    query["page[offset]"] = str((int(offset) if offset.isdigit() and len(offset) < 10 else 0) + PAGE_SIZE)
    return Request(urlunsplit(parts._replace(query=urlencode(query))), _HEADERS)


def _item(raw: Json, root: str, received_at: datetime) -> Item | None:
    id, facts = number(raw, "id"), record(raw, "attributes")
    if id is None:
        return None
    query = urlencode({"filter[discussion]": str(id), "sort": "number", "page[limit]": str(PAGE_SIZE)})
    return Item(
        id=str(id),
        url=f"{root}/api/posts?{query}",
        title=plain(text(facts, "title"))[:MAX_TITLE],
        mark=f"{number(facts, 'commentCount') or 0}/{text(facts, 'lastPostedAt')}"[:100],
        created_at=parse_forum_date(text(facts, "createdAt"), received_at),
        pinned=facts.get("isSticky") is True,
    )


def _post(raw: Json, names: dict[str, str], item: Item, root: str, received_at: datetime) -> Post | None:
    facts = record(raw, "attributes")
    position = number(facts, "number")
    if position is None or facts.get("contentType", "comment") != "comment":
        return None
    url = f"{root}/d/{item.id}/{position}"
    content = clean_html(text(facts, "contentHtml"), url).strip()
    title = item.title if position == 1 or not item.title else f"Re: {item.title}"
    created_at = parse_forum_date(text(facts, "createdAt"), received_at)
    return Post(
        source_post_id=f"{item.id}/{position}",
        url=safe_link(url, None),
        title=title,
        content=content,
        author=plain(names.get(text(record(raw, "relationships", "user", "data"), "id"), ""))[:MAX_NAME] or None,
        created_at=created_at or received_at,
        text_hash=text_hash(title, content),
        dated=created_at is not None,
        updated_at=parse_forum_date(text(facts, "editedAt"), received_at),
        reference=_reference(content, item.id),
        extra={"thread": item.id},
        images=images_in(content),
        thread=item.id,
        opens_thread=position == 1,
    )


def _reference(content: str, discussion: str) -> Reference | None:
    """A reply starts with a link to the post that it answers."""
    start = content.find(f"/d/{discussion}/", 0, 400)
    if start < 0:
        return None
    position = content[start:].split("/")[3].partition('"')[0][:20]
    return Reference("reply", f"{discussion}/{position}") if position.isascii() and position.isdigit() else None
