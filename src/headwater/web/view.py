"""A template as an answer, with what every page knows: who is signed in, what time it is, and where."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import Request
from starlette.responses import HTMLResponse, RedirectResponse

from headwater.http.auth import Caller, local_path, parts_of
from headwater.web import formatting, templating

ZONE_COOKIE = "headwater_zone"


def show(request: Request, template: str, status: int = 200, *, section: str = "", **context: Any) -> HTMLResponse:
    """`section` is the part of the site that the page belongs to."""
    caller: Caller | None = getattr(request.state, "caller", None)
    page = templating.render(
        template,
        section=section,
        signed_in=caller is not None,
        form_key=caller.form_key if caller else "",
        here=here(request),
        now=parts_of(request).now(),
        is_demo=parts_of(request).is_demo,
        zone=formatting.zone_named(request.cookies.get(ZONE_COOKIE)),
        **context,
    )
    return HTMLResponse(page, status)


def here(request: Request) -> str:
    """This page's own address, to come back to."""
    query = request.scope["query_string"].decode("latin-1")
    return quote(request.scope["path"]) + (f"?{query}" if query else "")


def go(path: str | None) -> RedirectResponse:
    """After a form was sent: on to a page of ours, by GET."""
    return RedirectResponse(local_path(path), status_code=303)
