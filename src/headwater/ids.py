"""Ids that sort by the time they were made: UUIDs of version 7 (RFC 9562)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator


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
