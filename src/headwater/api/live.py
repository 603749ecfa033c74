"""`/api/live`: what happens, as it happens, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Annotated

import structlog
from fastapi import APIRouter, Header, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from headwater.errors import BadInput, HeadwaterError
from headwater.events import catalogue
from headwater.events.live import EventFilter, Listener, Live, ResumeToken, is_expired, read_resume_token
from headwater.http import auth
from headwater.http.auth import Asking, WithParts
from headwater.model import Reader
from headwater.wire import Parts

MEDIA_TYPE = "text/event-stream"
MOST_OF_A_READER = 16
MOST_IN_ALL = 1000
KEEP_ALIVE_SECONDS = 15.0
RETRY = b"retry: 2000\n\n"  # milliseconds after which a browser comes again
_RESET = b'id: %b\nevent: reset\ndata: {"reason": "What came after your last event is not kept any more. Reload."}\n\n'

log = structlog.get_logger(__name__)
router = APIRouter(prefix="/api", tags=["live"])


class EventStream(StreamingResponse):
    """The listener's events, until it or the server goes away."""

    def __init__(self, live: Live, listener: Listener, frames: AsyncIterator[bytes]) -> None:
        # A proxy that gathers the answer before it passes it on would make it anything but live.
        super().__init__(frames, media_type=MEDIA_TYPE, headers={"X-Accel-Buffering": "no"})
        self._live, self._listener = live, listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._live.leave(self._listener)


@router.get(
    "/live",
    summary="Follow what happens (server-sent events)",
    response_class=StreamingResponse,
    responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}},
)
async def follow(
    request: Request,
    parts: WithParts,
    reader: Asking,
    kinds: Annotated[str | None, Query(max_length=1000, description="only these kinds, such as `post.stored`")] = None,
    last_event_id: Annotated[str | None, Query(max_length=60, description="as the header, for a first request")] = None,
    last_event_id_header: Annotated[
        str | None,
        Header(alias="Last-Event-ID", max_length=60, description="the id of the last event that you have seen"),
    ] = None,
) -> StreamingResponse:
    """Events of the sources you follow and your own, each as a CloudEvent. With the id of the last one you have seen,
    you get what came after it: nothing is missing, nothing comes twice. An event `reset` says that this is too long
    ago: load what you need anew and go on from there."""
    live = live_of(request)
    seen = last_event_id_header or last_event_id
    token = read_resume_token(seen) if seen else None
    wanted = EventFilter(reader, _kinds(kinds) if kinds else None)
    _refuse_too_many(live, reader)
    kept_for = timedelta(days=parts.settings.event_history_days)
    is_lost = token is not None and (
        is_expired(token, parts.now(), kept_for) or token.position > await live.end_of_log()
    )
    listener = await live.join(wanted, None if is_lost else token)
    return EventStream(live, listener, _frames(request, parts, live, listener, token, is_lost=is_lost))


def live_of(request: Request) -> Live:
    live: Live = request.app.state.live
    return live


async def _frames(
    request: Request, parts: Parts, live: Live, listener: Listener, token: ResumeToken | None, *, is_lost: bool
) -> AsyncIterator[bytes]:
    """An id without an event moves the place to resume from, and a browser tells nobody of it."""
    start = str(ResumeToken(listener.after, parts.now())).encode()
    try:
        if token is None or is_lost:
            yield RETRY + (_RESET % start if is_lost else b"id: %b\n\n" % start)
        else:
            yield RETRY
            async for words in live.missed(listener, token):
                yield words
        async for words in _news(request, parts, live, listener):
            yield words
    except HeadwaterError as error:  # the answer has begun: ending it is all that can be said; the client comes again
        log.info("live.ended", reason=error.detail)


async def _news(request: Request, parts: Parts, live: Live, listener: Listener) -> AsyncIterator[bytes]:
    clock = asyncio.get_running_loop().time
    beat_at = clock() + KEEP_ALIVE_SECONDS
    while (words := await listener.take(max(0.0, beat_at - clock()))) is not None:
        if words:
            yield words
        if clock() >= beat_at:
            await auth.find_caller(request, parts)  # who signed out, or lost the token, is not told any more (H66)
            beat_at = clock() + KEEP_ALIVE_SECONDS
            place = live.resume_token(listener)
            yield b": still here\nid: %b\n\n" % str(place).encode() if place else b": still here\n\n"


def _kinds(given: str) -> frozenset[str]:
    wanted = frozenset(kind.strip() for kind in given.split(","))
    unknown = wanted - set(catalogue.BY_NAME)
    if unknown:
        known = ", ".join(catalogue.BY_NAME)
        raise BadInput(f"kinds: there is no {', '.join(sorted(unknown))[:200]}. There are: {known}.")
    return wanted


def _refuse_too_many(live: Live, reader: Reader) -> None:
    later = {"Retry-After": "30"}
    if live.count(reader) >= MOST_OF_A_READER:
        raise HTTPException(429, f"At most {MOST_OF_A_READER} live connections for each user. Close one.", later)
    if live.count() >= MOST_IN_ALL:
        raise HTTPException(503, "This server has as many live connections as it can hold. Try again later.", later)
