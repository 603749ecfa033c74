"""Upgrades and downgrades the schema. A run is one transaction: if it fails or is killed, nothing has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, inspect, text

from headwater.errors import BadInput, SchemaMismatch
from headwater.store.db import Database

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


def upgrade(db: Database, revision: str = "head") -> None:
    # Alembic stays in memory once it is loaded, and at most starts there is nothing to do.
    if revision != "head" or current(db) != head():
        db.alter_now(_run, "upgrade", revision)


def downgrade(db: Database, revision: str) -> None:
    db.alter_now(_run, "downgrade", revision)


def check(db: Database) -> None:
    """Raises SchemaMismatch unless the database has exactly the schema of this program."""
    found = current(db)
    if found == head():
        return
    if found is None or _is_known(found):
        raise SchemaMismatch("The database's schema is not up to date. Run `headwater db upgrade`.")
    raise SchemaMismatch(f"The database was made by a newer Headwater (schema {found}). Update this program.")


def _is_known(revision: str) -> bool:
    return revision in _revisions()


def _revisions() -> list[str]:
    """Returns all revisions. The file of a migration is named after its revision."""
    return [path.name.partition("_")[0] for path in (_MIGRATIONS / "versions").glob("[0-9]*_*.py")]


def _run(conn: Connection, way: Literal["upgrade", "downgrade"], revision: str) -> None:
    # Most commands never migrate, and importing Alembic takes longer than many of them run.
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    if conn.dialect.name == "postgresql":
        conn.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = conn
    try:
        (command.upgrade if way == "upgrade" else command.downgrade)(config, revision)
    except CommandError as error:
        raise BadInput(
            f"{error}. `headwater db upgrade` goes to the newest; `db downgrade` takes a revision."
        ) from error
