"""Downloads one image: fetches it, recognises it by its first bytes, and keeps it under the hash of its content.

Whatever can be expected to go wrong ends as an ImageOutcome that says so. Only a disk that cannot be written to raises,
because that is not the fault of one image.

Only types that cannot contain a script are recognised. What the server says about the type is ignored. A length that a
file claims is never followed beyond its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, NamedTuple

from headwater.errors import AddressRefused, AnswerTooLarge, BadInput, NotAnImage, SourceFailure, StatusRefused
from headwater.fetch.body import unpacked
from headwater.fetch.failures import is_our_network
from headwater.fetch.statuses import GONE, pause_of, retry_after
from headwater.model import Request, Response
from headwater.store.images import files
from headwater.store.images.queue import ImageOutcome, SavedFile
from headwater.text import printable

ACCEPTED = (("Accept", "image/avif,image/webp,image/png,image/jpeg,image/gif"),)
LONGEST_FACT = 300
MOST_PIXELS = 100_000_000  # more would hang the browser that shows it
_HEAD = 64 * 1024
_MOST_SEGMENTS = 1000
_PNG = b"\x89PNG\r\n\x1a\n"
_GIF = (b"GIF87a", b"GIF89a")
_AVIF = (b"avif", b"avis")
_FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}

Size = tuple[int, int] | None


class ImageTools(NamedTuple):
    """What saving images needs; `folder` is where the files are."""

    fetch: Callable[[Request], Awaitable[Response]]
    folder: Path
    max_bytes: int


async def save(url: str, tools: ImageTools) -> ImageOutcome:
    """Downloads an image and stores the file. Raises StoreUnavailable if it cannot be written."""
    try:
        response = await tools.fetch(Request(url, ACCEPTED))
        _judge(response)
        file = await asyncio.to_thread(_stored, response, tools)
    except (SourceFailure, BadInput) as error:
        return refused(error)
    return ImageOutcome("saved", file, metadata=outcome_of(url, response))


def _judge(response: Response) -> None:
    status = response.status
    if status == 200:
        return
    words = "There is no image at this address." if status in GONE else "The server did not send the image."
    raise StatusRefused(f"{words} (HTTP {status})", http_status=status, retry_after=retry_after(response))


def _stored(response: Response, tools: ImageTools) -> SavedFile:
    data = unpacked(response, tools.max_bytes)
    header = recognised(data)
    content_hash = files.hash_of(data)
    path = files.path_of(content_hash, header.extension)
    files.save(tools.folder, path, data)
    return SavedFile(content_hash, path, header.type, len(data), header.width, header.height)


def refused(error: SourceFailure | BadInput) -> ImageOutcome:
    """Returns what a failure means for the image: skip it, give up, or try again. Pure."""
    again = ImageOutcome("waiting", error_code=error.code, error=printable(error.detail))
    if isinstance(error, AddressRefused | AnswerTooLarge | BadInput) or error.facts.get("lasting"):
        return again._replace(state="skipped")
    if error.facts.get("http_status") in GONE:
        return again._replace(state="failed")
    return again._replace(counts=not is_our_network(error), hold_for=pause_of(error))


def outcome_of(url: str, response: Response) -> dict[str, str]:
    """Returns what the server said about the image, for people who wonder. Nothing is decided by it."""
    said = {
        "answered_by": response.url if response.url != url else "",
        "declared_type": response.headers.get("content-type", ""),
        "last_modified": response.headers.get("last-modified", ""),
    }
    return {name: printable(value)[:LONGEST_FACT] for name, value in said.items() if value}


class ImageHeader(NamedTuple):
    """`width` and `height` are None if the file does not have them in its header."""

    type: str
    extension: str
    width: int | None
    height: int | None


def recognised(data: bytes) -> ImageHeader:
    """Returns the type and size of an image. Raises NotAnImage for SVG, for anything else, and for enormous images."""
    for type, extension, is_one, size_of in _TYPES:
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


_TYPES: tuple[tuple[str, str, Callable[[bytes], bool], Callable[[bytes], Size]], ...] = (
    ("image/png", "png", lambda data: data.startswith(_PNG), _png_size),
    ("image/jpeg", "jpg", lambda data: data.startswith(b"\xff\xd8\xff"), _jpeg_size),
    ("image/gif", "gif", lambda data: data.startswith(_GIF), _gif_size),
    ("image/webp", "webp", lambda data: data.startswith(b"RIFF") and data[8:12] == b"WEBP", _webp_size),
    ("image/avif", "avif", _is_avif, _avif_size),
)
