"""A store made by the schema 0017, when there was one owner and nobody else, is upgraded and keeps everything (E10).

`store-0017.json` has the rows of a real store: the program of that time made them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, MetaData, Table, inspect, select, text
from sqlalchemy.types import JSON, Boolean, DateTime, LargeBinary
from typer.testing import CliRunner

from api.running import Client, Running, running
from headwater.cli.commands import program
from headwater.store import migrate
from headwater.store.db import Database

STORE = json.loads((Path(__file__).parent / "store-0017.json").read_text(encoding="utf-8"))
IDS = STORE["ids"]
KEY = "of the test alone, nothing else"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What an upgrade is meant to change: a delivery belongs to the tenant of its webhook, and caches are made anew.
CHANGED = {"webhook_deliveries": {"tenant_id"}, "hot_posts": None, "hot_window": None}


def fill(conn: Connection) -> None:
    """Inserts the rows as they were, with the types of this database."""
    there = MetaData()
    there.reflect(conn)
    for name in [table.name for table in there.sorted_tables if table.name in STORE["tables"]]:
        table, found = there.tables[name], STORE["tables"][name]
        conn.execute(table.delete())
        rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
        conn.execute(table.insert(), [{key: _typed(table, key, value) for key, value in row.items()} for row in rows])
        if conn.dialect.name == "postgresql" and "id" in table.c and table.c.id.autoincrement:
            conn.execute(
                text(f"SELECT setval(s, (SELECT max(id) FROM {name})) FROM pg_get_serial_sequence('{name}', 'id') s")
            )


def _typed(table: Table, column: str, value: Any) -> Any:
    kind = table.c[column].type
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    if value is None or isinstance(kind, LargeBinary):
        return value
    if isinstance(kind, DateTime):
        return _EPOCH + timedelta(microseconds=value)
    if isinstance(kind, JSON):
        return json.loads(value)
    return bool(value) if isinstance(kind, Boolean) else value


def contents(conn: Connection) -> dict[str, list[dict[str, Any]]]:
    """The rows of every table of that time, in the columns of that time."""
    there = MetaData()
    there.reflect(conn)
    found = {}
    for name, was in STORE["tables"].items():
        kept = [column for column in was["columns"] if column not in (CHANGED.get(name) or ())]
        if CHANGED.get(name, ()) is not None:
            rows = conn.execute(select(*(there.tables[name].c[column] for column in kept)))
            found[name] = sorted(([dict(row._mapping) for row in rows]), key=repr)
    return found


@pytest.fixture
def old_url(empty_url: str) -> str:
    """A database with the schema of that time and its rows, as its owner left it."""
    with closing(Database(empty_url)) as db:
        migrate.upgrade(db, "0017")
        db.alter_now(fill)
    return empty_url


@pytest.fixture
def upgraded(old_url: str) -> Iterator[Running]:
    """What `headwater up` makes of it."""
    with running(old_url, HEADWATER_SECRET_KEY=KEY) as headwater:
        yield headwater


def test_every_row_is_kept(old_url: str) -> None:  # E10
    with closing(Database(old_url)) as db:
        before = db.read_now(contents)
        migrate.upgrade(db)
        after = db.read_now(contents)
        assert set(inspect(db.engine).get_table_names()) > set(STORE["tables"])
    assert {"sources", "subscriptions", "posts", "post_versions", "post_states", "story_members", "story_decisions",
            "posts_apart", "webhooks", "webhook_deliveries", "api_tokens", "event_outbox", "consumer_cursors",
            "event_dlq", "secrets"} <= before.keys()  # fmt: skip
    for name, rows in before.items():
        assert after[name] == rows, name


def test_the_owner_signs_in_by_one_link(upgraded: Running, old_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_DATABASE_URL", old_url)
    monkeypatch.setenv("HEADWATER_SECRET_KEY", KEY)
    printed = CliRunner().invoke(program(), ["login"]).output.strip()
    link = "/login" + printed.partition("/login")[2]
    answer = upgraded.stranger.get(link)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    session = answer.cookies[0].partition("=")[2].partition(";")[0]
    page = upgraded.browser(session).get("/").text
    assert "The river rises, a third time" in page
    assert upgraded.browser(session).get("/people").status == 200
    assert upgraded.browser(session).get("/health").status == 200  # this tenant runs the instance
    assert upgraded.stranger.get(link).status == 401


def test_tokens_and_sessions_of_before_still_work(upgraded: Running) -> None:
    account = _program(upgraded).get("/api/account").json()
    assert (account["name"], account["role"]) == ("owner", "owner")
    assert "admin" in account["scopes"]
    assert [one["name"] for one in _program(upgraded).get("/api/account/tokens").json()["items"]] == ["dashboard"]
    upgraded.parts.now = lambda: datetime(2026, 11, 3, tzinfo=UTC)  # a session has an end
    assert upgraded.browser(STORE["session"]).get("/sources").status == 200


def test_what_was_followed_read_and_starred_is_as_it_was(upgraded: Running) -> None:
    program = _program(upgraded)
    followed = {one["id"]: one for one in program.get("/api/sources").json()["items"]}
    assert followed.keys() == {IDS["news"], IDS["wire"], IDS["quiet"]}
    assert (followed[IDS["news"]]["title"], followed[IDS["news"]]["folder"]) == ("My news", "News")
    assert upgraded.parts.unseal(_credential(upgraded)) == "ann:secret"
    rain, other, river = (program.get(f"/api/posts/{IDS[name]}").json() for name in ("rain", "else", "river"))
    assert (rain["read"], rain["starred"]) == (True, True)
    assert (other["read"], other["starred"]) == (True, False)
    assert (river["read"], river["starred"]) == (False, False)
    versions = program.get(f"/api/posts/{IDS['river']}/versions").json()["versions"]
    titles = ["The river rises, a third time", "The river rises, again", "The river rises"]
    assert [one["title"] for one in versions] == titles


def test_stories_stay_folded_and_what_was_undone_stays_undone(upgraded: Running) -> None:
    program = _program(upgraded)
    group = program.get(f"/api/deduplicate/groups/{IDS['river']}").json()
    assert {one["post_id"] for one in group["members"]} == {IDS["river"], IDS["river of the wire"]}
    told = [[one["post_id"] for one in story["members"]] for story in program.get("/api/stream").json()["items"]]
    assert [IDS["river"], IDS["river of the wire"]] in told
    assert [IDS["mine"]] in told
    assert [IDS["mine of the wire"]] in told
    assert program("DELETE", f"/api/deduplicate/groups/{IDS['mine']}").status in (404, 409)
    assert program.get("/api/folding").json() == {"level": "stories", "threshold": 0.3}


def test_webhooks_events_and_dead_letters_are_there(upgraded: Running) -> None:
    program = _program(upgraded)
    [webhook] = program.get("/api/webhooks").json()["items"]
    assert (webhook["id"], webhook["address"]) == (IDS["webhook"], "https://hooks.example/in")
    sent = program.get(f"/api/webhooks/{IDS['webhook']}/deliveries").json()["items"]
    assert {"ping", "post.stored"} <= {one["kind"] for one in sent}
    [letter] = program.get("/api/dead-letters").json()["items"]
    assert letter["consumer"] == "search"
    assert program.post(f"/api/dead-letters/{letter['id']}/skip").status == 200


def test_the_store_goes_on_where_it_was(upgraded: Running) -> None:
    """New rows get new ids, and nothing refers to what is not there."""
    program = _program(upgraded)
    made = program.post("/api/sources", {"address": "https://new.example/feed"}).json()
    assert made["id"] > IDS["quiet"]
    assert program.post("/api/webhooks", {"address": "https://hooks.example/new"}).status == 201
    assert program.post("/api/invitations", {"email": "bob@example.org"}).status == 201
    actions = [one["action"] for one in program.get("/api/audit").json()["items"]]
    assert actions == ["invitation.create", "webhook.add", "source.follow"]


def _program(headwater: Running) -> Client:
    return Client(headwater.port, {"Authorization": f"Bearer {STORE['api token']}"})


def _credential(headwater: Running) -> bytes:
    query = text("SELECT credential FROM sources WHERE id = :id")
    return bytes(headwater.parts.db.read_now(lambda conn: conn.execute(query, {"id": IDS["wire"]}).scalar_one()))
