"""What happens to every request before its route (name, credentials, body) and after it (headers, counts, errors).

A body is read whole before the route runs, never more than allowed, and JSON only if it is strict.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from typing import Any

import structlog
from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwater import ids
from headwater.coordination import rate_limits
from headwater.coordination.rate_limits import Use
from headwater.errors import BadDocument, BadInput, Forbidden, HeadwaterError
from headwater.http import auth, problems
from headwater.http.auth import Caller, KnownHosts
from headwater.http.metrics import Metrics
from headwater.store.people.audit import Actor, current_actor
from headwater.wire import Parts, is_https

MAX_ADDRESS_BYTES = 16 * 1024
MAX_BYTES = 1024 * 1024
MAX_OPML_BYTES = 10 * 1024 * 1024
MAX_TELEMETRY_BYTES = 4 * 1024 * 1024
_TELEMETRY_PATH = "/api/telemetry"  # its own decoder is as strict, and twenty times as fast
_OPML_PATHS = frozenset({"/api/opml", "/sources/opml"})
# What a form adds to a file of the largest allowed size.
_ENVELOPE = 16 * 1024

MAX_DEPTH = 32
MAX_INTEGER = 2**63 - 1

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
            **(_ONLY_HTTPS if is_https(parts.settings) else {}),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        request = Request(scope)
        outgoing = _Outgoing(send, self.headers, is_static=scope["path"].startswith(auth.STATIC))
        try:
            given = await self._admit(request, receive, outgoing)
            ids.current_trace.set(ids.parse_trace(request.headers.get("traceparent")))
            current_actor.set(self._actor(request, outgoing))
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

    async def _admit(self, request: Request, receive: Receive, outgoing: _Outgoing) -> Receive:
        _check_address(request.scope)
        if not self.hosts.knows(request.headers.get("host", "")):
            raise Forbidden(
                "This server does not answer to that host name. Set HEADWATER_PUBLIC_URL to the address people use."
            )
        if not auth.is_open(request):
            request.state.caller = await auth.find_caller(request, self.parts)
            plan = auth.plan_of(self.parts, request.state.caller)
            request.state.uses = outgoing.uses
            outgoing.plan = plan.name
            await auth.take(request, self.parts, plan.requests)
        return await whole_body(request.scope, receive)

    def _actor(self, request: Request, outgoing: _Outgoing) -> Actor:
        """Returns who asks, for the audit log. The answer has the id by which the log knows the request."""
        caller: Caller | None = getattr(request.state, "caller", None)
        request_id = ids.uuid7()
        outgoing.add({"X-Request-Id": request_id})
        address, agent = auth.address_of(request, self.parts), request.headers.get("user-agent")
        return Actor(caller.reader if caller else None, address, agent, request_id, self.parts.now)

    def _note(self, request: Request, status: int, seconds: float) -> None:
        # The query is left out: a login link's secret is in it.
        route = getattr(request.scope.get("route"), "path", "unknown")
        self.metrics.note_request(request.method, route, status, seconds)
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
        self.uses: list[Use] = []
        self.plan = ""

    def add(self, headers: Mapping[str, str]) -> None:
        self._headers.update(headers)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in self._headers.items():
                headers.setdefault(name, value)
            if self.uses:
                headers.update(rate_limits.headers(self.uses, self.plan))
        await self._send(message)


def _check_address(scope: Scope) -> None:
    query = scope.get("query_string", b"")
    if len(scope["path"]) + len(query) > MAX_ADDRESS_BYTES:
        raise HTTPException(414, f"Addresses here have at most {MAX_ADDRESS_BYTES:,} bytes.")
    if "\0" in scope["path"] or b"%00" in query:
        raise BadInput("The address contains a NUL character.")


async def whole_body(scope: Scope, receive: Receive) -> Receive:
    """Reads the whole body. Returns a `receive` that gives it to the route."""
    headers = Headers(scope=scope)
    if "content-length" not in headers and "transfer-encoding" not in headers:
        return receive
    body = await _read_body(receive, headers, _body_limit(scope["path"]))
    if body and scope["path"] != _TELEMETRY_PATH and _is_json(headers.get("content-type", "")):
        read_strict(body)
    return _receive_again(body, receive)


def _body_limit(path: str) -> int:
    if path == _TELEMETRY_PATH:
        return MAX_TELEMETRY_BYTES
    return MAX_OPML_BYTES + _ENVELOPE if path in _OPML_PATHS else MAX_BYTES


def _is_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == "application/json" or media_type.endswith("+json")


async def _read_body(receive: Receive, headers: Headers, limit: int) -> bytes:
    announced = headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)
    chunks = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise _too_large(limit)
        more = message.get("more_body", False)
    return b"".join(chunks)


def _too_large(limit: int) -> HTTPException:
    return HTTPException(413, f"At most {limit:,} bytes can be sent here.")


def _receive_again(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def give() -> Message:
        return waiting.pop() if waiting else await receive()

    return give


def read_strict(body: bytes) -> Any:
    """Parses JSON. Refuses duplicate keys, NaN, infinities, huge integers, lone surrogates and NUL."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_bounded,
        )
    except UnicodeDecodeError as error:
        raise BadDocument("The JSON is not valid UTF-8.") from error
    except RecursionError as error:
        raise BadDocument(f"The JSON is nested deeper than {MAX_DEPTH} levels.") from error
    except json.JSONDecodeError as error:
        raise BadDocument(f"This is not JSON: {error.msg} at character {error.pos}.") from error
    _check_json(value)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadDocument("A JSON object has the same key twice.")
    return found


def _refuse_constant(name: str) -> None:
    raise BadDocument(f"{name} is not a JSON number.")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise BadDocument("A number in the JSON is too large.")
    return number


def _bounded(digits: str) -> int:
    if len(digits) > 20 or abs(int(digits)) > MAX_INTEGER:
        raise BadDocument("An integer in the JSON is too large.")
    return int(digits)


def _check_json(value: Any) -> None:
    waiting = [(value, 1)]
    while waiting:
        found, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise BadDocument(f"The JSON is nested deeper than {MAX_DEPTH} levels.")
        if isinstance(found, str):
            _check_json_text(found)
        elif isinstance(found, dict):
            waiting += [(key, depth) for key in found]
            waiting += [(part, depth + 1) for part in found.values()]
        elif isinstance(found, list):
            waiting += [(part, depth + 1) for part in found]


def _check_json_text(text: str) -> None:
    if "\0" in text:
        raise BadDocument("A text in the JSON contains a NUL character.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadDocument("A text in the JSON contains half of a character (a lone surrogate).") from error
