"""Types of parameters that routes of the API and pages share."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query
from pydantic import AfterValidator, Field

from headwater.store.posts.stream import Filter
from headwater.text import printable

MAX_ID = 2**63 - 1
MAX_PAGE = 200
MAX_MARKED = 1000


def _name(text: str) -> str | None:
    return " ".join(printable(text).split()) or None


Id = Annotated[int, Path(ge=1, le=MAX_ID)]
Cursor = Annotated[
    str | None, Query(description="`next_cursor` of the page before; leave it out to start from the first")
]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="how many at most")]
Name = Annotated[str, Field(max_length=300), AfterValidator(_name)]
AnyId = Annotated[int, Field(ge=1, le=MAX_ID)]


def stream_filter(
    source_id: Annotated[int | None, Query(ge=1, le=MAX_ID, description="only those of this source")] = None,
    folder: Annotated[Name | None, Query(description="only those of sources in this folder")] = None,
    unread: Annotated[bool, Query(description="only what you have not read")] = False,
    starred: Annotated[bool, Query(description="only what you starred")] = False,
    words: Annotated[
        str | None,
        Query(
            alias="q",
            max_length=500,
            description="only what has all these words, last stored first; `mine*` matches mines",
        ),
    ] = None,
) -> Filter:
    return Filter(source_id, folder, unread, starred, words.strip() or None if words else None)


StreamFilter = Annotated[Filter, Depends(stream_filter)]
