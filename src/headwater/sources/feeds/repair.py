"""Repairs documents that are nearly XML: the mistakes of authors and servers that can be corrected without guessing.

Anybody who reads the raw text would correct each of them in the same way. Nothing that was written is dropped, except
an entry that is cut off by the end of the document, and that is reported. No pattern here looks at a byte twice.
"""

from __future__ import annotations

import re
from collections import Counter
from html.entities import html5
from typing import NamedTuple

from headwater.sources.feeds.encoding import repaired_utf8
from headwater.sources.feeds.names import USUAL_ADDRESS

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
    """The root element only, without what is before and after it."""
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
