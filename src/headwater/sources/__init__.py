"""The kinds of source: for each, which request comes next and what an answer says. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from headwater.model import Page, Request, Response, Source, SourceState
from headwater.sources import rss


class Kind(NamedTuple):
    """A kind of source: `first` makes the request a visit begins with, `read` says what an answer means."""

    name: str
    first: Callable[[Source, SourceState], Request]
    read: Callable[[Source, SourceState, Response], Page]


KINDS: Mapping[str, Kind] = MappingProxyType({"rss": Kind("rss", rss.first, rss.read)})
