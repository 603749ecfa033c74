"""The last step for documents that are not well-formed even after repair: feedparser's loose reader, to drafts.

Its sanitiser and link resolution stay off, so that the same rules apply as to every other document. It is given a
stream: text and bytes alike it would take for the name of a file, and read that.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from headwater.errors import NotAFeed
from headwater.sources.feeds.draft import MAX_POSTS, NO_WORDS, Draft, FeedDraft, Link, Words

_FORMS = {"text/plain": "guess", "text/html": "html", "application/xhtml+xml": "html"}


def read_loose(body: bytes, reason: str) -> FeedDraft:
    """What feedparser finds. `reason` is why nobody else could read the document; it is said if nothing is found."""
    if b"<" not in body:
        raise NotAFeed(f"The document is not a feed: {reason}.")
    import feedparser  # seldom needed, and slow to import

    try:
        found = feedparser.parse(BytesIO(body), sanitize_html=False, resolve_relative_uris=False)
    except Exception as error:  # it raises whatever the document makes it trip over
        raise NotAFeed(f"The document is not well-formed and cannot be salvaged: {reason}.") from error
    if not found.get("version") and not found.entries:
        raise NotAFeed(f"The document is not a feed: {reason}.")
    about = _draft(found.feed)
    for name in ("ttl", "sy_updateperiod", "sy_updatefrequency"):
        if isinstance(found.feed.get(name), str):
            about.extra[{"ttl": "ttl"}.get(name, name.replace("sy_update", "update_"))] = found.feed[name]
    about.lang = found.feed.get("language")
    entries = [_draft(entry) for entry in found.entries[:MAX_POSTS]]
    return FeedDraft(found.get("version") or "rss", about, entries, truncated=len(found.entries) > MAX_POSTS)


def _records(record: Any, name: str) -> list[Any]:
    """A list of feedparser's; an element of the same name in the document may have put something else there."""
    found = record.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _draft(record: Any) -> Draft:
    draft = Draft(lang=record.get("language"))
    draft.id = record.get("id") or ""
    draft.title = _words(record.get("title_detail"))
    if not draft.title.value and isinstance(record.get("title"), str):
        draft.title = Words(record["title"], "guess", None)
    draft.links = [
        Link(link.get("rel") or "alternate", link["href"], link.get("type"), link.get("length"))
        for link in _records(record, "links")
        if link.get("href")
    ]
    draft.enclosures = [link for link in draft.links if link.rel == "enclosure"]
    draft.links = [link for link in draft.links if link.rel != "enclosure"]
    if record.get("feedburner_origlink"):
        draft.links.append(Link("original", record["feedburner_origlink"]))
    contents = [_words(content) for content in _records(record, "content")]
    draft.content = max(contents, key=lambda words: len(words.value), default=NO_WORDS)
    draft.summary = _words(record.get("summary_detail"))
    draft.dates = [(0, record["published"])] if record.get("published") else []
    draft.dates += [(1, record["created"])] if record.get("created") else []
    draft.updates = [(0, record["updated"])] if "updated" in record.keys() else []  # noqa: SIM118 - feedparser maps missing keys
    draft.authors = [(0, _name(author)) for author in _records(record, "authors") if _name(author)]
    draft.categories = [tag.get("label") or tag.get("term") or "" for tag in _records(record, "tags")]
    draft.comments = record.get("slash_comments") or record.get("thr_total")
    for media in _records(record, "media_content"):
        if media.get("url"):
            draft.enclosures.append(Link("media", media["url"], media.get("type"), media.get("filesize")))
    return draft


def _words(detail: Any) -> Words:
    if not isinstance(detail, dict) or not detail.get("value"):
        return NO_WORDS
    return Words(detail["value"], _FORMS.get(str(detail.get("type")), "guess"), detail.get("base") or None)


def _name(author: Any) -> str:
    return author.get("name") or author.get("email") or ""
