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
from typing_extensions import TypedDict

from headwater.errors import BadInput, HeadwaterError, NotFound, NotSignedIn, StoreUnavailable

RETRY_AFTER_SECONDS = 5
MEDIA_TYPE = "application/problem+json"

log = structlog.get_logger(__name__)

_BY_STATUS = {
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
    return Problem(error.status, error.code, error.title, error.detail, error.facts, headers)


def of_http(error: HTTPException) -> Problem:
    code, title = _BY_STATUS.get(error.status_code, ("http_error", "The request was refused"))
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
    if problem.status == StoreUnavailable.status and getattr(request.state, "caller", None) is None:
        # Anybody may cause this; what a driver says about hosts, ports and files is for the log.
        problem = problem._replace(detail=problem.title, facts={})
    if wants_page(request):
        page: Response = request.app.state.problem_page(request, problem)
        page.headers.update(problem.headers)
        return page
    return JSONResponse(problem.as_json(), problem.status, problem.headers, MEDIA_TYPE)


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
        return answer(request, of_http(error))


def _field(location: Sequence[Any]) -> str:
    return ".".join(str(part) for part in location[1:]) or str(location[0])
