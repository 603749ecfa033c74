"""What happens to every request before its route (name, credentials, body) and after it (headers, counts, errors)."""

from __future__ import annotations

import time
from collections.abc import Mapping

import structlog
from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwater import ids
from headwater.errors import BadInput, Forbidden, HeadwaterError
from headwater.http import auth, bodies, problems
from headwater.http.auth import KnownHosts
from headwater.http.state import Metrics
from headwater.wire import Parts

MAX_ADDRESS_BYTES = 16 * 1024

log = structlog.get_logger(__name__)

_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

# For a year, no browser asks for a page here without TLS.
_ONLY_HTTPS = {"Strict-Transport-Security": "max-age=31536000"}


def page_policy(*, remote_images: bool) -> str:
    """Returns the policy of pages: all is loaded from here, and images from elsewhere only if the reader agreed."""
    anywhere = " https: http:" if remote_images else ""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'{anywhere}; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


class Edge:
    def __init__(self, app: ASGIApp, parts: Parts, metrics: Metrics) -> None:
        self.app = app
        self.parts = parts
        self.metrics = metrics
        self.hosts = KnownHosts(parts.settings.host, parts.settings.public_url)
        self.headers = {
            **_HEADERS,
            "Content-Security-Policy": page_policy(remote_images=parts.settings.remote_images == "show"),
            **(_ONLY_HTTPS if (parts.settings.public_url or "").startswith("https://") else {}),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        request = Request(scope)
        outgoing = _Outgoing(send, self.headers, is_static=scope["path"].startswith(auth.OPEN_PREFIX))
        try:
            given = await self._admit(request, receive)
            ids.current_trace.set(ids.parse_trace(request.headers.get("traceparent")))
            await self.app(scope, given, outgoing.send)
        except ClientDisconnect:
            return
        except HeadwaterError as error:
            await problems.answer(request, problems.of_error(error))(scope, receive, outgoing.send)
        except HTTPException as error:
            await problems.answer(request, problems.of_http(error))(scope, receive, outgoing.send)
        except Exception:
            log.exception("request failed", method=request.method, path=scope["path"])
            if outgoing.status:
                raise
            await problems.answer(request, problems.UNEXPECTED)(scope, receive, outgoing.send)
        self._note(request, outgoing.status, time.perf_counter() - started)

    async def _admit(self, request: Request, receive: Receive) -> Receive:
        _check_address(request.scope)
        if not self.hosts.knows(request.headers.get("host", "")):
            raise Forbidden(
                "This server does not go by that name. HEADWATER_PUBLIC_URL says under which address it is reached."
            )
        if not auth.is_open(request):
            request.state.caller = await auth.find_caller(request, self.parts)
        return await bodies.taken(request.scope, receive)

    def _note(self, request: Request, status: int, seconds: float) -> None:
        # The query is left out: a login link's secret is in it.
        route = getattr(request.scope.get("route"), "path", "unknown")
        self.metrics.requests.labels(request.method, route, str(status)).inc()
        log.debug(
            "request", method=request.method, path=request.scope["path"], status=status, seconds=round(seconds, 4)
        )


class _Outgoing:
    """Sends the answer with the headers that every answer has, and remembers its status."""

    def __init__(self, send: Send, headers: Mapping[str, str], *, is_static: bool) -> None:
        self._send = send
        caching = "no-cache" if is_static else "no-store"
        self._headers = {**headers, "Cache-Control": caching}
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in self._headers.items():
                headers.setdefault(name, value)
        await self._send(message)


def _check_address(scope: Scope) -> None:
    query = scope.get("query_string", b"")
    if len(scope["path"]) + len(query) > MAX_ADDRESS_BYTES:
        raise HTTPException(414, f"Addresses here have at most {MAX_ADDRESS_BYTES:,} bytes.")
    if "\0" in scope["path"] or b"%00" in query:
        raise BadInput("The address contains a NUL character.")
