"""Flarum by its JSON:API: discussions, and the posts of one, twenty to a page."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from headwater.errors import ReadFailed
from headwater.model import Facts, Item, Page, Post, Reference, Request, Response
from headwater.sources.forums.dates import moment_of
from headwater.sources.forums.page import MAX_TITLE
from headwater.sources.forums.records import Record, document_of, number, record, records, text
from headwater.sources.forums.threads import MAX_NAME, MAX_POSTS, images_in
from headwater.text import clean_html, plain, text_hash
from headwater.urls import safe_link

NAME = "flarum"
A_PAGE = 20
_HEADERS = (("Accept", "application/vnd.api+json, application/json"),)


def list_request(address: str) -> Request:
    """The discussions of the forum, or of a tag where the address names one, by their last post."""
    parts = urlsplit(address)
    root, tag, slug = parts.path.rstrip("/").partition("/t/")
    query = {"sort": "-lastPostedAt", "page[limit]": str(A_PAGE), **({"filter[tag]": slug} if tag else {})}
    root = root.removesuffix("/all")
    return Request(urlunsplit((parts.scheme, parts.netloc, f"{root}/api/discussions", urlencode(query), "")), _HEADERS)


def read_list(response: Response) -> Page:
    told = _data(response)
    root = response.url.partition("/api/")[0]
    items = tuple(item for about in told[:MAX_POSTS] if (item := _item(about, root, response.received_at)))
    name = urlsplit(response.url).hostname or ""
    facts = Facts(NAME, name, root + "/", truncated=len(told) > MAX_POSTS)
    return Page([], _next(response, len(told)), facts, items)


def read_thread(item: Item, response: Response) -> Page:
    document = document_of(response.body)
    told = _data(response)
    root = response.url.partition("/api/")[0]
    names = {
        text(who, "id"): text(record(who, "attributes"), "displayName") or text(record(who, "attributes"), "username")
        for who in records(document, "included")
        if who.get("type") == "users"
    }
    posts = [post for about in told[:MAX_POSTS] if (post := _post(about, names, item, root, response.received_at))]
    facts = Facts(NAME, item.title, f"{root}/d/{item.id}", truncated=len(told) > MAX_POSTS)
    return Page(posts, _next(response, len(told)), facts)


def _data(response: Response) -> list[Record]:
    document = document_of(response.body)
    if not isinstance(document.get("data"), list):
        raise ReadFailed("The forum answered with JSON that is neither a list nor a discussion.")
    return records(document, "data")


def _next(response: Response, listed: int) -> Request | None:
    """The page after this one: its address differs by the offset alone."""
    if listed < A_PAGE:
        return None
    parts = urlsplit(response.url)
    query = dict(parse_qsl(parts.query))
    offset = query.get("page[offset]", "0")
    query["page[offset]"] = str((int(offset) if offset.isdigit() and len(offset) < 10 else 0) + A_PAGE)
    return Request(urlunsplit(parts._replace(query=urlencode(query))), _HEADERS)


def _item(about: Record, root: str, received_at: datetime) -> Item | None:
    id, facts = number(about, "id"), record(about, "attributes")
    if id is None:
        return None
    query = urlencode({"filter[discussion]": str(id), "sort": "number", "page[limit]": str(A_PAGE)})
    return Item(
        id=str(id),
        url=f"{root}/api/posts?{query}",
        title=plain(text(facts, "title"))[:MAX_TITLE],
        mark=f"{number(facts, 'commentCount') or 0}/{text(facts, 'lastPostedAt')}"[:100],
        created_at=moment_of(text(facts, "createdAt"), received_at),
        pinned=facts.get("isSticky") is True,
    )


def _post(about: Record, names: dict[str, str], item: Item, root: str, received_at: datetime) -> Post | None:
    facts = record(about, "attributes")
    place = number(facts, "number")
    if place is None or facts.get("contentType", "comment") != "comment":
        return None
    url = f"{root}/d/{item.id}/{place}"
    content = clean_html(text(facts, "contentHtml"), url).strip()
    title = item.title if place == 1 or not item.title else f"Re: {item.title}"
    created_at = moment_of(text(facts, "createdAt"), received_at)
    return Post(
        source_post_id=f"{item.id}/{place}",
        url=safe_link(url, None),
        title=title,
        content=content,
        author=plain(names.get(text(record(about, "relationships", "user", "data"), "id"), ""))[:MAX_NAME] or None,
        created_at=created_at or received_at,
        text_hash=text_hash(title, content),
        dated=created_at is not None,
        updated_at=moment_of(text(facts, "editedAt"), received_at),
        reference=_answered(content, item.id),
        extra={"thread": item.id},
        images=images_in(content),
    )


def _answered(content: str, discussion: str) -> Reference | None:
    """A reply begins by naming the post that it answers, with a link to it."""
    start = content.find(f"/d/{discussion}/", 0, 400)
    if start < 0:
        return None
    place = content[start:].split("/")[3].partition('"')[0][:20]
    return Reference("reply", f"{discussion}/{place}") if place.isascii() and place.isdigit() else None
