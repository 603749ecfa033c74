"""What routes have in common: types of parameters, lists in pages with cursors, JSON answers, unknown parameters."""

from __future__ import annotations

import base64
import binascii
import difflib
import struct
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from hashlib import blake2b
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

import orjson
from fastapi import APIRouter, Depends, FastAPI, Form, Path, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BeforeValidator, Field, Strict, WithJsonSchema
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from headwater.accounts import openid
from headwater.app.fleet.signals import SCOPE
from headwater.app.shapes import PageJson, shaped
from headwater.errors import BadCursor, UnknownParameter
from headwater.http.auth import needs, refuse_forged, require
from headwater.http.problems import refusals
from headwater.store.posts.stream import Filter, Story, StreamPosition, StreamPost
from headwater.store.stories.folded import ShownMember
from headwater.text import printable

MAX_ID = 2**53 - 1  # every program that reads JSON can hold it
MAX_PAGE = 200
MAX_MARKED = 1000
NO_CONTENT, NOT_MODIFIED = 204, 304
_ETAG = {"ETag": {"description": "names this answer, for `If-None-Match`", "schema": {"type": "string"}}}
_TAGGED: dict[int | str, dict[str, Any]] = {
    200: {"headers": _ETAG},
    NOT_MODIFIED: {"description": "Nothing has changed since the answer that `If-None-Match` names", "headers": _ETAG},
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_NAMED = 10
_WORDS = frozenset({"mark", "refresh", "replay"})  # addresses beside those of ids
_OTHERS_ADD_TO = frozenset({openid.CALLBACK, openid.callback_of("{key}")})  # providers send along what they like
_ADVICE = "Use a next_cursor that this server gave you, unchanged, or leave it out to start from the newest."
T = TypeVar("T")
Row = TypeVar("Row")


def _name(text: str) -> str | None:
    return " ".join(printable(text).split()) or None


def _whole(given: Any) -> Any:
    """To JSON, 1.0 is the integer 1."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


Id = Annotated[int, Path(ge=1, le=MAX_ID)]
Cursor = Annotated[
    str | None, Query(description="`next_cursor` of the page before; leave it out to start from the first")
]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="how many at most")]
Name = Annotated[str, Field(max_length=300), AfterValidator(_name)]
AnyId = Annotated[int, Field(ge=1, le=MAX_ID)]  # in forms and queries, where everything is text
# In a JSON body a value has its own type: neither false nor "0" is the number 0.
WHOLE = BeforeValidator(_whole)
JsonId = Annotated[int, Strict(), Field(ge=1, le=MAX_ID), WHOLE]
Flag = Annotated[bool, Strict()]
Share = Annotated[float, Strict(), Field(ge=0, le=1)]
Text = Annotated[str, Form()]
Line = Annotated[str, Form(max_length=300)]
Long = Annotated[str, Form(max_length=2000)]
Word = Annotated[str, Form(max_length=20)]
Texts = Annotated[list[str] | None, Form()]
Checkbox = Annotated[bool, Form()]
Next = Annotated[str, Form(description="the page to go to afterwards")]
# What a schema says of texts that are checked where they are used.
_TIME = {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}, {"maxLength": 0}]}
MomentText = Annotated[str, WithJsonSchema(_TIME)]
_EMAIL = r"^[A-Za-z0-9!#$%&*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})+$"
Email = Annotated[str, WithJsonSchema({"type": "string", "maxLength": 254, "pattern": _EMAIL})]
_NAME = r"^[^\x00]*[^\s\x00-\x1f\x7f-\x9f][^\x00]*$"
GivenName = Annotated[str, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 100, "pattern": _NAME})]


def one_of(*names: str) -> WithJsonSchema:
    """What a schema says of a text that is one of these."""
    return WithJsonSchema({"type": "string", "enum": list(names)})


def route(summary: str, scope: str, *refused: int, has_tag: bool = False) -> dict[str, Any]:
    """What a route of the API says about itself: a line for its reference, its scope, how it may refuse, and whether
    its answer has an ETag (`tagged`)."""
    responses = refusals(*refused) | (_TAGGED if has_tag else {})
    return {"summary": summary, "dependencies": [needs(scope)], "responses": responses}


async def stream_filter(
    request: Request,
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
    signals: Annotated[
        bool, Query(description="only what names your machines, their makers and pools, or your coins")
    ] = False,
) -> Filter:
    if signals:
        require(request, SCOPE)
    return Filter(source_id, folder, unread, starred, words.strip() or None if words else None, signals)


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


class IdPage(NamedTuple):
    """A page of a list that goes by ids: the id with which the page before ended, and how many are shown."""

    last_id: int | None
    shown: int

    @property
    def limit(self) -> int:
        """How many to read: one more than is shown tells whether there is another page."""
        return self.shown + 1

    def of(self, shape: type[T], found: Sequence[_HasId], **more: Any) -> PageJson[T]:
        """Returns what was found as JSON. `more` are values that the rows do not have."""
        return page_of(shape, found, self.shown, cursor_of_row, **more)


async def id_page(cursor: Cursor = None, limit: Limit = 50) -> IdPage:
    return IdPage(id_in(cursor), limit)


WantedPage = Annotated[IdPage, Depends(id_page)]


def tagged(request: Request, body: bytes) -> Any:
    """Returns a response with this JSON, or a 304 if the client has it already, as its `If-None-Match` says."""
    tag = f'"{blake2b(body, digest_size=16).hexdigest()}"'
    headers = {"ETag": tag}
    known = request.headers.get("if-none-match", "")
    if tag in known or known.strip() == "*":
        return Response(status_code=NOT_MODIFIED, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


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
    if not cursor:
        return None
    microseconds, post_id = _decode(cursor, 2)
    try:
        return StreamPosition(_EPOCH + timedelta(microseconds=microseconds), post_id)
    except OverflowError as error:
        raise BadCursor(_ADVICE) from error


def id_in(cursor: str | None) -> int | None:
    """Returns where a page of a list that goes by ids ended."""
    return _decode(cursor, 1)[0] if cursor else None


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


GUARDS = (Depends(refuse_forged), Depends(refuse_unknown_parameters))  # of every route


def api_router(tag: str, prefix: str = "/api", route_class: type[APIRoute] | None = None) -> APIRouter:
    """Returns a router for routes of the API. They send JSON unless `route_class` says otherwise."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=route_class or JsonRoute,
        dependencies=GUARDS,
        responses=refusals(401, 403, 422, 503),
        generate_unique_id_function=lambda one: one.name,
    )


def add_routes(app: FastAPI, router: APIRouter) -> None:
    """Adds the routes of a router as they are. `include_router` would make each of them again, with all its models."""
    for one in router.routes:
        calls = {dependency.call for dependency in one.dependant.dependencies} if isinstance(one, APIRoute) else set()
        assert calls.issuperset(guard.dependency for guard in GUARDS), f"{one} is made by a router without guards"
        app.router.routes.append(one)


class JsonRoute(APIRoute):
    """A route that sends the object it returns as it is.

    FastAPI documents the shape, but would check and copy every value once more, which costs more than reading it from
    the database. So only the document knows the shapes: `described` makes the route with them. It takes a third of a
    second to make them all, and several megabytes.
    """

    def __init__(self, path: str, endpoint: Callable[..., Awaitable[Any]], **options: Any) -> None:
        answering = encoded(endpoint, options.get("status_code") or 200)
        self.described = partial(APIRoute, path, answering, **options)
        super().__init__(path, answering, **{**options, "response_model": None, "responses": None})

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
