"""`/websub/{callback_id}`: where hubs confirm subscriptions (GET) and push (POST).

It needs no credentials and is useless without the id, which only the hub was told. It is the outermost layer: no
session, no page and no log of requests ever sees the id, and a push may be as large as a fetched feed.
"""

from __future__ import annotations

import asyncio

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from headwater.app import push
from headwater.errors import HeadwaterError
from headwater.http import problems
from headwater.http.problems import Problem
from headwater.store.sources.hubs import HubSubscription
from headwater.wire import Parts

MOST_AT_ONCE = 8  # pushes being read; a hub that is turned away tries again
# The challenge is a stranger's text: nobody may take it for a page.
_PROTECTION = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
}
_ALLOWED = {"Allow": "GET, POST"}
_NOT_ALLOWED = Problem(
    405, "method_not_allowed", "This cannot be done here", "Hubs send GET and POST.", headers=_ALLOWED
)
_BUSY = Problem(503, "busy", "Too many pushes at once", "Try again in a moment.", headers={"Retry-After": "30"})

log = structlog.get_logger(__name__)


class HubCallbacks:
    """Answers hubs; passes everything else on to the application."""

    def __init__(self, app: ASGIApp, parts: Parts) -> None:
        self._app = app
        self._parts = parts
        self._taking = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(push.PATH):
            await self._app(scope, receive, send)
            return
        try:
            answer = await self._answer(Request(scope, receive))
        except ClientDisconnect:
            return
        except HeadwaterError as error:
            if error.status >= 500:
                log.warning("hub.not_served", code=error.code, detail=error.detail)
            answer = _problem(problems.of_error(type(error)()))
        answer.headers.update(_PROTECTION)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        parts = self._parts
        one = await parts.db.read(push.subscription, request.scope["path"].removeprefix(push.PATH))
        if request.method == "GET":
            challenge = await parts.db.write(push.answer_hub, one, request.query_params, parts.now())
            return PlainTextResponse(challenge) if challenge else Response()
        if request.method != "POST":
            return _problem(_NOT_ALLOWED)
        if self._taking >= MOST_AT_ONCE:
            return _problem(_BUSY)
        self._taking += 1
        try:
            return await self._take(one, request)
        finally:
            self._taking -= 1

    async def _take(self, one: HubSubscription, request: Request) -> Response:
        parts = self._parts
        try:
            async with asyncio.timeout(parts.settings.fetch_seconds):
                body = await _body(request, parts.settings.fetch_max_bytes)
        except TimeoutError:
            return _problem(Problem(408, "too_slow", "The push took too long", "Send it again."))
        if body is None:
            limit = f"At most {parts.settings.fetch_max_bytes:,} bytes can be pushed."
            return _problem(Problem(413, "too_large", "The request is too large", limit))
        secrets = parts.hub_secrets(one.callback_id)
        if await push.take(parts.db, parts.parsers, one, body, request.headers, secrets, parts.now):
            parts.wake()
        return Response(status_code=202)


async def _body(request: Request, limit: int) -> bytes | None:
    """Returns the body as it was sent, or None as soon as it is more than allowed."""
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced[:20]) > limit:
        return None
    chunks = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _problem(problem: Problem) -> Response:
    return JSONResponse(problem.as_json(), problem.status, problem.headers, problems.MEDIA_TYPE)
