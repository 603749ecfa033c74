"""Documents that an XML parser must not see, or cannot read, as they are.

- `without_doctype` removes the DOCTYPE, so that no DTD ever reaches an XML parser.
- `with_characters_repaired` and the steps after it correct mistakes of authors and servers without guessing: anybody
  who reads the raw text would correct each of them in the same way. Nothing that was written is dropped, except an
  entry that is cut off by the end of the document, and that is reported. No pattern here looks at a byte twice.
- `read_loose` is the last resort: feedparser's loose parser, to a raw feed. Its sanitiser and link resolution stay off,
  so that the same rules apply as to every other document. It is given a stream, because it would take text or bytes for
  the name of a file and read that file.
"""

from __future__ import annotations

import re
from collections import Counter
from html.entities import html5
from io import BytesIO
from typing import Any, NamedTuple

from headwater.errors import NotAFeed, TooDeep
from headwater.sources.encoding import repaired_utf8
from headwater.sources.feeds.elements import USUAL_ADDRESS
from headwater.sources.feeds.posts import MAX_POSTS, NO_TEXT, RawEntry, RawFeed, RawLink, RawText

MAX_ENTITIES = 300
MAX_ENTITY_LENGTH = 1_000
MAX_GROWTH = 200_000

_DOCTYPE = re.compile(rb"\A(?:\s++|<\?(?>.*?\?>)|<!--(?>.*?-->))*+(<!DOCTYPE\b)", re.DOTALL | re.IGNORECASE)
_DOCTYPE_END = re.compile(
    rb"(?:[^\[\]<>\"']++|\"[^\"]*+\"|'[^']*+')*+(?:\[(?P<subset>(?:[^\]<\"']++|<!--(?>.*?-->)|<\?(?>.*?\?>)|<|\"[^\"]*+\"|'[^']*+')*+)\]\s*+)?>",
    re.DOTALL,
)
_ENTITY = re.compile(
    rb"<!ENTITY\s+(?P<parameter>%\s+)?(?P<name>[^\s%\"'<>&;]{1,100})\s+(?:\"(?P<double>[^\"]*+)\"|'(?P<single>[^']*+)'|(?P<external>SYSTEM|PUBLIC)\b)"
)
_REFERENCE = re.compile(rb"&([^\s#&;<>\"'%]{1,100});")
_REFERENCE_OUTSIDE_CDATA = re.compile(rb"<!\[CDATA\[(?>.*?\]\]>)|&([^\s#&;<>\"'%]{1,100});", re.DOTALL)
_PREDEFINED = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})


def without_doctype(body: bytes) -> bytes:
    """Returns the document without its DOCTYPE, and with the plain entities that it declares replaced by their text.

    Raises TooDeep for entities that are made of others, are long, or make the document grow. Ignores external ones.
    """
    found = _DOCTYPE.match(body, 0, 65_536)
    if not found:
        return body
    start = found.start(1)
    end = _DOCTYPE_END.match(body, found.end(1))
    if not end:
        if b"<!ENTITY" in body[start : start + 65_536]:
            raise TooDeep("The document type declaration cannot be read and declares entities.")
        return body
    rest = body[end.end() :]
    entities = _plain_entities(end["subset"] or b"")
    return body[:start] + (_expanded(rest, entities) if entities else rest)


def _plain_entities(subset: bytes) -> dict[bytes, bytes]:
    if b"<!ENTITY" not in subset:
        return {}
    found: dict[bytes, bytes] = {}
    for count, entity in enumerate(_ENTITY.finditer(subset), 1):
        if count > MAX_ENTITIES:
            raise TooDeep(f"The document declares more than {MAX_ENTITIES} entities.")
        if entity["external"] or entity["parameter"]:
            continue
        value = entity["double"] if entity["double"] is not None else entity["single"]
        if len(value) > MAX_ENTITY_LENGTH:
            raise TooDeep(f"The document declares an entity of {len(value):,} bytes.")
        found.setdefault(entity["name"], value)
    for value in found.values():
        if any(name in found for name in _REFERENCE.findall(value) if name not in _PREDEFINED):
            raise TooDeep("The document declares entities in terms of each other.")
    return found


def _expanded(rest: bytes, entities: dict[bytes, bytes]) -> bytes:
    growth = 0

    def value_of(reference: re.Match[bytes]) -> bytes:
        nonlocal growth
        name = reference[1]
        if name is None or name in _PREDEFINED or name not in entities:
            return reference[0]
        growth += len(entities[name])
        if growth > MAX_GROWTH:
            raise TooDeep("The entities that the document declares make it grow too much.")
        return entities[name]

    return _REFERENCE_OUTSIDE_CDATA.sub(value_of, rest)


_CDATA = rb"<!\[CDATA\[(?>.*?(?:\]\]>|\Z))"
_COMMENT = rb"<!--(?>.*?(?:-->|\Z))"

_START = re.compile(rb"<(?:rss|feed|(?:\w+:)?RDF)[\s>]", re.IGNORECASE)
_ROOT_NAME = re.compile(rb"<([A-Za-z][\w.:-]*)")
_CONTROLS = bytes({*range(0x20)} - set(b"\t\n\r"))
_NONCHARACTER = re.compile(rb"\xef\xbf[\xbe\xbf]|\xed[\xa0-\xbf][\x80-\xbf]")
# References that XML knows, to characters that it allows, are skipped; all other ampersands are looked at.
_AMPERSAND = re.compile(
    _CDATA + rb"|&(?!(?:amp|lt|gt|quot|apos|#(?:1[6-9]|[2-9]\d|[1-9]\d\d)\d);)"
    rb"(?:#(?P<decimal>[0-9]{1,10});|#[xX](?P<hex>[0-9A-Fa-f]{1,8});|(?P<name>[A-Za-z][A-Za-z0-9]{1,31});)?",
    re.DOTALL,
)
_BARE_BRACKET = re.compile(
    _CDATA + rb"|" + _COMMENT + rb"|<(?![A-Za-z_/!?])|<(?=[A-Za-z]+[^A-Za-z0-9\s/>:_.-])", re.DOTALL
)
_TAG = re.compile(_CDATA + rb"|<[A-Za-z][^<>]*+>", re.DOTALL)
_ATTRIBUTE = re.compile(rb"(\s[A-Za-z_][\w:.-]*\s*=\s*)(?:(\"[^\"]*\"|'[^']*')|([^\s\"'<>]+?)(?=\s|/?>))")
_TEXT_NAMES = (b"title", b"description", b"summary", b"content", b"content:encoded", b"subtitle", b"tagline")
_TEXT_ELEMENTS = {
    name: re.compile(rb"<(%s)(\s[^<>]*+)?(?<!/)>(?>(.*?)</%s\s*+>)" % (name, name), re.DOTALL) for name in _TEXT_NAMES
}
_TEXT_START = re.compile(rb"<(%s)(?:\s[^<>]*+)?(?<!/)>" % b"|".join(_TEXT_NAMES))
# An element that contains only text and is not closed before the next element starts or the entry ends.
_UNCLOSED = re.compile(
    _CDATA + rb"|<(title|link|guid|id|pubDate|published|updated|category|comments|description|summary|content:encoded)"
    rb"(?:\s[^<>]*+)?(?<!/)>(?:[^<]++|" + _CDATA + rb")*+(?=<(?:title|link|guid|id|pubDate|published|updated|category"
    rb"|comments|description|content:encoded|author|enclosure|dc:[a-z]++)[\s>]|</(?:item|entry)\s*+>)",
    re.DOTALL,
)
_PREFIX = re.compile(rb"[<\s]/?([A-Za-z][\w.-]*):[A-Za-z]")
_XMLNS = re.compile(rb"xmlns:([A-Za-z][\w.-]*)\s*=")
_ENTRY = re.compile(rb"<(?:\w+:)?(?:item|entry)[\s>]", re.IGNORECASE)
_ENTRY_END = re.compile(rb"</(?:\w+:)?(?:item|entry)\s*>", re.IGNORECASE)
_ENDS_ONLY = re.compile(rb"(?:\s|</[\w.:-]*+>?)*+<?")


class Repaired(NamedTuple):
    """A document, and whether something was lost that the end of the document cut off."""

    body: bytes
    cut_off: bool = False


def with_characters_repaired(body: bytes) -> Repaired:
    """Repairs wrong bytes, forbidden characters, HTML entities and unescaped ampersands."""
    body = trimmed(repaired_utf8(body)).translate(None, _CONTROLS)
    if b"\xef\xbf" in body or b"\xed" in body:
        body = _NONCHARACTER.sub(b"", body)
    return Repaired(_AMPERSAND.sub(_ampersand, body))


def with_structure_repaired(body: bytes) -> Repaired:
    """Repairs brackets in text, attributes without quotes, undeclared prefixes and missing end tags."""
    body = _BARE_BRACKET.sub(lambda found: found[0] if len(found[0]) > 1 else b"&lt;", body)
    body = _TAG.sub(_quoted, body)
    body = _UNCLOSED.sub(lambda found: found[0] + b"</%s>" % found[1] if found[1] else found[0], body)
    return _closed(_declared(body))


def with_text_escaped(body: bytes) -> Repaired:
    """Escapes HTML that is written unescaped into text elements, so that it cannot break the feed."""
    for name, element in _TEXT_ELEMENTS.items():
        # Otherwise each start after the last end would search the whole rest of the document.
        end = body.rfind(b"</" + name) + len(name) + 30
        body = element.sub(_escaped, body[:end]) + body[end:]
    return Repaired(body)


def holds_feed(body: bytes) -> bool:
    """Whether a feed's root element is anywhere in the document."""
    return _START.search(body) is not None


def entries_begun(body: bytes) -> int:
    return len(_ENTRY.findall(body))


def has_unclosed_text(body: bytes) -> bool:
    """Whether a text element is never closed, so that nobody can say where its text ends."""
    begun = Counter(_TEXT_START.findall(body))
    return any(count > body.count(b"</" + name) for name, count in begun.items())


def trimmed(body: bytes) -> bytes:
    """Returns the root element only, without what is before and after it."""
    start = _START.search(body)
    if not start:
        return body.strip()
    body = body[start.start() :]
    name = _ROOT_NAME.match(body)
    if name:
        end = body.rfind(b"</" + name[1])
        close = body.find(b">", end) if end >= 0 else -1
        if close >= 0:
            return body[: close + 1]
    return body


def _ampersand(found: re.Match[bytes]) -> bytes:
    whole = found[0]
    if whole.startswith(b"<"):
        return whole
    if found["name"]:
        text = html5.get(found["name"].decode("ascii") + ";")
        return text.encode() if text and text not in "<>&" else b"&amp;" + whole[1:]
    if whole == b"&":
        return b"&amp;"
    return _character(int(found["decimal"]) if found["decimal"] else int(found["hex"], 16), whole)


def _character(code: int, whole: bytes) -> bytes:
    if 0x80 <= code <= 0x9F:
        # Windows-1252 characters, as every browser reads them.
        return bytes([code]).decode("cp1252", "ignore").encode()
    if code in {9, 10, 13} or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF:
        return whole
    return b""


def _quoted(tag: re.Match[bytes]) -> bytes:
    if b"=" not in tag[0] or tag[0].startswith(b"<!"):
        return tag[0]
    return _ATTRIBUTE.sub(lambda found: found[0] if found[2] else b'%s"%s"' % (found[1], found[3]), tag[0])


def _escaped(element: re.Match[bytes]) -> bytes:
    name, attributes, inside = element.groups()
    if b"<" not in inside or b"<![CDATA[" in inside or _ENTRY_END.search(inside):
        return element[0]
    return b"<%s%s>%s</%s>" % (name, attributes or b"", inside.replace(b"<", b"&lt;"), name)


def _declared(body: bytes) -> bytes:
    """Declares the usual namespaces of prefixes that are used but not declared."""
    declared = {*_XMLNS.findall(body), b"xml", b"xmlns"}
    missing = {prefix for prefix in _PREFIX.findall(body) if prefix not in declared}
    root = _ROOT_NAME.match(body)
    if not missing or not root:
        return body
    added = b"".join(b' xmlns:%s="%s"' % (prefix, _address_of(prefix)) for prefix in sorted(missing)[:100])
    return body[: root.end()] + added + body[root.end() :]


def _address_of(prefix: bytes) -> bytes:
    name = prefix.decode("ascii").lower()
    return USUAL_ADDRESS.get(name, f"urn:undeclared:{name}").encode()


def _closed(body: bytes) -> Repaired:
    """Closes a document that breaks off, after its last complete entry if it has one."""
    root = _ROOT_NAME.match(body)
    if not root:
        return Repaired(body)
    end = body.rfind(b"</" + root[1])
    if end >= 0:
        whole = b"<channel" not in body or b"</channel" in body
        return Repaired(body if whole else body[:end] + b"</channel>" + body[end:])
    ends = [found.end() for found in _ENTRY_END.finditer(body)]
    if not ends:
        return Repaired(body, cut_off=True)
    kept, rest = body[: ends[-1]], body[ends[-1] :]
    inside_channel = kept.rfind(b"<channel") > kept.rfind(b"</channel")
    closing = (b"</channel>" if inside_channel else b"") + b"</" + root[1] + b">"
    return Repaired(kept + closing, cut_off=_ENDS_ONLY.fullmatch(rest) is None)


_FORMS = {"text/plain": "guess", "text/html": "html", "application/xhtml+xml": "html"}


def read_loose(body: bytes, reason: str) -> RawFeed:
    """Returns what feedparser finds.

    If it finds nothing, the failure gives the `reason` why nothing else could read it.
    """
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
    """Returns a list of feedparser's, unless an element of that name in the document put something else there."""
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
