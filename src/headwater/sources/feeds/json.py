"""JSON Feed 1.0 and 1.1: a JSON document to a raw feed. Values of the wrong type are skipped, never converted."""

from __future__ import annotations

import re
from typing import Any

import orjson

from headwater.errors import NotAFeed, TooDeep
from headwater.sources.feeds.posts import MAX_POSTS, RawEntry, RawFeed, RawLink, RawText

# Half of an escaped surrogate pair. It is not a character; as in XML, it is left out.
_LONE_SURROGATE = re.compile(
    rb"((?<!\\)(?:\\\\)*)(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)


def read_json(body: bytes) -> RawFeed:
    document = parsed_json(body)
    version = document.get("version") if isinstance(document, dict) else None
    if not isinstance(version, str) or "jsonfeed.org" not in version:
        raise NotAFeed("The document is JSON, but not a JSON Feed: its version does not say so.")
    channel = _channel(document)
    items = [item for item in _list(document, "items") if isinstance(item, dict)]
    entries = [_entry(item) for item in items[:MAX_POSTS]]
    format = "json11" if version.rstrip("/").endswith("1.1") else "json1"
    return RawFeed(format, channel, entries, truncated=len(items) > MAX_POSTS)


def parsed_json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if error.msg.startswith(("depth limit", "Recursion")):
            raise TooDeep("The JSON document is nested too deeply.") from error
        if error.msg.startswith("unexpected content after document") and error.pos:
            # Junk after the end, as after the root element of an XML feed.
            return parsed_json(error.doc[: error.pos].encode())
        whole = _LONE_SURROGATE.sub(rb"\1", body) if "surrogate" in error.msg else body
        if whole != body:
            return parsed_json(whole)
        raise NotAFeed(f"The document looks like JSON but cannot be read: {error}.") from error


def _channel(document: dict[str, Any]) -> RawEntry:
    channel = RawEntry(lang=_text(document, "language"))
    channel.title = RawText(_text(document, "title") or "", "text")
    channel.description = RawText(_text(document, "description") or "", "text")
    for rel, name in (("alternate", "home_page_url"), ("self", "feed_url")):
        href = _text(document, name)
        if href:
            channel.links.append(RawLink(rel, href))
    for hub in _list(document, "hubs"):
        if isinstance(hub, dict) and _text(hub, "url"):
            channel.links.append(RawLink("hub", _text(hub, "url") or ""))
    _read_authors(channel, document)
    return channel


def _entry(item: dict[str, Any]) -> RawEntry:
    entry = RawEntry(lang=_text(item, "language"))
    entry.id = _text(item, "id") or ""
    entry.title = RawText(_text(item, "title") or "", "text")
    for rel, name in (("alternate", "url"), ("via", "external_url")):
        href = _text(item, name)
        if href:
            entry.links.append(RawLink(rel, href))
    html, text = _text(item, "content_html"), _text(item, "content_text")
    entry.content = RawText(html, "html") if html else RawText(text or "", "text")
    entry.summary = RawText(_text(item, "summary") or "", "text")
    entry.dates = _dates(item, "date_published")
    entry.updates = _dates(item, "date_modified")
    entry.categories = [tag for tag in _list(item, "tags") if isinstance(tag, str)]
    image = _text(item, "image") or _text(item, "banner_image")
    if image:
        entry.extra["image"] = image
    _read_authors(entry, item)
    for attachment in _list(item, "attachments"):
        if isinstance(attachment, dict) and _text(attachment, "url"):
            size = _text(attachment, "size_in_bytes")
            entry.enclosures.append(
                RawLink("enclosure", _text(attachment, "url") or "", _text(attachment, "mime_type"), size)
            )
    return entry


def _dates(item: dict[str, Any], name: str) -> list[tuple[int, str]]:
    date = _text(item, name)
    return [(0, date)] if date else []


def _read_authors(entry: RawEntry, record: dict[str, Any]) -> None:
    for author in [*_list(record, "authors"), record.get("author")]:
        name = _text(author, "name") if isinstance(author, dict) else author
        if isinstance(name, str) and (0, name) not in entry.authors:
            entry.authors.append((0, name))


def _text(record: dict[str, Any], name: str) -> str | None:
    """Returns text, or a number where text should be, as ids and sizes often are."""
    value = record.get(name)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 2**63 else None


def _list(record: dict[str, Any], name: str) -> list[Any]:
    value = record.get(name)
    return value if isinstance(value, list) else []
