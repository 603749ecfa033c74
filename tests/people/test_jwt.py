"""Access tokens (JWTs): given out, refreshed, refused when anything is wrong, and taken from another issuer."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt import PyJWS

from api.running import Answer, Client, Running, running
from headwater.accounts import access_tokens, jwt
from headwater.app import account
from headwater.store.people import accounts
from headwater.wire import utc_now
from support.people import a_person, program_of
from support.web import ALLOW_LOOPBACK, Web
from support.web import Answer as Page

FORM = "application/x-www-form-urlencoded"


def encoded(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decoded(token: str, part: int) -> dict[str, Any]:
    text = token.split(".")[part]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return found


def ask(headwater: Running, **given: str) -> Answer:
    return headwater.stranger.post("/oauth/token", urlencode(given).encode(), Content_Type=FORM)


def an_api_token(headwater: Running, **given: Any) -> tuple[str, str]:
    made = headwater.program().post("/api/account/tokens", {"name": "robot", **given}).json()
    return str(made["token"]["id"]), made["secret"]


def a_jwt(headwater: Running, scope: str = "", **given: Any) -> str:
    name, secret = an_api_token(headwater, **given)
    answer = ask(headwater, grant_type="client_credentials", client_id=name, client_secret=secret, scope=scope)
    assert answer.status == 200, answer.text
    return str(answer.json()["access_token"])


def status_with(headwater: Running, token: str, path: str = "/api/stream") -> int:
    return headwater.stranger.get(path, Authorization=f"Bearer {token}").status


def test_an_api_token_is_exchanged_for_an_access_token(on_both: Running) -> None:
    # E10
    name, secret = an_api_token(on_both)
    given = {"grant_type": "client_credentials", "client_id": name, "client_secret": secret, "scope": "posts:read"}
    answer = ask(on_both, **given)
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
    body = answer.json()
    assert (body["token_type"], body["expires_in"], body["scope"]) == ("Bearer", 600, "posts:read")
    token = body["access_token"]
    assert decoded(token, 0)["typ"] == "at+jwt"
    claims = decoded(token, 1)
    assert claims.keys() == {"iss", "aud", "sub", "client_id", "iat", "exp", "jti", "scope"}
    assert (claims["client_id"], claims["sub"]) == (name, str(on_both.owner.user_id))
    assert (status_with(on_both, token), status_with(on_both, token, "/api/sources")) == (200, 403)
    keys = on_both.stranger.get("/.well-known/jwks.json").json()["keys"]
    assert decoded(token, 0)["kid"] in [key["kid"] for key in keys]
    assert all("d" not in key for key in keys)
    basic = base64.b64encode(f"{name}:{secret}".encode()).decode()
    body_alone = urlencode({"grant_type": "client_credentials"}).encode()
    by_header = on_both.stranger.post("/oauth/token", body_alone, Content_Type=FORM, Authorization=f"Basic {basic}")
    assert by_header.status == 200
    server = on_both.stranger.get("/.well-known/oauth-authorization-server").json()
    assert server["issuer"] == claims["iss"]


@pytest.mark.parametrize(
    ("given", "status", "error"),
    [
        ({"client_secret": "hw_api_wrong"}, 401, "invalid_client"),
        ({"client_id": "999999"}, 401, "invalid_client"),
        ({"client_id": "²"}, 401, "invalid_client"),
        ({"client_id": "9" * 30}, 401, "invalid_client"),
        ({"scope": "everything"}, 400, "invalid_scope"),
        ({"grant_type": "refresh_token", "refresh_token": "hw_refresh_wrong"}, 400, "invalid_grant"),
    ],
)
def test_a_wrong_request_for_a_token_is_answered_as_rfc_6749_says(
    shared_on_both: Running, given: dict[str, str], status: int, error: str
) -> None:
    name, secret = an_api_token(shared_on_both)
    right = {"grant_type": "client_credentials", "client_id": name, "client_secret": secret}
    answer = ask(shared_on_both, **{**right, **given})
    assert (answer.status, answer.json()["error"]) == (status, error)
    assert secret not in answer.text  # H67


def test_an_access_token_ends_with_the_token_the_role_and_the_person_behind_it(on_both: Running) -> None:
    # H66
    name, secret = an_api_token(on_both)
    given = {"grant_type": "client_credentials", "client_id": name, "client_secret": secret}
    token = ask(on_both, **given).json()["access_token"]
    assert status_with(on_both, token) == 200
    on_both.parts.db.write_now(account.revoke_token, on_both.owner, int(name))
    assert status_with(on_both, token) == 401
    ann = a_person(on_both, "ann", "member")
    made = program_of(on_both, ann).post("/api/account/tokens", {"name": "robot"}).json()
    given = {"grant_type": "client_credentials", "client_id": str(made["token"]["id"]), "client_secret": made["secret"]}
    token = ask(on_both, **given).json()["access_token"]
    client = Client(on_both.port, {"Authorization": f"Bearer {token}"})
    assert client.post("/api/sources/refresh").status == 202
    on_both.parts.db.write_now(accounts.set_role, ann.tenant_id, ann.user_id, "viewer")
    assert client.post("/api/sources/refresh").status == 403
    on_both.parts.db.write_now(accounts.remove, ann.tenant_id, ann.user_id)
    assert client.get("/api/stream").status == 401


def test_a_refresh_token_is_used_once_and_a_second_use_ends_its_family(on_both: Running) -> None:
    # H65
    name, secret = an_api_token(on_both)
    first = ask(
        on_both,
        grant_type="client_credentials",
        client_id=name,
        client_secret=secret,
        scope="posts:read offline_access",
    ).json()
    refresh = {"grant_type": "refresh_token", "client_id": name}
    second = ask(on_both, **refresh, refresh_token=first["refresh_token"]).json()
    assert (second["scope"], status_with(on_both, second["access_token"])) == ("posts:read", 200)
    assert status_with(on_both, second["refresh_token"]) == 401  # it opens nothing by itself
    third = ask(on_both, **refresh, refresh_token=second["refresh_token"]).json()
    stolen = ask(on_both, **refresh, refresh_token=first["refresh_token"])
    assert (stolen.status, stolen.json()["error"]) == (400, "invalid_grant")
    assert ask(on_both, **refresh, refresh_token=third["refresh_token"]).status == 400
    other, _ = an_api_token(on_both)
    fresh = ask(
        on_both, grant_type="client_credentials", client_id=name, client_secret=secret, scope="offline_access"
    ).json()
    assert ask(on_both, grant_type="refresh_token", client_id=other, refresh_token=fresh["refresh_token"]).status == 400


Forge = Callable[[dict[str, Any], dict[str, Any], rsa.RSAPrivateKey, bytes], str]


def signed(header: dict[str, Any], claims: Any, key: Any, algorithm: str = "RS256") -> str:
    payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    fixed = {name: value for name, value in header.items() if name != "alg"}
    return PyJWS().encode(payload, key, algorithm, fixed)


def with_claims(**changed: Any) -> Forge:
    return lambda h, c, k, _: signed(h, {n: v for n, v in {**c, **changed}.items() if v is not None}, k)


def with_header(**changed: Any) -> Forge:
    return lambda h, c, k, _: signed({n: v for n, v in {**h, **changed}.items() if v is not None}, c, k)


def hs256(header: dict[str, Any], claims: dict[str, Any], _key: Any, public: bytes) -> str:
    """Signed with the public key as if it were a secret."""
    start = f"{encoded({**header, 'alg': 'HS256'})}.{encoded(claims)}"
    return f"{start}.{encoded(hmac.digest(public, start.encode(), hashlib.sha256))}"


BAD: dict[str, Forge] = {
    "no algorithm": lambda h, c, k, p: f"{encoded({**h, 'alg': 'none'})}.{encoded(c)}.",
    "no algorithm in capitals": lambda h, c, k, p: f"{encoded({**h, 'alg': 'NONE'})}.{encoded(c)}.",
    "an unsigned one": lambda h, c, k, p: signed(h, c, k).rpartition(".")[0] + ".",
    "the public key as a secret": hs256,
    "another key": lambda h, c, k, p: signed(h, c, rsa.generate_private_key(public_exponent=65537, key_size=2048)),
    "another algorithm for the same key": lambda h, c, k, p: signed(h, c, k, "PS256"),
    "the type of an id token": with_header(typ="JWT"),
    "no type": with_header(typ=None),
    "a path as key id": with_header(kid="../../../dev/null"),
    "SQL as key id": with_header(kid="x' OR '1'='1"),
    "no key id": with_header(kid=None),
    "a number as key id": lambda h, c, k, p: (
        encoded({**h, "alg": "RS256", "kid": 1}) + "." + signed(h, c, k).split(".", 1)[1]
    ),
    "an address of keys": with_header(jku="https://evil.example/jwks.json"),
    "an address of certificates": with_header(x5u="https://evil.example/x.pem"),
    "a key in the header": with_header(jwk={"kty": "oct", "k": "AA"}),
    "something critical": with_header(crit=["exp"]),
    "expired": with_claims(exp=1_700_000_000),
    "no end": with_claims(exp=None),
    "an end that is text": with_claims(exp="9999999999"),
    "an end beyond all time": with_claims(exp=10**400),
    "made in the future": with_claims(iat=4_000_000_000),
    "not valid yet": with_claims(nbf=4_000_000_000),
    "for somebody else": with_claims(aud="https://other.example"),
    "for nobody": with_claims(aud=None),
    "another issuer": with_claims(iss="https://evil.example"),
    "no issuer": with_claims(iss=None),
    "issuers in a list": with_claims(iss=["http://127.0.0.1:8080"]),
    "another person": with_claims(sub="4711"),
    "no person": with_claims(sub=None),
    "another client": with_claims(client_id="4711"),
    "a client that is no number": with_claims(client_id="²"),
    "scopes in a list": with_claims(scope=["admin"]),
    "a claim twice": lambda h, c, k, p: signed(h, json.dumps(c)[:-1].encode() + b', "sub": "1"}', k),
    "a header twice": lambda h, c, k, p: (
        encoded(json.dumps({**h, "alg": "RS256"})[:-1].encode() + b', "kid": "x"}')
        + "."
        + signed(h, c, k).split(".", 1)[1]
    ),
    "no JSON": lambda h, c, k, p: signed(h, b"not json", k),
    "a list": lambda h, c, k, p: signed(h, b"[]", k),
    "deep JSON": lambda h, c, k, p: signed(h, b"[" * 3000, k),
    "huge": with_claims(more="x" * 100_000),
    "changed after signing": lambda h, c, k, p: (
        signed(h, c, k).split(".")[0] + "." + encoded({**c, "scope": "admin"}) + "." + signed(h, c, k).split(".")[2]
    ),
    "dots": lambda h, c, k, p: "..",
    "five parts": lambda h, c, k, p: signed(h, c, k) + ".x.y",
    "not base64": lambda h, c, k, p: "é.é.é".encode().decode("latin-1"),
}


@pytest.fixture(scope="module")
def forging(shared_on_both: Running) -> tuple[Running, str, rsa.RSAPrivateKey]:
    """A running Headwater on each database, a good token of its own, and the key that it was signed with."""
    token = a_jwt(shared_on_both)
    return shared_on_both, token, shared_on_both.parts.access_tokens._private[decoded(token, 0)["kid"]]


def test_a_token_that_is_made_as_ours_are_is_taken(forging: tuple[Running, str, rsa.RSAPrivateKey]) -> None:
    """So that those below are refused for what is wrong with them."""
    headwater, token, private = forging
    assert status_with(headwater, signed(decoded(token, 0), decoded(token, 1), private)) == 200


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_token_is_refused(forging: tuple[Running, str, rsa.RSAPrivateKey], kind: str) -> None:
    # H64, H65
    headwater, token, private = forging
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    forged = BAD[kind](decoded(token, 0), decoded(token, 1), private, public)
    answer = headwater.stranger.get("/api/stream", Authorization=f"Bearer {forged}")
    assert answer.status == (401 if len(forged) < 60_000 else 431), kind
    assert len(forged) > 60_000 or answer.headers["www-authenticate"].startswith("Bearer")


def test_keys_rotate_and_the_old_one_is_taken_until_its_tokens_have_expired(store_url: str) -> None:
    # H65
    clock = [utc_now()]
    with running(store_url, now=lambda: clock[0]) as headwater:
        name, secret = an_api_token(headwater)
        given = {"grant_type": "client_credentials", "client_id": name, "client_secret": secret}
        old = ask(headwater, **given).json()["access_token"]
        clock[0] += jwt.KEY_LIFE + timedelta(seconds=1)
        headwater.parts.access_tokens._loaded_at.clear()  # as if a minute had passed
        new = ask(headwater, **given).json()["access_token"]
        assert decoded(old, 0)["kid"] != decoded(new, 0)["kid"]
        published = [key["kid"] for key in headwater.stranger.get("/.well-known/jwks.json").json()["keys"]]
        assert {decoded(old, 0)["kid"], decoded(new, 0)["kid"]} == set(published)
        assert (status_with(headwater, old), status_with(headwater, new)) == (401, 200)  # it has expired


def test_private_keys_are_encrypted_in_the_store(on_both: Running) -> None:
    a_jwt(on_both)
    [row] = on_both.parts.db.read_now(accounts.secrets_named, "jwt key ")
    assert b"PRIVATE" not in bytes(row.sealed)
    assert "PRIVATE KEY" in on_both.parts.unseal(bytes(row.sealed))


def test_when_the_keys_are_dropped_every_access_token_ends(on_both: Running) -> None:
    # H66
    token = a_jwt(on_both)
    assert on_both.parts.db.write_now(access_tokens.forget_keys) == 1
    on_both.parts.access_tokens._loaded_at.clear()
    assert status_with(on_both, token) == 401


def test_tokens_of_another_issuer_are_taken_for_people_who_are_known_there(world: Web, store_url: str) -> None:
    # E10, H65
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key = jwt.public_key("their-key", private)
    world.pages["/jwks"] = Page(json.dumps({"keys": [dict(key.jwk), {"kty": "oct", "k": "AA", "kid": "secret"}]}))
    environ = {
        **ALLOW_LOOPBACK,
        "HEADWATER_JWT_ISSUER": "https://login.example",
        "HEADWATER_JWT_KEYS_URL": world.url("/jwks"),
        "HEADWATER_JWT_AUDIENCE": "headwater",
    }

    def token(**changed: Any) -> str:
        now = int(utc_now().timestamp())
        claims = {"iss": "https://login.example", "aud": ["headwater"], "sub": "ann-1", "client_id": "app", "jti": "1",
                  "iat": now, "exp": now + 60, "scope": "posts:read openid", **changed}  # fmt: skip
        return signed({"typ": "at+jwt", "kid": "their-key"}, claims, private)

    with running(store_url, **environ) as headwater:
        assert status_with(headwater, token()) == 401  # nobody here is known by it
        ann = a_person(headwater, "ann")
        headwater.parts.db.write_now(
            accounts.link_identity, ann, "https://login.example", "ann-1", headwater.parts.now()
        )
        assert status_with(headwater, token()) == 200
        assert status_with(headwater, token(), "/api/sources") == 403
        assert status_with(headwater, token(sub="bob-2")) == 401
        assert status_with(headwater, token(aud="another")) == 401
        assert status_with(headwater, token(iss="http://127.0.0.1:8080")) == 401  # their key is not ours
