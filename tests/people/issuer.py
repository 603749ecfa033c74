"""An OpenID Connect provider that lies in whichever way a test wants. A test plays the browser itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives.asymmetric import rsa
from jwt import PyJWS

from api.running import Answer, Client, Running
from headwater.accounts import jwt
from headwater.sim.serving import served
from headwater.wire import utc_now

FORM = "application/x-www-form-urlencoded"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def signed(claims: dict[str, Any], key: Any = KEY, algorithm: str = "RS256", **header: Any) -> str:
    return PyJWS().encode(json.dumps(claims).encode(), key, algorithm, {"kid": "one", "typ": "JWT", **header})


@dataclass
class Issuer:
    """`token` makes the id token from honest claims; `metadata` and `userinfo` are what it says beside that."""

    address: str = ""
    token: Callable[[dict[str, Any]], str] = signed
    metadata: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    keys: list[dict[str, Any]] = field(default_factory=lambda: [dict(jwt.public_key("one", KEY).jwk)])
    asked: list[tuple[str, dict[str, str], dict[str, str]]] = field(default_factory=list)  # path, headers, form
    claims: dict[str, Any] = field(default_factory=dict)

    def settings(self, url: str) -> dict[str, str]:
        return {
            "HEADWATER_PUBLIC_URL": url,
            "HEADWATER_OIDC_ISSUER": self.address,
            "HEADWATER_OIDC_CLIENT_ID": "headwater",
            "HEADWATER_OIDC_CLIENT_SECRET": "secret",
            "HEADWATER_OIDC_NAME": "Example",
            "HEADWATER_SECRET_KEY": "a key for tests",
        }

    def answer(self, path: str, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        self.asked.append((path, headers, form))
        if path == "/.well-known/openid-configuration":
            at = {"authorization_endpoint": "/auth", "token_endpoint": "/token", "jwks_uri": "/jwks"}
            return 200, {"issuer": self.address, **{k: self.address + v for k, v in at.items()}, **self.metadata}
        if path == "/jwks":
            return 200, {"keys": self.keys}
        if path == "/me":
            return 200, self.userinfo
        return 200, {"access_token": "at", "token_type": "Bearer", "id_token": self.token(self.claims)}

    def honest(self, nonce: str, **more: Any) -> dict[str, Any]:
        now = int(utc_now().timestamp())
        return {
            "iss": self.address,
            "aud": "headwater",
            "sub": "ann-1",
            "nonce": nonce,
            "iat": now,
            "exp": now + 300,
            "email": "ann@example.org",
            "email_verified": True,
            "name": "Ann",
            **more,
        }


@contextmanager
def issuer() -> Iterator[Issuer]:
    class Connection(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            length = int(headers.get("content-length", 0))
            form = {name: values[0] for name, values in parse_qs(self.rfile.read(length).decode()).items()}
            status, body = found.answer(self.path, headers, form)
            sent = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None: ...

    found = Issuer()
    with served(Connection) as found.address:
        yield found


@dataclass
class Coming:
    """A browser that was sent to the provider, before it comes back."""

    headwater: Running
    cookie: str
    query: dict[str, str]
    session: str = ""
    path: str = ""  # where it comes back to; empty: where the provider was told to send it

    def back(self, *, cookie: str | None = None, **brought: str | None) -> Answer:
        """Comes back with what an honest provider sends, and with what the test changes of it."""
        sent = {"code": "c", "state": self.query["state"], **brought}
        query = "&".join(f"{name}={value}" for name, value in sent.items() if value is not None)
        cookies = "; ".join(filter(None, (self.cookie if cookie is None else cookie, self.session)))
        client = Client(self.headwater.port, {"Cookie": cookies})
        path = self.path or urlsplit(self.query["redirect_uri"]).path
        return client.get(f"{path}?{query}", Accept="text/html")


def sent_to_provider(headwater: Running, at: Issuer, body: str = "", **claims: Any) -> Coming:
    """Presses the button on the sign-in page. The provider will make an id token for this sign-in."""
    return left(headwater, at, headwater.stranger.post("/login/provider", body.encode(), Content_Type=FORM), **claims)


def left(headwater: Running, at: Issuer, answer: Answer, **claims: Any) -> Coming:
    assert answer.status == 200, answer.text
    address = answer.headers["refresh"].partition("url=")[2]
    query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    at.claims = at.honest(query["nonce"], **claims)
    return Coming(headwater, answer.cookies[0].partition(";")[0], query)
