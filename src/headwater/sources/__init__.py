"""The kinds of source: for each, which request comes next and what an answer says. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from headwater.sources import forum, market, news, reddit, rss, x
from headwater.sources.kind import Kind as Kind

KINDS: Mapping[str, Kind] = MappingProxyType(
    {kind.name: kind for kind in (rss.KIND, reddit.KIND, forum.KIND, news.KIND, x.KIND, market.KIND)}
)
# What is at an address is taken for a feed until a visit finds out more.
DEFAULT = rss.KIND
