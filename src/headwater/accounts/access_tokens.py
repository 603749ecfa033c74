"""Gives out access tokens (JWTs) and takes them: ours, and those of one other issuer.

Our private keys are in the store, encrypted. A new one is made every 30 days; the old one stays published until its
last token has expired. Other processes find a new key when they first see its id.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog
from sqlalchemy import Connection

from headwater.accounts import jwt, tokens
from headwater.accounts.jwt import KEY_LIFE, LIFE, Claims, Issuer, Key
from headwater.errors import HeadwaterError, KeyUnavailable, NotSignedIn, SourceFailure
from headwater.ids import uuid7
from headwater.store.db import Database
from headwater.store.people import accounts, audit
from headwater.store.people import tokens as stored
from headwater.store.people.tokens import Token

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

REFRESH_LIFE = timedelta(days=30)
KEYS_KEPT_SECONDS = 60.0  # until the store, and 60 times that until another issuer, is asked for its keys again
KEYS_AGAIN_SECONDS = 2.0  # at least between two looks for a key that is not known
_NAME = "jwt key "

log = structlog.get_logger(__name__)


class OtherIssuer(NamedTuple):
    """Somebody else whose access tokens are taken. `fetch` loads their keys."""

    name: str
    audience: str
    fetch: Callable[[], Awaitable[bytes]]


class Refreshed(NamedTuple):
    """What a refresh token was exchanged for: the API token behind it, what it may do, and the next refresh token."""

    token: Token
    scopes: frozenset[str]
    refresh_token: str


class AccessTokens:
    def __init__(
        self,
        db: Database,
        *,
        issuer: str,
        seal: Callable[[str], bytes],
        unseal: Callable[[bytes], str],
        now: Callable[[], datetime],
        other: OtherIssuer | None = None,
    ) -> None:
        self.issuer = issuer
        self._db, self._seal, self._unseal, self._now, self._other = db, seal, unseal, now, other
        self._private: dict[str, RSAPrivateKey] = {}
        self._lost = ""  # why there is a key that cannot be read
        self._known: dict[str, Issuer] = {}
        self._loaded_at: dict[str, float] = {}
        self._loading = asyncio.Lock()

    async def issue(self, token: Token, scopes: frozenset[str]) -> str:
        """Makes an access token for an API token's owner."""
        await self._load_own(at_most=KEYS_KEPT_SECONDS)
        if not self._private and self._lost:  # a new one would end all access tokens, and nobody would know why
            raise KeyUnavailable(
                f"The key of access tokens cannot be read. {self._lost} `headwater tokens drop-keys` makes way for a "
                "new one."
            )
        if not self._private:
            pem = await asyncio.to_thread(jwt.make_key)
            await self._db.write(save_key, self._seal(pem), self._now())
            await self._load_own(at_most=0)
        kid, private = next(iter(self._private.items()))
        return await asyncio.to_thread(
            jwt.make,
            private,
            kid,
            issuer=self.issuer,
            audience=self.issuer,
            subject=str(token.user_id),
            client_id=str(token.id),
            scopes=scopes,
            now=self._now(),
        )

    async def check(self, secret: str) -> Claims:
        """Returns what an access token says. Raises NotSignedIn if it is not valid."""
        token = jwt.read(secret)
        known = self._known.get(token.issuer)
        is_missing = known is None or token.key_id not in known.keys
        if token.issuer == self.issuer:
            await self._load_own(at_most=KEYS_AGAIN_SECONDS if is_missing else KEYS_KEPT_SECONDS)
        elif self._other is not None and token.issuer == self._other.name:
            await self._load_other(self._other, at_most=KEYS_KEPT_SECONDS * (0.5 if is_missing else 60))
        return jwt.check(token, self._known.get(token.issuer), self._now())

    async def published(self) -> list[Any]:
        """Returns our public keys, as they are published."""
        await self._load_own(at_most=KEYS_KEPT_SECONDS)
        own = self._known.get(self.issuer)
        return [dict(key.jwk) for key in own.keys.values()] if own else []

    async def _load_own(self, *, at_most: float) -> None:
        """Loads our keys, unless that was done within the last `at_most` seconds."""
        async with self._loading:  # nobody goes on without a key that somebody else is about to find
            if self._is_fresh(self.issuer, at_most):
                return
            now = self._now()
            keys: dict[str, Key] = {}
            private: dict[str, RSAPrivateKey] = {}
            lost = ""
            rows = await self._db.read(accounts.secrets_named, _NAME)
            for row in sorted(rows, key=lambda row: row.changed_at, reverse=True):
                kid, age = row.name.removeprefix(_NAME), now - row.changed_at
                try:
                    found = jwt.read_private_key(self._unseal(bytes(row.sealed)))
                except SourceFailure as error:
                    lost = error.detail if age < KEY_LIFE else lost
                    continue
                if age < KEY_LIFE + LIFE * 2:
                    keys[kid] = jwt.public_key(kid, found)
                if age < KEY_LIFE:
                    private[kid] = found
            self._known[self.issuer] = Issuer(self.issuer, self.issuer, keys)
            self._private, self._lost = private, lost
            self._note_loaded(self.issuer)

    async def _load_other(self, other: OtherIssuer, *, at_most: float) -> None:
        async with self._loading:
            if self._is_fresh(other.name, at_most):
                return
            try:
                self._known[other.name] = Issuer(other.name, other.audience, jwt.read_keys(await other.fetch()))
            except HeadwaterError as error:  # those that are known are used until it answers again
                log.warning("keys of the other issuer not loaded", issuer=other.name, detail=error.detail)
            self._note_loaded(other.name)

    def _is_fresh(self, issuer: str, seconds: float) -> bool:
        return asyncio.get_running_loop().time() - self._loaded_at.get(issuer, float("-inf")) < seconds

    def _note_loaded(self, issuer: str) -> None:
        self._loaded_at[issuer] = asyncio.get_running_loop().time()


def save_key(conn: Connection, sealed: bytes, now: datetime) -> None:
    """Stores a new private key, and deletes those whose last tokens have expired."""
    accounts.save_secret(conn, _NAME + secrets.token_hex(8), sealed, now)
    for name, _, made_at in accounts.secrets_named(conn, _NAME):
        if now - made_at > KEY_LIFE + LIFE * 2:
            accounts.delete_secret(conn, name)


def forget_keys(conn: Connection) -> int:
    """Deletes all private keys: every access token ends. Returns how many there were."""
    found = accounts.secrets_named(conn, _NAME)
    return sum(accounts.delete_secret(conn, name) for name, _, _ in found)


def start_family(conn: Connection, token: Token, scopes: frozenset[str], now: datetime) -> str:
    """Makes the first refresh token of a family."""
    audit.record(conn, token.reader, "refresh_token.create", token.id, token.name)
    return _next_refresh(conn, token, uuid7(), scopes, now)


def refresh(conn: Connection, secret: str, client_id: int, now: datetime) -> Refreshed | None:
    """Exchanges a refresh token for the next one. Returns None if it is not valid.

    If it was exchanged before, two have it and one of them stole it: its whole family ends. The owner of the API token
    is not asked for its secret, so a program can be given a refresh token and nothing else.
    """
    found = stored.find_refresh(conn, tokens.fingerprint(secret))
    if found is None or found.client_id != client_id:
        return None
    if found.spent_at is not None:
        stored.end_family(conn, found.family)
        log.warning("refresh token used twice", client_id=client_id)
        if token := stored.client(conn, client_id, now):
            audit.record(conn, token.reader, "refresh_token.end", client_id, token.name)
        return None
    token = stored.client(conn, client_id, now)
    if found.expires_at <= now or token is None or not stored.spend_refresh(conn, found, now):
        return None
    audit.record(conn, token.reader, "refresh_token.exchange", client_id, token.name)
    return Refreshed(token, found.scopes, _next_refresh(conn, token, found.family, found.scopes, now))


def _next_refresh(conn: Connection, token: Token, family: str, scopes: frozenset[str], now: datetime) -> str:
    secret = tokens.new_secret("refresh")
    stored.save_refresh(
        conn,
        token,
        family=family,
        token_hash=tokens.fingerprint(secret),
        scopes=scopes,
        now=now,
        expires_at=now + REFRESH_LIFE,
    )
    return secret


def own_reader(claims: Claims, token: Token | None) -> Token:
    """Returns the API token behind an access token, narrowed to what the access token may do. Raises NotSignedIn if it
    was revoked."""
    if token is None or str(token.user_id) != claims.subject:
        raise NotSignedIn("This access token is not valid: the token behind it was revoked.")
    scopes = claims.scopes if token.scopes is None else claims.scopes & token.scopes
    return token._replace(scopes=scopes)
