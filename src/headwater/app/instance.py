"""The instance itself: its schema, its owner, and its access to X."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from importlib.util import find_spec

from sqlalchemy import Connection

from headwater import text
from headwater.access import x as access
from headwater.access.x import METER, NO_TOKEN, SECRET, XState
from headwater.errors import KeyMissing, SchemaMismatch, SourceFailure
from headwater.model import Credential, Reader
from headwater.sources import x
from headwater.store import migrate, row_security, sources
from headwater.store.db import Database
from headwater.store.db import sqlite_version as sqlite_version
from headwater.store.migrate import upgrade_in_a_child as upgrade_in_a_child
from headwater.store.people import accounts
from headwater.store.posts import hot
from headwater.store.sources import limits
from headwater.store.sources.limits import MonthlyAllowance


def prepare(db: Database, hot_for: timedelta, now: datetime) -> Reader:
    """Makes a store with the newest schema ready, and returns the owner, who is created the first time."""
    db.condition.leave_marker()
    db.write_now(hot.clean, hot_for, now)  # fills a new hot store
    return db.write_now(accounts.make_owner, now)


def is_there(db: Database) -> bool:
    """Whether there is a store. Asking makes none: opening a SQLite database would make its file."""
    return db.exists() and migrate.current(db) is not None


def key_credentials(db: Database, unseal: Callable[[bytes], str], seal: Callable[[str], Credential]) -> None:
    """Derives the keys of passwords that were stored before a password was a part of what a source is."""
    for source_id, sealed in db.read_now(sources.without_key):
        try:
            key = seal(unseal(sealed)).key
        except SourceFailure:
            continue  # it was encrypted with another key, and its visits say so
        db.write_now(sources.set_key, source_id, key)


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
    migrate.upgrade(db, revision, app_role=app_role)
    return is_newest(db)


def set_up_role(db: Database, role: str, password: str | None) -> bool:
    """Lets a role use the tables, which is created if there is none. Returns whether it was created.

    `db` is opened by the owner of the tables.
    """

    def set_up(conn: Connection) -> bool:
        made = row_security.make_role(conn, role, password)
        row_security.grant(conn, role)
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


async def stored_x_token(db: Database, unseal: Callable[[bytes], str]) -> str:
    """Returns the token that a person has given. Raises KeyMissing if there is none, or if it cannot be decrypted."""
    sealed = await db.read(accounts.find_secret, SECRET)
    if sealed is None:
        raise KeyMissing(NO_TOKEN)
    try:
        return unseal(sealed)
    except SourceFailure as error:
        raise KeyMissing(
            "The token for X cannot be read with the present HEADWATER_SECRET_KEY. Give it again: `headwater x token`."
        ) from error


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


def check_x_token(typed: str) -> str:
    """Returns the token that a person typed, without what surrounds it. Raises BadInput if it cannot be one."""
    return access.token_from(typed)


def store_x_token(conn: Connection, sealed: bytes, now: datetime) -> int:
    """Stores an encrypted token. Returns how many sources waited for it and are due now."""
    return access.keep_token(conn, sealed, now)


def forget_x_token(conn: Connection) -> bool:
    """Deletes the stored token. Returns whether there was one."""
    return accounts.delete_secret(conn, SECRET)
