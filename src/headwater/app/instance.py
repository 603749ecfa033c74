"""The instance itself: its schema, its owner, and the tokens that let people and programs in."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from headwater import text
from headwater.accounts import tokens
from headwater.errors import SchemaMismatch
from headwater.model import Reader
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.people import accounts
from headwater.store.posts import hot


def prepare(db: Database, hot_for: timedelta, now: datetime) -> Reader:
    """Upgrades the schema and returns the owner, who is created the first time."""
    migrate.upgrade(db)
    db.write_now(hot.clean, hot_for, now)  # fills a new hot store
    return db.write_now(accounts.make_owner, now)


def is_empty(db: Database) -> bool:
    """Whether the database has no schema yet."""
    return migrate.current(db) is None


def owner(db: Database) -> Reader:
    """Returns the owner. Raises SchemaMismatch if the schema is not the one that this version needs."""
    migrate.check(db)
    found = db.read_now(accounts.owner)
    if found is None:
        raise SchemaMismatch("The database has no owner yet. Run `headwater db upgrade`.")
    return found


def upgrade_schema(db: Database, revision: str) -> bool:
    """Upgrades the schema to a revision. Returns whether that is the newest one."""
    migrate.upgrade(db, revision)
    return migrate.current(db) == migrate.head()


def downgrade_schema(db: Database, revision: str) -> None:
    migrate.downgrade(db, revision)


def schema_revision(db: Database) -> str | None:
    """Returns the revision of the schema, or None for an empty database."""
    return migrate.current(db)


def check_schema(db: Database) -> None:
    """Raises StoreUnavailable or SchemaMismatch unless the database answers and has the right schema."""
    migrate.check(db)


def issue_token(conn: Connection, reader: Reader, name: str, now: datetime) -> str:
    """Makes a token for the API. Only its hash is stored."""
    return tokens.issue(conn, reader, "api", name, now)


def login_link(conn: Connection, reader: Reader, home: str, now: datetime) -> str:
    """Makes a link to the pages at `home` that signs the reader in, once."""
    return f"{home}/login?token={tokens.issue(conn, reader, 'login', 'login link', now)}"


def sign_in(conn: Connection, token: str, now: datetime) -> str | None:
    """Spends a login link. Returns the secret of the new session, or None if the link is not valid any more."""
    signed_in = tokens.exchange_login(conn, token, now)
    return signed_in[1] if signed_in else None


def sign_out(conn: Connection, session: str) -> None:
    tokens.revoke(conn, "session", session)


def compiled_parts() -> dict[str, bool]:
    """Returns what is compiled at installation, and whether it was. Without a C compiler it works, but slowly."""
    from headwater.dedup.fast import IS_COMPILED as FOLDING_IS_COMPILED  # only whoever folds or asks loads it

    return {"cleaning HTML": text.IS_COMPILED, "folding": FOLDING_IS_COMPILED}
