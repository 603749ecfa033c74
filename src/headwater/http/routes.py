"""What routes have in common: types of parameters, lists in pages with cursors, JSON answers, unknown parameters."""

from __future__ import annotations

import base64
import binascii
import difflib
import struct
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Annotated, Any, Protocol, TypeVar

import orjson
from fastapi import Depends, Form, Path, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import AfterValidator, Field, Strict
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from headwater.accounts import openid
from headwater.app.shapes import PageJson, shaped
from headwater.errors import BadCursor, UnknownParameter
from headwater.http.auth import needs
from headwater.http.problems import refusals
from headwater.store.posts.stream import Filter, Story, StreamPosition, StreamPost
from headwater.store.stories.folded import ShownMember
from headwater.text import printable

MAX_ID = 2**63 - 1
MAX_PAGE = 200
MAX_MARKED = 1000
NO_CONTENT = 204
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_NAMED = 10
_WORDS = frozenset({"mark", "refresh", "replay"})  # addresses beside those of ids
_OTHERS_ADD_TO = frozenset({openid.CALLBACK})  # providers send along what they like
_ADVICE = "Use a next_cursor that this server gave you, unchanged, or leave it out to start from the newest."
T = TypeVar("T")
Row = TypeVar("Row")


def _name(text: str) -> str | None:
    return " ".join(printable(text).split()) or None


Id = Annotated[int, Path(ge=1, le=MAX_ID)]
Cursor = Annotated[
    str | None, Query(description="`next_cursor` of the page before; leave it out to start from the first")
]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="how many at most")]
Name = Annotated[str, Field(max_length=300), AfterValidator(_name)]
AnyId = Annotated[int, Field(ge=1, le=MAX_ID)]  # in forms and queries, where everything is text
# In a JSON body a value has its own type: neither false nor "0" is the number 0.
JsonId = Annotated[int, Strict(), Field(ge=1, le=MAX_ID)]
Flag = Annotated[bool, Strict()]
Share = Annotated[float, Strict(), Field(ge=0, le=1)]
Text = Annotated[str, Form()]
Texts = Annotated[list[str] | None, Form()]
Next = Annotated[str, Form(description="the page to go to afterwards")]


def route(summary: str, scope: str, *refused: int) -> dict[str, Any]:
    """What a route of the API says about itself: a line for its reference, its scope, and how it may refuse."""
    return {"summary": summary, "dependencies": [needs(scope)], "responses": refusals(*refused)}


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
            description="only what has all these words, the newest first; `mine*` matches mines",
        ),
    ] = None,
) -> Filter:
    return Filter(source_id, folder, unread, starred, words.strip() or None if words else None)


StreamFilter = Annotated[Filter, Depends(stream_filter)]


class _HasId(Protocol):
    @property
    def id(self) -> int: ...


def cut_page(found: Sequence[Row], limit: int, cursor_of: Callable[[Row], str]) -> tuple[Sequence[Row], str | None]:
    """Returns one page of what was found, and the cursor of the next one. One more than `limit` was asked for."""
    return found[:limit], cursor_of(found[limit - 1]) if len(found) > limit else None


def page_of(
    shape: type[T], found: Sequence[Row], limit: int, cursor_of: Callable[[Row], str], **more: Any
) -> PageJson[T]:
    """Returns one page of what was found as JSON. `more` are values that the rows do not have."""
    rows, next_cursor = cut_page(found, limit, cursor_of)
    return {"items": [shaped(shape, row, **more) for row in rows], "next_cursor": next_cursor}


def cursor_of_post(post: StreamPost) -> str:
    return _cursor_at(StreamPosition(post.created_at, post.id))


def cursor_of_story(story: Story) -> str:
    return _cursor_at(story.at)


def cursor_of_member(member: ShownMember) -> str:
    return _encode(member.seq)


def cursor_of_row(row: _HasId) -> str:
    """Returns the cursor of a list that goes by ids."""
    return cursor_of_id(row.id)


def cursor_of_id(id: int) -> str:
    return _encode(id)


def position(cursor: str | None) -> StreamPosition | None:
    """Returns where a page of posts or stories ended."""
    if cursor is None:
        return None
    microseconds, post_id = _decode(cursor, 2)
    try:
        return StreamPosition(_EPOCH + timedelta(microseconds=microseconds), post_id)
    except OverflowError as error:
        raise BadCursor(_ADVICE) from error


def id_in(cursor: str | None) -> int | None:
    """Returns where a page of a list that goes by ids ended."""
    return None if cursor is None else _decode(cursor, 1)[0]


def _cursor_at(at: StreamPosition) -> str:
    return _encode((at.created_at - _EPOCH) // _MICROSECOND, at.post_id)


def _encode(*numbers: int) -> str:
    return base64.urlsafe_b64encode(struct.pack(f">{len(numbers)}q", *numbers)).decode().rstrip("=")


def _decode(cursor: str, count: int) -> tuple[int, ...]:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        packed = base64.b64decode(padded, altchars=b"-_", validate=True)
        numbers: tuple[int, ...] = struct.unpack(f">{count}q", packed)
    except (UnicodeEncodeError, binascii.Error, struct.error) as error:
        raise BadCursor(_ADVICE) from error
    return numbers


async def refuse_unknown_parameters(request: Request) -> None:
    """Raises UnknownParameter if the query has one that the route does not take. A misspelled filter filters nothing,
    and nobody would notice."""
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute) or route.path in _OTHERS_ADD_TO:
        return
    known = sorted(_queried(route.dependant))
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        wrong = [{"field": printable(name)[:50], "message": _no_such(name, known)} for name in unknown[:_MOST_NAMED]]
        raise UnknownParameter(" ".join(f"{one['field']}: {one['message']}" for one in wrong), errors=wrong)


def _queried(dependant: Dependant) -> set[str]:
    own = {one.alias for one in dependant.query_params}
    return own.union(*(_queried(one) for one in dependant.dependencies))


def _no_such(name: str, known: Sequence[str]) -> str:
    if not known:
        return "This address takes no parameters."
    if close := difflib.get_close_matches(name[:50], known, n=1):
        return f"There is no such parameter here. Did you mean {close[0]}?"
    return f"There is no such parameter here. There are: {', '.join(known)}."


class JsonRoute(APIRoute):
    """A route that sends the object it returns as it is.

    FastAPI documents the shape, but would check and copy every value once more, which costs more than reading it from
    the database.
    """

    def __init__(self, path: str, endpoint: Callable[..., Awaitable[Any]], **options: Any) -> None:
        super().__init__(path, encoded(endpoint, options.get("status_code") or 200), **options)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """`/api/sources/refresh` is not the source with the id `refresh`: it takes no method of a source."""
        match, child = super().matches(scope)
        if match is not Match.NONE and not _WORDS.isdisjoint(child["path_params"].values()):
            return Match.NONE, {}
        return match, child


def encoded(endpoint: Callable[..., Awaitable[Any]], status: int) -> Callable[..., Awaitable[Response]]:
    @wraps(endpoint)
    async def answer(**given: Any) -> Response:
        found = await endpoint(**given)
        if isinstance(found, Response):
            return found
        body = b"" if status == NO_CONTENT else orjson.dumps(found)
        return Response(body, status, media_type="application/json" if body else None)

    return answer
