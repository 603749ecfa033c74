"""Errors as answers, in one shape: RFC 9457 problem details for programs, a page with the same words for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Mount
from typing_extensions import TypedDict

from headwater.errors import (
    BadInput,
    HeadwaterError,
    InsufficientScope,
    NotFound,
    NotSignedIn,
    StoreUnavailable,
    TooOften,
    UnknownParameter,
)

RETRY_AFTER_SECONDS = 5
MEDIA_TYPE = "application/problem+json"
METHOD_NOT_ALLOWED = 405
BAD_REQUEST = 400
DEDUPLICATION = "/api/deduplicate/"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_READING = ("GET", "HEAD")  # what files are served by

log = structlog.get_logger(__name__)

TITLES_BY_STATUS = {
    400: ("bad_request", "The request cannot be read"),
    404: (NotFound.code, NotFound.title),
    405: ("method_not_allowed", "This cannot be done here"),
    413: ("too_large", "The request is too large"),
    414: ("too_long", "The address is too long"),
    429: ("too_many", "Too many at once"),
}
_DETAILS = {
    404: "There is nothing under this address.",
    405: "This address does not take this method; the Allow header names those it does.",
}


class ProblemJson(TypedDict):
    """Problem details (RFC 9457). More members may follow, such as `errors` (field, message) or `source_id`."""

    type: Annotated[str, Field(examples=["urn:headwater:problem:bad_address"])]
    title: Annotated[str, Field(examples=["This address cannot be used"])]
    status: Annotated[int, Field(examples=[422])]
    detail: Annotated[str, Field(examples=["Only http:// and https:// addresses can be used."])]
    code: Annotated[str, Field(examples=["bad_address"])]


_MEANINGS = {
    400: "A body or an id has the wrong form; `detail` says what is wrong",
    401: "No valid token or session",
    403: "Not allowed: another server's name, a form of another site, or something for those who run the instance",
    404: "There is no such thing, or you may not see it",
    409: "It is so already, or somebody else is doing it at this moment",
    413: "The body is too large",
    422: "Something in the request is wrong; `detail` says what",
    429: "Too many at once; `Retry-After` says when to try again",
    503: "The database is busy or gone; `Retry-After` says when to try again",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Returns what a route says about the problems that it may answer with."""
    return {status: {"model": ProblemJson, "description": _MEANINGS[status]} for status in statuses}


class Problem(NamedTuple):
    """What went wrong, for a program (`code`, `facts`) and for a person (`title`, `detail`)."""

    status: int
    code: str
    title: str
    detail: str
    facts: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}

    def as_json(self) -> dict[str, Any]:
        return {
            **self.facts,
            "type": f"urn:headwater:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
        }


UNEXPECTED = Problem(
    500,
    "unexpected",
    "Something went wrong",
    "This is a fault of Headwater; its log has the details. Nothing you sent is lost.",
)


def of_error(error: HeadwaterError) -> Problem:
    headers = {}
    if isinstance(error, StoreUnavailable):
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    if isinstance(error, NotSignedIn):
        headers["WWW-Authenticate"] = 'Bearer realm="headwater"'
    if isinstance(error, TooOften):
        headers["Retry-After"] = str(error.facts.get("retry_after", RETRY_AFTER_SECONDS))
    if isinstance(error, InsufficientScope):  # RFC 6750
        scope = error.facts.get("scope", "")
        headers["WWW-Authenticate"] = f'Bearer realm="headwater", error="insufficient_scope", scope="{scope}"'
    return Problem(error.status, error.code, error.title, error.detail, error.facts, headers)


def of_http(error: HTTPException) -> Problem:
    code, title = TITLES_BY_STATUS.get(error.status_code, ("http_error", "The request was refused"))
    detail = _DETAILS.get(error.status_code, error.detail)
    return Problem(error.status_code, code, title, detail, headers=error.headers or {})


def of_validation(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """Names each field that is wrong. What was sent is not repeated: it may be a secret."""
    wrong = [{"field": _field(error["loc"]), "message": error["msg"]} for error in errors]
    detail = "; ".join(f"{one['field']}: {one['message']}" for one in wrong)
    return Problem(BadInput.status, BadInput.code, BadInput.title, detail, {"errors": wrong})


def answer(request: Request, problem: Problem) -> Response:
    if problem.status >= 500 and problem is not UNEXPECTED:
        log.warning("request refused", path=request.scope["path"], code=problem.code, detail=problem.detail)
    problem = _as_documented(request, problem)
    if problem.status == StoreUnavailable.status and getattr(request.state, "caller", None) is None:
        # Anybody may cause this; what a driver says about hosts, ports and files is for the log.
        problem = problem._replace(detail=problem.title, facts={})
    if wants_page(request):
        page: Response = request.app.state.problem_page(request, problem)
        page.headers.update(problem.headers)
        return page
    return JSONResponse(problem.as_json(), problem.status, problem.headers, MEDIA_TYPE)


def _as_documented(request: Request, problem: Problem) -> Problem:
    """De-duplication has a contract of its own, in which a body or an id of the wrong form is a 400."""
    is_wrong_form = problem.status == BadInput.status and problem.code != UnknownParameter.code
    if is_wrong_form and request.scope["path"].startswith(DEDUPLICATION):
        return problem._replace(status=BAD_REQUEST)
    return problem


def wants_page(request: Request) -> bool:
    path: str = request.scope["path"]
    is_page = not path.startswith("/api/") or path == "/api/docs"
    return is_page and "text/html" in request.headers.get("accept", "")


def install(app: FastAPI, page: Callable[[Request, Problem], Response]) -> None:
    """Answers every error of the application. `page` renders one for people."""
    app.state.problem_page = page

    @app.exception_handler(HeadwaterError)
    async def _raised_on_purpose(request: Request, error: HeadwaterError) -> Response:
        return answer(request, of_error(error))

    @app.exception_handler(RequestValidationError)
    async def _not_valid(request: Request, error: RequestValidationError) -> Response:
        return answer(request, of_validation(error.errors()))

    @app.exception_handler(HTTPException)
    async def _refused(request: Request, error: HTTPException) -> Response:
        problem = of_http(error)
        if problem.status == METHOD_NOT_ALLOWED:
            problem = problem._replace(headers={**problem.headers, "Allow": ", ".join(allowed_methods(request))})
        return answer(request, problem)


def allowed_methods(request: Request) -> list[str]:
    """Returns the methods that this address takes. Each has a route of its own, which knows only its own method."""
    methods = []
    for method in _METHODS:
        scope = {**request.scope, "method": method, "root_path": request.scope.get("app_root_path", "")}
        found = (route for route in request.app.routes if route.matches(scope)[0] is Match.FULL)
        route = next(found, None)
        if route is not None and (method in _READING or not isinstance(route, Mount)):
            methods.append(method)
    return methods


def _field(location: Sequence[Any]) -> str:
    return ".".join(str(part) for part in location[1:]) or str(location[0])
