"""OPML, the list of sources that feed readers exchange. Pure: bytes to outlines, and back.

A folder is a path: `Tech/Inner` is the folder Inner in the folder Tech, as OPML's `category` attribute writes it. A
slash within a name is stored as the division slash (U+2215), so that it does not make a folder of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lxml import etree

from headwater.errors import BadDocument
from headwater.follow.add import Outline
from headwater.store.sources import WatchedSource
from headwater.text import plain, printable

MAX_BYTES = 10 * 1024 * 1024
MAX_OUTLINES = 100_000
MAX_NAME = 300

SLASH_IN_NAME = "\u2215"

# An ampersand that starts no entity: feed readers do export titles and addresses unescaped.
_BARE_AMPERSAND = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#[xX][0-9a-fA-F]+);)")


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
    """Returns an OPML 2.0 document of these sources, with one outline per folder, as a tree."""
    root = etree.Element("opml", version="2.0")
    etree.SubElement(etree.SubElement(root, "head"), "title").text = "Headwater"
    body = etree.SubElement(root, "body")
    folders: dict[tuple[str, ...], etree._Element] = {(): body}
    for source in sources:
        path = _path(source.folder or "")
        title = printable(source.title)
        parent = _folder(folders, path)
        outline = etree.SubElement(parent, "outline", type="rss", text=title, title=title, xmlUrl=source.address)
        if source.site_url:
            outline.set("htmlUrl", printable(source.site_url))
        # A category that has one of these in a name would be read as several.
        if path and not any("," in name or "/" in name for name in path):
            outline.set("category", "".join(f"/{name}" for name in path))
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)


def _path(folder: str) -> tuple[str, ...]:
    """Returns the names of the folders on the way to a folder, as they were given."""
    names = (name.strip() for name in printable(folder).split("/"))
    return tuple(name.replace(SLASH_IN_NAME, "/") for name in names if name)


def _folder(folders: dict[tuple[str, ...], etree._Element], path: tuple[str, ...]) -> etree._Element:
    """Returns the outline of a folder, which is made with those above it if it is not there."""
    if path not in folders:
        above = _folder(folders, path[:-1])
        folders[path] = etree.SubElement(above, "outline", text=path[-1], title=path[-1])
    return folders[path]


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
                own = folder or _category(attributes.get("category", ""))
                yield Outline(address, title if title not in ("", address) else None, own or None)
            elif title:
                name = title.replace("/", SLASH_IN_NAME)
                inside = f"{folder}/{name}" if folder else name
        waiting += [(child, inside[:MAX_NAME]) for child in reversed(element)]


def _category(listed: str) -> str:
    """Returns the first category of an outline as a folder. OPML separates categories by commas, and levels by `/`."""
    first = next((one for one in listed.split(",") if one.strip(" /")), "")
    names = (plain(name).strip() for name in first.split("/"))
    return "/".join(name for name in names if name)[:MAX_NAME]


def _name(element: etree._Element) -> str:
    return str(etree.QName(element).localname).lower() if isinstance(element.tag, str) else ""


def _has_entities() -> BadDocument:
    return BadDocument("The OPML document declares its own entities, which is not allowed.")
