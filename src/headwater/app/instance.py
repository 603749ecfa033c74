"""The instance itself: its schema, its owner, its tenants and their plans, and its access to X."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime, timedelta
from importlib.util import find_spec
from typing import Annotated, NamedTuple

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater import text
from headwater.access import x as access
from headwater.access.x import METER, NO_TOKEN, SECRET, XState
from headwater.accounts import openid
from headwater.accounts.vault import InstanceKey, KeyFile, Vault, key_id_of, new_key
from headwater.app import account
from headwater.app.fleet import miners
from headwater.app.people import PersonJson
from headwater.app.shapes import Example, Time
from headwater.errors import AlreadyThere, BadInput, KeyMissing, KeyUnavailable, NotFound, SchemaMismatch, SourceFailure
from headwater.model import Credential, Reader
from headwater.sources import x
from headwater.store import migrate, row_security, sources
from headwater.store.db import Database
from headwater.store.db import sqlite_version as sqlite_version
from headwater.store.migrate import upgrade_in_a_child as upgrade_in_a_child
from headwater.store.people import accounts, audit, sealed
from headwater.store.people.accounts import Person, Tenant
from headwater.store.people.sealed import Sealed
from headwater.store.posts import hot
from headwater.store.sources import hubs, limits
from headwater.store.sources.limits import MonthlyAllowance

RESEALED_AT_ONCE = 50


def prepare(db: Database, hot_for: timedelta, now: datetime) -> Reader:
    """Makes a store with the newest schema ready, and returns the owner, who is created the first time."""
    db.condition.leave_marker()
    db.write_now(hot.clean, hot_for, now)  # fills a new hot store
    db.write_now(miners.ship_models)
    return db.write_now(accounts.make_owner, now)


def is_there(db: Database) -> bool:
    """Whether there is a store. Asking makes none: opening a SQLite database would make its file."""
    return db.exists() and migrate.current(db) is not None


def key_credentials(db: Database, unseal: Callable[[bytes], str], seal: Callable[[str], Credential]) -> None:
    """Derives the keys of passwords that were stored before a password was a part of what a source is."""
    for source_id, password in db.read_now(sources.without_key):
        try:
            key = seal(unseal(password)).key
        except SourceFailure:
            continue  # it was encrypted with another key, and its visits say so
        db.write_now(sources.set_key, source_id, key)


_KEY_GONE = (
    "The store has secrets that are encrypted, and the key is gone: there is no secret.key in the data folder, and no "
    "HEADWATER_SECRET_KEY. Bring the key back from where you keep a copy. If it is lost, `headwater keys create` makes "
    "a new one, and passwords and tokens have to be given again."
)


def check_new_key(db: Database) -> None:
    """Raises KeyUnavailable if a new key would take the place of one that the store needs."""
    if is_there(db) and db.read_now(sealed.has_sealed):
        raise KeyUnavailable(_KEY_GONE)


class KeyUse(NamedTuple):
    """A key, whether it is `current`, an `other` one or `missing`, and how many secrets are encrypted with it."""

    id: str
    state: str
    secrets: int


def key_uses(db: Database, vault: Vault, present: Sequence[str]) -> list[KeyUse]:
    """Returns the keys that are here or needed. Secrets of earlier versions count for the key that decrypts them."""
    counts = Counter(_key_of(one, vault, present) for one in db.read_now(sealed.all_sealed))
    states = {one: "other" if place else "current" for place, one in enumerate(present)}
    return [KeyUse(one, states.get(one, "missing"), counts[one]) for one in dict.fromkeys([*present, *sorted(counts)])]


def _key_of(one: Sealed, vault: Vault, present: Sequence[str]) -> str:
    named = key_id_of(one.sealed)
    if named is not None or not present:
        return named or "unknown"
    fitting = (key for key in vault.keys().values() if key.fits(one.sealed))
    return next((key.id for key in fitting), "unknown")


class Resealed(NamedTuple):
    """How many secrets were encrypted with the present key, and how many could not be decrypted."""

    done: int
    lost: int


def reseal(db: Database, vault: Vault, now: datetime) -> Resealed:
    """Encrypts everything with the present key, a few secrets in a transaction, while Headwater may run.

    Hubs are asked again, so that they learn their new secrets. It can be stopped anywhere and run again.
    """
    db.write_now(_note_key, "secret_key.rotate", vault.key_id)
    done = 0
    for _ in range(3):  # what another process encrypts meanwhile with the key before this one is found in the end
        old = [one for one in db.read_now(sealed.all_sealed) if not vault.is_current(one.sealed)]
        readable = [(one, secret) for one in old if (secret := _opened(vault, one)) is not None]
        if readable:
            db.write_now(hubs.ask_all_again, now)  # first: whoever is killed later finds that there is more to do
        for start in range(0, len(readable), RESEALED_AT_ONCE):
            done += db.write_now(_reseal, readable[start : start + RESEALED_AT_ONCE], vault)
        if not readable:
            break
    return Resealed(done, len(old) - len(readable))


def _note_key(conn: Connection, action: str, key_id: str) -> None:
    audit.record(conn, None, action, key_id)


def _opened(vault: Vault, one: Sealed) -> str | None:
    try:
        return vault.open(one.sealed)
    except SourceFailure:
        return None


def _reseal(conn: Connection, readable: Sequence[tuple[Sealed, str]], vault: Vault) -> int:
    done = 0
    for one, secret in readable:
        credential = vault.credential(secret)
        if sealed.replace(conn, one, credential.sealed):
            done += 1
            if sealed.is_of_source(one):
                sources.set_key(conn, int(one.id), credential.key)
    return done


def add_key(file: KeyFile) -> None:
    """Puts a new key before those of the file."""
    file.add(new_key())


def create_key(db: Database, file: KeyFile) -> str:
    """Makes a key where there is none any more. Returns its id.

    The key is on the disk before the row of the audit log is, and in its place only afterwards: a key that cannot be
    written leaves no row, and there is no key without one, wherever this is killed. Then it can be run again.
    """
    made = new_key()
    key_id = InstanceKey(made).id
    with file.prepared(made) as put:
        db.write_now(_note_key, "secret_key.create", key_id)
        put()
    return key_id


def forget_key(db: Database, file: KeyFile, key_id: str) -> None:
    """Takes an old key out of the file. Whether it is needed was asked before.

    It goes after its row of the audit log is committed. Whoever is killed in between has the key still, and can run
    this again.
    """
    if not file.has(key_id):
        raise NotFound(f"There is no key {key_id} in secret.key.")
    db.write_now(_note_key, "secret_key.forget", key_id)
    file.remove(key_id)


def owner(db: Database) -> Reader:
    """Returns the owner. Raises SchemaMismatch if the schema is not the one that this version needs."""
    migrate.check(db)
    found = db.read_now(accounts.owner)
    if found is None:
        raise SchemaMismatch("The database has no owner yet. Run `headwater db upgrade`.")
    return found


def is_newest(db: Database) -> bool:
    """Whether the schema is the newest one."""
    return migrate.current(db) == migrate.head()


def upgrade_schema(db: Database, revision: str, app_role: str | None = None) -> bool:
    """Upgrades the schema to a revision. Returns whether that is the newest one."""
    before = migrate.current(db)
    migrate.upgrade(db, revision, app_role=app_role)
    newest = is_newest(db)
    if newest and before not in (None, migrate.head()):
        db.write_now(_note_upgrade, before)
    return newest


def _note_upgrade(conn: Connection, before: str | None) -> None:
    audit.record(conn, None, "schema.change", migrate.head(), f"from {before}")


def set_up_role(db: Database, role: str, password: str | None) -> bool:
    """Lets a role use the tables, which is created if there is none. Returns whether it was created.

    `db` is opened by the owner of the tables.
    """

    has_log = is_newest(db)

    def set_up(conn: Connection) -> bool:
        made = row_security.make_role(conn, role, password)
        row_security.grant(conn, role)
        if has_log:
            audit.record(conn, None, "schema.role", detail=role)
        return made

    return db.write_now(set_up)


def isolation(conn: Connection) -> tuple[list[str], bool]:
    """Returns what keeps PostgreSQL from separating the tenants by itself, and whether there are several."""
    return row_security.problems(conn), accounts.has_guests(conn)


def lost_by_downgrade(db: Database, revision: str) -> str:
    """Says what a downgrade to this revision deletes; empty: nothing. Raises BadInput if there is no such revision."""
    undone = migrate.undone_by(db, revision)
    if not undone:
        return ""
    if revision == "base":
        counts = db.read_now(migrate.contents)
        return (
            "everything: " + ", ".join(f"{count:,} {name}" for name, count in counts.items()) + ", accounts and tokens"
        )
    return "what these migrations have stored:\n" + "\n".join(f"  {one}" for one in undone)


def downgrade_schema(db: Database, revision: str) -> None:
    migrate.downgrade(db, revision)


def schema_revision(db: Database) -> str | None:
    """Returns the revision of the schema, or None for an empty database."""
    return migrate.current(db)


def check_schema(db: Database) -> None:
    """Raises StoreUnavailable or SchemaMismatch unless the database answers and has the right schema."""
    migrate.check(db)


def check_store(db: Database) -> None:
    """Raises StoreUnavailable unless the database answers, has the right schema, and nothing failed just now."""
    check_schema(db)
    for problem in db.condition.problems():
        raise problem


def compiled_parts() -> dict[str, bool]:
    """Returns what is compiled at installation, and whether it was. Without a C compiler it works, but slowly."""
    from headwater.dedup.repeat_index import IS_COMPILED as FOLDING_IS_COMPILED  # only whoever folds or asks loads it

    return {"cleaning HTML": text.IS_COMPILED, "folding": FOLDING_IS_COMPILED}


def has_embeddings() -> bool:
    """Whether the model is installed that knows the meaning of words."""
    return find_spec("wordllama") is not None


def note_job(conn: Connection, name: str) -> None:
    """Records that somebody runs a periodic job now. What it then does is many transactions."""
    audit.record(conn, None, "job.run", name)


async def stored_x_token(db: Database, unseal: Callable[[bytes], str]) -> str:
    """Returns the token that a person has given. Raises KeyMissing if there is none, or if it cannot be decrypted."""
    found = await db.read(accounts.find_secret, SECRET)
    if found is None:
        raise KeyMissing(NO_TOKEN)
    try:
        return unseal(found)
    except SourceFailure as error:
        raise KeyMissing(f"The token for X cannot be read. {error.detail} `headwater x token` takes it.") from error


async def x_state(
    db: Database, token: Callable[[], Awaitable[str]], allowance: MonthlyAllowance, now: datetime
) -> XState:
    """Returns how X can be asked at the moment."""
    problem = ""
    try:
        await token()
    except KeyMissing as error:
        problem = error.detail
    used = await db.read(limits.used_this_month, METER, now)
    followed = len(await db.read(sources.visited_of_kind, x.KIND.name))
    return XState(problem, used, allowance, limits.month_ends(now), followed)


def stored_oidc_secret(conn: Connection, key: str = "") -> bytes | None:
    """Returns the stored secret for an OpenID Connect provider, encrypted."""
    return accounts.find_secret(conn, openid.secret_name(key))


def store_oidc_secret(conn: Connection, sealed: bytes, now: datetime, key: str = "") -> None:
    audit.record(conn, None, "oidc_secret.store", detail=key)
    accounts.save_secret(conn, openid.secret_name(key), sealed, now)


def forget_oidc_secret(conn: Connection, key: str = "") -> bool:
    """Deletes the stored secret. Returns whether there was one."""
    audit.record(conn, None, "oidc_secret.forget", detail=key)
    return accounts.delete_secret(conn, openid.secret_name(key))


def check_x_token(typed: str) -> str:
    """Returns the token that a person typed, without what surrounds it. Raises BadInput if it cannot be one."""
    return access.token_from(typed)


def store_x_token(conn: Connection, sealed: bytes, now: datetime) -> int:
    """Stores an encrypted token. Returns how many sources waited for it and are due now."""
    audit.record(conn, None, "x_token.store")
    return access.keep_token(conn, sealed, now)


def forget_x_token(conn: Connection) -> bool:
    """Deletes the stored token. Returns whether there was one."""
    audit.record(conn, None, "x_token.forget")
    return accounts.delete_secret(conn, SECRET)


class NewTenant(NamedTuple):
    """A tenant, its owner, and the link with which the owner signs in for the first time."""

    tenant: Tenant
    owner: Person
    link: str


def tenants(conn: Connection) -> list[Tenant]:
    """Returns every tenant of the instance."""
    return accounts.tenants(conn)


def tenant_id(conn: Connection, name: str) -> int:
    """Returns the id of a tenant by its name."""
    found = accounts.tenant_named(conn, name)
    if found is None:
        raise NotFound(f"There is no tenant {name[:100]!r}. `headwater people tenants` shows them.")
    return found


def add_tenant(conn: Connection, name: str, owner_email: str, home: str, now: datetime) -> NewTenant:
    """Adds a tenant with its owner, who signs in with a link that is valid for a day and then sets a password."""
    name, email = account.check_name(name), account.check_email(owner_email)
    if accounts.tenant_named(conn, name) is not None:
        raise AlreadyThere(f"There is already a tenant {name!r}.")
    tenant_id = accounts.add_tenant(conn, name, now)
    user_id = accounts.add_user(conn, tenant_id, name=email, role="owner", email=email, now=now)
    audit.record(conn, None, "tenant.create", tenant_id, name)
    owner = accounts.person(conn, tenant_id, user_id)
    assert owner is not None
    made = next(one for one in accounts.tenants(conn) if one.id == tenant_id)
    return NewTenant(made, owner, account.login_link(conn, owner.reader, home, now))


def give_plan(conn: Connection, tenant_id: int, plan: str | None, plans: Collection[str]) -> Tenant:
    """Gives a tenant one of these plans; None: the default one. It counts from the next requests on."""
    if plan is not None and plan not in plans:
        named = ", ".join(filter(None, plans))
        raise BadInput(f"There is no plan {plan[:50]!r}. " + (f"There are: {named}." if named else _NO_PLANS))
    if not accounts.set_plan(conn, tenant_id, plan):
        raise NotFound(f"There is no tenant {tenant_id}.")
    found = next(one for one in accounts.tenants(conn) if one.id == tenant_id)
    audit.record(conn, None, "tenant.plan", tenant_id, f"{found.name}: {plan or 'the default plan'}")
    return found


_NO_PLANS = "HEADWATER_PLANS has none."


class TenantJson(TypedDict):
    """A group of people that sees nothing of other groups."""

    id: Annotated[int, Example(2)]
    name: Annotated[str, Example("Example Research")]
    runs_instance: Annotated[bool, Example(False, "whether its owners and operators run the instance")]
    plan: Annotated[str | None, Example("team", "how often its people may ask; null: the default plan")]
    people: Annotated[int, Example(4, "how many people it has")]
    created_at: Annotated[Time, Example("2026-01-07T09:30:00Z")]


class TenantsJson(TypedDict):
    items: list[TenantJson]


class NewTenantJson(TypedDict):
    """A new tenant. The link signs its owner in once, within a day."""

    tenant: TenantJson
    owner: PersonJson
    link: Annotated[str, Example("https://news.example/login?token=hw_login_Zk3vQ9")]
