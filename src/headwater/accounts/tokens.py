"""Tokens that let a person or a program in. A token is shown once; only its hash is stored."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.people import tokens
from headwater.store.people.tokens import Token

LOGIN_LINK_LIFE = timedelta(days=1)
SESSION_LIFE = timedelta(days=30)
_LIVES = {"login": LOGIN_LINK_LIFE, "session": SESSION_LIFE}


def new_secret(kind: str) -> str:
    return f"hw_{kind}_{secrets.token_urlsafe(32)}"


def issue(
    conn: Connection,
    reader: Reader,
    kind: str,
    name: str,
    now: datetime,
    *,
    scopes: frozenset[str] | None = None,
    life: timedelta | None = None,
    address: str | None = None,
    agent: str | None = None,
) -> str:
    """Makes a token. Kinds: `api` (valid until revoked, or for `life`), `login` (once, for a day), `session` (30 days).

    Without scopes, it may do what its user may do. `address` and `agent` say which browser a session belongs to.
    """
    secret = new_secret(kind)
    life = life or _LIVES.get(kind)
    tokens.save(
        conn,
        reader,
        kind=kind,
        name=name,
        token_hash=fingerprint(secret),
        now=now,
        expires_at=now + life if life else None,
        scopes=scopes,
        address=address,
        agent=agent,
    )
    return secret


def check(conn: Connection, kind: str, secret: str, now: datetime) -> Reader | None:
    """Returns whose token this is."""
    found = tokens.bearer(conn, kind, fingerprint(secret), now)
    return found.reader if found else None


def revoke(conn: Connection, kind: str, secret: str, now: datetime) -> None:
    found = tokens.bearer(conn, kind, fingerprint(secret), now)
    if found is not None:
        tokens.revoke(conn, found.reader, kind, found.id)


def spend(conn: Connection, kind: str, secret: str, now: datetime) -> Token | None:
    """Uses a token that is valid once."""
    return tokens.spend(conn, kind, fingerprint(secret), now)


def form_key(session_secret: str) -> str:
    """Returns the key that a form of this session must carry, so that no other site can submit it."""
    return hashlib.blake2b(session_secret.encode(), digest_size=16, person=b"headwater-form").hexdigest()


def fingerprint(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
