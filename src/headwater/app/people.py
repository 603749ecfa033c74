"""The people of a tenant: who is there, invitations, roles, removing somebody, and the audit log of what they did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import chain, count
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import orjson
from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.accounts import openid, passwords, scopes, tokens
from headwater.accounts.openid import Identity, Pending
from headwater.app import account
from headwater.app.account import SessionBrowser, SignedIn
from headwater.app.shapes import Example, Time, csv_lines, shaped
from headwater.errors import AlreadyThere, BadInput, NotFound, NotPossibleNow, SignInRefused
from headwater.ids import uuid7
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.people import accounts, audit
from headwater.store.people import tokens as stored
from headwater.store.people.accounts import Invitation, LinkedIdentity, Person
from headwater.store.people.audit import ACTIONS as ACTIONS
from headwater.store.people.audit import AUDITED as AUDITED
from headwater.store.people.audit import Actor
from headwater.store.people.audit import AuditRow as AuditRow
from headwater.store.row_security import of_everybody

ROLES = scopes.ROLES
SIGN_IN_LIFE = openid.LIFE
pack_sign_in, unpack_sign_in = openid.pack, openid.unpack
INVITATION_LIFE = timedelta(days=7)
MOST_PEOPLE = 1000
EXPORTED_AT_ONCE = 1000
_LAST_OWNER = "{name} is the only owner. Make somebody else an owner first."
_SPENT = "This invitation was used, withdrawn, or is older than 7 days. Ask for a new one."


class NewInvitation(NamedTuple):
    """An invitation and its link, which can be shown only now."""

    invitation: Invitation
    link: str


def everybody(conn: Connection, reader: Reader) -> list[Person]:
    """Returns the people of a reader's tenant."""
    return accounts.people(conn, reader.tenant_id)


def find(conn: Connection, reader: Reader, user_id: int) -> Person:
    found = accounts.person(conn, reader.tenant_id, user_id)
    if found is None:
        raise NotFound(f"There is nobody with the id {user_id} here.")
    return found


def named(conn: Connection, reader: Reader, who: str) -> Person:
    """Returns somebody by e-mail address, name or id, as people type them."""
    found = [one for one in everybody(conn, reader) if who in (one.name, str(one.id)) or who.lower() == one.email]
    if not found:
        raise NotFound(f"There is nobody called {who!r} here. `headwater people list` shows everybody.")
    return found[0]


def invitations(conn: Connection, reader: Reader, now: datetime) -> list[Invitation]:
    return accounts.invitations(conn, reader.tenant_id, now)


def invite(conn: Connection, reader: Reader, email: str, role: str, home: str, now: datetime) -> NewInvitation:
    """Makes a link with which somebody joins the tenant. An earlier invitation for the same address ends."""
    email, role = account.check_email(email), scopes.check_role(role)
    there = everybody(conn, reader)
    if any(one.email == email for one in there):
        raise AlreadyThere(f"{email} is here already.")
    if len(there) + len(invitations(conn, reader, now)) >= MOST_PEOPLE:
        raise NotPossibleNow(f"A tenant has at most {MOST_PEOPLE} people.")
    secret = tokens.new_secret("invite")
    made = accounts.invite(
        conn,
        reader,
        email=email,
        role=role,
        token_hash=tokens.fingerprint(secret),
        now=now,
        expires_at=now + INVITATION_LIFE,
    )
    audit.record(conn, reader, "invitation.create", made, f"{email} as {role}")
    found = next(one for one in invitations(conn, reader, now) if one.id == made)
    return NewInvitation(found, f"{home}/invitation?token={secret}")


def withdraw(conn: Connection, reader: Reader, invitation_id: int) -> None:
    if not accounts.drop_invitation(conn, reader.tenant_id, invitation_id):
        raise NotFound(f"There is no invitation {invitation_id}.")
    audit.record(conn, reader, "invitation.withdraw", invitation_id)


def invitation(conn: Connection, secret: str, now: datetime) -> Invitation:
    """Returns the invitation that a link is for."""
    found = accounts.invitation(conn, tokens.fingerprint(secret), now)
    if found is None:
        raise NotFound(_SPENT)
    return found


async def accept(
    db: Database, secret: str, name: str, password: str, now: datetime, browser: SessionBrowser = SessionBrowser()
) -> SignedIn:
    """Makes an account from an invitation, which is used up by it, and signs in."""
    await db.read(invitation, secret, now)
    password_hash = await asyncio.to_thread(passwords.hashed, password)
    return await db.write(_join, secret, account.check_name(name), password_hash, now, browser)


def _join(
    conn: Connection, secret: str, name: str, password_hash: str | None, now: datetime, browser: SessionBrowser
) -> SignedIn:
    found = invitation(conn, secret, now)
    reader = join(conn, found, name, now, password_hash=password_hash)
    return SignedIn(reader, account.start_session(conn, reader, now, browser))


def join(conn: Connection, found: Invitation, name: str, now: datetime, *, password_hash: str | None = None) -> Reader:
    """Adds the person who was invited. They start with the sources of whoever invited them."""
    tenant_id = found.tenant_id
    if not accounts.drop_invitation(conn, tenant_id, found.id):
        raise NotFound(_SPENT)
    if any(one.name == name for one in accounts.people(conn, tenant_id)):
        raise BadInput(f"Somebody else here is called {name}. Choose another name.")
    user_id = accounts.add_user(
        conn, tenant_id, name=name, role=found.role, now=now, email=found.email, password_hash=password_hash
    )
    accounts.copy_subscriptions(conn, tenant_id, from_user=found.user_id, to_user=user_id, now=now)
    reader = Reader(tenant_id, user_id, name, found.role, runs_instance=found.runs_instance)
    audit.record(conn, reader, "person.join", user_id, f"{found.email} as {found.role}")
    return reader


def give_role(conn: Connection, reader: Reader, user_id: int, role: str) -> Person:
    """Gives somebody another role. It counts from their next request on."""
    person = find(conn, reader, user_id)
    scopes.check_role(role)
    if person.role == "owner" != role:
        _keep_an_owner(conn, person)
    accounts.set_role(conn, reader.tenant_id, user_id, role)
    audit.record(conn, reader, "person.role", user_id, f"{person.name}: {role} instead of {person.role}")
    return find(conn, reader, user_id)


def remove(conn: Connection, reader: Reader, user_id: int) -> None:
    """Removes somebody with everything that is theirs. Their tokens and sessions end at once."""
    person = find(conn, reader, user_id)
    if person.role == "owner":
        _keep_an_owner(conn, person)
    accounts.remove(conn, reader.tenant_id, user_id)
    audit.record(conn, reader, "person.remove", user_id, person.name)


def _keep_an_owner(conn: Connection, person: Person) -> None:
    if accounts.count_owners(conn, person.tenant_id) < 2:
        raise NotPossibleNow(_LAST_OWNER.format(name=person.name))


def set_password(conn: Connection, person: Person, password: str) -> None:
    """Sets somebody's password, for whoever runs the instance. All their sessions end."""
    if person.email is None:
        raise BadInput(f"{person.name} has no e-mail address. Give one: `headwater people email`.")
    accounts.set_password(conn, person.tenant_id, person.id, passwords.hashed(password))
    stored.revoke_all(conn, person.reader, ["session", "login"])
    audit.record(conn, person.reader, "person.password", person.id, person.name)


def set_email(conn: Connection, reader: Reader, user_id: int, email: str) -> Person:
    """Sets the e-mail address with which somebody signs in."""
    email = account.check_email(email)
    person = find(conn, reader, user_id)
    if any(one.email == email and one.id != user_id for one in everybody(conn, reader)):
        raise AlreadyThere(f"{email} belongs to somebody else here.")
    accounts.set_email(conn, person.tenant_id, person.id, email)
    audit.record(conn, reader, "person.email", person.id, f"{person.name}: {email}")
    return find(conn, reader, user_id)


def set_own_email(conn: Connection, reader: Reader, email: str) -> Person:
    """Sets one's own e-mail address, if there is none yet."""
    person = find(conn, reader, reader.user_id)
    if person.email is not None and person.email != account.normal_email(email):
        raise BadInput("Your e-mail address is already set. Those who run this Headwater can change it.")
    return set_email(conn, reader, reader.user_id, email)


def link_identity(conn: Connection, reader: Reader, issuer: str, subject: str, now: datetime) -> None:
    """Says who somebody is at a provider, or at another issuer of access tokens."""
    if not subject.strip() or len(subject) > 255:
        raise BadInput("A subject has 1 to 255 characters.")
    if accounts.link_identity(conn, reader, issuer, subject, now):
        audit.record(conn, reader, "person.identity", reader.user_id, f"{reader.name} at {issuer}")
        return
    if not any((one.issuer, one.subject) == (issuer, subject) for one in accounts.identities(conn, reader)):
        raise AlreadyThere(
            "This account at the provider already belongs to somebody else here. Sign in with another one."
        )


def identities(conn: Connection, reader: Reader) -> list[LinkedIdentity]:
    """Returns who a reader is at providers."""
    return accounts.identities(conn, reader)


def unlink(conn: Connection, reader: Reader, identity_id: str, *, providers: Collection[str]) -> None:
    """Forgets who a reader is at a provider, by the id of that."""
    found = next((one for one in identities(conn, reader) if one.id == identity_id), None)
    if found is None:
        raise NotFound("You are not known by this account.")
    unlink_identity(conn, reader, found.issuer, found.subject, providers=providers)


def unlink_identity(conn: Connection, reader: Reader, issuer: str, subject: str, *, providers: Collection[str]) -> None:
    """Forgets who a reader is at a provider, unless it is the last way in. `providers` are where people sign in."""
    person = find(conn, reader, reader.user_id)
    others = [one for one in identities(conn, reader) if (one.issuer, one.subject) != (issuer, subject)]
    if person.password_hash is None and issuer in providers and not any(one.issuer in providers for one in others):
        raise NotPossibleNow("You could no longer sign in. Set a password first.")
    if not accounts.unlink_identity(conn, reader, issuer, subject):
        raise NotFound("You are not known by this account.")
    audit.record(conn, reader, "person.unlink", reader.user_id, f"{reader.name} at {issuer}")


class Welcome(NamedTuple):
    """Who may come in that nobody invited: people with a verified address of these domains, into this tenant.

    Without a tenant nobody may. The domain `*` stands for every domain.
    """

    tenant: str | None = None
    role: str = "member"
    domains: frozenset[str] = frozenset()

    def is_for(self, email: str) -> bool:
        return self.tenant is not None and not self.domains.isdisjoint({"*", email.rpartition("@")[2]})


def sign_in_as(
    conn: Connection,
    identity: Identity,
    now: datetime,
    browser: SessionBrowser = SessionBrowser(),
    *,
    welcome: Welcome = Welcome(),
    invitation: str = "",
    tenant: str | None = None,
) -> SignedIn | list[str]:
    """Signs in whoever has come from a provider. Returns the names of the tenants if they are known in several.

    Who is not known yet joins by an invitation for their verified address, or because everybody of a domain is
    welcome. Nobody becomes an existing person by an e-mail address alone. Raises SignInRefused.
    """
    known = accounts.by_identity(conn, identity.issuer, identity.subject)
    if not known or invitation:
        reader = _newcomer(conn, identity, now, welcome, invitation)
        return SignedIn(reader, account.start_session(conn, reader, now, browser))
    found = [one for one in known if tenant in (None, one.tenant_name)]
    if len(found) != 1:
        return [one.tenant_name for one in known]
    return SignedIn(found[0].reader, account.start_session(conn, found[0].reader, now, browser))


def note_failed_sign_in(conn: Connection, begun: Pending, identity: Identity | None, why: str) -> None:
    """Lets owners see that somebody came from a provider and did not get in.

    It concerns the tenant of whoever wanted to link the account, of the invitation, or of those who have the address;
    otherwise the one that runs the instance, whose provider it is.
    """
    detail = f"{urlsplit(begun.issuer).hostname}: {why}"
    invited = begun.invitation and accounts.invitation(conn, tokens.fingerprint(begun.invitation), begun.begun_at)
    if begun.user is not None:
        people = [accounts.person(conn, *begun.user)]
    elif invited:
        people = [accounts.person(conn, invited.tenant_id, invited.user_id)]
    else:
        people = [*accounts.by_email(conn, account.normal_email((identity and identity.email) or "") or "")]
    for one in people or [None]:
        audit.record(conn, one and one.reader, "session.fail", one and one.id, detail, by_stranger=True)


def _newcomer(conn: Connection, identity: Identity, now: datetime, welcome: Welcome, secret: str) -> Reader:
    email = account.normal_email(identity.email or "")
    if email is None:
        raise SignInRefused(
            "Nobody here is known by this account, and the provider does not say that it has verified your e-mail "
            "address. If you can sign in another way, do so and link the account on the page of your account."
        )
    found = _invitation_for(conn, email, secret, now)
    if found is not None:
        reader = join(conn, found, _free_name(conn, found.tenant_id, identity, email), now)
    else:
        reader = _welcomed(conn, identity, email, now, welcome)
    link_identity(conn, reader, identity.issuer, identity.subject, now)
    return reader


def _invitation_for(conn: Connection, email: str, secret: str, now: datetime) -> Invitation | None:
    if secret:
        found = invitation(conn, secret, now)
        if found.email != email:
            raise SignInRefused(
                f"This invitation is for {found.email}, and the provider knows you as {email}. Set a password instead, "
                f"or ask for an invitation for {email}."
            )
        return found
    several = accounts.invitations_for(conn, email, now)
    if len(several) > 1:
        raise SignInRefused(f"There are several invitations for {email}. Open the link of the one that you want.")
    return several[0] if several else None


def _welcomed(conn: Connection, identity: Identity, email: str, now: datetime, welcome: Welcome) -> Reader:
    if accounts.by_email(conn, email):
        raise SignInRefused(
            f"There is an account for {email}, but it is not linked with this one. Sign in with its password or a "
            "login link, then link it on the page of your account."
        )
    if not welcome.is_for(email):
        raise SignInRefused(f"Nobody here is known as {email}. Ask somebody who is here for an invitation.")
    assert welcome.tenant is not None
    tenant_id = accounts.tenant_named(conn, welcome.tenant)
    if tenant_id is None:
        raise SignInRefused(f"There is no tenant {welcome.tenant!r}, which HEADWATER_OIDC_JOIN_TENANT names.")
    there = accounts.people(conn, tenant_id)
    if len(there) >= MOST_PEOPLE:
        raise SignInRefused(f"{welcome.tenant} has {MOST_PEOPLE} people, which is the most.")
    name = _free_name(conn, tenant_id, identity, email)
    user_id = accounts.add_user(conn, tenant_id, name=name, role=welcome.role, now=now, email=email)
    found = accounts.person(conn, tenant_id, user_id)
    assert found is not None
    audit.record(conn, found.reader, "person.join", user_id, f"{email} as {welcome.role}, without an invitation")
    return found.reader


def _free_name(conn: Connection, tenant_id: int, identity: Identity, email: str) -> str:
    """Returns a name for somebody new that nobody else of the tenant has: their own, or their e-mail address."""
    taken = {one.name for one in accounts.people(conn, tenant_id)}
    try:
        name = account.check_name(identity.name)
    except BadInput:
        name = email
    further = (f"{email} {number}" for number in count(2))
    return next(one for one in chain((name, email), further) if one not in taken)


def reader_in(conn: Connection, tenant: str | None, owner: Reader) -> Reader:
    """Returns the first owner of a tenant by its name, for whom a command then acts; None: of the tenant that runs
    the instance."""
    if tenant is None:
        return owner
    with of_everybody(conn):
        tenant_id = accounts.tenant_named(conn, tenant)
        if tenant_id is None:
            raise NotFound(f"There is no tenant {tenant!r}. `headwater people tenants` shows them.")
        found = next((one for one in accounts.people(conn, tenant_id) if one.role == "owner"), None)
    if found is None:
        raise NotFound(f"The tenant {tenant!r} has no owner.")
    return found.reader


@contextmanager
def acting(reader: Reader | None, agent: str, now: Callable[[], datetime]) -> Iterator[None]:
    """Has what is done within the block recorded as done by this reader with a program on this machine; None: by the
    owner."""
    before = audit.current_actor.set(Actor(reader, None, agent, uuid7(), now))
    try:
        yield
    finally:
        audit.current_actor.reset(before)


audit_page = audit.page


def audit_lines(rows: Iterable[AuditRow], form: str) -> bytes:
    """Returns rows as lines of JSON or CSV."""
    shapes = [shaped(AuditJson, one) for one in rows]
    if form == "jsonl":
        return b"".join(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in shapes)
    return csv_lines(one.values() for one in shapes)


def audit_heading(form: str) -> bytes:
    """Returns what an export begins with: the names of the columns of CSV."""
    return csv_lines([AuditJson.__annotations__]) if form == "csv" else b""


async def export_audit(db: Database, reader: Reader, form: str) -> AsyncIterator[bytes]:
    """Yields the whole audit log of the reader's tenant as JSON lines or CSV, the newest first."""
    yield audit_heading(form)
    before = None
    while rows := await db.read(audit_page, reader, before=before, limit=EXPORTED_AT_ONCE):
        yield audit_lines(rows, form)
        before = rows[-1].id


class AuditJson(TypedDict):
    """Something that was done in your tenant."""

    id: Annotated[int, Example(4711)]
    at: Annotated[Time, Example("2026-01-07T09:30:00Z")]
    user_id: Annotated[int | None, Example(7, "null: somebody unknown, or who runs the instance")]
    user_name: Annotated[str | None, Example("Ann", "as it was then")]
    action: Annotated[str, Example("person.role")]
    resource: Annotated[str, Example("person", "the kind of what was changed")]
    resource_id: Annotated[str | None, Example("9", "what was changed; null: several, or none that has an id")]
    detail: Annotated[str | None, Example("Bob: viewer instead of member")]
    address: Annotated[str | None, Example("203.0.113.7", "where from; null: the command line")]
    agent: Annotated[str | None, Example("Mozilla/5.0", "with which browser, program or command")]
    request_id: Annotated[
        str, Example("019b9a3c-7f00-7c3e-9d5e-1a2b3c4d5e6f", "the `X-Request-Id` of the answer to the request")
    ]


class PersonJson(TypedDict):
    """Somebody of your tenant."""

    id: Annotated[int, Example(7)]
    name: Annotated[str, Example("Ann")]
    email: Annotated[str | None, Example("ann@example.org")]
    role: Annotated[str, Example("member", "owner, operator, member or viewer")]
    created_at: Annotated[Time, Example("2026-01-07T09:30:00Z")]
    seen_at: Annotated[Time | None, Example("2026-01-08T11:20:00Z", "when they last did something here, roughly")]


class PeopleJson(TypedDict):
    items: list[PersonJson]


class IdentityJson(TypedDict):
    """Who you are at a provider at which people sign in, or at another issuer of access tokens."""

    id: Annotated[str, Example("9f86d081884c7d659a2feaa0c55ad015")]
    issuer: Annotated[str, Example("https://login.example")]
    subject: Annotated[str, Example("248289761001", "your name there, which never changes")]
    created_at: Annotated[Time, Example("2026-01-07T09:30:00Z", "when they were linked")]


class IdentitiesJson(TypedDict):
    items: list[IdentityJson]


class InvitationJson(TypedDict):
    """Somebody who was invited and has not come yet."""

    id: Annotated[int, Example(3)]
    email: Annotated[str, Example("bob@example.org")]
    role: Annotated[str, Example("viewer")]
    invited_by: Annotated[str, Example("Ann")]
    created_at: Annotated[Time, Example("2026-01-07T09:30:00Z")]
    expires_at: Annotated[Time, Example("2026-01-14T09:30:00Z")]


class InvitationsJson(TypedDict):
    items: list[InvitationJson]


class NewInvitationJson(TypedDict):
    """A new invitation. Its link is shown once."""

    invitation: InvitationJson
    link: Annotated[str, Example("https://news.example/invitation?token=hw_invite_Zk3vQ9", "send it to them yourself")]
