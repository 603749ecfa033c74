"""Access tokens that are JWTs: making them (RFC 9068) and checking them, with nothing left to the token (RFC 8725).

The key is found by its id among keys that we know, and each key has one algorithm. A header that brings or names a key
is refused. JSON with a name twice is refused. Clocks may differ by `LEEWAY`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.errors import NotSignedIn
from headwater.ids import uuid7

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from jwt.algorithms import Algorithm

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
def _algorithms() -> dict[str, Algorithm]:
    from jwt.algorithms import get_default_algorithms  # loaded by whoever uses JWTs

    return get_default_algorithms()


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
    header = {"typ": "at+jwt", "alg": OURS, "kid": kid}
    signed = f"{_base64(header)}.{_base64(claims)}"
    signature = _algorithms()[OURS].sign(signed.encode(), private)
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def _base64(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")


class Unchecked(NamedTuple):
    """A token that was read, and of which nothing is believed yet."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    signed: bytes
    signature: bytes

    @property
    def issuer(self) -> str:
        """Who the token says has made it."""
        return str(self.claims.get("iss", ""))

    @property
    def key_id(self) -> str:
        """Which key the token says it was signed with."""
        return str(self.header.get("kid", ""))


def read(token: str) -> Unchecked:
    """Reads a token without checking it. Raises NotSignedIn if it cannot be read."""
    if len(token) > MOST_CHARACTERS or token.count(".") != 2:
        raise refused("it has not the form of a token")
    signed, _, signature = token.rpartition(".")
    header, _, claims = signed.partition(".")
    return Unchecked(_json(header), _json(claims), signed.encode("ascii"), _bytes(signature))


def check(token: Unchecked, issuer: Issuer | None, now: datetime) -> Claims:
    """Returns what an access token says. `issuer` is the one that it names, if its tokens are taken.

    Raises NotSignedIn. The signature is checked before anything that the token says is believed; which issuer's keys to
    use is the only thing that is read before, and the token's issuer has to be the one whose key fits.
    """
    if issuer is None or token.claims.get("iss") != issuer.name:
        raise refused("its issuer is not known")
    if str(token.header.get("typ", "")).lower() not in _TYPES:
        raise refused("it is not an access token")
    check_signature(token, issuer.keys)
    return _checked_claims(token.claims, issuer, now)


def check_signature(token: Unchecked, keys: Mapping[str, Key]) -> None:
    """Raises NotSignedIn unless one of these keys has signed the token. The token says which one, and nothing more."""
    header, kid = token.header, token.header.get("kid")
    if not _REFUSED_HEADERS.isdisjoint(header) or not isinstance(kid, str):
        raise refused("its header brings a key or asks for something that is not done here")
    key = keys.get(kid)
    if key is None or header.get("alg") != key.algorithm:
        raise refused("its key or algorithm is not known")
    try:
        is_right = _algorithms()[key.algorithm].verify(token.signed, key.public, token.signature)
    except (ValueError, TypeError) as error:
        raise refused("its signature is wrong") from error
    if not is_right:
        raise refused("its signature is wrong")


def _json(part: str) -> dict[str, Any]:
    try:
        found = json.loads(_bytes(part), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise refused("it cannot be read") from error
    if not isinstance(found, dict):
        raise refused("it cannot be read")
    return found


def _bytes(part: str) -> bytes:
    try:
        return base64.b64decode(part.encode("ascii") + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise refused("it cannot be read") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _checked_claims(claims: Mapping[str, Any], issuer: Issuer, now: datetime) -> Claims:
    audiences = claims.get("aud")
    audiences = [audiences] if isinstance(audiences, str) else audiences
    if not isinstance(audiences, list) or issuer.audience not in audiences:
        raise refused("it is for somebody else")
    if time_in(claims, "exp") <= now - LEEWAY:
        raise refused("it has expired")
    if time_in(claims, "iat") > now + LEEWAY or ("nbf" in claims and time_in(claims, "nbf") > now + LEEWAY):
        raise refused("it is not valid yet")
    texts = [claims.get(name) for name in ("sub", "client_id", "jti")]
    scope = claims.get("scope", "")
    if not all(isinstance(one, str) and one for one in texts) or not isinstance(scope, str):
        raise refused("it lacks something that an access token has")
    return Claims(issuer.name, claims["sub"], claims["client_id"], frozenset(scope.split()), time_in(claims, "exp"))


def time_in(claims: Mapping[str, Any], name: str) -> datetime:
    """Returns a time in a token. Raises NotSignedIn if it is none."""
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 2**33:
        raise refused(f"its {name} is not a time")
    return datetime.fromtimestamp(value, UTC)


def refused(why: str) -> NotSignedIn:
    """Returns the error that says why a token is not valid."""
    return NotSignedIn(f"This access token is not valid: {why}.")
