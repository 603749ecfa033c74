"""The OpenAPI document: what the routes say about themselves, with our errors, credentials and open paths in it."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.responses import JSONResponse, Response

from headwater import __version__
from headwater.api import events, fleet, health, market, oauth, people, posts, sources, stories, telemetry, webhooks
from headwater.app.account import all_scopes
from headwater.app.shapes import examples
from headwater.http.auth import COOKIE, OPEN_PATHS, scope_of
from headwater.http.problems import MEDIA_TYPE, refusals
from headwater.http.routes import GUARDS, JsonRoute, add_routes

router = APIRouter(dependencies=GUARDS)
ROUTERS = (
    sources.router,
    posts.router,
    posts.image_router,
    stories.router,
    events.router,
    health.router,
    health.crawl_router,
    events.trace_router,
    events.dead_letter_router,
    webhooks.router,
    market.router,
    telemetry.router,
    fleet.router,
    people.account_router,
    people.router,
    oauth.router,
)
TITLE = "Headwater"
INTRODUCTION = """\
Follow everything; read each story once.

**Credentials.** Send `Authorization: Bearer hw_api_…` with a token from `headwater token`, `headwater tokens create` or
the page of your account. A signed-in browser has a session cookie instead. Then everything but GET also needs the form
key of a page, as `X-Form-Key`.

**Scopes.** Each operation names the scope it needs. A token has all scopes of your role, or those it was made with.
Without the scope, the answer is a 403 with the code `insufficient_scope`.

**Pages.** Lists answer `{"items": […], "next_cursor": "…"}`. Send `next_cursor` back as `cursor` to get the next page;
null means that this was the last one. A cursor stays right while new posts arrive.

**Errors** are problem details (RFC 9457) of type `application/problem+json`; `code` is stable and meant for programs.

**Limits.** Bodies have at most 1 MiB (OPML: 10 MiB). JSON with duplicate keys, NaN, numbers that do not fit, NUL in
a text or more than 32 levels is refused.

**Names.** Requests must use a host name that belongs to this server: `localhost`, the address it listens on, or that of
`HEADWATER_PUBLIC_URL`. Others get a 403, which keeps other sites from reaching it through your browser.
"""
_TAGS = {
    "sources": "What you follow, and how it is doing.",
    "stream": "Everything you follow, each story once.",
    "posts": "What was published, what it said before, and what you did with it.",
    "images": "Images that posts show.",
    "stories": "Which posts are one story, why, and what to do if they are not.",
    "live": "Events as they happen.",
    "health": "How this instance is doing.",
    "crawling": "How crawling goes, hour by hour and list by list.",
    "dead letters": "Events that a consumer could not handle.",
    "webhooks": "Where events are sent to, and what was sent.",
    "telemetry": "Readings of your machines.",
    "market": "The coin's market, and forecasts for the coming days.",
    "fleet": "Your machines and coins, and their figures.",
    "account": "Your account, its tokens and its sessions.",
    "access tokens": "JWTs for programs, and how to check them.",
    "people": "The people of your tenant, what they did, and the tenants of the instance.",
}
# Lists whose cursors are a time and an id; those of others are an id.
_BY_TIME = frozenset({"/api/stream", "/api/posts", "/api/posts/{post_id}/replies"})
# Base64 of one number of 64 bits, or of a time in microseconds and a number.
_ID_CURSOR = "^([A-H][A-Za-z0-9_-]{9}[AEIMQUYcgkosw048])?$"
_TIME_CURSOR = "^(A[A-H][A-Za-z0-9_-]{8}[ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9_-]{10}[AQgw])?$"
# Parameters have the same names everywhere, so their meaning and an example are given once.
_PARAMETERS: dict[str, tuple[str, Any]] = {
    "source_id": ("the source", 12),
    "post_id": ("the post", 4711),
    "group_id": ("the story; its id is that of its first post", 4711),
    "tweet_id": ("the post's id at X, or its id here", "1876543210987654321"),
    "task_id": ("the `task_id` from the answer that started the run", "0199f1de-7a10-7c3e-9d0a-5f3a1c2b4d6e"),
    "letter_id": ("the dead letter", 3),
    "webhook_id": ("the webhook", 3),
    "delivery_id": ("the delivery", 912),
    "token_id": ("the API token", 5),
    "session_id": ("the session", 9),
    "user_id": ("the person", 7),
    "invitation_id": ("the invitation", 3),
    "tenant_id": ("the tenant", 2),
    "identity_id": ("", "9f86d081884c7d659a2feaa0c55ad015"),
    "event_id": ("the event", "019b9a3c-7f00-7c3e-9d5e-1a2b3c4d5e6f"),
    "trace": ("", "019b9a3c7f007c3e9d5e1a2b3c4d5e6f"),
    "cursor": ("", "AAAAAAAAAAw"),
    "limit": ("", 50),
    "folder": ("", "Science"),
    "unread": ("", True),
    "starred": ("", False),
    "signals": ("", True),
    "q": ("", "mine* flood"),
    "at": ("", "2026-01-07"),
    "since": ("", "2026-01-07T00:00:00Z"),
    "until": ("", "2026-01-08T00:00:00Z"),
    "type": ("", "exact_duplicate"),
    "everybody": ("", False),
    "kinds": ("", "post.stored,story.joined"),
    "last_event_id": ("", "0-812-1767778201"),
    "Last-Event-ID": ("", "0-812-1767778201"),
    "hours": ("", 48),
    "days": ("", 7),
    "bucket": ("", "1h"),
    "state": ("", "dead"),
    "consumer": ("", "search"),
    "kind": ("", "post.stored"),
    "miner_id": ("the machines", 7),
    "trade_id": ("the trade", 31),
    "method": ("", "fifo"),
    "Idempotency-Key": ("", "5f3a1c2b-4d6e-4f70-9a8b-1c2d3e4f5a6b"),
    "resource": ("", "person"),
    "format": ("", "jsonl"),
}
_PROBLEM_SCHEMA = "#/components/schemas/ProblemJson"


@router.get("/api/openapi.json")
async def openapi_json() -> Response:
    return JSONResponse(openapi())


def include_routes(app: FastAPI) -> None:
    """Adds the API to an application."""
    for one in ROUTERS:
        add_routes(app, one)


def _routes() -> list[APIRoute]:
    return [route for one in ROUTERS for route in one.routes if isinstance(route, APIRoute)]


@cache
def openapi() -> dict[str, Any]:
    """Returns the document. It needs no server behind it."""
    document = get_openapi(
        title=TITLE,
        version=__version__,
        description=INTRODUCTION,
        routes=[route.described() if isinstance(route, JsonRoute) else route for route in _routes()],
        servers=[{"url": "/", "description": "The server that this document comes from"}],
        tags=[{"name": name, "description": meaning} for name, meaning in _TAGS.items()],
        contact={"name": "Whoever runs this Headwater"},
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    schemas = document["components"]["schemas"]
    paths = document["paths"]
    _describe_folding(paths["/api/deduplicate/batch"]["post"], paths["/api/folding/runs"]["put"], schemas)
    # Only now: FastAPI would drop every null from the examples.
    for name, example in examples().items():
        if name in schemas:
            schemas[name]["example"] = example
    document["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
        "access_token": {
            "type": "oauth2",
            "description": "A JWT for ten minutes, for programs that do not want to send their token everywhere.",
            "flows": {
                "clientCredentials": {
                    "tokenUrl": "/oauth/token",
                    "refreshUrl": "/oauth/token",
                    "scopes": all_scopes(),
                }
            },
        },
    }
    scopes = {(route.path, method.lower()): scope_of(route) for route in _routes() for method in route.methods or ()}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            _complete(path, operation)
            scope = scopes[path, method]
            operation["security"] = [{"token": []}, {"session": []}]
            if scope is not None:
                operation["x-scope"] = scope
                operation["security"].append({"access_token": [scope]})
            if path in OPEN_PATHS:
                operation["security"] = []
                if _is_problem(operation["responses"].get("401", {})):  # a route may have a 401 of its own
                    del operation["responses"]["401"]
            for answer in operation["responses"].values():
                _as_problem(answer)
    return document


def _describe_folding(batch: dict[str, Any], runs: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Both read their body themselves, to answer 400 with the name of a field, so FastAPI does not know its form."""
    described = stories.WantedRun.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(described.pop("$defs"))
    schemas["Batch"] = described
    for operation, name in ((batch, "Batch"), (runs, "Configuration")):
        operation["requestBody"]["content"]["application/json"]["schema"] = {"$ref": f"#/components/schemas/{name}"}


def _complete(path: str, operation: dict[str, Any]) -> None:
    """Adds what follows from the form of an operation: an id may name nothing, a body may be too large."""
    statuses = [404] * ("{" in path) + [413] * ("requestBody" in operation)
    for status, one in refusals(*statuses).items():
        problem = {"application/json": {"schema": {"$ref": _PROBLEM_SCHEMA}}}
        operation["responses"].setdefault(str(status), {"description": one["description"], "content": problem})
    for parameter in operation.get("parameters", []):
        meaning, example = _PARAMETERS[parameter["name"]]
        if parameter["name"] == "cursor":
            by_time = path in _BY_TIME
            example = "AAZIyr8jOAAAAAAAAAASZw" if by_time else example
            parameter["schema"] = {
                "anyOf": [{"type": "string", "pattern": _TIME_CURSOR if by_time else _ID_CURSOR}, {"type": "null"}]
            }
        if parameter["name"] == "Idempotency-Key":  # the route says by itself what is missing
            parameter["required"] = True
            parameter["schema"].pop("default", None)
        parameter.setdefault("description", meaning)
        parameter["example"] = example


def _is_problem(answer: dict[str, Any]) -> bool:
    content = answer.get("content", {}).get("application/json", {})
    return bool(content.get("schema", {}).get("$ref") == _PROBLEM_SCHEMA)


def _as_problem(answer: dict[str, Any]) -> None:
    if _is_problem(answer):
        answer["content"] = {MEDIA_TYPE: answer["content"]["application/json"]}
