"""OPML, the list of sources that feed readers exchange. Pure: bytes to outlines, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lxml import etree

from headwater.errors import BadDocument
from headwater.store.sources import WatchedSource
from headwater.text import plain, printable

MAX_BYTES = 10 * 1024 * 1024
MAX_OUTLINES = 100_000
MAX_NAME = 300

# An ampersand that starts no entity: feed readers do export titles and addresses unescaped.
_BARE_AMPERSAND = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#[xX][0-9a-fA-F]+);)")


class Outline(NamedTuple):
    """One source of the list. `folder` is the path of outlines above it."""

    address: str
    title: str | None = None
    folder: str | None = None


def read(document: bytes) -> list[Outline]:
    """Returns the sources that an OPML document lists, each address once, in order."""
    if len(document) > MAX_BYTES:
        raise BadDocument(f"The OPML document has {len(document):,} bytes; at most {MAX_BYTES:,} are read.")
    if b"<!ENTITY" in document.replace(b"\0", b""):
        raise _has_entities()
    root = _parse(document)
    if _name(root) != "opml":
        raise BadDocument("This is XML, but not OPML: it does not begin with an opml element.")
    found: dict[str, Outline] = {}
    for outline in _outlines(root):
        if len(found) >= MAX_OUTLINES:
            raise BadDocument(f"The OPML document lists more than {MAX_OUTLINES:,} sources. Split it.")
        found.setdefault(outline.address, outline)
    return list(found.values())


def write(sources: Iterable[WatchedSource]) -> bytes:
    """Returns an OPML 2.0 document of these sources, with one outline per folder."""
    root = etree.Element("opml", version="2.0")
    etree.SubElement(etree.SubElement(root, "head"), "title").text = "Headwater"
    body = etree.SubElement(root, "body")
    folders: dict[str, etree._Element] = {}
    for source in sources:
        parent = body
        if source.folder:
            name = printable(source.folder)
            if name not in folders:
                folders[name] = etree.SubElement(body, "outline", text=name, title=name)
            parent = folders[name]
        title = printable(source.title)
        outline = etree.SubElement(parent, "outline", type="rss", text=title, title=title, xmlUrl=source.address)
        if source.site_url:
            outline.set("htmlUrl", printable(source.site_url))
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)


def _parse(document: bytes) -> etree._Element:
    document = document.strip()
    try:
        root = etree.fromstring(document, _parser())
    except etree.XMLSyntaxError:
        try:
            root = etree.fromstring(_BARE_AMPERSAND.sub(b"&amp;", document), _parser())
        except etree.XMLSyntaxError as error:
            raise BadDocument(f"The OPML document is not well-formed: {' '.join(str(error.msg).split())}.") from error
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and any(dtd.iterentities()):  # type: ignore[union-attr]  # lxml-stubs do not know it
        raise _has_entities()
    return root


def _parser() -> etree.XMLParser:
    # Without huge_tree, libxml2 itself refuses more than 256 levels and text that grows beyond reason.
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )


def _outlines(root: etree._Element) -> Iterator[Outline]:
    waiting: list[tuple[etree._Element, str]] = [(root, "")]
    while waiting:
        element, folder = waiting.pop()
        inside = folder
        if _name(element) == "outline":
            attributes = {str(name).lower(): str(value) for name, value in element.attrib.items()}
            title = plain(attributes.get("title") or attributes.get("text") or "")[:MAX_NAME]
            address = attributes.get("xmlurl", "").strip()
            if address:
                yield Outline(address, title if title not in ("", address) else None, folder or None)
            elif title:
                inside = f"{folder}/{title}" if folder else title
        waiting += [(child, inside[:MAX_NAME]) for child in reversed(element)]


def _name(element: etree._Element) -> str:
    return str(etree.QName(element).localname).lower() if isinstance(element.tag, str) else ""


def _has_entities() -> BadDocument:
    return BadDocument("The OPML document declares its own entities, which is not allowed.")
