"""RSS 0.90-2.0, RDF and Atom 0.3/1.0: an XML tree to a raw feed.

One table serves all of them, because real feeds mix their elements. What an element means depends on its name and its
attributes, not on the root element.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

from lxml import etree

from headwater.errors import NotAFeed
from headwater.sources.feeds.elements import XML_BASE, XML_LANG, Names, inner_html, place_of
from headwater.sources.feeds.posts import MAX_POSTS, RawEntry, RawFeed, RawLink, RawText
from headwater.urls import joined

_ENTRY = frozenset({"item", "entry"})
_FEED = frozenset({"rss", "rdf:rdf", "rdf", "feed", "channel", "item", "entry"})
_VERSIONS = {"0.9": "rss090", "0.90": "rss090", "0.91": "rss091u", "0.92": "rss092", "0.93": "rss093", "0.94": "rss094"}


class _Document:
    """What the fields of one document share."""

    __slots__ = ("is_atom", "names", "scoped")

    def __init__(self, names: Names, is_atom: bool, scoped: bool) -> None:
        self.names = names
        self.is_atom = is_atom
        # Whether xml:base or xml:lang occur at all. Asking every element for them costs more than reading it.
        self.scoped = scoped


def read_tree(root: etree._Element, *, scoped: bool) -> RawFeed:
    """Returns everything in a document's tree. `scoped`: whether xml:base or xml:lang occur in it."""
    names = Names(str(root.tag))
    kind = names[root.tag]
    if kind not in _FEED:
        raise NotAFeed(f"The document is XML, but its root element is <{etree.QName(root).localname}>.")
    format = _format_of(root, kind)
    document = _Document(names, format.startswith("atom"), scoped)
    channel = RawEntry(*_scope(root, None, None)) if scoped else RawEntry()
    entries: list[etree._Element] = []
    if kind in _ENTRY:
        entries.append(root)
        channels = 0
    else:
        channels = _collect(root, document, channel, entries)
    if kind.startswith("rdf") and not channels and not entries and not _speaks_rss(root):
        raise NotAFeed("The document is RDF, but not about a feed.")
    raw_entries = [_entry(element, document, channel) for element in entries[:MAX_POSTS]]
    return RawFeed(format, channel, raw_entries, truncated=len(entries) > MAX_POSTS)


def _collect(root: etree._Element, document: _Document, channel: RawEntry, entries: list[etree._Element]) -> int:
    """Fills the channel and gathers the entries, wherever they are among root and channels."""
    channels = 0
    for child in root:
        name = document.names[child.tag]
        if name in _ENTRY:
            entries.append(child)
        elif name == "channel":
            channels += 1
            if document.scoped:
                channel.base, channel.lang = _scope(child, channel.base, channel.lang)
            _collect(child, document, channel, entries)
        else:
            read = _FIELDS.get(name)
            if read:
                read(channel, child, document)
    return channels


def _entry(element: etree._Element, document: _Document, channel: RawEntry) -> RawEntry:
    base, lang = channel.base, None
    if document.scoped:
        base, lang = _scope(element, base, lang)
    entry = RawEntry(base, lang)
    names = document.names
    for child in element:
        read = _FIELDS.get(names[child.tag])
        if read:
            read(entry, child, document)
    if not entry.id:
        entry.id = element.get("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about") or ""
    return entry


def _scope(element: etree._Element, base: str | None, lang: str | None) -> tuple[str | None, str | None]:
    own_base = element.get(XML_BASE)
    own_lang = element.get(XML_LANG)
    return (joined(base, own_base) if own_base else base), (lang if own_lang is None else own_lang)


def _speaks_rss(root: etree._Element) -> bool:
    return any("/rss/" in str(address) or "/rdf/simple/" in str(address) for address in root.nsmap.values())


def _format_of(root: etree._Element, kind: str) -> str:
    if kind in {"feed", "entry"}:
        old = root.get("version") == "0.3" or "purl.org/atom" in root.tag
        return "atom03" if old else "atom10"
    if kind in {"rdf:rdf", "rdf"}:
        simple = any("rdf/simple/0.9" in str(address) for address in root.nsmap.values())
        return "rss090" if simple else "rss10"
    version = (root.get("version") or "").strip()
    return _VERSIONS.get(version, "rss20" if version.startswith("2") else "rss")


def _text(element: etree._Element) -> str:
    """Returns the text of an element that should contain nothing but text."""
    if not len(element):
        return (element.text or "").strip()
    return "".join(str(text) for text in element.itertext()).strip()


def _raw_text(element: etree._Element, document: _Document, entry: RawEntry) -> RawText:
    """Returns the text of an element that may be plain text or HTML, and may or may not say which."""
    own = lang = None
    if document.scoped:
        own, lang = element.get(XML_BASE), element.get(XML_LANG)
    base = joined(entry.base, own) if own else None
    kind = element.get("type")
    if len(element):
        return RawText(_inline(element, kind or "", base or entry.base), "html", base, lang)
    text, mode = element.text or "", element.get("mode")
    if kind is None and mode is None:
        return RawText(text, "text" if document.is_atom and "}" in element.tag else "guess", base, lang)
    kind = (kind or "").strip().lower()
    if mode == "base64" or _is_base64(kind):
        return RawText(_decoded(text), "guess", base, lang)
    return RawText(text, _form(kind, mode, document.is_atom), base, lang)


def _form(kind: str, mode: str | None, is_atom: bool) -> str:
    if kind in {"html", "text/html", "xhtml", "application/xhtml+xml"}:
        return "html"
    if kind in {"text", "plain", "text/plain"}:
        return "text"
    if mode == "escaped":
        return "html" if kind else "guess"
    return "text" if is_atom else "guess"


def _inline(element: etree._Element, kind: str, base: str | None) -> str:
    """Returns markup that is in the feed unescaped, or HTML that is escaped and still wrapped in an element."""
    only = element[0] if len(element) == 1 and isinstance(element[0].tag, str) else None
    if only is None:
        return inner_html(element, base).strip()
    if kind == "html" and not len(only) and "<" in (only.text or ""):
        return only.text or ""
    if kind == "xhtml" and only.tag.rpartition("}")[2] == "div":
        # Atom puts a <div> around XHTML that is not part of it.
        own = only.get(XML_BASE)
        return inner_html(only, joined(base, own) if own else base).strip()
    return inner_html(element, base).strip()


def _is_base64(kind: str) -> bool:
    return "/" in kind and not kind.startswith("text/") and not kind.endswith(("xml", "json", "html"))


def _decoded(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return text


def _read_title(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    if entry.title.is_blank:
        entry.title = _raw_text(element, document, entry)


def _read_other_title(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    entry.other_title = entry.other_title or _text(element)


def _read_link(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    href = element.get("href")
    own = element.get(XML_BASE) if document.scoped else None
    if href is None:
        href = _text(element) or element.get("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}resource") or ""
        if href:
            entry.links.append(RawLink("alternate", joined(joined(entry.base, own), href) or href if own else href))
        return
    if own:
        href = joined(joined(entry.base, own), href) or href
    rel = (element.get("rel") or "alternate").strip().lower()
    kind, length = element.get("type"), element.get("length")
    link = RawLink(rel.rpartition("/")[2], href, kind, length)
    if link.rel == "enclosure":
        entry.enclosures.append(link)
        return
    entry.links.append(link)
    if link.rel == "replies":
        entry.comments = entry.comments or element.get("{http://purl.org/syndication/thread/1.0}count")


def _read_original_link(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    entry.links.append(RawLink("original", _text(element)))


def _read_guid(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    if entry.id:
        return
    entry.id = _text(element)
    permanent = (element.get("isPermaLink") or element.get("ispermalink") or "true").lower() != "false"
    # Many plain numbers do not say that they are not addresses.
    if permanent and entry.id.startswith(("http://", "https://", "/")):
        entry.links.append(RawLink("guid", entry.id))


def _read_id(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    entry.id = entry.id or _text(element)


def _read_content(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    source = element.get("src")
    if source and not element.text and not len(element):
        entry.links.append(RawLink("content", source))
        return
    text = _raw_text(element, document, entry)
    if not text.is_blank and (entry.content.is_blank or "html" in (element.get("type") or "").lower()):
        entry.content = text


def _read_encoded(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    text = _raw_text(element, document, entry)
    if not text.is_blank:
        entry.content = text._replace(form="html") if text.form == "guess" and "<" in text.value else text


def _read_xhtml(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    if entry.content.is_blank:
        own, lang = (element.get(XML_BASE), element.get(XML_LANG)) if document.scoped else (None, None)
        base = joined(entry.base, own) if own else None
        entry.content = RawText(inner_html(element, base or entry.base).strip(), "html", base, lang)


def _read_summary(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    if entry.summary.is_blank:
        entry.summary = _raw_text(element, document, entry)


def _read_other_summary(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    if entry.other_summary.is_blank:
        entry.other_summary = _raw_text(element, document, entry)


def _read_description(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    if entry.description.is_blank:
        entry.description = _raw_text(element, document, entry)


def _read_author(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    if not len(element):
        _add_author(entry, 1, element.text)
        return
    names = document.names
    found = {names[child.tag].rpartition(":")[2]: _text(child) for child in element if isinstance(child.tag, str)}
    _add_author(entry, 1, found.get("name") or found.get("email"))


def _add_author(entry: RawEntry, rank: int, text: str | None) -> None:
    if text and text.strip():
        entry.authors.append((rank, text))


def _author(rank: int) -> Callable[[RawEntry, etree._Element, _Document], None]:
    def read(entry: RawEntry, element: etree._Element, document: _Document) -> None:
        _add_author(entry, rank, _text(element))

    return read


def _dates(date: int | None = None, update: int | None = None) -> Callable[[RawEntry, etree._Element, _Document], None]:
    """Reads an element that says when the entry was published, or updated, or either. The numbers are its ranks."""

    def read(entry: RawEntry, element: etree._Element, document: _Document) -> None:
        for rank, found in ((date, entry.dates), (update, entry.updates)):
            if rank is not None and element.text:
                found.append((rank, element.text))

    return read


def _read_language(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    entry.lang = _text(element) or entry.lang


def _read_category(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    text = element.get("label") or element.get("term") or _text(element) or element.get("text")
    if text:
        entry.categories.append(text)


def _read_itunes_category(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    for each in element.iter(element.tag):
        text = each.get("text")
        if text:
            entry.categories.append(text)


def _read_keywords(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    entry.categories.extend(word for word in _text(element).split(",") if word.strip())


def _read_enclosure(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    href = element.get("url") or element.get("href")
    if href:
        entry.enclosures.append(RawLink("enclosure", href, element.get("type"), element.get("length")))


def _read_media(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    href = element.get("url")
    if href:
        kind = element.get("type") or _MEDIUM.get(element.get("medium") or "")
        entry.enclosures.append(RawLink("media", href, kind, element.get("fileSize")))
    if len(element):
        _read_group(entry, element, document)


_MEDIUM = {"image": "image/*", "video": "video/*", "audio": "audio/*"}


def _read_group(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    for child in element:
        name = document.names[child.tag]
        if name.startswith("media:"):
            read = _FIELDS.get(name)
            if read:
                read(entry, child, document)


def _read_media_description(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    if entry.media_description.is_blank:
        form = "html" if element.get("type") == "html" else "text"
        entry.media_description = RawText(_text(element), form)


def _read_thumbnail(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    href = element.get("url") or element.get("href") or _text(element)
    if href:
        entry.extra.setdefault("image", href)


def _read_itunes_link(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    if element.get("rel") == "image":
        _read_thumbnail(entry, element, document)


def _read_comments_count(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    entry.comments = entry.comments or _text(element)


def _read_reply(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    other = element.get("ref") or element.get("href")
    if other:
        entry.reference = ("reply", other)


def _read_source(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    if not len(element):
        entry.extra["source"] = {"title": _text(element), "url": element.get("url") or ""}
        return
    origin = RawEntry(entry.base)
    for child in element:
        name = document.names[child.tag]
        if name in {"title", "link", "author"}:
            _FIELDS[name](origin, child, document)
    link = next((link.href for link in origin.links if link.rel == "alternate"), "")
    entry.extra["source"] = {"title": origin.title.value, "url": link}
    entry.authors.extend((rank + 5, name) for rank, name in origin.authors)


def _read_place(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    place = place_of(element, document.names)
    if place:
        entry.extra.setdefault("place", place)


def _read_position(entry: RawEntry, element: etree._Element, document: _Document) -> None:
    for child in element:
        name = document.names[child.tag]
        if name in {"geo:lat", "geo:long"}:
            _FIELDS[name](entry, child, document)


def _fact(name: str) -> Callable[[RawEntry, etree._Element, _Document], None]:
    def read(entry: RawEntry, element: etree._Element, document: _Document) -> None:
        text = _text(element)
        if text:
            entry.extra.setdefault(name, text)

    return read


_FIELDS: dict[str, Callable[[RawEntry, etree._Element, _Document], None]] = {
    "title": _read_title,
    "dc:title": _read_other_title,
    "media:title": _read_other_title,
    "itunes:title": _read_other_title,
    "link": _read_link,
    "feedburner:origlink": _read_original_link,
    "guid": _read_guid,
    "id": _read_id,
    "content": _read_content,
    "content:encoded": _read_encoded,
    "xhtml:body": _read_xhtml,
    "xhtml:div": _read_xhtml,
    "body": _read_xhtml,
    "fullitem": _read_encoded,
    "description": _read_description,
    "summary": _read_summary,
    "dc:description": _read_other_summary,
    "itunes:summary": _read_other_summary,
    "tagline": _read_description,
    "subtitle": _read_description,
    "abstract": _read_other_summary,
    "media:description": _read_media_description,
    "media:group": _read_group,
    "media:content": _read_media,
    "media:thumbnail": _read_thumbnail,
    "itunes:image": _read_thumbnail,
    "itunes:link": _read_itunes_link,
    "author": _read_author,
    "dc:creator": _author(0),
    "dc:author": _author(0),
    "itunes:author": _author(2),
    "managingeditor": _author(3),
    "pubdate": _dates(0),
    "published": _dates(0),
    "issued": _dates(0),
    "dc:date": _dates(1, update=2),  # Dublin Core does not say which date it means
    "dcterms:issued": _dates(2),
    "dcterms:created": _dates(3),
    "created": _dates(3),
    "date": _dates(4),
    "updated": _dates(update=0),
    "modified": _dates(update=0),
    "dcterms:modified": _dates(update=1),
    "lastbuilddate": _dates(update=3),
    "language": _read_language,
    "dc:language": _read_language,
    "category": _read_category,
    "dc:subject": _read_category,
    "media:category": _read_category,
    "itunes:category": _read_itunes_category,
    "media:keywords": _read_keywords,
    "itunes:keywords": _read_keywords,
    "enclosure": _read_enclosure,
    "slash:comments": _read_comments_count,
    "thr:total": _read_comments_count,
    "thr:in-reply-to": _read_reply,
    "comments": _fact("comments_url"),
    "wfw:commentrss": _fact("comments_feed"),
    "source": _read_source,
    "rights": _fact("rights"),
    "copyright": _fact("rights"),
    "dc:rights": _fact("rights"),
    "itunes:duration": _fact("duration"),
    "itunes:episode": _fact("episode"),
    "itunes:season": _fact("season"),
    "itunes:explicit": _fact("explicit"),
    "georss:point": _read_place,
    "georss:line": _read_place,
    "georss:polygon": _read_place,
    "georss:box": _read_place,
    "georss:where": _read_place,
    "gml:point": _read_place,
    "geo:point": _read_position,
    "geo:lat": _fact("latitude"),
    "geo:long": _fact("longitude"),
    "ttl": _fact("ttl"),
    "sy:updateperiod": _fact("update_period"),
    "sy:updatefrequency": _fact("update_frequency"),
}
