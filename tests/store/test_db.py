"""Transactions, and what happens when the database cannot be used (H90, H91, H92)."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, make_url, text

from headwater.errors import BadSetting, StoreUnavailable
from headwater.model import Reader
from headwater.store import db as db_module
from headwater.store import migrate, sources
from headwater.store.db import Database
from headwater.store.people import accounts
from support.checkout import Checkout
from support.posts import NOON, a_post, a_source, visited
from support.processes import wait_until


def test_a_transaction_that_raises_leaves_nothing_behind(db: Database, owner: Reader) -> None:
    def work(conn: Connection) -> None:
        a_source(conn, owner)
        raise ValueError("after the write")

    with pytest.raises(ValueError, match="after the write"):
        db.write_now(work)
    assert db.read_now(sources.watched, owner, NOON) == []


async def test_reads_and_writes_run_beside_the_event_loop(db: Database, owner: Reader) -> None:
    source_id = await db.write(a_source, owner)
    assert [one.id for one in await db.read(sources.watched, owner, NOON)] == [source_id]


def test_a_locked_database_is_an_error_that_says_so_and_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # H90
    monkeypatch.setattr(db_module, "BUSY_SECONDS", 0.1)
    db = Database(f"sqlite:///{tmp_path / 'headwater.db'}")
    migrate.upgrade(db)
    holder = sqlite3.connect(tmp_path / "headwater.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="holds the database"):
        db.write_now(lambda conn: conn.execute(text("DELETE FROM crawls")))
    holder.execute("ROLLBACK")
    holder.close()
    db.write_now(lambda conn: conn.execute(text("DELETE FROM crawls")))
    db.close()


def test_a_full_disk_is_an_error_that_says_so_and_nothing_is_corrupt_afterwards(tmp_path: Path) -> None:  # H91
    db = Database(f"sqlite:///{tmp_path / 'headwater.db'}")
    migrate.upgrade(db)
    owner = db.write_now(accounts.make_owner, NOON)
    limit = {"pages": 1}

    def small_disk(conn: Connection) -> None:
        conn.exec_driver_sql(f"PRAGMA max_page_count = {limit['pages']}")

    event.listen(db.engine, "begin", small_disk)
    big = a_post("1", content="x" * 500_000)
    with pytest.raises(StoreUnavailable, match="disk is full"):
        db.write_now(lambda conn: visited(conn, a_source(conn, owner), [big]))
    limit["pages"] = 1_000_000
    db.write_now(lambda conn: visited(conn, a_source(conn, owner), [big]))
    assert db.read_now(lambda conn: conn.execute(text("PRAGMA integrity_check")).scalar()) == "ok"
    db.close()


def test_a_database_that_may_not_be_written_is_an_error_that_says_so(tmp_path: Path) -> None:  # H91
    db = Database(f"sqlite:///{tmp_path / 'headwater.db'}")
    migrate.upgrade(db)
    event.listen(db.engine, "begin", lambda conn: conn.exec_driver_sql("PRAGMA query_only = ON"))
    with pytest.raises(StoreUnavailable, match="may not be written"):
        db.write_now(lambda conn: conn.execute(text("DELETE FROM crawls")))
    db.close()


def test_connections_that_the_server_ended_are_replaced(postgres_url: str) -> None:  # H92
    db = Database(postgres_url)
    migrate.upgrade(db)
    others = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()"""
    admin = Database(postgres_url)
    db.read_now(lambda conn: conn.execute(text("SELECT 1")))
    admin.write_now(lambda conn: conn.execute(text(others)))
    assert db.write_now(lambda conn: conn.execute(text("SELECT 1")).scalar()) == 1
    admin.close()
    db.close()


def test_what_is_committed_survives_the_death_of_a_careless_server(tmp_path: Path) -> None:  # H92
    server = Checkout(tmp_path)
    server.services("up", "postgres")  # with synchronous_commit=off, as in all tests
    try:
        db = Database(server.urls()["HEADWATER_TEST_POSTGRES_URL"])
        db.write_now(_execute, "CREATE TABLE kept (number int)")
        for _ in range(4):
            process = server.process("postgres")
            for number in range(20):
                db.write_now(_execute, f"INSERT INTO kept VALUES ({number})")
            os.kill(process, signal.SIGKILL)
            wait_until(lambda: _starts(server))
        assert db.read_now(lambda conn: conn.execute(text("SELECT count(*) FROM kept")).scalar()) == 80
        db.close()
    finally:
        server.services("clean")


def _execute(conn: Connection, statement: str) -> None:
    conn.execute(text(statement))


def _starts(server: Checkout) -> bool:
    try:
        server.services("up", "postgres")
    except AssertionError:  # what is left of it still holds its files
        return False
    return True


def test_a_server_that_keeps_more_than_commits_here_is_left_as_it_is(postgres_url: str) -> None:
    name = make_url(postgres_url).database
    db = Database(postgres_url)
    assert db.read_now(lambda conn: conn.execute(text("SHOW synchronous_commit")).scalar()) == "on"
    db.write_now(lambda conn: conn.execute(text(f'ALTER DATABASE "{name}" SET synchronous_commit = remote_apply')))
    db.close()
    assert db.read_now(lambda conn: conn.execute(text("SHOW synchronous_commit")).scalar()) == "remote_apply"
    db.close()


def test_a_server_that_is_not_there_is_an_error_that_says_so() -> None:
    db = Database("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(StoreUnavailable, match="error"):
        db.read_now(lambda conn: conn.execute(text("SELECT 1")))
    db.close()


@pytest.mark.parametrize("url", ["mysql://x/y", "no url at all", "sqlite://", "sqlite:///:memory:"])
def test_a_database_url_that_cannot_be_used_names_the_setting(url: str) -> None:
    with pytest.raises(BadSetting, match="HEADWATER_DATABASE_URL"):
        Database(url)


def test_a_file_that_is_no_database_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "headwater.db").write_text("This is a letter and not a database. " * 100)
    db = Database(f"sqlite:///{tmp_path / 'headwater.db'}")
    with pytest.raises(StoreUnavailable, match="not a SQLite database"):
        migrate.upgrade(db)
    db.close()
