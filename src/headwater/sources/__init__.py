"""The kinds of source: for each, which request comes next and what an answer says. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from headwater.model import Page, Request, Response, Source, SourceState
from headwater.sources import reddit, rss


class Kind(NamedTuple):
    """A kind of source: `first` makes the request a visit begins with, `read` says what an answer means.

    `at_address` says that the source's address is what is fetched: it can move, and a page there can name the source.
    """

    name: str
    first: Callable[[Source, SourceState], Request]
    read: Callable[[Source, SourceState, Response], Page]
    at_address: bool = True


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "rss": Kind("rss", rss.first, rss.read),
        "reddit": Kind("reddit", reddit.first, reddit.read, at_address=False),
    }
)
