"""`/oauth/token` and `/.well-known/`: access tokens (JWTs) for programs, and the keys to check them."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Literal

from fastapi import Form, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict

from headwater.app import account
from headwater.app.account import AccessTokenJson, JwksJson, ServerJson
from headwater.errors import BadInput
from headwater.http import auth
from headwater.http.problems import refusals
from headwater.http.routes import api_router
from headwater.http.state import WithParts

router = api_router("access tokens", prefix="")
_BASIC = {"WWW-Authenticate": 'Basic realm="headwater"'}


class OAuthErrorJson(TypedDict):
    """What is wrong, as RFC 6749 says it."""

    error: Annotated[str, Field(examples=["invalid_client"])]
    error_description: Annotated[str, Field(examples=["The client's id or secret is wrong."])]


@router.post(
    "/oauth/token",
    summary="Get an access token",
    response_model=AccessTokenJson,
    responses={
        400: {"model": OAuthErrorJson, "description": "the request or the refresh token is not valid"},
        401: {"model": OAuthErrorJson, "description": "the client's id or secret is wrong"},
        **refusals(429),
    },
)
async def give_token(
    request: Request,
    parts: WithParts,
    grant_type: Annotated[
        Literal["client_credentials", "refresh_token"],
        Form(description="how you prove who you are", examples=["client_credentials"]),
    ],
    client_id: Annotated[str, Form(max_length=40, description="the id of your API token", examples=["7"])] = "",
    client_secret: Annotated[
        str, Form(max_length=200, description="your API token itself", examples=["hw_api_Zk3vQ9"])
    ] = "",
    refresh_token: Annotated[
        str, Form(max_length=200, description="the last refresh token that you got", examples=["hw_refresh_b7XwLt"])
    ] = "",
    scope: Annotated[
        str,
        Form(
            max_length=1000,
            description="scopes, separated by spaces; empty: all; `offline_access` to refresh",
            examples=["posts:read offline_access"],
        ),
    ] = "",
) -> AccessTokenJson | Response:
    """An API token is the client: its id is the `client_id`, and the token itself is the `client_secret` (or both as
    HTTP Basic). The answer is a JWT that is valid for ten minutes. With the scope `offline_access` there is a refresh
    token too. It can be exchanged once, without the secret. If it is used twice, it and every token from it end."""
    basic = _basic(request)
    client_id, client_secret = basic or (client_id, client_secret)
    await auth.limit_guesses(parts, f"client {client_id}", auth.address_of(request, parts))
    if (token_id := account.client_id_of(client_id)) is None:
        return _wrong(401, "invalid_client", "The client's id or secret is wrong.")
    try:
        if grant_type == "refresh_token":
            given = await account.refresh(parts.db, parts.access_tokens, refresh_token, token_id, parts.now())
            if given is None:
                return _wrong(400, "invalid_grant", "The refresh token is not valid. Start again with the API token.")
        else:
            given = await account.exchange(parts.db, parts.access_tokens, token_id, client_secret, scope, parts.now())
            if given is None:
                return _wrong(401, "invalid_client", "The client's id or secret is wrong.")
    except BadInput as error:
        return _wrong(400, "invalid_scope", error.detail)
    await auth.forget_guesses(parts, f"client {client_id}", auth.address_of(request, parts))
    return given


@router.get("/.well-known/jwks.json", summary="The public keys of access tokens")
async def show_keys(parts: WithParts) -> JwksJson:
    """A JWK set (RFC 7517). Keys change every 30 days. Fetch them again when you see an unknown key id."""
    return {"keys": await parts.access_tokens.published()}


@router.get("/.well-known/oauth-authorization-server", summary="How access tokens are given out")
async def show_server(parts: WithParts) -> ServerJson:
    """Metadata (RFC 8414)."""
    return account.server(parts.access_tokens.issuer)


def _basic(request: Request) -> tuple[str, str] | None:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, _, secret = base64.b64decode(given, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return name[:40], secret[:200]


def _wrong(status: int, error: str, description: str) -> Response:
    body = {"error": error, "error_description": description}
    return JSONResponse(body, status, _BASIC if status == 401 else None)
