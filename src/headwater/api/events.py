"""Events as they happen (`/api/live`), what caused them (`/api/traces`), and those that a consumer could not handle
(`/api/dead-letters`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Annotated

import structlog
from fastapi import Header, Path, Query, Request
from fastapi.routing import APIRoute
from pydantic import WithJsonSchema
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from headwater.app import log as event_log
from headwater.app.log import DeadLetterJson, Joined, LetterState, ReplayAll, TraceJson
from headwater.app.shapes import PageJson, shaped
from headwater.errors import HeadwaterError
from headwater.events.live import EventFilter, Listener, Live, ResumeToken
from headwater.http import auth
from headwater.http.auth import CurrentReader, needs
from headwater.http.problems import refusals
from headwater.http.routes import Id, WantedPage, api_router, route
from headwater.http.state import WithLive, WithParts
from headwater.wire import Parts

MEDIA_TYPE = "text/event-stream"
MOST_OF_A_READER = 16
MOST_IN_ALL = 1000
KEEP_ALIVE_SECONDS = 15.0
RETRY = b"retry: 2000\n\n"  # milliseconds after which a browser connects again
_EVENT = 'id: 0-812-1767778201\nevent: post.stored\ndata: {"specversion": "1.0", "type": "post.stored"}\n\n'
_RESET = b'id: %b\nevent: reset\ndata: {"reason": "What came after your last event is not kept any more. Reload."}\n\n'

log = structlog.get_logger(__name__)
router = api_router("live", route_class=APIRoute)
trace_router = api_router("health")
dead_letter_router = api_router("dead letters", prefix="/api/dead-letters")


class EventStream(StreamingResponse):
    """The events of a listener, until it or the server goes away."""

    def __init__(self, live: Live, listener: Listener, frames: AsyncIterator[bytes]) -> None:
        # A proxy that buffers the answer would make it anything but live.
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
    responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": _EVENT}}}, **refusals(429)},
    dependencies=[needs("posts:read")],
)
async def follow(
    request: Request,
    parts: WithParts,
    live: WithLive,
    reader: CurrentReader,
    kinds: Annotated[str | None, Query(max_length=1000, description="only these kinds, such as `post.stored`")] = None,
    last_event_id: Annotated[str | None, Query(max_length=60, description="as the header, for a first request")] = None,
    last_event_id_header: Annotated[
        str | None,
        Header(alias="Last-Event-ID", max_length=60, description="the id of the last event that you have seen"),
    ] = None,
) -> StreamingResponse:
    """Events of the sources you follow, your own events and new forecasts, each as a CloudEvent. If you send the id of
    the last one, you get what came after it, with nothing missing and nothing twice. An event `reset` says that it was
    too long ago: load what you need again and continue from there."""
    seen = event_log.resume_token(last_event_id_header or last_event_id)
    audience = event_log.audience(reader, kinds)
    _refuse_too_many(live, audience)
    kept_for = timedelta(days=parts.settings.event_history_days)
    joined = await event_log.listen(live, audience, seen, parts.now(), kept_for)
    return EventStream(live, joined.listener, _frames(request, parts, live, joined))


async def _frames(request: Request, parts: Parts, live: Live, joined: Joined) -> AsyncIterator[bytes]:
    """Yields what is sent. An id without an event moves the place to resume from; a browser's scripts do not see it."""
    listener, seen = joined.listener, joined.seen
    start = str(ResumeToken(listener.after, parts.now())).encode()
    try:
        if seen is None or joined.is_lost:
            yield RETRY + (_RESET % start if joined.is_lost else b"id: %b\n\n" % start)
        else:
            yield RETRY
            async for frames in live.missed(listener, seen):
                yield frames
        async for frames in _news(request, parts, live, listener):
            yield frames
    except HeadwaterError as error:  # the answer has begun: all we can do is end it; the client connects again
        log.info("live.ended", reason=error.detail)


async def _news(request: Request, parts: Parts, live: Live, listener: Listener) -> AsyncIterator[bytes]:
    clock = asyncio.get_running_loop().time
    beat_at = clock() + KEEP_ALIVE_SECONDS
    while (frames := await listener.take(max(0.0, beat_at - clock()))) is not None:
        if frames:
            yield frames
        if clock() >= beat_at:
            await auth.find_caller(request, parts)  # who signed out, or lost the token, gets nothing more
            beat_at = clock() + KEEP_ALIVE_SECONDS
            place = live.resume_token(listener)
            yield b": still here\nid: %b\n\n" % str(place).encode() if place else b": still here\n\n"


def _refuse_too_many(live: Live, audience: EventFilter) -> None:
    later = {"Retry-After": "30"}
    if live.count(audience.reader) >= MOST_OF_A_READER:
        raise HTTPException(429, f"At most {MOST_OF_A_READER} live connections for each user. Close one.", later)
    if live.count() >= MOST_IN_ALL:
        raise HTTPException(503, "This server has as many live connections as it can hold. Try again later.", later)


_TRACEPARENT = "00-[0-9a-f]{31}[1-9a-f]-[0-9a-f]{15}[1-9a-f]-[0-9a-f]{2}"
_TRACE = f"^([0-9a-f]{{32}}|{_TRACEPARENT}|[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})$"
TraceName = Annotated[str, WithJsonSchema({"type": "string", "pattern": _TRACE})]


@trace_router.get("/traces/{trace}", **route("What a visit or a request caused", "log:read"))
async def show_trace(
    parts: WithParts,
    trace: Annotated[TraceName, Path(max_length=100, description="a trace, a traceparent, or the id of an event")],
) -> TraceJson:
    """The visit, its events, what each consumer did with them, and the webhooks they were sent to, with times."""
    return await parts.db.read(event_log.find_trace, parts.consumers, trace)


@dead_letter_router.get("", **route("List dead letters, newest first", "log:read"))
async def list_letters(
    parts: WithParts,
    page: WantedPage,
    state: Annotated[LetterState, Query(description="in which state")] = "dead",
) -> PageJson[DeadLetterJson]:
    """Events that a consumer could not handle, with the error and how often it was tried."""
    found = await parts.db.read(event_log.list_dead_letters, state, before=page.last_id, limit=page.limit)
    return page.of(DeadLetterJson, found)


@dead_letter_router.post("/replay", **route("Replay all dead letters", "log:write", 404, 409))
async def replay_letters(
    parts: WithParts,
    consumer: Annotated[str | None, Query(description="only those of this consumer")] = None,
    kind: Annotated[str | None, Query(description="only events of this kind")] = None,
    event_id: Annotated[str | None, Query(max_length=36, description="only those of this event")] = None,
) -> ReplayAll:
    """All, or those of a consumer or a kind, oldest first. An event that fails again stays a dead letter."""
    return await event_log.replay_dead_letters(
        parts.db, parts.consumers, parts.now, consumer=consumer, kind=kind, event_id=event_id
    )


@dead_letter_router.get("/{letter_id}", **route("Show one dead letter", "log:read"))
async def show_letter(parts: WithParts, letter_id: Id) -> DeadLetterJson:
    """With the whole event, and the error of the last attempt."""
    return shaped(DeadLetterJson, await parts.db.read(event_log.dead_letter, letter_id))


@dead_letter_router.post("/{letter_id}/replay", **route("Replay a dead letter", "log:write", 409))
async def replay_letter(parts: WithParts, letter_id: Id) -> DeadLetterJson:
    """Delivers the event again. It takes effect once. If it fails again, `state` stays `dead` and `error` says why."""
    return shaped(
        DeadLetterJson, await parts.db.write(event_log.replay_dead_letter, parts.consumers, letter_id, parts.now())
    )


@dead_letter_router.post("/{letter_id}/skip", **route("Skip a dead letter", "log:write", 409))
async def skip_letter(parts: WithParts, letter_id: Id) -> DeadLetterJson:
    """The event has no effect, now or later. Events that wait behind it go on."""
    return shaped(
        DeadLetterJson, await parts.db.write(event_log.skip_dead_letter, parts.consumers, letter_id, parts.now())
    )
