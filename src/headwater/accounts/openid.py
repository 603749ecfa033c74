"""Signing in at an OpenID Connect provider: the authorization code flow, with PKCE, state and nonce.

    begin   -> the address at the provider to go to, and what to remember until the browser comes back
    finish  -> who came back: checked, and nothing taken from the browser but the code

What is remembered goes into an encrypted cookie, so only the browser that began can finish. Somebody is known by issuer
and subject. An e-mail address is passed on only if the provider says that it has verified it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec
import structlog

from headwater.accounts import jwt
from headwater.accounts.jwt import Key
from headwater.errors import HeadwaterError, NotSignedIn, SignInRefused
from headwater.model import Request

OK = 200
LIFE = timedelta(minutes=10)  # how long somebody may take at the provider
KEPT_SECONDS = 3600.0  # until the provider is asked again what it is like
KEYS_AGAIN_SECONDS = 30.0  # at least between two looks for a key that is not known
MOST_TOKEN_LIFE = timedelta(days=1)
CALLBACK = "/login/provider"
SECRET = "oidc client secret"
_KEY = re.compile("[a-z0-9][a-z0-9-]{0,29}")
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_AGAIN = "Begin again on the sign-in page."

log = structlog.get_logger(__name__)
Ask = Callable[[Request], Awaitable[tuple[int, bytes]]]


class OpenIdClient(NamedTuple):
    """What the provider knows of us, and we of it. `secret` returns None if we have none: PKCE alone has to do then.

    `key` names the provider among several; that of the main one is empty. Each has a callback of its own, so that none
    can answer for another.
    """

    key: str
    issuer: str
    name: str
    client_id: str
    secret: Callable[[], Awaitable[str | None]]
    scopes: str
    callback: str


class WantedProvider(NamedTuple):
    """A provider as the settings name it."""

    key: str
    issuer: str
    client_id: str
    name: str


def read_providers(text: str) -> list[WantedProvider]:
    """Reads providers such as `google https://accounts.google.com 123 Google, …`. Raises ValueError."""
    found: list[WantedProvider] = []
    for one in filter(None, (part.strip() for part in text.split(","))):
        words = one.split(maxsplit=3)
        if len(words) < 3 or not _KEY.fullmatch(words[0]) or any(words[0] == other.key for other in found):
            raise ValueError(one)
        key, issuer, client_id, *name = words
        if not is_issuer(issuer) or any(issuer == other.issuer for other in found):
            raise ValueError(one)
        found.append(WantedProvider(key, issuer, client_id, " ".join(name) or urlsplit(issuer).hostname or issuer))
    return found


def is_issuer(address: str) -> bool:
    """Whether this can be the name of an issuer: a safe address without anything behind its path."""
    return is_safe(address) and not urlsplit(address).query and not urlsplit(address).fragment


def callback_of(key: str) -> str:
    """Returns the path to which a provider sends browsers back."""
    return f"{CALLBACK}/{key}" if key else CALLBACK


def secret_name(key: str) -> str:
    """Returns the name of our stored secret at a provider."""
    return f"{SECRET} {key}" if key else SECRET


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A sign-in that was begun. `user` is who wants to link the identity: (tenant, user); None: whoever comes.
    `subject` is who came back, if they still have to choose a tenant."""

    issuer: str
    state: str
    nonce: str
    verifier: str
    begun_at: datetime
    next: str = ""
    invitation: str = ""
    user: tuple[int, int] | None = None
    subject: str = ""


class Identity(NamedTuple):
    """Who somebody is at the provider. `email` is None unless the provider has verified it."""

    issuer: str
    subject: str
    email: str | None
    name: str


class ProviderMetadata(NamedTuple):
    """What the provider says about itself."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    auth_methods: tuple[str, ...]
    names_itself: bool  # in what the browser brings back (RFC 9207)


class Provider:
    """One provider. What it says about itself and its keys are remembered for an hour."""

    def __init__(self, client: OpenIdClient, ask: Ask, now: Callable[[], datetime]) -> None:
        self.client = client
        self._ask, self._now = ask, now
        self._metadata: ProviderMetadata | None = None
        self._keys: dict[str, Key] = {}
        self._loaded_at = {"metadata": float("-inf"), "keys": float("-inf")}
        self._loading = asyncio.Lock()

    @property
    def name(self) -> str:
        return self.client.name

    @property
    def key(self) -> str:
        return self.client.key

    async def begin(
        self, *, next: str = "", invitation: str = "", user: tuple[int, int] | None = None
    ) -> tuple[str, Pending]:
        """Returns where to send the browser, and what to remember. Raises SignInRefused if nobody answers there."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri  # loaded by whoever has a provider
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        metadata = await self.metadata()
        pending = Pending(
            issuer=self.client.issuer,
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            begun_at=self._now(),
            next=next,
            invitation=invitation,
            user=user,
        )
        address: str = prepare_grant_uri(
            metadata.authorization_endpoint,
            self.client.client_id,
            "code",
            self.client.callback,
            self.client.scopes,
            pending.state,
            nonce=pending.nonce,
            code_challenge=create_s256_code_challenge(pending.verifier),
            code_challenge_method="S256",
        )
        return address, pending

    async def finish(self, pending: Pending, brought: Mapping[str, str]) -> Identity:
        """Returns who came back. `brought` is what the browser brings in the query. Raises SignInRefused."""
        metadata = await self.metadata()
        self._check_return(pending, brought, metadata)
        answer = await self._exchange(metadata, brought["code"], pending.verifier)
        claims = await self._checked(str(answer.get("id_token", "")), str(answer.get("access_token", "")), pending)
        if "email_verified" not in claims and metadata.userinfo_endpoint and answer.get("access_token"):
            claims = {**claims, **await self._userinfo(metadata.userinfo_endpoint, answer, claims["sub"])}
        return identity(self.client.issuer, claims)

    def _check_return(self, pending: Pending, brought: Mapping[str, str], metadata: ProviderMetadata) -> None:
        if not secrets.compare_digest(brought.get("state", "").encode(), pending.state.encode()):
            raise SignInRefused(f"This is not the sign-in that was begun in this browser. {_AGAIN}")
        if pending.issuer != self.client.issuer or self._now() - pending.begun_at > LIFE:
            raise SignInRefused(f"It took longer than {LIFE.seconds // 60} minutes. {_AGAIN}")
        # Without this, one provider could pass off its codes, or have those of another sent to it.
        if brought.get("iss", pending.issuer) != pending.issuer or (metadata.names_itself and "iss" not in brought):
            raise SignInRefused(f"Another provider than {self.name} has answered. {_AGAIN}")
        if "error" in brought:
            said = brought.get("error_description") or brought["error"]
            raise SignInRefused(f"{self.name} did not sign you in: {said[:200]}. {_AGAIN}")
        if not brought.get("code"):
            raise SignInRefused(f"{self.name} sent no code. {_AGAIN}")

    async def metadata(self) -> ProviderMetadata:
        """Returns what the provider says about itself. Raises SignInRefused if it cannot be asked or says nonsense."""
        async with self._loading:
            if self._metadata is None or not self._is_fresh("metadata", KEPT_SECONDS):
                address = f"{self.client.issuer.rstrip('/')}/.well-known/openid-configuration"
                self._metadata = read_metadata(await self._json(Request(address)), self.client)
                self._note_loaded("metadata")
            return self._metadata

    async def _exchange(self, metadata: ProviderMetadata, code: str, verifier: str) -> dict[str, Any]:
        from authlib.oauth2.rfc6749.parameters import prepare_token_request

        client, secret = self.client, await self.client.secret()
        form = {"code": code, "code_verifier": verifier}
        headers: tuple[tuple[str, str], ...] = (("content-type", "application/x-www-form-urlencoded"),)
        if secret is not None and "client_secret_basic" in metadata.auth_methods:
            pair = f"{quote(client.client_id, safe='')}:{quote(secret, safe='')}"
            headers += (("authorization", "Basic " + base64.b64encode(pair.encode()).decode()),)
        else:
            form |= {"client_id": client.client_id, **({"client_secret": secret} if secret is not None else {})}
        body: str = prepare_token_request("authorization_code", redirect_uri=client.callback, **form)
        return await self._json(Request(metadata.token_endpoint, headers, "POST", body.encode()))

    async def _checked(self, secret: str, access_token: str, pending: Pending) -> dict[str, Any]:
        try:
            token = jwt.read(secret)
            jwt.check_signature(token, await self._keys_with(token.key_id))
            return check_claims(token, self.client, pending.nonce, access_token, self._now())
        except SignInRefused:
            raise
        except NotSignedIn as error:
            why = error.detail.partition(": ")[2] or error.detail
            log.warning("id token refused", issuer=self.client.issuer, why=why)
            raise SignInRefused(f"What {self.name} said about you cannot be trusted: {why} {_AGAIN}") from error

    async def _keys_with(self, kid: str) -> Mapping[str, Key]:
        metadata = await self.metadata()
        async with self._loading:
            if not self._is_fresh("keys", KEPT_SECONDS if kid in self._keys else KEYS_AGAIN_SECONDS):
                _, document = await self._answer(Request(metadata.jwks_uri))
                self._keys = jwt.read_keys(document)
                self._note_loaded("keys")
            return self._keys

    async def _userinfo(self, address: str, answer: Mapping[str, Any], subject: str) -> dict[str, Any]:
        found = await self._json(Request(address, (("authorization", f"Bearer {answer['access_token']}"),)))
        if found.get("sub") != subject:  # otherwise somebody could bring another person's address
            raise SignInRefused(f"{self.name} told us about somebody else. {_AGAIN}")
        return {name: found[name] for name in ("email", "email_verified", "name") if name in found}

    async def _json(self, request: Request) -> dict[str, Any]:
        status, body = await self._answer(request)
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if status == OK and isinstance(found, dict):
            return found
        said = found.get("error_description") or found.get("error") if isinstance(found, dict) else None
        host = urlsplit(request.url).hostname
        raise SignInRefused(f"{self.name} ({host}) answered {status}{f': {str(said)[:200]}' if said else ''}. {_AGAIN}")

    async def _answer(self, request: Request) -> tuple[int, bytes]:
        request = request._replace(headers=(("accept", "application/json"), *request.headers))
        try:
            return await self._ask(request)
        except HeadwaterError as error:
            raise SignInRefused(
                f"{self.name} cannot be reached: {error.detail} Sign in another way, or try again later."
            ) from error

    def _is_fresh(self, what: str, seconds: float) -> bool:
        return asyncio.get_running_loop().time() - self._loaded_at[what] < seconds

    def _note_loaded(self, what: str) -> None:
        self._loaded_at[what] = asyncio.get_running_loop().time()


def is_safe(address: object) -> bool:
    """Whether what is sent to this address cannot be overheard: by TLS, or because it stays on this machine."""
    parts = urlsplit(address) if isinstance(address, str) else None
    return parts is not None and (
        (parts.scheme == "https" and bool(parts.hostname)) or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    )


def read_metadata(found: Mapping[str, Any], client: OpenIdClient) -> ProviderMetadata:
    """Reads what a provider says about itself. Raises SignInRefused."""
    if found.get("issuer") != client.issuer:
        raise SignInRefused(
            f"{client.name} calls itself {str(found.get('issuer'))[:200]!r}, and HEADWATER_OIDC_ISSUER is "
            f"{client.issuer!r}. They have to be the same, letter by letter."
        )
    for name in _ENDPOINTS:
        if not is_safe(found.get(name)):
            raise SignInRefused(f"{client.name} has no {name} with https in its metadata.")
    userinfo = found.get("userinfo_endpoint")
    methods = found.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    return ProviderMetadata(
        found["authorization_endpoint"],
        found["token_endpoint"],
        found["jwks_uri"],
        userinfo_endpoint=userinfo if is_safe(userinfo) else None,
        auth_methods=tuple(methods) if isinstance(methods, list) else (),
        names_itself=found.get("authorization_response_iss_parameter_supported") is True,
    )


def check_claims(
    token: jwt.Unchecked, client: OpenIdClient, nonce: str, access_token: str, now: datetime
) -> dict[str, Any]:
    """Returns what an id token says, whose signature was checked. Raises NotSignedIn unless it was made just now, by
    this issuer, for this client and this sign-in."""
    from authlib.oidc.core import CodeIDToken
    from joserfc.errors import JoseError

    claims = dict(token.claims)
    for name in ("exp", "iat"):
        jwt.time_in(claims, name)
    if jwt.time_in(claims, "exp") - now > MOST_TOKEN_LIFE:
        raise jwt.refused("it is valid for too long")
    if str(token.header.get("typ", "JWT")).lower() != "jwt":
        raise jwt.refused("it is not an id token")
    wanted = {
        "iss": {"essential": True, "value": client.issuer},
        "aud": {"essential": True, "value": client.client_id},
        "nonce": {"essential": True, "value": nonce},
    }
    params = {"nonce": nonce, "client_id": client.client_id, "access_token": access_token}
    try:
        CodeIDToken(claims, token.header, wanted, params).validate(
            int(now.timestamp()), int(jwt.LEEWAY.total_seconds())
        )
    except JoseError as error:
        raise jwt.refused(f"{error.description or error.error}".rstrip(".").lower()) from error
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject.strip() or len(subject) > 255:
        raise jwt.refused("it does not say who you are")
    return claims


def identity(issuer: str, claims: Mapping[str, Any]) -> Identity:
    """Returns who somebody is. An address that is not verified could be anybody's, and is left out."""
    email, name = claims.get("email"), claims.get("name")
    said = claims.get("email_verified")
    is_verified = said is True or said == "true"  # some providers send it as text
    return Identity(
        issuer,
        claims["sub"],
        email if is_verified and isinstance(email, str) else None,
        name if isinstance(name, str) else "",
    )


def pack(pending: Pending) -> str:
    """Returns a sign-in that was begun as text, to be encrypted."""
    return msgspec.json.encode(pending).decode()


def unpack(text: str) -> Pending:
    """Reads what `pack` wrote. Raises SignInRefused."""
    try:
        return msgspec.json.decode(text, type=Pending)
    except msgspec.DecodeError as error:
        raise SignInRefused(f"This is not the sign-in that was begun in this browser. {_AGAIN}") from error
