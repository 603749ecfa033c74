"""Tokens that let a person or a program in. A token is shown once; only its hash is stored."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.people import accounts

LOGIN_LINK_LIFE = timedelta(days=1)
SESSION_LIFE = timedelta(days=30)


def issue(
    conn: Connection, reader: Reader, kind: str, name: str, now: datetime, *, scopes: frozenset[str] | None = None
) -> str:
    """Makes a token. Kinds: `api` (valid until revoked), `login` (once, for a day), `session` (30 days).

    Without scopes, it may do what its user may do.
    """
    secret = f"hw_{kind}_{secrets.token_urlsafe(32)}"
    life = {"login": LOGIN_LINK_LIFE, "session": SESSION_LIFE}.get(kind)
    accounts.save_token(
        conn,
        reader,
        kind=kind,
        name=name,
        token_hash=fingerprint(secret),
        now=now,
        expires_at=now + life if life else None,
        scopes=scopes,
    )
    return secret


def check(conn: Connection, kind: str, secret: str, now: datetime) -> Reader | None:
    return accounts.bearer_of(conn, kind, fingerprint(secret), now)


def exchange_login(conn: Connection, secret: str, now: datetime) -> tuple[Reader, str] | None:
    """Exchanges a login link for a session. Returns the reader and the session's secret."""
    reader = accounts.spend_token(conn, "login", fingerprint(secret), now)
    return (reader, issue(conn, reader, "session", "browser", now)) if reader else None


def revoke(conn: Connection, kind: str, secret: str) -> None:
    accounts.delete_token(conn, kind, fingerprint(secret))


def form_key(session_secret: str) -> str:
    """Returns the key that a form of this session must carry, so that no other site can submit it."""
    return hashlib.blake2b(session_secret.encode(), digest_size=16, person=b"headwater-form").hexdigest()


def fingerprint(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
