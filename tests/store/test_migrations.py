"""The schema goes forward and back, and a run that is killed or fails changes nothing (C11, H95)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, column, event, insert, inspect, table, text

from headwater.errors import BadInput, SchemaMismatch
from headwater.ids import uuid7
from headwater.store import migrate
from headwater.store.db import Database
from headwater.store.sources import hubs
from headwater.store.sql import json_text
from headwater.store.tables import metadata, sources
from headwater.store.tables.columns import Moment
from support import forked
from support.log import Recorder
from support.posts import NOON

KILLED_AT_STATEMENT = """
import os, signal, sys
from sqlalchemy import event
from headwater.store import migrate
from headwater.store.db import Database

db, left = Database(sys.argv[1]), int(sys.argv[2])

@event.listens_for(db.engine, "before_cursor_execute")
def count(*_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

migrate.upgrade(db)
"""


@pytest.fixture
def empty(empty_url: str) -> Iterator[Database]:
    db = Database(empty_url)
    yield db
    db.close()


def is_search(table: str | None) -> bool:
    """The search index has tables of the database's own kind, which are no part of the common model."""
    return (table or "").startswith("post_words")


def tables(db: Database) -> set[str]:
    return {name for name in inspect(db.engine).get_table_names() if not is_search(name)} - {"alembic_version"}


def test_the_migrations_make_exactly_the_tables_that_the_code_works_with(empty: Database) -> None:
    migrate.upgrade(empty)
    options = {
        "include_name": lambda name, kind, _: not is_search(name) if kind == "table" else True,
        # SQLite reads the log by its row id and has no use for these indexes.
        "include_object": lambda thing, name, *_: (
            not (empty.is_sqlite and name in ("ix_event_outbox_log", "ix_event_outbox_partition"))
        ),
    }
    difference = empty.read_now(lambda conn: compare_metadata(MigrationContext.configure(conn, opts=options), metadata))
    assert difference == []
    migrate.check(empty)


def test_an_upgrade_in_a_child_leaves_nothing_of_it_in_the_process(empty_url: str) -> None:
    upgrade = (
        "import sys; from headwater.store import migrate; from headwater.store.db import Database;"
        "db = Database(sys.argv[1]); migrate.upgrade_in_a_child(db); migrate.check(db); print(' '.join(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", upgrade, empty_url], check=True, capture_output=True, text=True)
    assert "alembic" not in loaded.stdout.split()


def test_the_schema_goes_back_to_nothing_and_forward_again(empty: Database) -> None:
    migrate.upgrade(empty)
    migrate.downgrade(empty, "base")
    assert tables(empty) == set()
    migrate.upgrade(empty)
    assert tables(empty) == set(metadata.tables)


@pytest.mark.parametrize("statement", [2, 9, 25])
def test_a_migration_killed_at_any_statement_can_be_run_again(empty: Database, empty_url: str, statement: int) -> None:
    killed = forked.run("-c", KILLED_AT_STATEMENT, empty_url, str(statement), env=os.environ)
    assert killed.returncode == -signal.SIGKILL
    assert tables(empty) == set()
    migrate.upgrade(empty)
    assert tables(empty) == set(metadata.tables)


def test_a_migration_that_fails_half_way_changes_nothing(empty: Database) -> None:
    statements = iter(range(1, 1000))

    def break_down(*_: object) -> None:
        if next(statements) == 12:
            raise RuntimeError("broken half way")

    event.listen(empty.engine, "before_cursor_execute", break_down)
    with pytest.raises(RuntimeError):
        migrate.upgrade(empty)
    event.remove(empty.engine, "before_cursor_execute", break_down)
    assert tables(empty) == set()
    assert migrate.current(empty) is None


def test_a_database_of_another_version_is_refused_with_advice(empty: Database) -> None:
    with pytest.raises(SchemaMismatch, match="headwater db upgrade"):
        migrate.check(empty)
    migrate.upgrade(empty)
    empty.write_now(lambda conn: conn.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaMismatch, match="newer Headwater"):
        migrate.check(empty)


def test_an_unknown_revision_is_bad_input(empty: Database) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        migrate.upgrade(empty, "nowhere")


def test_what_was_in_the_log_before_it_had_partitions_is_still_followed(empty: Database) -> None:
    migrate.upgrade(empty, "0003")
    empty.write_now(_old_log)
    migrate.upgrade(empty)
    recorder = Recorder()
    assert sorted(recorder.catch_up(empty)) == [2, 3]
    migrate.downgrade(empty, "0003")
    keys = empty.read_now(lambda conn: conn.execute(text("SELECT key FROM event_outbox ORDER BY id")).scalars().all())
    assert keys == ["7", "7", "7"]


def test_hubs_that_had_a_secret_of_the_database_are_told_another_at_once(empty: Database) -> None:
    migrate.upgrade(empty, "0013")
    now = datetime.now(UTC)
    empty.write_now(_old_subscription, now + timedelta(days=8))
    migrate.upgrade(empty)
    [due] = empty.write_now(hubs.take_due, now + timedelta(hours=1), 10)
    assert due.callback_id == "c"
    migrate.downgrade(empty, "0013")
    assert empty.read_now(lambda conn: conn.execute(text("SELECT secret FROM hub_subscriptions")).scalar()) == ""


def _old_subscription(conn: Connection, next_try_at: datetime) -> None:
    address = "https://news.example/feed"
    source = {"kind": "rss", "address": address, "host": "news.example", "created_at": NOON, "next_check_at": NOON}
    (source_id,) = conn.execute(insert(sources).values(**source).returning(sources.c.id)).one()
    names = ("source_id", "hub", "topic", "callback_id", "secret", "state")
    columns = [*(column(name) for name in names), column("next_try_at", Moment())]
    row = (source_id, "https://hub.example/", address, "c", "old", "active", next_try_at)
    conn.execute(insert(table("hub_subscriptions", *columns)).values(row))


def _old_log(conn: Connection) -> None:
    for number in (1, 2, 3):
        facts = json_text({"source_id": 7, "address": f"https://news.example/{number}"})
        row = {"id": uuid7(), "facts": facts, "once": f"source.retired:{number}", "now": 0}
        if conn.dialect.name == "postgresql":
            row["now"] = NOON
        conn.execute(
            text(
                """INSERT INTO event_outbox (event_id, kind, key, payload, idempotency_key, created_at)
                VALUES (:id, 'source.retired', '7', :facts, :once, :now)"""
            ),
            row,
        )
    conn.execute(
        text(
            """INSERT INTO consumer_cursors (consumer, xid, id, moved_at)
            SELECT 'recorder', xid, id, created_at FROM event_outbox WHERE id = (SELECT min(id) FROM event_outbox)"""
        )
    )


def test_a_migration_is_named_after_its_revision_and_they_make_one_chain() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [migrate.head()]
    for script in scripts.walk_revisions():
        assert Path(script.path).name.startswith(f"{script.revision}_")
