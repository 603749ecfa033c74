"""What an element of a feed's XML tree is called, contains and locates.

- its name: one short name for each element, whatever namespace address and letter case a feed uses (`Names`)
- its content as HTML, where a feed has it unescaped (`inner_html`)
- its place on Earth (GeoRSS Simple, GML, W3C Geo) as a GeoJSON geometry (`place_of`)
"""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import Any

from lxml import etree

from headwater.text import plain
from headwater.urls import joined

# Formats whose elements mean the same. They share the names without a prefix.
_BARE = (
    "backend.userland.com/rss",
    "blogs.law.harvard.edu/tech/rss",
    "channel.netscape.com/rdf/simple/0.9",
    "example.com/newformat#",
    "hacks.benhammersley.com/rss/streaming",
    "my.netscape.com/rdf/simple/0.9",
    "my.netscape.com/publish/formats/rss-0.91.dtd",
    "purl.org/atom/ns",
    "purl.org/net/rss1.1",
    "purl.org/rss/1.0",
    "purl.org/rss/2.0",
    "w3.org/2005/atom",
)
_PREFIXES = {
    "bing.com/atom": "",
    "podlove.org/simple-chapters": "psc",
    "purl.org/dc/elements/1.0": "dc",
    "purl.org/dc/elements/1.1": "dc",
    "purl.org/dc/terms": "dcterms",
    "purl.org/rss/1.0/modules/content": "content",
    "purl.org/rss/1.0/modules/slash": "slash",
    "purl.org/rss/1.0/modules/syndication": "sy",
    "purl.org/rss/1.0/modules/threading": "thr",
    "purl.org/syndication/thread/1.0": "thr",
    "rssnamespace.org/feedburner/ext/1.0": "feedburner",
    "search.yahoo.com/mrss": "media",
    "video.search.yahoo.com/mrss": "media",
    "tools.search.yahoo.com/mrss": "media",
    "georss.org/georss": "georss",
    "opengis.net/gml": "gml",
    "w3.org/2003/01/geo/wgs84_pos": "geo",
    "wellformedweb.org/commentapi": "wfw",
    "itunes.com/dtds/podcast-1.0.dtd": "itunes",
    "itunes.com/dtds/podcast": "itunes",
    "itunes.apple.com/dtds/podcast-1.0.dtd": "itunes",
    "podcastindex.org/namespace/1.0": "podcast",
    "github.com/podcastindex-org/podcast-namespace/blob/main/docs/1.0.md": "podcast",
    "google.com/schemas/play-podcasts/1.0": "googleplay",
    "w3.org/1999/xhtml": "xhtml",
    "w3.org/1999/02/22-rdf-syntax-ns": "rdf",
    "web.resource.org/cc": "cc",
    "backend.userland.com/creativecommonsrssmodule": "cc",
    "source.scripting.com": "source",
    "youtube.com/xml/schemas/2015": "yt",
    "w3.org/xml/1998/namespace": "xml",
}
PREFIX_OF = dict.fromkeys(_BARE, "") | _PREFIXES

# For documents that use a prefix and do not declare it.
USUAL_ADDRESS = {
    "atom": "http://www.w3.org/2005/Atom",
    "cc": "http://web.resource.org/cc/",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "creativecommons": "http://backend.userland.com/creativeCommonsRssModule",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "feedburner": "http://rssnamespace.org/feedburner/ext/1.0",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "georss": "http://www.georss.org/georss",
    "gml": "http://www.opengis.net/gml",
    "googleplay": "http://www.google.com/schemas/play-podcasts/1.0",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "podcast": "https://podcastindex.org/namespace/1.0",
    "psc": "http://podlove.org/simple-chapters",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "source": "http://source.scripting.com/",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "thr": "http://purl.org/syndication/thread/1.0",
    "wfw": "http://wellformedweb.org/CommentAPI/",
    "xhtml": "http://www.w3.org/1999/xhtml",
    "yt": "http://www.youtube.com/xml/schemas/2015",
}


def prefix_of(namespace: str) -> str | None:
    """Returns the short name of a namespace; None if we do not read it."""
    address = namespace.strip().lower().removeprefix("http://").removeprefix("https://").removeprefix("www.")
    return PREFIX_OF.get(address.rstrip("/#"))


class Names(dict[str, str]):
    """The short names of the elements of one document, each worked out when it is first looked up.

    The namespace of a feed's root is that of the format, whatever address the feed gives it.
    """

    def __init__(self, root: str) -> None:
        super().__init__()
        namespace, _, local = root.rpartition("}")
        self._own = namespace if local.lower() in {"rss", "feed", "channel"} else None

    def __missing__(self, tag: str) -> str:
        namespace, _, local = tag.rpartition("}")
        local = local.lower()
        prefix = "" if not namespace or namespace == self._own else prefix_of(namespace[1:])
        self[tag] = name = f"?{local}" if prefix is None else f"{prefix}:{local}" if prefix else local
        return name


XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
_LINKS = frozenset({"href", "src", "cite"})


def inner_html(element: etree._Element, base: str | None) -> str:
    """Returns the content of an element, whose base is `base`. Links with an xml:base of their own become absolute."""
    if not len(element):
        return escape(element.text or "", quote=False)
    out: list[str] = [escape(element.text or "", quote=False)]
    for child in element:
        _write(child, base, base, out)
    return "".join(out)


def _write(element: etree._Element, base: str | None, outer: str | None, out: list[str]) -> None:
    if isinstance(element.tag, str):
        tag = element.tag.rpartition("}")[2].lower()
        own = element.get(XML_BASE)
        base = joined(base, own) if own else base
        out.append(f"<{tag}{_attributes(element, base, base != outer)}>")
        out.append(escape(element.text or "", quote=False))
        for child in element:
            _write(child, base, outer, out)
        if tag not in _VOID:
            out.append(f"</{tag}>")
    out.append(escape(element.tail or "", quote=False))


def _attributes(element: etree._Element, base: str | None, moved: bool) -> str:
    written = ""
    for key, text in element.items():
        name, value = str(key), str(text)
        if name == XML_LANG:
            name = "lang"
        elif name.startswith("{"):
            continue
        elif moved and name in _LINKS:
            value = joined(base, value) or value
        written += f' {name}="{escape(value)}"'
    return written


MAX_POINTS = 200
MAX_SYSTEM = 100  # characters

_SHAPES = {
    "georss:point": "Point",
    "georss:line": "LineString",
    "georss:polygon": "Polygon",
    "georss:box": "Box",
    "gml:point": "Point",
    "gml:linestring": "LineString",
    "gml:polygon": "Polygon",
    "gml:envelope": "Box",
}
_FEWEST = {"Point": 1, "LineString": 2, "Polygon": 4, "Box": 2}


def place_of(element: etree._Element, names: Names) -> dict[str, Any] | None:
    """Returns the geometry that an element describes or contains.

    If it is not in longitude and latitude, as GeoJSON wants it, `crs` names its coordinate system.
    """
    for each in element.iter():
        shape = _SHAPES.get(names[each.tag]) if isinstance(each.tag, str) else None
        if shape:
            system = each.get("srsName") or "EPSG:4326"
            if "4326" in system or "CRS84" in system.upper():
                return _on_earth(shape, [[east, north] for north, east in _pairs(each)])
            geometry = _geometry(shape, _pairs(each))
            return geometry and {**geometry, "crs": plain(system)[:MAX_SYSTEM]}
    return None


def point_of(latitude: str, longitude: str) -> dict[str, Any] | None:
    try:
        point = [float(longitude), float(latitude)]
    except ValueError:
        return None
    return _on_earth("Point", [point])


def _pairs(element: etree._Element) -> list[list[float]]:
    """Returns the pairs of numbers in an element.

    GML and GeoRSS put latitude first, GeoJSON and most other systems last.
    """
    words = " ".join(str(text) for text in element.itertext()).replace(",", " ").split()
    try:
        numbers = [float(word) for word in words[: 2 * MAX_POINTS]]
    except ValueError:
        return []
    return [list(pair) for pair in zip(numbers[::2], numbers[1::2], strict=False)]


def _on_earth(shape: str, points: list[list[float]]) -> dict[str, Any] | None:
    is_on_earth = all(abs(east) <= 180 and abs(north) <= 90 for east, north in points)
    return _geometry(shape, points) if is_on_earth else None


def _geometry(shape: str, points: list[list[float]]) -> dict[str, Any] | None:
    if len(points) < _FEWEST[shape] or not all(isfinite(number) for point in points for number in point):
        return None
    if shape == "Point":
        return {"type": "Point", "coordinates": points[0]}
    if shape == "LineString":
        return {"type": "LineString", "coordinates": points}
    if shape == "Box":
        (west, south), (east, north) = points[:2]
        points = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [points]}
