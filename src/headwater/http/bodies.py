"""Request bodies: read whole before the route runs, never more than allowed, and JSON only if it is strict."""

from __future__ import annotations

import json
import math
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope

from headwater.errors import BadDocument

MAX_BYTES = 1024 * 1024
MAX_OPML_BYTES = 10 * 1024 * 1024
_OPML_PATHS = frozenset({"/api/opml", "/sources/opml"})
# What a form adds to a file of the largest allowed size.
_ENVELOPE = 16 * 1024

MAX_DEPTH = 32
MAX_INTEGER = 2**63 - 1


async def taken(scope: Scope, receive: Receive) -> Receive:
    """Reads the whole body. Returns a `receive` that gives it to the route."""
    headers = Headers(scope=scope)
    if "content-length" not in headers and "transfer-encoding" not in headers:
        return receive
    body = await _read(receive, headers, _limit(scope["path"]))
    if body and _is_json(headers.get("content-type", "")):
        read_strict(body)
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
    _check(value)
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


def _check(value: Any) -> None:
    waiting = [(value, 1)]
    while waiting:
        found, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise BadDocument(f"The JSON is nested deeper than {MAX_DEPTH} levels.")
        if isinstance(found, str):
            _check_text(found)
        elif isinstance(found, dict):
            waiting += [(key, depth) for key in found]
            waiting += [(part, depth + 1) for part in found.values()]
        elif isinstance(found, list):
            waiting += [(part, depth + 1) for part in found]


def _check_text(text: str) -> None:
    if "\0" in text:
        raise BadDocument("A text in the JSON contains a NUL character.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadDocument("A text in the JSON contains half of a character (a lone surrogate).") from error
