"""Access tokens that are JWTs: making them (RFC 9068) and checking them, with nothing left to the token (RFC 8725).

The key is found by its id among keys that we know, and each key has one algorithm. A header that brings or names a key
is refused. JSON with a name twice is refused. Clocks may differ by `LEEWAY`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.errors import NotSignedIn
from headwater.ids import uuid7

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from jwt import PyJWS

LIFE = timedelta(minutes=10)
LEEWAY = timedelta(seconds=30)
KEY_LIFE = timedelta(days=30)
OURS = "RS256"  # which RFC 9068 asks every server to take
MOST_CHARACTERS = 8192
_TYPES = frozenset({"at+jwt", "application/at+jwt"})
_REFUSED_HEADERS = frozenset({"jku", "jwk", "x5u", "x5c", "crit", "b64", "zip", "enc"})
_ALGORITHMS = {"RSA": ("RS256", "PS256"), "EC": ("ES256",), "OKP": ("EdDSA",)}


class Key(NamedTuple):
    """A public key, and the one algorithm that it is for."""

    kid: str
    algorithm: str
    public: Any
    jwk: Mapping[str, Any]


class Issuer(NamedTuple):
    """Whose tokens are taken: the issuer's name, whom its tokens have to be for, and its keys by their ids."""

    name: str
    audience: str
    keys: Mapping[str, Key]


class Claims(NamedTuple):
    """What a token says, after it was checked."""

    issuer: str
    subject: str
    client_id: str
    scopes: frozenset[str]
    expires_at: datetime


def looks_like_one(secret: str) -> bool:
    return secret.count(".") == 2 and not secret.startswith("hw_")


@cache
def _signatures() -> PyJWS:
    from jwt import PyJWS  # loaded by whoever uses JWTs

    return PyJWS(algorithms=[name for names in _ALGORITHMS.values() for name in names])


def make_key() -> str:
    """Returns a new private key as PEM. It takes a moment."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def read_private_key(pem: str) -> RSAPrivateKey:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return load_pem_private_key(pem.encode(), None)  # type: ignore[return-value]


def public_key(kid: str, private: RSAPrivateKey) -> Key:
    """Returns the key as it is published."""
    from jwt.algorithms import RSAAlgorithm

    public = private.public_key()
    jwk = {**RSAAlgorithm.to_jwk(public, as_dict=True), "kid": kid, "use": "sig", "alg": OURS}
    jwk.pop("key_ops", None)
    return Key(kid, OURS, public, jwk)


def read_keys(document: bytes) -> dict[str, Key]:
    """Reads the keys of another issuer (a JWK set). Keys that cannot sign, or are of a kind that is not taken, are left
    out. Raises NotSignedIn if it is no JWK set."""
    from jwt import PyJWK, PyJWTError

    try:
        listed = json.loads(document)["keys"][:50]
        found = {}
        for one in listed:
            known = _ALGORITHMS.get(one.get("kty"), ())
            algorithm = one.get("alg", known[0] if known else "")
            if algorithm not in known or one.get("use", "sig") != "sig" or not isinstance(one.get("kid"), str):
                continue
            found[one["kid"]] = Key(one["kid"], algorithm, PyJWK(one, algorithm).key, one)
        return found
    except (ValueError, KeyError, TypeError, AttributeError, PyJWTError) as error:
        raise NotSignedIn("The keys of the issuer of this token cannot be read.") from error


def make(
    private: RSAPrivateKey,
    kid: str,
    *,
    issuer: str,
    audience: str,
    subject: str,
    client_id: str,
    scopes: frozenset[str],
    now: datetime,
) -> str:
    """Makes an access token."""
    claims = {
        "iss": issuer,
        "aud": audience,
        "sub": subject,
        "client_id": client_id,
        "iat": int(now.timestamp()),
        "exp": int((now + LIFE).timestamp()),
        "jti": uuid7(),
        "scope": " ".join(sorted(scopes)),
    }
    payload = json.dumps(claims, separators=(",", ":")).encode()
    return _signatures().encode(payload, private, OURS, {"typ": "at+jwt", "kid": kid})


def check(token: str, issuer_named: Callable[[str], Issuer | None], now: datetime) -> Claims:
    """Returns what a token says. `issuer_named` returns an issuer whose tokens are taken. Raises NotSignedIn.

    The signature is checked before anything that the token says is believed; which issuer's keys to use is the only
    thing that is read before, and the token's issuer has to be the one whose key fits.
    """
    header, claims = _parts(token)
    issuer = issuer_named(claims["iss"]) if isinstance(claims.get("iss"), str) else None
    if issuer is None:
        raise _refused("its issuer is not known")
    _check_header(header)
    key = issuer.keys.get(header["kid"])
    if key is None or header.get("alg") != key.algorithm:
        raise _refused("its key or algorithm is not known")
    _check_signature(token, key)
    return _checked_claims(claims, issuer, now)


def issuer_of(token: str) -> str:
    """Returns who the token says has made it, which is not checked. Raises NotSignedIn if it cannot be read."""
    return str(_parts(token)[1].get("iss", ""))


def key_id_of(token: str) -> str:
    """Returns the id of the key that the token says it was signed with. Raises NotSignedIn if it cannot be read."""
    return str(_parts(token)[0].get("kid", ""))


def _parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    if len(token) > MOST_CHARACTERS or token.count(".") != 2:
        raise _refused("it has not the form of a token")
    header, payload, _ = token.split(".")
    return _json(header), _json(payload)


def _json(part: str) -> dict[str, Any]:
    try:
        padded = part.encode("ascii") + b"=" * (-len(part) % 4)
        found = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True), object_pairs_hook=_unique)
    except (ValueError, binascii.Error, RecursionError) as error:
        raise _refused("it cannot be read") from error
    if not isinstance(found, dict):
        raise _refused("it cannot be read")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _check_header(header: Mapping[str, Any]) -> None:
    if str(header.get("typ", "")).lower() not in _TYPES:
        raise _refused("it is not an access token")
    if not _REFUSED_HEADERS.isdisjoint(header) or not isinstance(header.get("kid"), str):
        raise _refused("its header brings a key or asks for something that is not done here")


def _check_signature(token: str, key: Key) -> None:
    from jwt import PyJWTError

    try:
        _signatures().decode(token, key.public, [key.algorithm])
    except (PyJWTError, ValueError, TypeError) as error:
        raise _refused("its signature is wrong") from error


def _checked_claims(claims: Mapping[str, Any], issuer: Issuer, now: datetime) -> Claims:
    audiences = claims.get("aud")
    audiences = [audiences] if isinstance(audiences, str) else audiences
    if not isinstance(audiences, list) or issuer.audience not in audiences:
        raise _refused("it is for somebody else")
    if _time(claims, "exp") <= now - LEEWAY:
        raise _refused("it has expired")
    if _time(claims, "iat") > now + LEEWAY or ("nbf" in claims and _time(claims, "nbf") > now + LEEWAY):
        raise _refused("it is not valid yet")
    texts = [claims.get(name) for name in ("sub", "client_id", "jti")]
    scope = claims.get("scope", "")
    if not all(isinstance(one, str) and one for one in texts) or not isinstance(scope, str):
        raise _refused("it lacks something that an access token has")
    return Claims(issuer.name, claims["sub"], claims["client_id"], frozenset(scope.split()), _time(claims, "exp"))


def _time(claims: Mapping[str, Any], name: str) -> datetime:
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 2**33:
        raise _refused(f"its {name} is not a time")
    return datetime.fromtimestamp(value, UTC)


def _refused(why: str) -> NotSignedIn:
    return NotSignedIn(f"This access token is not valid: {why}.")
