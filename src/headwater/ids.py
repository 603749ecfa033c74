"""Ids: UUIDs that sort by the time they were made (version 7, RFC 9562), and the trace of the current request."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextvars import ContextVar

# W3C Trace Context. It is stored with the events that the request causes.
current_trace: ContextVar[str | None] = ContextVar("traceparent", default=None)
_FORM = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def uuid7() -> str:
    return next(uuid7s(1))


def uuid7s(count: int) -> Iterator[str]:
    """Makes `count` ids with the same timestamp. One call to the system's random source serves all of them."""
    time_part = f"{time.time_ns() // 1_000_000:012x}"
    first = f"{time_part[:8]}-{time_part[8:]}-7"
    chance = os.urandom(10 * count).hex()
    for at in range(0, 20 * count, 20):
        variant = "89ab"[int(chance[at + 3], 16) & 3]
        yield f"{first}{chance[at : at + 3]}-{variant}{chance[at + 4 : at + 7]}-{chance[at + 7 : at + 19]}"


def new_trace() -> str:
    """Returns a traceparent that begins a trace. Its id sorts by time."""
    return f"00-{uuid7().replace('-', '')}-{os.urandom(8).hex()}-01"


def trace_id(traceparent: str) -> str:
    return traceparent.split("-")[1]


def parse_trace(header: str | None) -> str | None:
    """Returns the header's value if it is valid, otherwise None."""
    return header if header and _FORM.fullmatch(header) else None
