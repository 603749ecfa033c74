"""What a robots.txt allows a program to read (RFC 9309). Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from protego import Protego

LARGEST = 512_000  # bytes; the standard asks for 500 KiB, and the rest is ignored


class Verdict(NamedTuple):
    """Whether a page may be read, and how many seconds the site wants between requests."""

    allowed: bool = True
    delay: float | None = None


def verdict(rules: str, url: str, agent: str) -> Verdict:
    """What `rules` say about the page at `url` for the program named `agent`."""
    parsed = _parsed(rules)
    return Verdict(parsed.can_fetch(url, agent), parsed.crawl_delay(agent))


@lru_cache(maxsize=16)
def _parsed(rules: str) -> Protego:
    return Protego.parse(rules)
