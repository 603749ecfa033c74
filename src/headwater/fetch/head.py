"""The head of an answer: from the lines that arrived to a status and headers, within bounds."""

from __future__ import annotations

from headwater.errors import AnswerBroken

MAX_BYTES = 65536
MAX_LINES = 500
_CONTROLS = bytes(byte for byte in (*range(0x20), 0x7F) if byte not in b"\r\n")
_TO_SPACES = bytes.maketrans(_CONTROLS, b" " * len(_CONTROLS))


def read(lines: list[bytes]) -> dict[str, str]:
    """The headers of the last answer in `lines`: interim answers (1xx) come before it, trailers after it.

    Text is Latin-1, byte for byte, so that a validator goes back exactly as it came.
    """
    if len(lines) > MAX_LINES:
        raise AnswerBroken(f"The answer has more than {MAX_LINES} header lines.")
    block = b"".join(lines)
    if len(block) > MAX_BYTES:
        raise AnswerBroken(f"The answer has {len(block):,} bytes of headers; at most {MAX_BYTES:,} are read.")
    headers: dict[str, str] = {}
    for line in block.translate(_TO_SPACES).decode("latin-1").split("\n"):
        if line.startswith("HTTP/"):
            headers = {}
            continue
        name, colon, value = line.partition(":")
        if colon:
            name = name.lower()
            value = value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
