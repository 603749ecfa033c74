"""The people of a tenant: who is there, invitations, roles, removing somebody. And the tenants of the instance."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.accounts import passwords, scopes, tokens
from headwater.app import account
from headwater.app.account import Browser, SignedIn
from headwater.app.shapes import Example, Time
from headwater.errors import AlreadyThere, BadInput, NotFound
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.people import accounts
from headwater.store.people import tokens as stored
from headwater.store.people.accounts import Invitation, Person, Tenant
from headwater.store.row_security import of_everybody

ROLES = scopes.ROLES
INVITATION_LIFE = timedelta(days=7)
MOST_PEOPLE = 1000
_LAST_OWNER = "{name} is the only owner. Make somebody else an owner first."
_SPENT = "This invitation was used, withdrawn, or is older than 7 days. Ask for a new one."


class NewInvitation(NamedTuple):
    """An invitation and its link, which can be shown only now."""

    invitation: Invitation
    link: str


class NewTenant(NamedTuple):
    """A tenant, its owner, and the link with which the owner signs in for the first time."""

    tenant: Tenant
    owner: Person
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
        raise BadInput(f"A tenant has at most {MOST_PEOPLE} people.")
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
    found = next(one for one in invitations(conn, reader, now) if one.id == made)
    return NewInvitation(found, f"{home}/invitation?token={secret}")


def withdraw(conn: Connection, reader: Reader, invitation_id: int) -> None:
    if not accounts.drop_invitation(conn, reader.tenant_id, invitation_id):
        raise NotFound(f"There is no invitation {invitation_id}.")


def invitation(conn: Connection, secret: str, now: datetime) -> Invitation:
    """Returns the invitation that a link is for."""
    found = accounts.invitation(conn, tokens.fingerprint(secret), now)
    if found is None:
        raise NotFound(_SPENT)
    return found


async def accept(
    db: Database, secret: str, name: str, password: str, now: datetime, browser: Browser = Browser()
) -> SignedIn:
    """Makes an account from an invitation, which is used up by it, and signs in."""
    await db.read(invitation, secret, now)
    password_hash = await asyncio.to_thread(passwords.hashed, password)
    return await db.write(_join, secret, account.check_name(name), password_hash, now, browser)


def _join(
    conn: Connection, secret: str, name: str, password_hash: str | None, now: datetime, browser: Browser
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
    return Reader(tenant_id, user_id, name, found.role, runs_instance=found.runs_instance)


def give_role(conn: Connection, reader: Reader, user_id: int, role: str) -> Person:
    """Gives somebody another role. It counts from their next request on."""
    person = find(conn, reader, user_id)
    scopes.check_role(role)
    if person.role == "owner" != role:
        _keep_an_owner(conn, person)
    accounts.set_role(conn, reader.tenant_id, user_id, role)
    return find(conn, reader, user_id)


def remove(conn: Connection, reader: Reader, user_id: int) -> None:
    """Removes somebody with everything that is theirs. Their tokens and sessions end at once."""
    person = find(conn, reader, user_id)
    if person.role == "owner":
        _keep_an_owner(conn, person)
    accounts.remove(conn, reader.tenant_id, user_id)


def _keep_an_owner(conn: Connection, person: Person) -> None:
    if accounts.count_owners(conn, person.tenant_id) < 2:
        raise BadInput(_LAST_OWNER.format(name=person.name))


def set_password(conn: Connection, person: Person, password: str) -> None:
    """Sets somebody's password, for whoever runs the instance. All their sessions end."""
    if person.email is None:
        raise BadInput(f"{person.name} has no e-mail address. Give one: `headwater people email`.")
    accounts.set_password(conn, person.tenant_id, person.id, passwords.hashed(password))
    stored.revoke_all(conn, person.reader, ["session", "login"])


def set_email(conn: Connection, reader: Reader, user_id: int, email: str) -> Person:
    """Sets the e-mail address with which somebody signs in."""
    email = account.check_email(email)
    person = find(conn, reader, user_id)
    if any(one.email == email and one.id != user_id for one in everybody(conn, reader)):
        raise AlreadyThere(f"{email} belongs to somebody else here.")
    accounts.set_email(conn, person.tenant_id, person.id, email)
    return find(conn, reader, user_id)


def set_own_email(conn: Connection, reader: Reader, email: str) -> Person:
    """Sets one's own e-mail address, if there is none yet."""
    person = find(conn, reader, reader.user_id)
    if person.email is not None and person.email != account.normal_email(email):
        raise BadInput("Your e-mail address is set already. Whoever runs this Headwater can change it.")
    return set_email(conn, reader, reader.user_id, email)


def link_identity(conn: Connection, person: Person, issuer: str, subject: str, now: datetime) -> None:
    """Says who somebody is at another issuer of access tokens."""
    if not subject.strip() or len(subject) > 255:
        raise BadInput("A subject has 1 to 255 characters.")
    accounts.link_identity(conn, person.reader, issuer, subject, now)
    stored.note_change(conn)


def tenants(conn: Connection) -> list[Tenant]:
    """Returns every tenant of the instance."""
    return accounts.tenants(conn)


def add_tenant(conn: Connection, name: str, owner_email: str, home: str, now: datetime) -> NewTenant:
    """Adds a tenant with its owner, who signs in with a link that is valid for a day and then sets a password."""
    name, email = account.check_name(name), account.check_email(owner_email)
    if accounts.tenant_named(conn, name) is not None:
        raise AlreadyThere(f"There is a tenant {name!r} already.")
    tenant_id = accounts.add_tenant(conn, name, now)
    user_id = accounts.add_user(conn, tenant_id, name=email, role="owner", email=email, now=now)
    owner = accounts.person(conn, tenant_id, user_id)
    assert owner is not None
    made = next(one for one in accounts.tenants(conn) if one.id == tenant_id)
    return NewTenant(made, owner, account.login_link(conn, owner.reader, home, now))


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


class TenantJson(TypedDict):
    """A group of people that sees nothing of other groups."""

    id: Annotated[int, Example(2)]
    name: Annotated[str, Example("Example Research")]
    runs_instance: Annotated[bool, Example(False, "whether its owners and operators run the instance")]
    people: Annotated[int, Example(4, "how many people it has")]
    created_at: Annotated[Time, Example("2026-01-07T09:30:00Z")]


class TenantsJson(TypedDict):
    items: list[TenantJson]


class NewTenantJson(TypedDict):
    """A new tenant. The link signs its owner in once, within a day."""

    tenant: TenantJson
    owner: PersonJson
    link: Annotated[str, Example("https://news.example/login?token=hw_login_Zk3vQ9")]
