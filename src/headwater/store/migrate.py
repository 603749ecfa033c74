"""The schema's way forward and back. A run is one transaction: a killed or failed one changes nothing."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text

from headwater.errors import BadInput, SchemaMismatch
from headwater.store.db import Database

_LOCK = 0x4EAD3A7E12  # any number, the same for every process that migrates


def head() -> str:
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    assert revision is not None
    return revision


def current(db: Database) -> str | None:
    return db.read_now(lambda conn: MigrationContext.configure(conn).get_current_revision())


def upgrade(db: Database, revision: str = "head") -> None:
    db.write_now(_run, command.upgrade, revision)


def downgrade(db: Database, revision: str) -> None:
    db.write_now(_run, command.downgrade, revision)


def check(db: Database) -> None:
    """Raise SchemaMismatch unless the database has exactly the schema this program works with."""
    found = current(db)
    if found == head():
        return
    if found is None or _is_known(found):
        raise SchemaMismatch("The database's schema is not up to date. Run `headwater db upgrade`.")
    raise SchemaMismatch(f"The database was made by a newer Headwater (schema {found}). Update this program.")


def _is_known(revision: str) -> bool:
    return any(script.revision == revision for script in ScriptDirectory.from_config(_config()).walk_revisions())


def _run(conn: Connection, step: object, revision: str) -> None:
    if conn.dialect.name == "postgresql":
        conn.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    config = _config()
    config.attributes["connection"] = conn
    try:
        step(config, revision)  # type: ignore[operator]
    except CommandError as error:
        raise BadInput(
            f"{error}. `headwater db upgrade` goes to the newest; `db downgrade` takes a revision."
        ) from error


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return config
