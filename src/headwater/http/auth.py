"""Who asks, and whether the request is theirs: API tokens, browser sessions, forged forms, and names of this server."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from fastapi import Depends, FastAPI, Request, params
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.responses import Response

from headwater.accounts import jwt, tokens
from headwater.accounts.access_tokens import own_reader
from headwater.accounts.scopes import SCOPES, may
from headwater.app.account import client_id_of
from headwater.coordination.rate_limits import Limit, RatePlan
from headwater.errors import Forbidden, InsufficientScope, NotSignedIn, TooOften
from headwater.http.state import at_once, parts_of
from headwater.model import Reader
from headwater.wire import Parts

COOKIE = "headwater_session"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
WELL_KNOWN = ("/.well-known/jwks.json", "/.well-known/oauth-authorization-server")
SIGN_IN_PATHS = ("/login", "/login/provider", "/login/provider/{key}", "/login/tenant", "/invitation")
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/oauth/token", *SIGN_IN_PATHS, *WELL_KNOWN})
UNSCOPED_PATHS = frozenset({"/logout", "/api/docs", "/api/openapi.json"})  # for everybody who is signed in
STATIC = "/static/"
OPEN_PREFIXES = (STATIC, "/login/provider/")
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]@:/?#\s]+)(?::\d*)?")
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class Caller(NamedTuple):
    """A reader and, if a browser asks, the secret and the id of its session, and how pages look for the reader."""

    reader: Reader
    session: str | None = None
    session_id: int | None = None
    time_zone: str | None = None
    theme: str | None = None
    language: str | None = None

    def may(self, scope: str) -> bool:
        """Whether the caller has this scope."""
        return may(self.reader, scope)

    @property
    def form_key(self) -> str:
        return tokens.form_key(self.session) if self.session else ""


def is_open(request: Request) -> bool:
    """Whether this needs no credentials. Everything that is not named here needs them.

    Where a request comes from proves nothing: behind a proxy on this machine, everybody comes from this machine.
    """
    path: str = request.scope["path"]
    return path in OPEN_PATHS or path.startswith(OPEN_PREFIXES)


async def find_caller(request: Request, parts: Parts) -> Caller:
    """Returns the reader whose token or session this is. A valid session does not make up for a wrong token."""
    authorization = request.headers.get("authorization")
    if authorization is not None:
        scheme, _, secret = authorization.partition(" ")
        secret = secret.strip()
        if scheme.lower() == "bearer" and jwt.looks_like_one(secret):
            return Caller(await _reader_of_jwt(parts, secret))
        token = await parts.callers.bearer("api", secret) if scheme.lower() == "bearer" else None
        if token is None:
            raise NotSignedIn("This API token is not valid. Make a new one: `headwater tokens create`.")
        return Caller(token.reader)
    session = request.cookies.get(COOKIE)
    token = await parts.callers.bearer("session", session) if session else None
    if token is None:
        raise NotSignedIn(
            "Sign in at /login, open the link that `headwater login` prints, or send `Authorization: Bearer` with a"
            " token from `headwater tokens create`."
        )
    return Caller(token.reader, session, token.id, token.time_zone, token.theme, token.language)


async def _reader_of_jwt(parts: Parts, secret: str) -> Reader:
    """Returns whose access token this is, with the scopes that it has. Its owner has to be there still."""
    claims = await parts.access_tokens.check(secret)
    if claims.issuer == parts.access_tokens.issuer:
        token_id = client_id_of(claims.client_id)
        return own_reader(claims, await parts.callers.client(token_id) if token_id else None).reader
    person = await parts.callers.identity(claims.issuer, claims.subject)
    if person is None:
        raise NotSignedIn("This access token is valid, but it belongs to nobody here.")
    return person.reader._replace(scopes=claims.scopes)


def refuse_foreign(request: Request) -> None:
    """Raises Forbidden if another site made this request. For forms of people who are not signed in yet."""
    if not _from_here(request.headers, parts_of(request).settings.public_url):
        raise Forbidden("This request was made by another site.")


async def refuse_forged(request: Request) -> None:
    """Raises Forbidden if a session writes without its form key. Browsers send cookies with other sites' forms too."""
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


CurrentReader = Annotated[Reader, Depends(at_once(reader_of))]


@dataclass(frozen=True)
class RequiredScope:
    """The scope that a route needs. Found among its dependencies by whoever documents or tests it."""

    name: str

    async def __call__(self, request: Request) -> None:
        require(request, self.name)
        parts = parts_of(request)
        if limit := plan_of(parts, caller_of(request)).scopes.get(self.name):
            await take(request, parts, limit)


def require(request: Request, scope: str) -> None:
    """Raises InsufficientScope if whoever asks does not have this scope."""
    reader = reader_of(request)
    if not may(reader, scope):
        by_role = may(reader._replace(scopes=None), scope)
        who = "This token" if by_role else f"The role {reader.role}"
        raise InsufficientScope(f"{who} does not have the scope {scope} ({SCOPES[scope].meaning}).", scope=scope)


def counted_as(caller: Caller) -> str:
    """Whose requests are counted together: those of one person, whichever token or browser they come with."""
    return f"{caller.reader.tenant_id}/{caller.reader.user_id}"


def plan_of(parts: Parts, caller: Caller) -> RatePlan:
    """Returns the plan of the caller's tenant: the default one if it has none, or one that the settings lack."""
    return parts.plans.get(caller.reader.plan or "") or next(iter(parts.plans.values()))


async def take(request: Request, parts: Parts, limit: Limit) -> None:
    """Counts a request. Raises TooOften if the limit was reached. The answer says what is left."""
    use = await parts.rate_limits.take(limit, counted_as(caller_of(request)))
    request.state.uses.append(use)
    if not use.is_allowed:
        raise TooOften(
            f"At most {limit.times:,} {limit.name} in {limit.seconds} seconds. Try again in {use.wait} seconds.",
            retry_after=use.wait,
        )


def needs(scope: str) -> params.Depends:
    """Declares the scope of a route, as one of its `dependencies`."""
    assert scope in SCOPES, scope
    return params.Depends(RequiredScope(scope))


def scope_of(route: APIRoute) -> str | None:
    """Returns the scope that a route needs; None: it is open, or for everybody who is signed in."""
    for one in route.dependant.dependencies:
        if isinstance(one.call, RequiredScope):
            return one.call.name
    assert route.path in OPEN_PATHS | UNSCOPED_PATHS, f"{route.path} names no scope"
    return None


def every_route(app: FastAPI) -> Iterator[APIRoute]:
    """Yields the routes of an application, without what is mounted."""
    yield from (route for route in app.routes if isinstance(route, APIRoute))


# A guess counts for the account from this address, for the account from anywhere, and for the address.
_GUESSES = (
    (Limit("guesses", 10, 900), "{email} {address}"),
    (Limit("guesses-of-account", 100, 3600), "{email}"),
    (Limit("guesses-from-address", 60, 900), "{address}"),
)


async def limit_guesses(parts: Parts, email: str, address: str) -> None:
    """Raises TooOften if somebody tries to sign in too often. Everybody behind one address shares a limit."""
    given = {"email": email.strip().lower()[:300], "address": address}
    for limit, who in _GUESSES:
        use = await parts.rate_limits.take(limit, who.format(**given))
        if not use.is_allowed:
            raise TooOften("Too many attempts to sign in. Wait before you try again.", retry_after=use.wait)


_ATTEMPTS = Limit("attempts-from-address", 60, 900)


async def limit_attempts(parts: Parts, address: str) -> None:
    """Raises TooOften if too many come from one address with something that cannot be guessed."""
    use = await parts.rate_limits.take(_ATTEMPTS, address)
    if not use.is_allowed:
        raise TooOften("Too many attempts to sign in. Wait before you try again.", retry_after=use.wait)


async def forget_guesses(parts: Parts, email: str, address: str) -> None:
    """Forgets the wrong guesses of somebody who then knew the password."""
    limit, who = _GUESSES[0]
    await parts.rate_limits.forget(limit, who.format(email=email.strip().lower()[:300], address=address))


def address_of(request: Request, parts: Parts) -> str:
    """Returns the address of whoever asks. What a proxy says about it counts only if the proxy is trusted.

    Each proxy adds the address that it was asked from at the end, so the last one that is not a trusted proxy's is the
    client's. Everything before it was sent by the client and may be a lie.
    """
    client = request.scope.get("client")
    address: str = client[0] if client else ""
    hops = [hop.strip() for line in request.headers.getlist("x-forwarded-for") for hop in line.split(",")]
    for hop in reversed(hops):
        if not _is_in(address, parts.trusted_proxies) or not _is_address(hop):
            break
        address = hop
    return address


def _is_in(address: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    return bool(networks) and _is_address(address) and any(ip_address(address) in one for one in networks)


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
    """Returns the path if it is on this server, and that of the first page otherwise."""
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


class KnownHosts:
    """Under which names this server may be reached.

    A page on the internet can give its own name the address 127.0.0.1 and then talk to a server there as if it were its
    own (DNS rebinding). The browser still sends the page's name in the Host header, so a name that nobody configured is
    refused. Numeric addresses cannot be rebound. They are accepted if the server listens on all addresses.
    """

    def __init__(self, listens_on: str, public_url: str | None) -> None:
        public = urlsplit(public_url).hostname if public_url else None
        self._names = LOCAL_NAMES | {listens_on.lower()} | ({public.lower()} if public else set())
        self._any_address = listens_on in ("0.0.0.0", "::", "")

    def knows(self, host_header: str) -> bool:
        name = name_of(host_header)
        return name in self._names or (self._any_address and _is_address(name))


def name_of(host_header: str) -> str:
    """Returns the host without its port, in lower case, or nothing if this is no name of a host."""
    found = _HOST.fullmatch(host_header)
    return found[1].strip("[]").rstrip(".").lower() if found else ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
