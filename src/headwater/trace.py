"""The trace that the current request belongs to (W3C Trace Context). It is stored with the events."""

from __future__ import annotations

import re
from contextvars import ContextVar

current: ContextVar[str | None] = ContextVar("traceparent", default=None)
_FORM = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def parse(header: str | None) -> str | None:
    """Returns the header's value if it is valid, otherwise None."""
    return header if header and _FORM.fullmatch(header) else None
