"""Upgrades and downgrades the schema. A run is one transaction: if it fails or is killed, nothing has changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sqlalchemy import Connection, inspect, text

from headwater.errors import BadInput, SchemaMismatch
from headwater.store import row_security
from headwater.store.db import Database

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x4EAD3A7E12  # any number, the same for every process that migrates


def head() -> str:
    return max(_revisions())


def current(db: Database) -> str | None:
    return db.read_now(_current)


def _current(conn: Connection) -> str | None:
    if not inspect(conn).has_table("alembic_version"):
        return None
    return conn.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()


def upgrade(db: Database, revision: str = "head", *, app_role: str | None = None) -> None:
    """Upgrades the schema. `app_role` is the role that the application connects as, if another one owns the tables."""
    found = current(db)
    if found is None:
        db.condition.check_is_restored()
    # Alembic stays in memory once it is loaded, and at most starts there is nothing to do.
    if revision != "head" or found != head():
        db.alter_now(_run, "upgrade", revision, app_role)


def upgrade_in_a_child(db: Database) -> None:
    """Upgrades the schema in a process that ends afterwards: what migrations load, 15 MB, would stay in this one.

    Call it before there are connections and threads. It raises nothing. If it fails, `upgrade` does the same here, and
    raises what was wrong.
    """
    child = os.fork()
    if child == 0:
        try:
            upgrade(db)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def contents(conn: Connection) -> dict[str, int]:
    """Returns how many sources, posts and saved images the store has."""
    there = inspect(conn)
    return {name: _count(conn, name) for name in ("sources", "posts", "images") if there.has_table(name)}


def _count(conn: Connection, table: str) -> int:
    return int(conn.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def downgrade(db: Database, revision: str) -> None:
    db.alter_now(_run, "downgrade", revision)


def undone_by(db: Database, revision: str) -> list[str]:
    """Returns what each migration did that a downgrade to this revision takes back, the newest first."""
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    scripts = ScriptDirectory.from_config(_config())
    try:
        if not revision.startswith("-"):
            scripts.get_revision(revision)
        found = current(db) if db.exists() else None
        return [one.doc for one in scripts.iterate_revisions(found, revision)] if found else []
    except CommandError as error:
        raise _bad_revision(error) from error


def check(db: Database) -> None:
    """Raises SchemaMismatch unless the database has exactly the schema of this program."""
    found = current(db)
    if found == head():
        return
    if found is None or is_known(found):
        raise SchemaMismatch("The database's schema is not up to date. Run `headwater db upgrade`.")
    raise SchemaMismatch(f"The database was made by a newer Headwater (schema {found}). Update this program.")


def _revisions() -> list[str]:
    """Returns all revisions. The file of a migration is named after its revision."""
    return [path.name.partition("_")[0] for path in (_MIGRATIONS / "versions").glob("[0-9]*_*.py")]


def _run(conn: Connection, way: Literal["upgrade", "downgrade"], revision: str, app_role: str | None = None) -> None:
    # Most commands never migrate, and importing Alembic takes longer than many of them run.
    from alembic import command
    from alembic.util import CommandError

    lock(conn)
    config = _config()
    config.attributes["connection"] = conn
    try:
        (command.upgrade if way == "upgrade" else command.downgrade)(config, revision)
    except CommandError as error:
        raise _bad_revision(error) from error
    row_security.guard(conn)
    if app_role:
        row_security.grant(conn, app_role)


def lock(conn: Connection) -> None:
    """Lets a change of the schema take as long as it takes, one at a time. SQLite has one writer in any case."""
    if conn.dialect.name == "postgresql":
        conn.execute(text("SET LOCAL lock_timeout = 0"))
        conn.execute(text("SET LOCAL statement_timeout = 0"))
        conn.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})


def make(conn: Connection, revision: str) -> None:
    """Makes the tables of a revision anew, in the caller's transaction. Whatever was in them is gone."""
    if _current(conn) is not None:
        _run(conn, "downgrade", "base")
    _run(conn, "upgrade", revision)


def finish(conn: Connection, app_role: str | None = None) -> None:
    """Upgrades to the newest revision, in the caller's transaction, and lets the application's role use the tables."""
    if _current(conn) != head():
        _run(conn, "upgrade", "head")
    if app_role:
        row_security.grant(conn, app_role)


def is_known(revision: str) -> bool:
    """Whether this program has the migration to this revision. If not, it is older than what wrote it."""
    return revision in _revisions()


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("path_separator", "os")
    return config


def _bad_revision(error: Exception) -> BadInput:
    return BadInput(f"{error}. `headwater db upgrade` goes to the newest; `db downgrade` takes a revision.")
