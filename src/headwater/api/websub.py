"""`/websub/{callback_id}`: where hubs confirm subscriptions (GET) and push (POST).

It needs no credentials and is useless without the id, which only the hub was told. It stands in front of everything
else: no session, no page and no log of requests ever sees the id, and a push may be as large as a fetched feed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from datetime import timedelta

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from headwater import text
from headwater.crawl.push import receive
from headwater.errors import HeadwaterError, NotFound
from headwater.follow import push
from headwater.http import problems
from headwater.http.problems import Problem
from headwater.model import Response as Pushed
from headwater.store.sources import hubs
from headwater.store.sources.hubs import HubSubscription
from headwater.wire import Parts

MOST_AT_ONCE = 8  # pushes being taken; a hub that is turned away tries again
MOST_REASON = 300
_CALLBACK_ID = re.compile(r"[A-Za-z0-9_-]{16,64}")
_CHALLENGE = re.compile(r"[^\0\r\n]{1,4096}")
_SECONDS = re.compile(r"[0-9]{1,9}")
_PASSED_ON = ("content-type", "content-encoding")
# The challenge is a stranger's text: nobody may take it for a page.
_PROTECTION = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
}
_NOT_ALLOWED = Problem(405, "method_not_allowed", "This cannot be done here", "Hubs send GET and POST.")
_BUSY = Problem(503, "busy", "Too many pushes at once", "Try again in a moment.", headers={"Retry-After": "30"})

log = structlog.get_logger(__name__)


class HubDoor:
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
        callback_id = request.scope["path"].removeprefix(push.PATH)
        known = _CALLBACK_ID.fullmatch(callback_id)
        one = await self._parts.db.read(hubs.find, callback_id) if known else None
        if one is None:
            raise NotFound
        if request.method == "GET":
            return await self._confirmed(one, request.query_params)
        if request.method != "POST":
            return _problem(_NOT_ALLOWED)
        if self._taking >= MOST_AT_ONCE:
            return _problem(_BUSY)
        self._taking += 1
        try:
            return await self._taken(one, request)
        finally:
            self._taking -= 1

    async def _confirmed(self, one: HubSubscription, said: Mapping[str, str]) -> Response:
        """Verification of intent: only what we want is confirmed, and only for the topic that we named."""
        db, now = self._parts.db, self._parts.now()
        mode, challenge = said.get("hub.mode"), said.get("hub.challenge", "")
        if said.get("hub.topic") != one.topic:
            raise NotFound
        if mode == "denied":
            reason = text.plain(said.get("hub.reason", ""))[:MOST_REASON]
            await db.write(hubs.deny, one.callback_id, reason or "The hub denied it.", now)
            return Response()
        if mode != one.mode or not _CHALLENGE.fullmatch(challenge):
            raise NotFound
        if mode == "subscribe":
            await db.write(hubs.confirm, one.callback_id, _lease(said), now)
        else:
            await db.write(hubs.drop, one.callback_id)
        return PlainTextResponse(challenge)

    async def _taken(self, one: HubSubscription, request: Request) -> Response:
        parts = self._parts
        try:
            async with asyncio.timeout(parts.settings.fetch_seconds):
                body = await _body(request, parts.settings.fetch_max_bytes)
        except TimeoutError:
            return _problem(Problem(408, "too_slow", "The push took too long", "Send it again."))
        if body is None:
            limit = f"At most {parts.settings.fetch_max_bytes:,} bytes can be pushed."
            return _problem(Problem(413, "too_large", "The request is too large", limit))
        # Answered as if it were good, as the Recommendation has it: whoever guesses learns nothing.
        if not await asyncio.to_thread(push.is_signed, body, parts.hub_secret(one.callback_id), request.headers):
            log.warning("push.ignored", source=one.source.address, reason="its signature is missing or wrong")
            return Response(status_code=202)
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        pushed = Pushed(one.source.address, 200, headers, body, parts.now())
        saved = await receive(parts.db, parts.parsers, one, pushed, parts.now)
        if saved is None:
            parts.wake()
        return Response(status_code=202)


async def _body(request: Request, limit: int) -> bytes | None:
    """The body as it was sent; None as soon as it is more than allowed."""
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


def _lease(said: Mapping[str, str]) -> timedelta:
    seconds = said.get("hub.lease_seconds", "")
    return timedelta(seconds=int(seconds)) if _SECONDS.fullmatch(seconds) else push.LEASE


def _problem(problem: Problem) -> Response:
    return JSONResponse(problem.as_json(), problem.status, problem.headers, problems.MEDIA_TYPE)
