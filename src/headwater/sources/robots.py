"""What a robots.txt lets a program read (RFC 9309). Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from protego import Protego

LARGEST = 512_000  # the standard asks for 500 KiB; what comes after that is not read


class Verdict(NamedTuple):
    """Whether a page may be read, and how many seconds apart the site wants requests."""

    allowed: bool = True
    delay: float | None = None


def verdict(rules: str, url: str, agent: str) -> Verdict:
    """What `rules` say to the program named `agent` about the page at `url`."""
    parsed = _parsed(rules)
    return Verdict(parsed.can_fetch(url, agent), parsed.crawl_delay(agent))


@lru_cache(maxsize=16)
def _parsed(rules: str) -> Protego:
    return Protego.parse(rules)
