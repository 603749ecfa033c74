"""The last resort for documents that are not well-formed even after repair: feedparser's loose parser, to a raw feed.

Its sanitiser and link resolution stay off, so that the same rules apply as to every other document. It is given a
stream, because it would take text or bytes for the name of a file and read that file.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from headwater.errors import NotAFeed
from headwater.sources.feeds.raw import MAX_POSTS, NO_TEXT, RawEntry, RawFeed, RawLink, RawText

_FORMS = {"text/plain": "guess", "text/html": "html", "application/xhtml+xml": "html"}


def read_loose(body: bytes, reason: str) -> RawFeed:
    """What feedparser finds. If it finds nothing, the failure gives the `reason` why nothing else could read it."""
    if b"<" not in body:
        raise NotAFeed(f"The document is not a feed: {reason}.")
    import feedparser  # rarely needed, and slow to import

    try:
        found = feedparser.parse(BytesIO(body), sanitize_html=False, resolve_relative_uris=False)
    except Exception as error:  # a document can make it raise anything
        raise NotAFeed(f"The document is not well-formed and cannot be salvaged: {reason}.") from error
    if not found.get("version") and not found.entries:
        raise NotAFeed(f"The document is not a feed: {reason}.")
    channel = _entry(found.feed)
    for name in ("ttl", "sy_updateperiod", "sy_updatefrequency"):
        if isinstance(found.feed.get(name), str):
            channel.extra[{"ttl": "ttl"}.get(name, name.replace("sy_update", "update_"))] = found.feed[name]
    channel.lang = found.feed.get("language")
    entries = [_entry(entry) for entry in found.entries[:MAX_POSTS]]
    return RawFeed(found.get("version") or "rss", channel, entries, truncated=len(found.entries) > MAX_POSTS)


def _records(record: Any, name: str) -> list[Any]:
    """A list of feedparser's, unless an element of that name in the document put something else there."""
    found = record.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _entry(record: Any) -> RawEntry:
    entry = RawEntry(lang=record.get("language"))
    entry.id = record.get("id") or ""
    entry.title = _raw_text(record.get("title_detail"))
    if not entry.title.value and isinstance(record.get("title"), str):
        entry.title = RawText(record["title"], "guess", None)
    entry.links = [
        RawLink(link.get("rel") or "alternate", link["href"], link.get("type"), link.get("length"))
        for link in _records(record, "links")
        if link.get("href")
    ]
    entry.enclosures = [link for link in entry.links if link.rel == "enclosure"]
    entry.links = [link for link in entry.links if link.rel != "enclosure"]
    if record.get("feedburner_origlink"):
        entry.links.append(RawLink("original", record["feedburner_origlink"]))
    contents = [_raw_text(content) for content in _records(record, "content")]
    entry.content = max(contents, key=lambda text: len(text.value), default=NO_TEXT)
    entry.summary = _raw_text(record.get("summary_detail"))
    entry.dates = [(0, record["published"])] if record.get("published") else []
    entry.dates += [(1, record["created"])] if record.get("created") else []
    entry.updates = [(0, record["updated"])] if "updated" in record.keys() else []  # noqa: SIM118 - feedparser maps missing keys
    entry.authors = [(0, _name(author)) for author in _records(record, "authors") if _name(author)]
    entry.categories = [tag.get("label") or tag.get("term") or "" for tag in _records(record, "tags")]
    entry.comments = record.get("slash_comments") or record.get("thr_total")
    for media in _records(record, "media_content"):
        if media.get("url"):
            entry.enclosures.append(RawLink("media", media["url"], media.get("type"), media.get("filesize")))
    return entry


def _raw_text(detail: Any) -> RawText:
    if not isinstance(detail, dict) or not detail.get("value"):
        return NO_TEXT
    return RawText(detail["value"], _FORMS.get(str(detail.get("type")), "guess"), detail.get("base") or None)


def _name(author: Any) -> str:
    return author.get("name") or author.get("email") or ""
