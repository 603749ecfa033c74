"""Templates: everything is escaped unless it is marked as safe HTML, and a missing value is an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from headwater import __version__
from headwater.store.posts.stream import StreamPost
from headwater.web import formatting


class Day(NamedTuple):
    day: str
    posts: list[StreamPost]


def groupby_day(posts: Sequence[StreamPost], now: datetime, zone: tzinfo) -> Iterator[Day]:
    for day, group in groupby(posts, lambda post: formatting.day(post.created_at, now, zone)):
        yield Day(day, list(group))


_environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_environment.filters["groupby_day"] = groupby_day
_environment.globals.update(version=__version__, words=formatting)


def render(name: str, **context: Any) -> str:
    return _environment.get_template(name).render(**context)
