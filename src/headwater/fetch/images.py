"""What the first bytes of an image say: its type, width and height. Pure. What the server says about it is ignored.

Only types that cannot contain a script are known. A length that a file claims is never followed beyond its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from headwater.errors import NotAnImage

MOST_PIXELS = 100_000_000  # more would hang the browser that shows it
_HEAD = 64 * 1024
_MOST_SEGMENTS = 1000
_PNG = b"\x89PNG\r\n\x1a\n"
_GIF = (b"GIF87a", b"GIF89a")
_AVIF = (b"avif", b"avis")
_FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}

Size = tuple[int, int] | None


class ImageHeader(NamedTuple):
    """`width` and `height` are None if the file does not have them in its header."""

    type: str
    extension: str
    width: int | None
    height: int | None


def recognised(data: bytes) -> ImageHeader:
    """Returns the type and size of an image. Raises NotAnImage for SVG, for anything else, and for enormous images."""
    for type, extension, is_one, size_of in _KINDS:
        if is_one(data):
            width, height = size_of(data) or (None, None)
            if width and height and width * height > MOST_PIXELS:
                words = f"The image has {width:,} × {height:,} pixels; the limit is {MOST_PIXELS:,} in all."
                raise NotAnImage(words, lasting=True)
            return ImageHeader(type, extension, width, height)
    raise _refusal(data)


def _refusal(data: bytes) -> NotAnImage:
    head = data[:_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in head and not head.startswith((b"<!doctype html", b"<html")):
        return NotAnImage("SVG is not supported, because it may contain scripts.", lasting=True)
    if head.startswith(b"<"):
        return NotAnImage("A page came instead of an image.")
    if not data:
        return NotAnImage("The answer is empty.")
    return NotAnImage("The answer is not an image of a supported type (PNG, JPEG, GIF, WebP, AVIF).", lasting=True)


def _png_size(data: bytes) -> Size:
    return _pair(data, 16, 4, "big") if data[12:16] == b"IHDR" else None


def _gif_size(data: bytes) -> Size:
    return _pair(data, 6, 2, "little")


def _jpeg_size(data: bytes) -> Size:
    """Walks the segments until the one that describes the frame."""
    place = 2
    for _ in range(_MOST_SEGMENTS):
        if data[place : place + 1] != b"\xff" or place + 4 > len(data):
            return None
        marker = data[place + 1]
        if marker == 0xFF:  # padding
            place += 1
            continue
        if marker in _FRAME_MARKERS:
            size = _pair(data, place + 5, 2, "big")
            return (size[1], size[0]) if size else None
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return None


def _webp_size(data: bytes) -> Size:
    form = data[12:16]
    if form == b"VP8X":
        size = _pair(data, 24, 3, "little")
        return (size[0] + 1, size[1] + 1) if size else None
    if form == b"VP8L" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    size = _pair(data, 26, 2, "little") if form == b"VP8 " else None
    return (size[0] & 0x3FFF, size[1] & 0x3FFF) if size else None


def _is_avif(data: bytes) -> bool:
    if data[4:8] != b"ftyp":
        return False
    end = min(int.from_bytes(data[:4], "big"), 256)
    brands = [data[place : place + 4] for place in (8, *range(16, end, 4))]
    return any(brand in _AVIF for brand in brands)


def _avif_size(data: bytes) -> Size:
    place = data.find(b"ispe", 0, _HEAD)
    return _pair(data, place + 8, 4, "big") if place > 0 else None


def _pair(data: bytes, place: int, length: int, order: Literal["big", "little"]) -> Size:
    """Returns two adjacent numbers; None if the file ends before."""
    if len(data) < place + 2 * length:
        return None
    first, second = data[place : place + length], data[place + length : place + 2 * length]
    return int.from_bytes(first, order), int.from_bytes(second, order)


_KINDS: tuple[tuple[str, str, Callable[[bytes], bool], Callable[[bytes], Size]], ...] = (
    ("image/png", "png", lambda data: data.startswith(_PNG), _png_size),
    ("image/jpeg", "jpg", lambda data: data.startswith(b"\xff\xd8\xff"), _jpeg_size),
    ("image/gif", "gif", lambda data: data.startswith(_GIF), _gif_size),
    ("image/webp", "webp", lambda data: data.startswith(b"RIFF") and data[8:12] == b"WEBP", _webp_size),
    ("image/avif", "avif", _is_avif, _avif_size),
)
