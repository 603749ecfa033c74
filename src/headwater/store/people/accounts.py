"""Tenants, their people, invitations, who somebody is at a provider, and secrets that they gave us.

`owner`, `by_email`, `by_identity`, `invitation` and `invitations_for` find out who somebody is, so they look at all
tenants. Everything else stays within the tenant that it is given. A secret, such as the token for X, is used again, so
it is encrypted.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.people.tokens import note_change
from headwater.store.row_security import of_everybody
from headwater.store.sql import insert_into, portable


class Tenant(NamedTuple):
    """A group of people. `plan` is None if it has the default one."""

    id: int
    name: str
    runs_instance: bool
    plan: str | None
    created_at: datetime
    people: int


class Person(NamedTuple):
    """Somebody who has an account. `password_hash` is None if they sign in another way."""

    id: int
    tenant_id: int
    tenant_name: str
    runs_instance: bool
    plan: str | None
    name: str
    role: str
    email: str | None
    password_hash: str | None
    time_zone: str | None
    theme: str | None
    language: str | None
    created_at: datetime
    seen_at: datetime | None

    @property
    def reader(self) -> Reader:
        runs, plan = self.runs_instance, self.plan
        return Reader(self.tenant_id, self.id, self.name, self.role, runs_instance=runs, plan=plan)


class LinkedIdentity(NamedTuple):
    """Who somebody is at a provider."""

    issuer: str
    subject: str
    created_at: datetime

    @property
    def id(self) -> str:
        """A name for it that fits into an address."""
        return hashlib.sha256(f"{self.issuer} {self.subject}".encode()).hexdigest()[:32]


class Secret(NamedTuple):
    name: str
    sealed: bytes
    changed_at: datetime


class Invitation(NamedTuple):
    id: int
    tenant_id: int
    tenant_name: str
    runs_instance: bool
    user_id: int
    invited_by: str
    email: str
    role: str
    created_at: datetime
    expires_at: datetime


_PERSON = """u.id, u.tenant_id, n.name, n.runs_instance, n.plan, u.name, u.role, u.email, u.password_hash, u.time_zone,
    u.theme, u.language, u.created_at,
    (SELECT max(t.last_used_at) FROM api_tokens t WHERE t.tenant_id = u.tenant_id AND t.user_id = u.id)
    FROM users u JOIN tenants n ON n.id = u.tenant_id"""
_INVITATION = """i.id, i.tenant_id, n.name, n.runs_instance, i.user_id, u.name, i.email, i.role, i.created_at,
    i.expires_at
    FROM invitations i JOIN tenants n ON n.id = i.tenant_id JOIN users u ON u.id = i.user_id"""

_owner = portable(f"SELECT {_PERSON} WHERE u.role = 'owner' AND n.runs_instance ORDER BY u.id LIMIT 1", row=Person)
_person = portable(f"SELECT {_PERSON} WHERE u.tenant_id = ? AND u.id = ?", row=Person)
_people = portable(f"SELECT {_PERSON} WHERE u.tenant_id = ? ORDER BY u.id", row=Person)
_by_email = portable(f"SELECT {_PERSON} WHERE u.email = ? ORDER BY u.id", row=Person)
_by_identity = portable(
    f"SELECT {_PERSON} JOIN identities d ON d.tenant_id = u.tenant_id AND d.user_id = u.id"
    " WHERE d.issuer = ? AND d.subject = ? ORDER BY u.id",
    row=Person,
)
_more_tenants = portable("SELECT 1 FROM tenants ORDER BY id LIMIT 1 OFFSET 1")
_tenants = portable(
    """SELECT n.id, n.name, n.runs_instance, n.plan, n.created_at,
        (SELECT count(*) FROM users u WHERE u.tenant_id = n.id)
    FROM tenants n ORDER BY n.id""",
    row=Tenant,
)
_set_plan = portable("UPDATE tenants SET plan = ? WHERE id = ?")
_tenant = portable("SELECT id FROM tenants WHERE name = ?")
_add_tenant = portable("INSERT INTO tenants (name, runs_instance, created_at) VALUES (?, ?, ?) RETURNING id")
_add_user = portable(
    insert_into("users", ("tenant_id", "name", "role", "email", "password_hash", "created_at")) + " RETURNING id"
)
_has_passwords = portable("SELECT 1 FROM users WHERE password_hash IS NOT NULL LIMIT 1")
_set = {
    name: portable(f"UPDATE users SET {name} = ? WHERE tenant_id = ? AND id = ?")
    for name in ("role", "password_hash", "email")
}
_arrange = portable("UPDATE users SET name = ?, time_zone = ?, theme = ?, language = ? WHERE tenant_id = ? AND id = ?")
_remove = portable("DELETE FROM users WHERE tenant_id = ? AND id = ?")
_lock_owners = portable("SELECT id FROM users WHERE tenant_id = ? AND role = 'owner'", postgresql=" FOR UPDATE")
_add_invitation = portable(
    insert_into("invitations", ("tenant_id", "user_id", "email", "role", "token_hash", "created_at", "expires_at"))
    + """ ON CONFLICT (tenant_id, email) DO UPDATE SET user_id = excluded.user_id, role = excluded.role,
    token_hash = excluded.token_hash, created_at = excluded.created_at, expires_at = excluded.expires_at RETURNING id"""
)
_invitation = portable(f"SELECT {_INVITATION} WHERE i.token_hash = ? AND i.expires_at > ?", row=Invitation)
_invitations = portable(
    f"SELECT {_INVITATION} WHERE i.tenant_id = ? AND i.expires_at > ? ORDER BY i.id", row=Invitation
)
_invitations_for = portable(
    f"SELECT {_INVITATION} WHERE i.email = ? AND i.expires_at > ? ORDER BY i.id", row=Invitation
)
_drop_invitation = portable("DELETE FROM invitations WHERE tenant_id = ? AND id = ?")
_link = portable(
    """INSERT INTO identities (tenant_id, user_id, issuer, subject, created_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (tenant_id, issuer, subject) DO NOTHING"""
)
_identities = portable(
    "SELECT issuer, subject, created_at FROM identities WHERE tenant_id = ? AND user_id = ? ORDER BY created_at",
    row=LinkedIdentity,
)
_unlink = portable("DELETE FROM identities WHERE tenant_id = ? AND user_id = ? AND issuer = ? AND subject = ?")
_copy_subscriptions = portable(
    """INSERT INTO subscriptions (tenant_id, user_id, source_id, title, folder, fold, created_at, interval_seconds)
    SELECT tenant_id, :to_user, source_id, title, folder, fold, :now, interval_seconds
    FROM subscriptions WHERE tenant_id = :tenant_id AND user_id = :from_user"""
)
_save_secret = portable(
    """INSERT INTO secrets (name, sealed, changed_at) VALUES (?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, changed_at = excluded.changed_at"""
)
_find_secret = portable("SELECT sealed FROM secrets WHERE name = ?")
_secrets_named = portable("SELECT name, sealed, changed_at FROM secrets WHERE name LIKE ?", row=Secret)
_drop_secret = portable("DELETE FROM secrets WHERE name = ?")


def owner(conn: Connection) -> Reader | None:
    """Returns the first owner of the tenant that runs the instance."""
    found = _owner.first(conn)
    return found.reader if found else None


def has_guests(conn: Connection) -> bool:
    """Whether there are tenants other than the first."""
    with of_everybody(conn):
        return _more_tenants.value(conn) is not None


def make_owner(conn: Connection, now: datetime) -> Reader:
    """Returns the first owner of the tenant that runs the instance. The first call creates both."""
    found = owner(conn)
    if found:
        return found
    tenant_id = _add_tenant.value(conn, "default", True, now)
    user_id = add_user(conn, tenant_id, name="owner", role="owner", now=now)
    return Reader(tenant_id, user_id, "owner", "owner", runs_instance=True)


def tenants(conn: Connection) -> list[Tenant]:
    return _tenants.all(conn)


def tenant_named(conn: Connection, name: str) -> int | None:
    """Returns the id of a tenant."""
    found: int | None = _tenant.value(conn, name)
    return found


def add_tenant(conn: Connection, name: str, now: datetime) -> int:
    """Adds a tenant, which does not run the instance. Returns its id."""
    return int(_add_tenant.value(conn, name, False, now))


def set_plan(conn: Connection, tenant_id: int, plan: str | None) -> bool:
    """Gives a tenant a plan; None: the default one. Returns False if there is no such tenant."""
    note_change(conn)
    return bool(_set_plan.once(conn, plan, tenant_id))


def add_user(
    conn: Connection,
    tenant_id: int,
    *,
    name: str,
    role: str,
    now: datetime,
    email: str | None = None,
    password_hash: str | None = None,
) -> int:
    """Adds a person. Returns their id."""
    return int(
        _add_user.value(
            conn, tenant_id=tenant_id, name=name, role=role, email=email, password_hash=password_hash, created_at=now
        )
    )


def person(conn: Connection, tenant_id: int, user_id: int) -> Person | None:
    return _person.first(conn, tenant_id, user_id)


def people(conn: Connection, tenant_id: int) -> list[Person]:
    """Returns the people of a tenant, in the order in which they came."""
    return _people.all(conn, tenant_id)


def by_email(conn: Connection, email: str) -> list[Person]:
    """Returns everybody who has this address. One person may be in several tenants."""
    return _by_email.all(conn, email)


def by_identity(conn: Connection, issuer: str, subject: str) -> list[Person]:
    """Returns everybody who is this subject of a provider."""
    return _by_identity.all(conn, issuer, subject)


def has_passwords(conn: Connection) -> bool:
    """Whether anybody can sign in with a password."""
    return _has_passwords.value(conn) is not None


def set_role(conn: Connection, tenant_id: int, user_id: int, role: str) -> None:
    _set["role"].once(conn, role, tenant_id, user_id)
    note_change(conn)


def set_password(conn: Connection, tenant_id: int, user_id: int, password_hash: str | None) -> None:
    _set["password_hash"].once(conn, password_hash, tenant_id, user_id)
    note_change(conn)


def set_email(conn: Connection, tenant_id: int, user_id: int, email: str | None) -> None:
    _set["email"].once(conn, email, tenant_id, user_id)


def arrange(
    conn: Connection, reader: Reader, *, name: str, time_zone: str | None, theme: str | None, language: str | None
) -> None:
    """Changes a reader's name and how pages look for them."""
    _arrange.once(conn, name, time_zone, theme, language, reader.tenant_id, reader.user_id)
    note_change(conn)


def remove(conn: Connection, tenant_id: int, user_id: int) -> None:
    """Deletes a person and everything that is theirs. Sources and posts stay."""
    _remove.once(conn, tenant_id, user_id)
    note_change(conn)


def count_owners(conn: Connection, tenant_id: int) -> int:
    """Returns how many owners a tenant has. Nobody else can change that before the transaction ends."""
    return len(_lock_owners.values(conn, tenant_id))


def invite(
    conn: Connection,
    reader: Reader,
    *,
    email: str,
    role: str,
    token_hash: bytes,
    now: datetime,
    expires_at: datetime,
) -> int:
    """Stores an invitation. A newer one takes the place of an older one for the same address. Returns its id."""
    return int(
        _add_invitation.value(
            conn,
            **reader.key,
            email=email,
            role=role,
            token_hash=token_hash,
            created_at=now,
            expires_at=expires_at,
        )
    )


def invitation(conn: Connection, token_hash: bytes, now: datetime) -> Invitation | None:
    """Returns the invitation that a link is for, unless it has expired or was used."""
    return _invitation.first(conn, token_hash, now)


def invitations(conn: Connection, tenant_id: int, now: datetime) -> list[Invitation]:
    return _invitations.all(conn, tenant_id, now)


def invitations_for(conn: Connection, email: str, now: datetime) -> list[Invitation]:
    """Returns the invitations of all tenants for this address."""
    return _invitations_for.all(conn, email, now)


def drop_invitation(conn: Connection, tenant_id: int, invitation_id: int) -> bool:
    """Deletes an invitation. Returns whether it was there."""
    return bool(_drop_invitation.once(conn, tenant_id, invitation_id))


def link_identity(conn: Connection, reader: Reader, issuer: str, subject: str, now: datetime) -> bool:
    """Remembers who a reader is at a provider. Returns False if somebody of the tenant is known by it already."""
    if not _link.once(conn, reader.tenant_id, reader.user_id, issuer, subject, now):
        return False
    note_change(conn)
    return True


def identities(conn: Connection, reader: Reader) -> list[LinkedIdentity]:
    """Returns who a reader is at providers."""
    return _identities.all(conn, reader.tenant_id, reader.user_id)


def unlink_identity(conn: Connection, reader: Reader, issuer: str, subject: str) -> bool:
    """Forgets who a reader is at a provider. Returns whether it was known."""
    if not _unlink.once(conn, reader.tenant_id, reader.user_id, issuer, subject):
        return False
    note_change(conn)
    return True


def copy_subscriptions(conn: Connection, tenant_id: int, *, from_user: int, to_user: int, now: datetime) -> int:
    """Lets somebody new follow what another person of the tenant follows. Returns how many sources that are."""
    return _copy_subscriptions.once(conn, tenant_id=tenant_id, from_user=from_user, to_user=to_user, now=now)


def save_secret(conn: Connection, name: str, sealed: bytes, now: datetime) -> None:
    _save_secret.once(conn, name, sealed, now)


def find_secret(conn: Connection, name: str) -> bytes | None:
    sealed = _find_secret.value(conn, name)
    return None if sealed is None else bytes(sealed)


def secrets_named(conn: Connection, start: str) -> list[Secret]:
    """Returns the secrets whose names begin so."""
    return _secrets_named.all(conn, f"{start}%")


def delete_secret(conn: Connection, name: str) -> bool:
    return bool(_drop_secret.once(conn, name))
