"""Small images of every kind, made by hand: enough for whoever looks at first bytes, and PNGs that can be shown."""

from __future__ import annotations

import struct
import zlib


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int = 4, height: int = 3, colour: bytes = b"\x0b\x65\x74") -> bytes:
    """A whole picture in one colour."""
    rows = (b"\0" + colour * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")


def png_of_claimed_size(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0" * 10


def jpeg(width: int, height: int) -> bytes:
    comment = b"\xff\xfe" + struct.pack(">H", 6) + b"\xff\xc0\xff\xc0"  # must not be taken for the frame
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8" + b"\xff\xe0" + struct.pack(">H", 4) + b"JF" + comment + b"\xff" + frame + b"\xff\xd9"


def webp(form: str, width: int, height: int) -> bytes:
    body = {
        "VP8 ": b"\0" * 6 + b"\x9d\x01\x2a" + b"\0" + struct.pack("<HH", width, height),
        "VP8L": b"\0" * 4 + b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14),
        "VP8X": b"\0" * 8 + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
    }[form]
    return b"RIFF" + struct.pack("<I", len(body) + 8) + b"WEBP" + form.encode() + body


def avif(width: int, height: int) -> bytes:
    head = struct.pack(">I", 20) + b"ftypmif1" + b"\0\0\0\0" + b"avif"
    return head + struct.pack(">I", 20) + b"ispe" + b"\0\0\0\0" + struct.pack(">II", width, height)


SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
HTML = b"<!DOCTYPE html><html><body>Please sign in<svg></svg></body></html>"
