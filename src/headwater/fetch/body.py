"""From the bytes of an answer to the bytes of its document: undoes Content-Encoding under a limit.

Pure and light to import, because it runs in parser processes: what a stranger compressed is inflated where it can be
stopped. Requests offer only the codings in `ACCEPTED`, because only their decoders can limit the output.
"""

from __future__ import annotations

from collections.abc import Iterator

from isal import isal_zlib  # inflates feeds a third to two thirds faster than zlib

from headwater.errors import AnswerBroken, AnswerTooLarge
from headwater.model import Response

ACCEPTED = "gzip, deflate"
MAX_LAYERS = 3

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP, _ZLIB, _RAW = 31, 15, -15
# Real servers put these into Content-Encoding, although they say nothing about compression.
_MEANINGLESS = frozenset({"", "identity", "none", "binary", "8bit", "utf-8", "utf8", "iso-8859-1"})
_FIRST_PIECE = 1024


def unpacked(response: Response, max_bytes: int) -> bytes:
    """Returns the document in an answer.

    Raises AnswerTooLarge as soon as any layer gives more than `max_bytes`, and AnswerBroken if the compressed data ends
    early or is damaged.
    """
    body = response.body
    for coding in reversed(_codings(response.headers.get("content-encoding", ""))):
        if coding == "gzip":
            body = _gunzipped(body, _Room(max_bytes))
        elif coding == "deflate":
            body = _undeflated(body, _Room(max_bytes))
        else:
            raise AnswerBroken(
                f"The server compressed its answer with {coding[:20]!r}, which we did not ask for ({ACCEPTED})."
            )
    _Room(max_bytes).take(len(body))
    return body


def _codings(header: str) -> list[str]:
    words = (word.partition(";")[0].strip().lower().removeprefix("x-") for word in header.split(","))
    codings = [word for word in words if word not in _MEANINGLESS]
    if len(codings) > MAX_LAYERS:
        raise AnswerBroken(f"The answer is compressed {len(codings)} times; at most {MAX_LAYERS} layers are unpacked.")
    return codings


class _Room:
    """How many more bytes one layer may unpack to."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise AnswerTooLarge(f"The answer is larger than the limit of {self.limit:,} bytes.", max_bytes=self.limit)


def _gunzipped(data: bytes, room: _Room) -> bytes:
    if not data or not data.startswith(_GZIP_MAGIC[: len(data)]):
        return data  # labelled as gzip but not compressed: some caches undo the one and not the other
    first, taken = _inflated(memoryview(data), _GZIP, room, piece=len(data))
    if taken == len(data):
        return first
    return first + b"".join(_more_members(memoryview(data)[taken:], room))


def _more_members(rest: memoryview, room: _Room) -> Iterator[bytes]:
    """Leaves out what follows the last member (zero padding, junk)."""
    while rest[:2] == _GZIP_MAGIC:
        member, taken = _inflated(rest, _GZIP, room, piece=_FIRST_PIECE)
        rest = rest[taken:]
        yield member


def _undeflated(data: bytes, room: _Room) -> bytes:
    if not data or data.startswith(_GZIP_MAGIC):
        return _gunzipped(data, room)
    whole = memoryview(data)
    if len(data) > 1 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0:
        try:
            return _inflated(whole, _ZLIB, _Room(room.limit), piece=len(data))[0]
        except AnswerBroken:
            pass  # a raw stream can start like a zlib header
    return _inflated(whole, _RAW, room, piece=len(data))[0]


def _inflated(data: memoryview, form: int, room: _Room, piece: int) -> tuple[bytes, int]:
    """Inflates one stream from the start of `data`. Returns its content, and how many bytes of `data` it took.

    `piece` is how much to offer first. The decoder copies what it was offered and did not use, so offering all that
    follows to each of many tiny members would take quadratic time.
    """
    stream = isal_zlib.decompressobj(form)
    parts: list[bytes] = []
    offered = 0
    while not stream.eof:
        if offered == len(data):
            raise AnswerBroken("The compressed answer ends early: part of it did not arrive.")
        try:
            part = stream.decompress(data[offered : offered + piece], room.left + 1)
        except isal_zlib.error as error:  # type: ignore[misc]  # the stub takes the class for an instance
            raise AnswerBroken(f"The compressed answer is damaged: {error}.") from error
        room.take(len(part))
        parts.append(part)
        offered = min(offered + piece, len(data))
        piece *= 2
    return (parts[0] if len(parts) == 1 else b"".join(parts)), offered - len(stream.unused_data)
