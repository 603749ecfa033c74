"""Places that entries name (GeoRSS Simple, GML, W3C Geo), as GeoJSON geometries."""

from __future__ import annotations

from math import isfinite
from typing import Any

from lxml import etree

from headwater.sources.feeds.names import Names
from headwater.text import plain

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
    """The geometry that an element describes or contains. If it is not in longitude and latitude, as GeoJSON wants it,
    `crs` names its coordinate system."""
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
    """The pairs of numbers in an element. GML and GeoRSS put latitude first, GeoJSON and most other systems last."""
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
