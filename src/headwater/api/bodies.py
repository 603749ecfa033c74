"""Request bodies: read whole before the route runs, never more than allowed, JSON only if it is strict."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope

from headwater.api import strict_json

MAX_BYTES = 1024 * 1024
MAX_OPML_BYTES = 10 * 1024 * 1024
_OPML_PATHS = frozenset({"/api/opml", "/sources/opml"})
# What a form adds around a file of the largest allowed size.
_ENVELOPE = 16 * 1024


async def taken(scope: Scope, receive: Receive) -> Receive:
    """Take the body from the client; what is returned gives it out again, to the route."""
    headers = Headers(scope=scope)
    if "content-length" not in headers and "transfer-encoding" not in headers:
        return receive
    body = await _read(receive, headers, _limit(scope["path"]))
    if body and _is_json(headers.get("content-type", "")):
        strict_json.read(body)
    return _given(body, receive)


def _limit(path: str) -> int:
    return MAX_OPML_BYTES + _ENVELOPE if path in _OPML_PATHS else MAX_BYTES


def _is_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == "application/json" or media_type.endswith("+json")


async def _read(receive: Receive, headers: Headers, limit: int) -> bytes:
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


def _given(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def give() -> Message:
        return waiting.pop() if waiting else await receive()

    return give
