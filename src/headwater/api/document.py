"""The OpenAPI document: what the routes say about themselves, with our errors, credentials and open paths in it."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.responses import JSONResponse, Response

from headwater import __version__
from headwater.api import events, health, posts, sources, stories, webhooks
from headwater.app.shapes import examples
from headwater.http.auth import COOKIE, OPEN_PATHS
from headwater.http.problems import MEDIA_TYPE, ProblemJson

router = APIRouter()
ROUTERS = (
    sources.router,
    posts.router,
    posts.image_router,
    stories.router,
    events.router,
    health.router,
    health.crawl_router,
    events.dead_letter_router,
    webhooks.router,
)
TITLE = "Headwater"
INTRODUCTION = """\
Follow everything; read each story once.

**Credentials.** Send `Authorization: Bearer hw_api_…` with a token that `headwater token` prints. A browser that opened
the login link has a session cookie instead; then everything but GET also needs the form key of a page, as `X-Form-Key`.

**Pages.** Lists answer `{"items": […], "next_cursor": "…"}`. Send `next_cursor` back as `cursor` to get the next page;
null means that this was the last one. A cursor stays right while new posts arrive.

**Errors** are problem details (RFC 9457) of type `application/problem+json`; `code` is stable and meant for programs.

**Limits.** Bodies have at most 1 MiB (OPML: 10 MiB). JSON with duplicate keys, NaN, numbers that do not fit or more
than 32 levels is refused.

**Names.** Requests must use a host name that belongs to this server: `localhost`, the address it listens on, or that of
`HEADWATER_PUBLIC_URL`. Others get a 403, which keeps other sites from reaching it through your browser.
"""
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"model": ProblemJson, "description": "No valid token or session"},
    422: {"model": ProblemJson, "description": "Something in the request is wrong; `detail` says what"},
    503: {"model": ProblemJson, "description": "The database is busy or gone; `Retry-After` says when to try again"},
}
_PROBLEM_SCHEMA = "#/components/schemas/ProblemJson"


@router.get("/api/openapi.json")
async def openapi_json() -> Response:
    return JSONResponse(openapi())


def include_routes(app: FastAPI) -> None:
    """Adds the API to an application."""
    for one in ROUTERS:
        app.include_router(one, responses=_PROBLEMS)


@cache
def openapi() -> dict[str, Any]:
    """Returns the document. It needs no server behind it."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    include_routes(app)
    document = get_openapi(title=TITLE, version=__version__, description=INTRODUCTION, routes=app.routes)
    schemas = document["components"]["schemas"]
    # Only now: FastAPI would drop every null from the examples.
    for name, example in examples().items():
        if name in schemas:
            schemas[name]["example"] = example
    document["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
    }
    document["security"] = [{"token": []}, {"session": []}]
    for path, methods in document["paths"].items():
        for operation in methods.values():
            if path in OPEN_PATHS:
                operation["security"] = []
                operation["responses"].pop("401", None)
            for answer in operation["responses"].values():
                _as_problem(answer)
    return document


def _as_problem(answer: dict[str, Any]) -> None:
    content = answer.get("content", {})
    if content.get("application/json", {}).get("schema", {}).get("$ref") == _PROBLEM_SCHEMA:
        answer["content"] = {MEDIA_TYPE: content["application/json"]}
