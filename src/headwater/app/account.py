"""One's own account: signing in and out, tokens, sessions, password, and how pages look."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal, NamedTuple
from zoneinfo import available_timezones

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.accounts import passwords, scopes, tokens
from headwater.accounts.access_tokens import AccessTokens, start_family
from headwater.accounts.access_tokens import forget_keys as forget_all_keys
from headwater.accounts.access_tokens import refresh as refreshed
from headwater.accounts.jwt import LIFE
from headwater.app.shapes import Example, Time
from headwater.errors import AlreadyThere, BadInput, Forbidden, NotFound, NotPossibleNow
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.people import accounts, audit
from headwater.store.people import tokens as stored
from headwater.store.people.accounts import Person
from headwater.store.people.tokens import Token
from headwater.text import printable

MOST_TOKENS = 100
OFFLINE = "offline_access"
MOST_NAME = 100
MOST_EMAIL = 254
_EMAIL = re.compile(r"[\w!#$%&*+/=?^`{|}~.-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
LONGEST_LIFE = timedelta(days=3650)
THEMES = ("light", "dark")
LANGUAGES = ("en", "de", "zh")
_AGENT_CHARACTERS = 300


class SessionBrowser(NamedTuple):
    """Where a session is used: the address of the browser and what it calls itself."""

    address: str | None = None
    agent: str | None = None


class NewToken(NamedTuple):
    """A token and its secret, which can be shown only now."""

    token: Token
    secret: str


class SignedIn(NamedTuple):
    """Who signed in, and the secret of the new session."""

    reader: Reader
    session: str


def login_link(conn: Connection, reader: Reader, home: str, now: datetime) -> str:
    """Makes a link to the pages at `home` that signs the reader in, once."""
    audit.record(conn, reader, "login_link.create", detail=f"for {reader.name}")
    return f"{home}/login?token={tokens.issue(conn, reader, 'login', 'login link', now)}"


def sign_in(conn: Connection, token: str, now: datetime, browser: SessionBrowser = SessionBrowser()) -> str | None:
    """Spends a login link. Returns the secret of the new session, or None if the link is not valid any more."""
    spent = tokens.spend(conn, "login", token, now)
    return start_session(conn, spent.reader, now, browser) if spent else None


def start_session(conn: Connection, reader: Reader, now: datetime, browser: SessionBrowser) -> str:
    agent = (browser.agent or "")[:_AGENT_CHARACTERS]
    audit.record(conn, reader, "session.start")
    return tokens.issue(
        conn, reader._replace(scopes=None), "session", "browser", now, address=browser.address, agent=agent
    )


def sign_out(conn: Connection, session: str, now: datetime) -> None:
    tokens.revoke(conn, "session", session, now)
    audit.record(conn, None, "session.end")


async def sign_in_by_password(
    db: Database,
    email: str,
    password: str,
    now: datetime,
    browser: SessionBrowser = SessionBrowser(),
    *,
    tenant: str | None = None,
) -> SignedIn | Sequence[str] | None:
    """Signs somebody in. Returns None if address and password do not match, and the names of the tenants if they match
    in several of them and `tenant` says not which."""
    found = await db.read(accounts.by_email, normal_email(email) or "")
    matching = [one for one in found if tenant in (None, one.tenant_name)]
    fitting = [one for one in matching if await asyncio.to_thread(passwords.fits, one.password_hash, password)]
    if not matching:  # takes as long as if there were somebody
        await asyncio.to_thread(passwords.fits, None, password)
    if len(fitting) > 1:
        return [one.tenant_name for one in fitting]
    if not fitting:
        await db.write(_note_refusal, matching)
        return None
    return await db.write(_start_if_same_password, fitting[0], now, browser)


def _note_refusal(conn: Connection, people: Sequence[Person]) -> None:
    """Lets owners see that somebody guesses. A guess at an address that nobody has concerns no tenant."""
    for one in people:
        audit.record(conn, one.reader, "session.refuse", one.id)


def _start_if_same_password(
    conn: Connection, person: Person, now: datetime, browser: SessionBrowser
) -> SignedIn | None:
    """Starts a session, unless the password was changed or the person removed while it was checked."""
    found = accounts.person(conn, person.tenant_id, person.id)
    if found is None or found.password_hash != person.password_hash:
        return None
    return SignedIn(found.reader, start_session(conn, found.reader, now, browser))


def has_passwords(conn: Connection) -> bool:
    """Whether anybody here can sign in with a password."""
    return accounts.has_passwords(conn)


def normal_email(typed: str) -> str | None:
    """Returns an e-mail address as it is stored, or None if it cannot be one."""
    email = typed.strip().lower()
    return email if len(email) <= MOST_EMAIL and _EMAIL.fullmatch(email) else None


def check_email(typed: str) -> str:
    """Returns an e-mail address as it is stored. Raises BadInput if it cannot be one."""
    email = normal_email(typed)
    if email is None:
        raise BadInput("This is not an e-mail address. It looks like ann@example.org.")
    return email


def show(conn: Connection, reader: Reader) -> Person:
    """Returns a reader's account."""
    found = accounts.person(conn, reader.tenant_id, reader.user_id)
    if found is None:
        raise NotFound("This account was removed.")
    return found


def scopes_of(reader: Reader) -> list[str]:
    """Returns what a reader may do with the token or session in use."""
    return sorted(scopes.scopes_of(reader))


def all_scopes() -> dict[str, str]:
    """Returns every scope with its meaning."""
    return {name: scope.meaning for name, scope in scopes.SCOPES.items()}


def described_scopes(reader: Reader) -> dict[str, str]:
    """Returns the scopes that a reader can give to a token, with their meanings."""
    has = scopes.scopes_of(reader)
    return {name: scope.meaning for name, scope in scopes.SCOPES.items() if name in has}


def arrange(
    conn: Connection,
    reader: Reader,
    *,
    name: str | None = None,
    time_zone: str | None = None,
    theme: str | None = None,
    language: str | None = None,
) -> Person:
    """Changes what is given. An empty time zone, theme or language means that of the browser."""
    person = show(conn, reader)
    name = person.name if name is None else check_name(name)
    if any(one.name == name and one.id != person.id for one in accounts.people(conn, reader.tenant_id)):
        raise AlreadyThere(f"Somebody else here is called {name}.")
    if time_zone and time_zone not in available_timezones():
        raise BadInput(f"There is no time zone {time_zone[:50]!r}. They are called as Europe/Paris is.")
    if theme and theme not in THEMES:
        raise BadInput(f"There is no theme {theme[:50]!r}. There are: {', '.join(THEMES)}.")
    if language and language not in LANGUAGES:
        raise BadInput(f"There are no pages in {language[:50]!r}. There are: {', '.join(LANGUAGES)}.")
    accounts.arrange(
        conn,
        reader,
        name=name,
        language=person.language if language is None else language or None,
        time_zone=person.time_zone if time_zone is None else time_zone or None,
        theme=person.theme if theme is None else theme or None,
    )
    audit.record(conn, reader, "person.change", reader.user_id)
    return show(conn, reader)


def check_name(typed: str) -> str:
    name = " ".join(printable(typed).split())
    if not name or len(name) > MOST_NAME:
        raise BadInput(f"A name has 1 to {MOST_NAME} characters.")
    return name


async def change_password(
    db: Database, reader: Reader, current: str | None, new: str, *, keep: int | None = None
) -> None:
    """Sets a password and ends every session but the one to `keep`. Whoever has a password has to know it."""
    person = await db.read(show, reader)
    if person.email is None:
        raise NotPossibleNow("Set an e-mail address first: it is what you sign in with.")
    if person.password_hash and not await asyncio.to_thread(passwords.fits, person.password_hash, current or ""):
        raise Forbidden("The current password is wrong.")
    await db.write(_save_password, reader, await asyncio.to_thread(passwords.hashed, new), keep)


def _save_password(conn: Connection, reader: Reader, password_hash: str, keep: int | None) -> None:
    accounts.set_password(conn, reader.tenant_id, reader.user_id, password_hash)
    stored.revoke_all(conn, reader, ["session", "login"], but=keep)
    audit.record(conn, reader, "person.password", reader.user_id)


def every_token(conn: Connection, reader: Reader, now: datetime) -> list[Token]:
    """Returns a reader's API tokens, the newest first."""
    return stored.of_reader(conn, reader, "api", now)


def create_token(
    conn: Connection,
    reader: Reader,
    name: str,
    now: datetime,
    *,
    wanted: Sequence[str] | None = None,
    days: int | None = None,
) -> NewToken:
    """Makes an API token. Without `wanted` scopes it has all that its maker has; without days it does not end."""
    name = check_name(name)
    has = scopes.scopes_of(reader)
    chosen = reader.scopes if wanted is None else scopes.parse(wanted)
    if wanted is not None and (missing := sorted(scopes.parse(wanted) - has)):
        raise Forbidden(f"You do not have the scope {missing[0]} yourself.")
    if days is not None and not 1 <= days <= LONGEST_LIFE.days:
        raise BadInput(f"A token is valid for 1 to {LONGEST_LIFE.days} days.")
    if len(every_token(conn, reader, now)) >= MOST_TOKENS:
        raise NotPossibleNow(f"You have {MOST_TOKENS} tokens, which is the most. Revoke one first.")
    life = timedelta(days=days) if days else None
    secret = tokens.issue(conn, reader, "api", name, now, scopes=chosen, life=life)
    made = stored.bearer(conn, "api", tokens.fingerprint(secret), now)
    assert made is not None
    audit.record(conn, reader, "token.create", made.id, name)
    return NewToken(made, secret)


def revoke_token(conn: Connection, reader: Reader, token_id: int) -> None:
    if not stored.revoke(conn, reader, "api", token_id):
        raise NotFound(f"You have no token {token_id}.")
    audit.record(conn, reader, "token.revoke", token_id)


def every_session(conn: Connection, reader: Reader, now: datetime) -> list[Token]:
    """Returns the browsers in which a reader is signed in, the newest first."""
    return stored.of_reader(conn, reader, "session", now)


def end_session(conn: Connection, reader: Reader, session_id: int) -> None:
    if not stored.revoke(conn, reader, "session", session_id):
        raise NotFound(f"You have no session {session_id}.")
    audit.record(conn, reader, "session.end", session_id)


def sign_out_everywhere(conn: Connection, reader: Reader, *, but: int | None = None) -> int:
    """Ends all sessions and login links of a reader, `but` one session. Returns how many there were."""
    ended = stored.revoke_all(conn, reader, ["session", "login"], but=but)
    audit.record(conn, reader, "session.end", detail=f"{ended} sessions and login links")
    return ended


def client_id_of(text: str) -> int | None:
    """Reads the id of an API token. Returns None if it cannot be one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


async def exchange(
    db: Database, access: AccessTokens, client_id: int, secret: str, scope: str, now: datetime
) -> AccessTokenJson | None:
    """Exchanges an API token for an access token. Returns None if the id or the token is wrong."""
    token = await db.read(stored.bearer, "api", tokens.fingerprint(secret), now)
    if token is None or token.id != client_id:
        return None
    has = scopes.scopes_of(token.reader)
    wanted = frozenset(scope.split()) - {OFFLINE}
    given = has & scopes.parse(wanted) if wanted else has
    if wanted and not given:
        raise BadInput("The token has none of these scopes.")
    answer = await _access_token(access, token, given)
    if OFFLINE in scope.split():
        answer["refresh_token"] = await db.write(start_family, token, given, now)
    return answer


async def refresh(
    db: Database, access: AccessTokens, secret: str, client_id: int, now: datetime
) -> AccessTokenJson | None:
    """Exchanges a refresh token for an access token and the next refresh token. Returns None if it is not valid."""
    done = await db.write(refreshed, secret, client_id, now)
    if done is None:
        return None
    answer = await _access_token(access, done.token, done.scopes & scopes.scopes_of(done.token.reader))
    answer["refresh_token"] = done.refresh_token
    return answer


async def _access_token(access: AccessTokens, token: Token, given: frozenset[str]) -> AccessTokenJson:
    return {
        "access_token": await access.issue(token, given),
        "token_type": "Bearer",
        "expires_in": int(LIFE.total_seconds()),
        "scope": " ".join(sorted(given)),
        "refresh_token": None,
    }


def forget_keys(conn: Connection) -> int:
    """Deletes the keys of access tokens. Returns how many there were."""
    audit.record(conn, None, "keys.drop")
    return forget_all_keys(conn)


def server(issuer: str) -> ServerJson:
    """Describes how access tokens are given out."""
    return {
        "issuer": issuer,
        "token_endpoint": f"{issuer}/oauth/token",
        "jwks_uri": f"{issuer}/.well-known/jwks.json",
        "grant_types_supported": ["client_credentials", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "scopes_supported": [*scopes.SCOPES, OFFLINE],
        "response_types_supported": [],
    }


class AccessTokenJson(TypedDict):
    """An access token (RFC 6749)."""

    access_token: Annotated[str, Example("eyJ0eXAiOiJhdCtqd3QifQ.eyJzdWIiOiI3In0.c2lnbmF0dXJl", "a JWT")]
    token_type: Annotated[Literal["Bearer"], Example("Bearer")]
    expires_in: Annotated[int, Example(600, "seconds")]
    scope: Annotated[str, Example("posts:read sources:read", "what it may do")]
    refresh_token: Annotated[str | None, Example(None, "only with the scope `offline_access`; valid once")]


class JwksJson(TypedDict):
    """Public keys (RFC 7517)."""

    keys: Annotated[
        list[dict[str, str]],
        Example([{"kty": "RSA", "kid": "9f86d081884c7d65", "use": "sig", "alg": "RS256", "n": "0vx7ag", "e": "AQAB"}]),
    ]


class ServerJson(TypedDict):
    """Metadata of this authorization server (RFC 8414)."""

    issuer: Annotated[str, Example("https://news.example")]
    token_endpoint: Annotated[str, Example("https://news.example/oauth/token")]
    jwks_uri: Annotated[str, Example("https://news.example/.well-known/jwks.json")]
    grant_types_supported: Annotated[list[str], Example(["client_credentials", "refresh_token"])]
    token_endpoint_auth_methods_supported: Annotated[list[str], Example(["client_secret_basic", "client_secret_post"])]
    scopes_supported: Annotated[list[str], Example(["posts:read", "posts:write"])]
    response_types_supported: Annotated[list[str], Example([])]


class AccountJson(TypedDict):
    """Who you are, and what you may do."""

    id: Annotated[int, Example(7)]
    name: Annotated[str, Example("Ann")]
    email: Annotated[str | None, Example("ann@example.org")]
    role: Annotated[str, Example("member", "owner, operator, member or viewer")]
    tenant: Annotated[str, Example("Example Research", of="tenant_name")]
    time_zone: Annotated[str | None, Example("Europe/Paris", "null: that of the browser")]
    theme: Annotated[Literal["light", "dark"] | None, Example("dark", "null: that of the system")]
    language: Annotated[Literal["en", "de", "zh"] | None, Example("de", "null: that of the browser")]
    scopes: Annotated[list[str], Example(["posts:read", "posts:write"], "what this token or session may do")]


class TokenJson(TypedDict):
    """An API token, without its secret."""

    id: Annotated[int, Example(5, "also the `client_id` of the token")]
    name: Annotated[str, Example("dashboard")]
    scopes: Annotated[
        list[str] | None,
        Example(
            ["posts:read"],
            "null: everything that your role allows",
            of=lambda token: None if token.scopes is None else sorted(token.scopes),
        ),
    ]
    created_at: Annotated[Time, Example("2026-01-07T09:30:00Z")]
    expires_at: Annotated[Time | None, Example("2026-04-07T09:30:00Z", "null: it does not end")]
    last_used_at: Annotated[Time | None, Example("2026-01-08T11:20:00Z", "noted every ten minutes at most")]


class TokensJson(TypedDict):
    items: list[TokenJson]


class NewTokenJson(TypedDict):
    """A new API token. Its secret is shown once."""

    token: TokenJson
    secret: Annotated[str, Example("hw_api_Zk3vQ9", "send it as `Authorization: Bearer`; it is not stored")]


class SessionJson(TypedDict):
    """A browser in which you are signed in."""

    id: Annotated[int, Example(9)]
    address: Annotated[str | None, Example("192.0.2.7")]
    agent: Annotated[str | None, Example("Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0")]
    created_at: Annotated[Time, Example("2026-01-07T09:30:00Z")]
    expires_at: Annotated[Time | None, Example("2026-02-06T09:30:00Z")]
    last_used_at: Annotated[Time | None, Example("2026-01-08T11:20:00Z")]
    current: Annotated[bool, Example(True, "whether it is the one you ask with")]


class SessionsJson(TypedDict):
    items: list[SessionJson]


class EndedJson(TypedDict):
    ended: Annotated[int, Example(3, "how many sessions and login links")]
