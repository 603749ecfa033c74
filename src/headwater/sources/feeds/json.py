"""JSON Feed 1.0 and 1.1: a JSON document to drafts. Values of the wrong type are passed over, never converted."""

from __future__ import annotations

import re
from typing import Any

import orjson

from headwater.errors import NotAFeed, TooDeep
from headwater.sources.feeds.draft import MAX_POSTS, Draft, FeedDraft, Link, Words

# An escaped half of a character without its other half, which is no character: as in XML, it is left out.
_HALF = re.compile(
    rb"((?<!\\)(?:\\\\)*)(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)


def read_json(body: bytes) -> FeedDraft:
    document = parsed_json(body)
    version = document.get("version") if isinstance(document, dict) else None
    if not isinstance(version, str) or "jsonfeed.org" not in version:
        raise NotAFeed("The document is JSON, but not a JSON Feed: its version does not say so.")
    about = _about(document)
    items = [item for item in _list(document, "items") if isinstance(item, dict)]
    entries = [_entry(item) for item in items[:MAX_POSTS]]
    format = "json11" if version.rstrip("/").endswith("1.1") else "json1"
    return FeedDraft(format, about, entries, truncated=len(items) > MAX_POSTS)


def parsed_json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if error.msg.startswith(("depth limit", "Recursion")):
            raise TooDeep("The JSON document is nested too deeply.") from error
        if error.msg.startswith("unexpected content after document") and error.pos:
            # Junk after the end, as after the root element of an XML feed.
            return parsed_json(error.doc[: error.pos].encode())
        whole = _HALF.sub(rb"\1", body) if "surrogate" in error.msg else body
        if whole != body:
            return parsed_json(whole)
        raise NotAFeed(f"The document looks like JSON but cannot be read: {error}.") from error


def _about(document: dict[str, Any]) -> Draft:
    about = Draft(lang=_text(document, "language"))
    about.title = Words(_text(document, "title") or "", "text")
    about.description = Words(_text(document, "description") or "", "text")
    for rel, name in (("alternate", "home_page_url"), ("self", "feed_url")):
        href = _text(document, name)
        if href:
            about.links.append(Link(rel, href))
    for hub in _list(document, "hubs"):
        if isinstance(hub, dict) and _text(hub, "url"):
            about.links.append(Link("hub", _text(hub, "url") or ""))
    _read_authors(about, document)
    return about


def _entry(item: dict[str, Any]) -> Draft:
    draft = Draft(lang=_text(item, "language"))
    draft.id = _text(item, "id") or ""
    draft.title = Words(_text(item, "title") or "", "text")
    for rel, name in (("alternate", "url"), ("via", "external_url")):
        href = _text(item, name)
        if href:
            draft.links.append(Link(rel, href))
    html, words = _text(item, "content_html"), _text(item, "content_text")
    draft.content = Words(html, "html") if html else Words(words or "", "text")
    draft.summary = Words(_text(item, "summary") or "", "text")
    draft.dates = _dates(item, "date_published")
    draft.updates = _dates(item, "date_modified")
    draft.categories = [tag for tag in _list(item, "tags") if isinstance(tag, str)]
    image = _text(item, "image") or _text(item, "banner_image")
    if image:
        draft.extra["image"] = image
    _read_authors(draft, item)
    for attachment in _list(item, "attachments"):
        if isinstance(attachment, dict) and _text(attachment, "url"):
            size = _text(attachment, "size_in_bytes")
            draft.enclosures.append(
                Link("enclosure", _text(attachment, "url") or "", _text(attachment, "mime_type"), size)
            )
    return draft


def _dates(item: dict[str, Any], name: str) -> list[tuple[int, str]]:
    date = _text(item, name)
    return [(0, date)] if date else []


def _read_authors(draft: Draft, record: dict[str, Any]) -> None:
    for author in [*_list(record, "authors"), record.get("author")]:
        name = _text(author, "name") if isinstance(author, dict) else author
        if isinstance(name, str) and (0, name) not in draft.authors:
            draft.authors.append((0, name))


def _text(record: dict[str, Any], name: str) -> str | None:
    """Text, or a number that stands where text should (ids and sizes often do)."""
    value = record.get(name)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 2**63 else None


def _list(record: dict[str, Any], name: str) -> list[Any]:
    value = record.get(name)
    return value if isinstance(value, list) else []
