"""PostgreSQL itself shows a transaction the rows of its own tenant and no others (H75, H76, H77, H78)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Connection, inspect, text
from typer.testing import CliRunner

from headwater import wire
from headwater.app import people, webhooks
from headwater.cli.commands import program
from headwater.consumers.webhooks import queue_for_webhooks
from headwater.follow.add import follow
from headwater.ids import uuid7
from headwater.model import Reader
from headwater.store import migrate, row_security, sources
from headwater.store.db import Database
from headwater.store.log.outbox import LoggedEvent, LogPosition
from headwater.store.people import accounts, audit
from headwater.store.sql import json_text
from headwater.store.tables import metadata
from support.posts import NOON
from support.services import APP_ROLE, as_app_role, fresh_postgres_database, make_app_role, service_url
from support.tenants import another_tenant


@pytest.fixture
def walled(postgres_schema: str) -> Iterator[Database]:
    """A store on PostgreSQL, opened by a role that owns nothing."""
    with fresh_postgres_database(service_url("postgres"), postgres_schema) as url:
        db = Database(as_app_role(url))
        yield db
        db.close()


@pytest.fixture
def ours(walled: Database) -> Reader:
    return walled.write_now(accounts.make_owner, NOON)


@pytest.fixture
def theirs(walled: Database) -> Reader:
    return walled.write_now(another_tenant)


def rows(conn: Connection, table: str) -> int:
    return int(conn.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def rows_of(conn: Connection, _reader: Reader, table: str) -> int:
    """What a query without any condition finds for a reader."""
    return rows(conn, table)


def test_every_table_with_a_tenant_has_forced_policies_for_all_commands(walled: Database) -> None:  # H75
    guarded = walled.read_now(row_security.guarded)
    assert {"users", "tenants", "subscriptions", "post_states", "webhooks", "event_outbox"} <= {
        table.name for table in guarded
    }
    for table in guarded:
        assert (table.enabled, table.forced, table.policies) == (True, True, ["system", "tenant"]), table.name
    commands = walled.read_now(
        lambda conn: conn.execute(text("SELECT DISTINCT cmd, permissive, roles::text FROM pg_policies")).all()
    )
    assert commands == [("ALL", "PERMISSIVE", "{public}")]


def test_the_policies_compare_the_tenant_and_nothing_else(walled: Database) -> None:
    """The proof of test_row_security_proof.py is about these two conditions."""
    check_conditions(walled)


def check_conditions(db: Database) -> None:
    found = db.read_now(
        lambda conn: conn.execute(text("SELECT tablename, policyname, qual, with_check FROM pg_policies")).all()
    )
    assert {(table, policy) for table, policy, _, _ in found} == {
        (table.name, policy) for table in db.read_now(row_security.guarded) for policy in row_security.POLICIES
    }
    for table, policy, qual, check in found:
        column = "id" if table == "tenants" else "tenant_id"
        wanted = {
            "tenant": f"({column} = ( SELECT headwater_tenant() AS headwater_tenant))",
            "system": "( SELECT (current_setting('headwater.scope'::text, true) = 'system'::text))",
        }
        assert qual == check == wanted[policy], table


def test_an_upgrade_replaces_the_condition_that_hid_the_index(postgres_url: str) -> None:
    db = Database(postgres_url)
    migrate.upgrade(db, "0022")
    earlier = "(SELECT current_setting('headwater.scope', true)) = 'system'"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        for table in db.read_now(row_security.guarded):
            server.execute(f"ALTER POLICY system ON {table.name} USING ({earlier}) WITH CHECK ({earlier})")
    migrate.upgrade(db)
    check_conditions(db)
    migrate.downgrade(db, "0022")
    check_conditions(db)  # both show the same rows, and this one is faster
    db.close()


def test_the_applications_role_owns_nothing_and_bypasses_nothing(walled: Database) -> None:  # H75
    assert walled.read_now(row_security.problems) == []


def test_without_a_tenant_there_are_no_rows(walled: Database, ours: Reader) -> None:  # H75
    walled.write_now(follow, ours, "https://news.example/feed", NOON)
    with walled.engine.connect() as conn:
        assert rows(conn, "users") == 0
        assert rows(conn, "subscriptions") == 0
        conn.execute(text("SELECT set_config('headwater.tenant', :tenant, true)"), {"tenant": str(ours.tenant_id)})
        assert rows(conn, "subscriptions") == 1
        conn.rollback()
        assert rows(conn, "subscriptions") == 0  # the setting is '' now, and not NULL as before


def test_a_query_without_a_condition_finds_the_rows_of_its_tenant(
    walled: Database, ours: Reader, theirs: Reader
) -> None:
    walled.write_now(follow, ours, "https://news.example/feed", NOON)
    walled.write_now(follow, theirs, "https://news.example/feed", NOON)
    walled.write_now(follow, theirs, "https://other.example/feed", NOON)
    assert walled.read_now(rows_of, ours, "subscriptions") == 1
    assert walled.read_now(rows_of, theirs, "subscriptions") == 2
    assert walled.read_now(partial(rows_of, _reader=ours), table="tenants") == 1
    assert walled.read_now(rows, "subscriptions") == 3


def test_a_view_of_the_audit_log_shows_the_rows_of_its_tenant(
    walled: Database, ours: Reader, theirs: Reader
) -> None:  # H75
    for reader in (ours, theirs, theirs):
        with people.acting(reader, "test", wire.utc_now):
            walled.write_now(audit.record, reader, "token.create", 1)
    assert walled.read_now(rows_of, ours, "audit_logs") == 1
    assert walled.read_now(rows_of, theirs, "audit_logs") == 2


def test_nothing_can_be_written_for_another_tenant(walled: Database, ours: Reader, theirs: Reader) -> None:
    followed = walled.write_now(follow, theirs, "https://news.example/feed", NOON).source_id

    def write(conn: Connection, _reader: Reader, statement: str) -> int:
        return conn.execute(
            text(statement), {"them": theirs.tenant_id, "user": theirs.user_id, "source": followed}
        ).rowcount

    assert walled.write_now(write, ours, "UPDATE subscriptions SET title = 'mine' WHERE source_id = :source") == 0
    assert walled.write_now(write, ours, "DELETE FROM subscriptions WHERE tenant_id = :them") == 0
    with pytest.raises(Exception, match="row-level security"):
        walled.write_now(
            write,
            ours,
            "INSERT INTO fold_settings (tenant_id, user_id, level, threshold) VALUES (:them, :user, 'off', 0)",
        )
    assert walled.read_now(rows_of, theirs, "subscriptions") == 1


def test_a_connection_that_is_used_again_carries_no_tenant(walled: Database, ours: Reader) -> None:  # H76
    def fail(conn: Connection, _reader: Reader) -> None:
        assert rows(conn, "users") == 1
        conn.execute(text("SELECT 1 / 0"))

    backend = walled.read_now(lambda conn: conn.execute(text("SELECT pg_backend_pid()")).scalar_one())
    with pytest.raises(Exception, match="division by zero"):
        walled.write_now(fail, ours)
    with walled.engine.connect() as conn:
        assert conn.execute(text("SELECT pg_backend_pid()")).scalar_one() == backend
        assert rows(conn, "users") == 0


def test_what_is_shared_depends_on_the_readers_of_all_tenants(walled: Database, ours: Reader, theirs: Reader) -> None:
    source_id = walled.write_now(follow, ours, "https://news.example/feed", NOON).source_id
    walled.write_now(follow, theirs, "https://news.example/feed", NOON)
    walled.write_now(sources.remove, ours, source_id)
    [active] = walled.read_now(lambda conn: conn.execute(text("SELECT active FROM sources")).scalars().all())
    assert active
    walled.write_now(sources.remove, theirs, source_id)
    [active] = walled.read_now(lambda conn: conn.execute(text("SELECT active FROM sources")).scalars().all())
    assert not active


def test_after_a_failure_the_next_reader_sees_only_what_is_theirs(db: Database, owner: Reader) -> None:  # H76
    other = db.write_now(another_tenant)
    wanted = {
        reader: db.write_now(follow, reader, f"https://{reader.name}.example/feed", NOON).source_id
        for reader in (owner, other)
    }

    def fail(conn: Connection, reader: Reader) -> None:
        assert sources.followed_ids(conn, reader) == [wanted[reader]]
        raise ZeroDivisionError

    for failing, next_one in ((owner, other), (other, owner)):
        for run in (db.read_now, db.write_now):
            with pytest.raises(ZeroDivisionError):
                run(fail, failing)
            assert db.read_now(sources.followed_ids, next_one) == [wanted[next_one]]


# Unique without the tenant: what begins with a number that the store gave out, or is made up by it at random.
UNIQUE_FOR_ALL = {"id", "miner_id", "webhook_id", "event_id", "task_id", "token_hash", "idempotency_key"}


def test_keys_say_nothing_about_another_tenant(db: Database) -> None:  # H77
    """Between tables of tenants a foreign key includes the tenant, and so does whatever has to be unique."""
    catalogue = inspect(db.engine)
    guarded = {name for name in catalogue.get_table_names() if name in metadata.tables} & {
        table.name for table in metadata.sorted_tables if "tenant_id" in table.c
    }
    assert len(guarded) > 20
    for table in guarded:
        for key in catalogue.get_foreign_keys(table):
            if key["referred_table"] in guarded:
                assert "tenant_id" in key["constrained_columns"], (table, key["referred_table"])
        unique = [tuple(one["column_names"]) for one in catalogue.get_unique_constraints(table)]
        unique += [tuple(one["column_names"]) for one in catalogue.get_indexes(table) if one["unique"]]
        unique += [tuple(catalogue.get_pk_constraint(table)["constrained_columns"])]
        for columns in unique:
            assert set(columns) & (UNIQUE_FOR_ALL | {"tenant_id"}), (table, columns)


def test_a_delivery_gets_its_tenant_from_the_webhook_not_from_the_event(db: Database, owner: Reader) -> None:  # H78
    other = db.write_now(another_tenant)
    seal = str.encode
    db.write_now(webhooks.add, owner, "https://hooks.example/ours", [], seal, NOON)
    source_id = db.write_now(follow, owner, "https://news.example/feed", NOON).source_id
    data = json_text({"source_id": source_id, "address": "https://news.example/feed", "kind": "rss"})
    forged = LoggedEvent(LogPosition(0, 1), uuid7(), "source.added", 1, f"source:{source_id}", other.tenant_id, None,
                         None, NOON, data)  # fmt: skip
    stolen = forged._replace(event_id=uuid7(), kind="subscription.added", key=f"user:{owner.user_id}",
                             user_id=owner.user_id)  # fmt: skip
    db.write_now(queue_for_webhooks, [forged, stolen])
    queued = db.read_now(lambda conn: conn.execute(text("SELECT tenant_id, event_id FROM webhook_deliveries")).all())
    assert queued == [(owner.tenant_id, forged.event_id)]  # the other event claims a user who is not of its tenant


def test_a_store_of_one_role_becomes_one_of_two(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Today's store is opened by the owner of its tables. It keeps working, and `db roles` makes it strict."""
    make_app_role(postgres_url)
    present = Database(postgres_url)
    migrate.upgrade(present)
    present.write_now(follow, present.write_now(accounts.make_owner, NOON), "https://news.example/feed", NOON)
    present.close()
    run = partial(CliRunner().invoke, program())

    monkeypatch.setenv("HEADWATER_DATABASE_URL", postgres_url)
    lacks = next(line for line in run(["doctor"]).output.splitlines() if "tenants:" in line)
    assert lacks.startswith("ok")
    assert "superuser" in lacks
    assert "db roles" in lacks
    refused = run(["db", "roles"])
    assert refused.exit_code != 0
    assert "HEADWATER_MIGRATION_DATABASE_URL" in str(refused.exception)

    monkeypatch.setenv("HEADWATER_MIGRATION_DATABASE_URL", postgres_url)
    monkeypatch.setenv("HEADWATER_DATABASE_URL", as_app_role(postgres_url))
    assert "may use the tables" in run(["db", "roles"]).output
    assert "row level security separates them" in run(["doctor"]).output
    assert "https://news.example/feed" in run(["sources", "--json"]).output
    assert run(["db", "upgrade"]).exit_code == 0


def test_db_roles_creates_the_role_that_the_address_names(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"app_{uuid7().replace('-', '')}"
    url = as_app_role(postgres_url).replace(f"//{APP_ROLE}:", f"//{name}:")
    monkeypatch.setenv("HEADWATER_MIGRATION_DATABASE_URL", postgres_url)
    monkeypatch.setenv("HEADWATER_DATABASE_URL", url)
    run = partial(CliRunner().invoke, program())
    try:
        made = run(["db", "roles"])
        assert f"{name} was created" in made.output
        assert run(["db", "upgrade"]).exit_code == 0
        db = Database(url)
        assert db.read_now(row_security.problems) == []
        db.close()
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as server:
            server.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(name)))
