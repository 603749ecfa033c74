"""Which request of somebody's a change is part of (W3C Trace Context): it travels with the events."""

from __future__ import annotations

import re
from contextvars import ContextVar

current: ContextVar[str | None] = ContextVar("traceparent", default=None)
_FORM = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def parse(header: str | None) -> str | None:
    """The header's value if it is one; whatever else somebody sent is as if nothing was sent."""
    return header if header and _FORM.fullmatch(header) else None
