"""Signing in with a link that can be used once, and signing out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from headwater.app import instance
from headwater.http import auth
from headwater.http.state import WithParts
from headwater.web.view import go, show

router = APIRouter()


@router.get("/login")
async def login(
    request: Request,
    parts: WithParts,
    token: Annotated[str | None, Query(max_length=200)] = None,
    next: Annotated[str | None, Query()] = None,
) -> Response:
    if token is None:
        return show(request, "login.html", reason="none")
    session = await parts.db.write(instance.sign_in, token, parts.now())
    if session is None:
        return show(request, "login.html", 401, reason="spent")
    answer = go(next)
    auth.start_session(answer, session, secure=is_https(parts.settings.public_url))
    return answer


@router.post("/logout")
async def logout(request: Request, parts: WithParts) -> Response:
    session = auth.caller_of(request).session
    if session is not None:
        await parts.db.write(instance.sign_out, session)
    answer = go("/login")
    auth.end_session(answer, secure=is_https(parts.settings.public_url))
    return answer


def is_https(public_url: str | None) -> bool:
    return bool(public_url and public_url.startswith("https:"))
