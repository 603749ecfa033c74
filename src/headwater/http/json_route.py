"""Routes that answer JSON as it stands.

The shapes are declared once and the objects are made from them. FastAPI documents the shape, but would check and copy
every value once more on its way out, which costs more than reading it from the database.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import orjson
from fastapi.routing import APIRoute
from starlette.responses import Response

NO_CONTENT = 204


class JsonRoute(APIRoute):
    def __init__(self, path: str, endpoint: Callable[..., Awaitable[Any]], **options: Any) -> None:
        super().__init__(path, encoded(endpoint, options.get("status_code") or 200), **options)


def encoded(endpoint: Callable[..., Awaitable[Any]], status: int) -> Callable[..., Awaitable[Response]]:
    @wraps(endpoint)
    async def answer(**given: Any) -> Response:
        found = await endpoint(**given)
        if isinstance(found, Response):
            return found
        body = b"" if status == NO_CONTENT else orjson.dumps(found)
        return Response(body, status, media_type="application/json" if body else None)

    return answer
