"""The audit log: every write leaves a row, nobody can change it, owners read and export it (E10)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import structlog
from sqlalchemy import Connection, text
from typer.testing import CliRunner

from api.running import Client, Running, running
from headwater import wire
from headwater.app import people
from headwater.app.shapes import csv_lines
from headwater.cli.commands import program
from headwater.server import create_app
from headwater.store.db import Database
from headwater.store.people import accounts, audit
from headwater.store.people.audit import ACTIONS, AuditRow
from people.audited import (
    COMMANDS,
    COMMANDS_WITHOUT,
    FORM,
    ROUTES,
    ROUTES_WITHOUT,
    WHAT_TO_DO,
    World,
    commands,
    writing_routes,
)
from support.people import PASSWORD, a_person, browser_of, program_of
from support.services import APP_ROLE, as_app_role, fresh_postgres_database, service_url, with_database


@pytest.fixture
def world(on_both: Running, tmp_path: Path) -> World:
    return World(on_both, tmp_path)


def rows(db: Database, **wanted: Any) -> list[AuditRow]:
    """The rows of all tenants that have these values, the oldest first."""
    columns = ", ".join(AuditRow._fields)
    found = db.read_now(lambda conn: conn.execute(text(f"SELECT {columns} FROM audit_log ORDER BY id")).all())
    all_rows = [AuditRow(*row) for row in found]
    return [row for row in all_rows if all(getattr(row, name) == value for name, value in wanted.items())]


def test_every_route_that_writes_leaves_a_row(world: World) -> None:  # E10
    writing = writing_routes(create_app(world.running.parts))
    walked = [one for one in writing if one not in ROUTES_WITHOUT]
    assert len(walked) > 60
    for method, path in walked:
        what = f"{method} {path}"
        call = ROUTES.get((method, path))
        assert call is not None, WHAT_TO_DO.format(what=what, table="ROUTES")
        answer = call(world)
        assert answer.status < 400, f"{what}: {answer.status} {answer.text[:500]}"
        found = rows(world.running.parts.db, request_id=answer.headers["x-request-id"])
        assert found, f"{what} changed something and left no row in the audit log. {WHAT_TO_DO}"
        for row in found:
            assert row.action in ACTIONS
            assert row.address == "127.0.0.1"
            assert row.resource == row.action.partition(".")[0]
        assert any(row.user_id for row in found), what
    assert not (ROUTES.keys() | ROUTES_WITHOUT.keys()) - set(writing_routes(create_app(world.running.parts))), (
        "routes that are gone"
    )


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, store_url: str, tmp_path: Path) -> CliRunner:
    monkeypatch.setenv("HEADWATER_DATABASE_URL", store_url)
    monkeypatch.setenv("HEADWATER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("HEADWATER_JWT_ISSUER", "https://issuer.example")
    monkeypatch.setenv("HEADWATER_JWT_KEYS_URL", "https://issuer.example/keys")
    return CliRunner()


def test_every_command_that_writes_leaves_a_row(world: World, shell: CliRunner) -> None:  # E10
    db = world.running.parts.db
    for name in commands():
        if name in COMMANDS_WITHOUT:
            continue
        given = COMMANDS.get(name)
        assert given is not None, WHAT_TO_DO.format(what=f"headwater {name}", table="COMMANDS")
        words, _, typed = "\0".join(map(str, given(world))).partition("<\0")
        before = len(rows(db))
        done = shell.invoke(program(), [*name.split(), *filter(None, words.split("\0"))], input=typed + "\n")
        structlog.reset_defaults()  # a command logs to where it writes, which is gone now
        new = rows(db)[before:]
        assert new, f"headwater {name} left no row: {done.output} {done.exception!r}. {WHAT_TO_DO}"
        for row in new:
            assert row.action in ACTIONS
            assert (row.agent or "").startswith(f"headwater {name.split()[0]} (")
            assert row.address is None
    assert not (COMMANDS.keys() | COMMANDS_WITHOUT.keys()) - set(commands()), "commands that are gone"


def test_a_restored_backup_says_so(shell: CliRunner, store_url: str, tmp_path: Path, monkeypatch: Any) -> None:
    assert shell.invoke(program(), ["token"]).exit_code == 0
    assert shell.invoke(program(), ["backup", str(tmp_path / "backup.zip")]).exit_code == 0
    monkeypatch.setenv("HEADWATER_DATABASE_URL", f"sqlite:///{tmp_path / 'restored.db'}")
    restored = shell.invoke(program(), ["restore", str(tmp_path / "backup.zip")])
    assert restored.exit_code == 0, restored.output
    db = Database(f"sqlite:///{tmp_path / 'restored.db'}")
    assert [row.action for row in rows(db)] == ["token.create", "backup.restore"]
    db.close()


def test_an_upgrade_says_from_where(shell: CliRunner, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("HEADWATER_DATABASE_URL", f"sqlite:///{tmp_path / 'old.db'}")
    assert shell.invoke(program(), ["db", "upgrade", "0017"]).exit_code == 0
    assert shell.invoke(program(), ["db", "upgrade"]).exit_code == 0
    db = Database(f"sqlite:///{tmp_path / 'old.db'}")
    assert [row.detail for row in rows(db)] in ([], ["from 0017"])  # a store that never had an owner has no tenant
    assert shell.invoke(program(), ["db", "upgrade"]).exit_code == 0
    assert len(rows(db)) <= 1
    db.close()


def test_setting_up_a_role_of_the_database_says_so(walled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    name = walled.engine.url.database or ""
    monkeypatch.setenv("HEADWATER_MIGRATION_DATABASE_URL", with_database(service_url("postgres"), name))
    monkeypatch.setenv("HEADWATER_DATABASE_URL", walled.engine.url.render_as_string(hide_password=False))
    assert CliRunner().invoke(program(), ["db", "roles"]).exit_code == 0
    [row] = rows(walled)
    assert (row.action, row.detail) == ("schema.role", APP_ROLE)


def test_what_fails_or_is_refused_leaves_no_row(world: World) -> None:
    viewer = program_of(world.running, a_person(world.running, "viewer", "viewer"))
    refused = [
        world.running.stranger.post("/api/sources", {"address": "https://x.example/"}),
        viewer.post("/api/sources", {"address": "https://x.example/"}),
        world.api.post("/api/sources", {"address": "not an address at all"}),
        world.api("DELETE", "/api/sources/999"),
        world.api.patch(f"/api/people/{world.owner.user_id}", {"role": "viewer"}),  # the only owner
        world.form("/sources", address=""),
    ]
    assert all(answer.status >= 400 for answer in refused)
    assert rows(world.running.parts.db) == []


def test_owners_see_that_somebody_guesses_a_password(world: World) -> None:
    ann = a_person(world.running, "ann", password=PASSWORD)
    for email in ("ann@example.org", "nobody@example.org"):
        given = f"email={email}&password=wrong+guess+of+it".encode()
        answer = world.running.stranger.post("/login", given, Content_Type=FORM, User_Agent="guesser")
        assert answer.status == 401
    [row] = world.api.get("/api/audit").json()["items"]
    assert (row["action"], row["resource_id"], row["address"]) == ("session.refuse", str(ann.user_id), "127.0.0.1")
    assert row["agent"] == "guesser"


def test_no_secret_is_in_the_log(world: World) -> None:  # H67
    secrets = ["hunter2hunter2", "q7tokenofafeed", PASSWORD, "A" * 60]
    world.api.post("/api/sources", {"address": f"https://ann:{secrets[0]}@private.example/feed?key={secrets[1]}"})
    world.api.post("/api/webhooks", {"address": f"https://hooks.example/in?secret={secrets[1]}"})
    for call in ROUTES.values():
        answer = call(world)
        for part in ("secret", "link", "access_token", "refresh_token"):
            found = answer.json().get(part) if answer.text.startswith("{") else None
            secrets += [found.rpartition("token=")[2]] if isinstance(found, str) else []
    assert len(secrets) > 8
    said = repr(rows(world.running.parts.db))
    assert "private.example" in said
    for secret in secrets:
        assert secret not in said


def test_a_row_says_who_where_and_in_which_request(on_both: Running) -> None:
    answer = on_both.program().post("/api/sources", {"address": "https://news.example/feed"}, User_Agent="curl/8")
    [row] = rows(on_both.parts.db)
    assert (row.user_id, row.user_name) == (on_both.owner.user_id, on_both.owner.name)
    assert (row.action, row.resource, row.detail) == ("source.follow", "source", "news.example")
    assert row.resource_id == str(answer.json()["id"])
    assert (row.address, row.agent, row.request_id) == ("127.0.0.1", "curl/8", answer.headers["x-request-id"])


def test_a_person_who_was_removed_is_still_named(world: World) -> None:
    ann = a_person(world.running, "ann")
    program_of(world.running, ann).post("/api/sources", {"address": "https://news.example/feed"})
    world.api("DELETE", f"/api/people/{ann.user_id}")
    removed, followed = world.api.get("/api/audit").json()["items"]
    assert (followed["user_name"], followed["action"]) == ("ann", "source.follow")
    assert (removed["action"], removed["detail"]) == ("person.remove", "ann")


def test_owners_see_their_own_tenant_alone(world: World) -> None:  # H68
    ours, theirs = world.api, program_of(world.running, a_person(world.running, "carl", "owner", tenant="Research"))
    for client, name in ((ours, "ours"), (theirs, "theirs")):
        client.post("/api/sources", {"address": f"https://{name}.example/feed"})
        assert [one["detail"] for one in client.get("/api/audit").json()["items"]] == [f"{name}.example"]
        for form in ("csv", "jsonl"):
            exported = client.get(f"/api/audit/export?format={form}").text
            assert f"{name}.example" in exported
            assert exported.count(".example") == 1
    for role in ("operator", "member", "viewer"):
        other = a_person(world.running, role, role)
        assert program_of(world.running, other).get("/api/audit").status == 403
        assert browser_of(world.running, other).get("/audit").status == 403


def test_what_the_instances_owner_does_in_another_tenant_is_in_that_tenants_log(world: World, shell: CliRunner) -> None:
    carl = a_person(world.running, "carl", "owner", tenant="Research")
    a_person(world.running, "dora", tenant="Research")
    assert shell.invoke(program(), ["people", "role", "dora", "viewer", "--tenant", "Research"]).exit_code == 0
    [row] = program_of(world.running, carl).get("/api/audit").json()["items"]
    assert (row["action"], row["user_id"], row["user_name"]) == ("person.role", None, None)
    assert row["agent"].startswith("headwater people (")
    assert world.api.get("/api/audit").json()["items"] == []


def test_the_log_is_read_page_by_page_and_by_person_or_resource(world: World) -> None:
    ann = program_of(world.running, a_person(world.running, "ann"))
    for number in range(5):
        ann.post("/api/sources", {"address": f"https://feed-{number}.example/"})
    world.api.post("/api/account/tokens", {"name": "one"})
    seen, cursor = [], ""
    while cursor is not None:
        page = world.api.get(f"/api/audit?limit=2{cursor and '&cursor='}{cursor}").json()
        seen += [one["detail"] for one in page["items"]]
        cursor = page["next_cursor"]
    assert seen == ["one", *(f"feed-{number}.example" for number in reversed(range(5)))]
    by_resource = world.api.get("/api/audit?resource=token").json()["items"]
    assert [one["action"] for one in by_resource] == ["token.create"]
    assert len(world.api.get(f"/api/audit?user_id={world.owner.user_id}").json()["items"]) == 1
    wrong = world.api.get("/api/audit?resource=tokens")
    assert (wrong.status, "token" in wrong.json()["detail"]) == (422, True)


def test_an_exported_cell_is_never_a_formula(world: World) -> None:  # H61
    names = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1:A9)", 'plain, with a comma and "quotes"', "2-1"]
    for name in names:
        assert world.api.post("/api/account/tokens", {"name": name}).status == 201
    answer = world.api.get("/api/audit/export")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    table = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["detail"] for row in reversed(table)] == ["'" + name for name in names[:4]] + names[4:]
    lines = [json.loads(line) for line in world.api.get("/api/audit/export?format=jsonl").text.splitlines()]
    assert [line["detail"] for line in reversed(lines)] == names
    assert [str(line["id"]) for line in lines] == [row["id"] for row in table]


def test_tabs_and_line_ends_do_not_hide_a_formula() -> None:  # H61
    cells = ["\t=1", "\r=1", "\n=1", "=1", "", "a=1"]
    [row] = csv.reader(io.StringIO(csv_lines([cells]).decode(), newline=""))
    assert row == ["'\t=1", "'\r=1", "'\n=1", "'=1", "", "a=1"]


def test_the_export_has_every_row_however_many_there_are(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "EXPORTED_AT_ONCE", 2)
    for number in range(5):
        world.api.post("/api/account/tokens", {"name": f"token {number}"})
    lines = world.api.get("/api/audit/export?format=jsonl").text.splitlines()
    assert [json.loads(line)["detail"] for line in lines] == [f"token {number}" for number in reversed(range(5))]


def test_the_page_says_in_words_what_was_done(world: World) -> None:
    world.api.post("/api/account/tokens", {"name": "<b>dashboard</b>"})
    page = world.page.get("/audit").text
    assert "owner made an API token" in page
    assert "&lt;b&gt;dashboard" in page
    assert 'href="/audit"' in world.page.get("/people").text


def test_a_shell_shows_the_log(world: World, shell: CliRunner) -> None:
    for name in ("one", "=two"):
        world.api.post("/api/account/tokens", {"name": name})
    assert "made an API token" in shell.invoke(program(), ["people", "audit"]).output
    [line] = shell.invoke(program(), ["people", "audit", "--json", "--limit", "1"]).output.splitlines()
    assert json.loads(line)["detail"] == "=two"
    table = list(csv.DictReader(io.StringIO(shell.invoke(program(), ["people", "audit", "--csv", "--all"]).output)))
    assert [row["detail"] for row in table] == ["'=two", "one"]


def test_old_rows_are_deleted_and_young_ones_kept(store_url: str) -> None:
    with running(store_url, HEADWATER_AUDIT_DAYS="40") as headwater:
        api, db, now = headwater.program(), headwater.parts.db, headwater.parts.now()
        for days, name in ((41, "old"), (39, "young"), (0, "new")):
            headwater.parts.now = partial(_ago, now, days)
            assert api.post("/api/account/tokens", {"name": name}).status == 201
        headwater.parts.now = lambda: now
        job = wire.job_named("forget-audit")
        assert job is not None
        with wire.new_runner() as runner:
            tools = wire.periodic_tools(headwater.parts, _visit_nothing)
            assert runner.run(_result(job, tools)) == 1
        assert [row.detail for row in rows(db)] == ["young", "new"]


def _ago(now: datetime, days: int) -> datetime:
    return now - timedelta(days=days)


async def _visit_nothing(_parts: wire.Parts) -> None:
    return None


async def _result(job: wire.Job, tools: Any) -> object:
    return await job.work(tools)


@pytest.fixture
def walled(postgres_schema: str) -> Iterator[Database]:
    """PostgreSQL, opened by a role that does not own the tables. A SQLite file has no roles."""
    with (
        fresh_postgres_database(service_url("postgres"), postgres_schema) as url,
        closing(Database(as_app_role(url))) as db,
    ):
        yield db


def test_the_application_cannot_change_the_log(walled: Database) -> None:  # E10
    db, owner = walled, walled.write_now(accounts.make_owner, wire.utc_now())
    with people.acting(owner, "test", wire.utc_now):
        db.write_now(audit.record, owner, "token.create", 1)

    def run(conn: Connection, statement: str) -> int:
        return conn.execute(text(statement)).rowcount

    by_view = ("UPDATE audit_logs SET detail = 'x'", "DELETE FROM audit_logs")
    for statement in ("UPDATE audit_log SET detail = 'x'", "DELETE FROM audit_log", "TRUNCATE audit_log", *by_view):
        with pytest.raises(Exception, match="permission denied"):
            db.write_now(run, statement)
    db.write_now(run, "SELECT headwater_forget_audit(now() + interval '1 year')")  # keeps 30 days whatever is asked
    assert len(rows(db)) == 1


def test_a_client_of_another_kind_is_named_by_its_address_behind_a_proxy(store_url: str) -> None:  # H71
    with running(store_url, HEADWATER_TRUSTED_PROXIES="127.0.0.0/8") as headwater:
        client = Client(headwater.port, {"Authorization": f"Bearer {headwater.token()}"})
        client.post("/api/account/tokens", {"name": "x"}, X_Forwarded_For="198.51.100.9, 203.0.113.7")
        [row] = rows(headwater.parts.db)
        assert row.address == "203.0.113.7"
