"""Who asks, and whether the request is theirs: API tokens, browser sessions, and protection against forged forms."""

from __future__ import annotations

import hmac
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.responses import Response

from headwater.accounts import tokens
from headwater.app.log import check_operator
from headwater.errors import Forbidden, NotSignedIn
from headwater.http.hosts import LOCAL_NAMES, is_loopback, name_of
from headwater.http.state import parts_of
from headwater.model import Reader
from headwater.wire import Parts

COOKIE = "headwater_session"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/login"})
OPEN_PREFIX = "/static/"
_FORWARDING = ("x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via")
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class Caller(NamedTuple):
    """A reader and, if a browser asks, the secret of its session."""

    reader: Reader
    session: str | None = None

    @property
    def form_key(self) -> str:
        return tokens.form_key(self.session) if self.session else ""


def is_open(request: Request) -> bool:
    """Whether this needs no credentials. Everything that is not named here needs them."""
    path: str = request.scope["path"]
    return path in OPEN_PATHS or path.startswith(OPEN_PREFIX) or (path == "/metrics" and _is_local(request))


async def find_caller(request: Request, parts: Parts) -> Caller:
    """The reader whose token or session this is. A wrong token is not made good by a session beside it."""
    authorization = request.headers.get("authorization")
    if authorization is not None:
        scheme, _, secret = authorization.partition(" ")
        reader = await parts.db.read(tokens.check, "api", secret.strip(), parts.now())
        if scheme.lower() != "bearer" or reader is None:
            raise NotSignedIn("This API token is not valid. `headwater token` makes a new one.")
        return Caller(reader)
    session = request.cookies.get(COOKIE)
    reader = await parts.db.read(tokens.check, "session", session, parts.now()) if session else None
    if reader is None:
        raise NotSignedIn(
            "Open the login link that `headwater login` prints, or send `Authorization: Bearer` with a token from"
            " `headwater token`."
        )
    return Caller(reader, session)


async def refuse_forged(request: Request) -> None:
    """A browser sends its cookie with other sites' forms too, so a session's write must show a key of ours."""
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None or caller.session is None or request.method in SAFE_METHODS:
        return
    if not _from_here(request.headers, parts_of(request).settings.public_url):
        raise Forbidden("This request was made by another site.")
    key = request.headers.get("x-form-key")
    if key is None and request.headers.get("content-type", "").partition(";")[0].strip().lower() in _FORMS:
        sent = (await request.form()).get("form_key")
        key = sent if isinstance(sent, str) else None
    if key is None or not hmac.compare_digest(key.encode(), caller.form_key.encode()):
        raise Forbidden("The form's key is missing or belongs to another session. Load the page again.")


def caller_of(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def reader_of(request: Request) -> Reader:
    return caller_of(request).reader


CurrentReader = Annotated[Reader, Depends(reader_of)]


def only_operators(reader: CurrentReader) -> None:
    """Refuses everybody who does not run the instance."""
    check_operator(reader)


def start_session(response: Response, secret: str, *, secure: bool) -> None:
    response.set_cookie(
        COOKIE,
        secret,
        max_age=int(tokens.SESSION_LIFE.total_seconds()),
        httponly=True,
        samesite="lax",
        secure=secure,
    )


def end_session(response: Response, *, secure: bool) -> None:
    response.delete_cookie(COOKIE, httponly=True, samesite="lax", secure=secure)


def local_path(path: str | None) -> str:
    """A place on this server to go to, or its first page: never another site."""
    if not path or not path.startswith("/") or path.startswith(("//", "/\\")):
        return "/"
    if "\\" in path or not path.isprintable():
        return "/"
    return path


def _from_here(headers: Headers, public_url: str | None) -> bool:
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    # Forms of our own pages may say `Origin: null`, because our pages send no referrer; then the key alone decides.
    origin = headers.get("origin", "null")
    own = {headers.get("host", ""), urlsplit(public_url or "").netloc}
    return origin == "null" or origin.partition("://")[2] in own - {""}


def _is_local(request: Request) -> bool:
    """Asked from this machine itself, and not on behalf of somebody behind a proxy."""
    if any(name in request.headers for name in _FORWARDING):
        return False
    local_name = name_of(request.headers.get("host", "")) in LOCAL_NAMES
    return local_name and request.client is not None and is_loopback(request.client.host)
