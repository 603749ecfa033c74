"""Undoing belongs to the tenant who asked for it, and its record stays (C5): API, page and terminal."""

from __future__ import annotations

import os
import signal
from typing import Any

from sqlalchemy import Connection, select, text

from api.running import Client, Running
from folding.flood import ELECTION, FLOOD, FLOOD_AGAIN, FLOOD_TOLD, fold, publish
from headwater.accounts import tokens
from headwater.app import stories as stories_of_a_reader
from headwater.model import Reader
from headwater.store import migrate, stories
from headwater.store.db import Database
from headwater.store.tables import event_outbox
from support import forked
from support.people import a_tenant, a_user
from support.posts import NOON, a_post, a_source

KILLED_BEFORE_COMMIT = """
import os, signal, sys
from headwater.app import stories
from headwater.model import Reader
from headwater.store.db import Database
from headwater.wire import utc_now

def undo(conn):
    reader = Reader(int(sys.argv[2]), int(sys.argv[3]), "owner", "owner")
    print(stories.undo(conn, reader, int(sys.argv[4]), utc_now()), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

Database(sys.argv[1]).write_now(undo)
"""


def guests(headwater: Running, papers: int = 3) -> tuple[Reader, Client]:
    """The owner of another tenant, who follows the same papers."""
    other = headwater.parts.db.write_now(a_tenant)
    for number in range(papers):
        headwater.parts.db.write_now(a_source, other, f"https://paper{number}.example/feed", headwater.parts.now())
    return other, client_of(headwater, other)


def client_of(headwater: Running, reader: Reader) -> Client:
    token = headwater.parts.db.write_now(tokens.issue, reader, "api", "test", headwater.parts.now())
    return Client(headwater.port, {"Authorization": f"Bearer {token}"})


def entries(client: Client) -> list[list[int]]:
    """The posts of each entry of the stream."""
    return [[one["post_id"] for one in story["members"]] for story in client.get("/api/stream").json()["items"]]


def test_an_undo_changes_only_what_its_tenant_sees(on_both: Running) -> None:  # C5
    a, b, c = publish(on_both, FLOOD, FLOOD_AGAIN, FLOOD_TOLD)
    fold(on_both, [a, b, c])
    client, (_, others) = on_both.program(), guests(on_both)
    colleague = on_both.parts.db.write_now(a_user, on_both.owner.tenant_id, "colleague")
    for number in range(3):
        on_both.parts.db.write_now(a_source, colleague, f"https://paper{number}.example/feed", NOON)
    done = client("DELETE", f"/api/deduplicate/groups/{a}").json()
    assert done == {"success": True, "post_ids": [a, b, c], "for_everybody": False}
    assert entries(client) == entries(client_of(on_both, colleague)) == [[c], [b], [a]]
    assert entries(others) == [[a, b, c]]
    assert others.get(f"/api/deduplicate/groups/{a}").json()["undone"] is None
    assert [one["action"] for one in others.get(f"/api/deduplicate/groups/{a}").json()["history"]] == ["joined"] * 2
    # Whatever is folded anew, they stay apart for the first tenant alone.
    on_both.parts.db.write_now(stories.forget, [a, b, c])
    fold(on_both, [a, b, c])
    assert (entries(client), entries(others)) == ([[c], [b], [a]], [[a, b, c]])
    assert others("DELETE", f"/api/deduplicate/groups/{a}").status == 200
    assert entries(others) == [[c], [b], [a]]


def test_an_undone_story_can_be_read_as_it_was(on_both: Running) -> None:  # C5
    a, b, c = publish(on_both, FLOOD, FLOOD_AGAIN, ELECTION)
    fold(on_both, [a, b, c])
    client, (_, others) = on_both.program(), guests(on_both)
    before = client.get(f"/api/deduplicate/groups/{a}").json()
    client("DELETE", f"/api/deduplicate/groups/{a}")
    after = client.get(f"/api/deduplicate/groups/{a}").json()
    undone = after.pop("undone")
    assert (undone["by"], undone["for_everybody"], undone["action"]) == ("owner", False, "undone")
    assert [one["action"] for one in after.pop("history")] == ["joined", "undone"]
    assert after == {name: value for name, value in before.items() if name not in ("undone", "history")}
    assert client.get(f"/api/deduplicate/posts/{b}").json()["undone"] == undone
    assert client.get(f"/api/deduplicate/tweets/{b}").json()["undone"] == undone
    page = on_both.browser().get(f"/stories/{a}").text
    assert "Undone by owner" in page
    assert "Undo this story" not in page
    again = client("DELETE", f"/api/deduplicate/groups/{a}")
    assert (again.status, again.json()["code"]) == (409, "already_undone")
    never = client.get(f"/api/deduplicate/posts/{c}")
    assert (never.status, never.json()["detail"]) == (404, f"The post {c} is in no story.")
    assert others.get(f"/api/deduplicate/posts/{b}").json()["undone"] is None
    listed = client.get("/api/deduplicate/groups").json()["items"]
    assert (listed, len(others.get("/api/deduplicate/groups").json()["items"])) == ([], 1)


def test_a_post_is_taken_out_for_one_tenant_and_its_repeats_follow_it(on_both: Running) -> None:  # C5
    a, b, c = publish(on_both, FLOOD, FLOOD_TOLD, f"BREAKING: {FLOOD_TOLD}")
    fold(on_both, [a, b, c])
    client, (_, others) = on_both.program(), guests(on_both)
    assert client.post(f"/api/deduplicate/posts/{c}/apart").json()["post_ids"] == [b, c]
    assert entries(client) == [[b, c], [a]]
    late = on_both.source("https://late.example/feed")
    [d] = on_both.publish(late, a_post("d", f"UPDATE: {FLOOD_TOLD}", content="", created_at=on_both.parts.now()))
    fold(on_both, [d])
    assert [d] not in entries(client), "the text goes where its tenant put it"
    assert entries(client) == [[b, c, d], [a]]
    assert entries(others) == [[a, b, c]]
    taken = client.get(f"/api/deduplicate/posts/{d}").json()
    assert (taken["group_id"], taken["undone"]) == (b, None)
    assert client.get(f"/api/deduplicate/groups/{b}").json() == taken
    was = client.get(f"/api/deduplicate/groups/{a}").json()
    assert ([one["post_id"] for one in was["members"]], was["undone"]["action"]) == ([a, b, c], "parted")


def test_those_who_run_it_may_undo_for_everybody_and_it_says_so(on_both: Running) -> None:  # C5
    a, b = publish(on_both, FLOOD, FLOOD_AGAIN)
    fold(on_both, [a, b])
    client, (other, others) = on_both.program(), guests(on_both)
    refused = others("DELETE", f"/api/deduplicate/groups/{a}?everybody=true")
    assert (refused.status, refused.json()["code"]) == (403, "forbidden")
    assert others.post(f"/api/deduplicate/posts/{b}/apart?everybody=true").status == 403
    assert entries(others) == [[a, b]]
    assert "Undo it for everybody" in on_both.browser().get(f"/stories/{a}").text
    session = on_both.parts.db.write_now(tokens.issue, other, "session", "test", on_both.parts.now())
    assert "Undo it for everybody" not in on_both.browser(session).get(f"/stories/{a}").text
    done = client("DELETE", f"/api/deduplicate/groups/{a}?everybody=true").json()
    assert done == {"success": True, "post_ids": [a, b], "for_everybody": True}
    assert entries(others) == entries(client) == [[b], [a]]
    undone = others.get(f"/api/deduplicate/posts/{b}").json()["undone"]
    assert (undone["by"], undone["for_everybody"]) == (None, True), "a name of another tenant is not told"
    assert on_both.parts.db.read_now(stories.apart_from, [a]) == {a: {b}}


def test_with_one_tenant_nothing_is_said_of_everybody(on_both: Running) -> None:
    a, b = publish(on_both, FLOOD, FLOOD_AGAIN)
    fold(on_both, [a, b])
    assert "everybody" not in on_both.browser().get(f"/stories/{a}").text


def test_an_undo_is_an_event_of_its_tenant(on_both: Running) -> None:
    a, b = publish(on_both, FLOOD, FLOOD_AGAIN)
    fold(on_both, [a, b])
    on_both.program()("DELETE", f"/api/deduplicate/groups/{a}")
    found = select(event_outbox.c.tenant_id, event_outbox.c.key).where(event_outbox.c.kind == "story.parted")
    rows = on_both.parts.db.read_now(lambda conn: conn.execute(found).all())
    assert [tuple(row) for row in rows] == [(on_both.owner.tenant_id, f"story:{a}")]


def test_an_undo_that_is_killed_leaves_nothing_behind_and_can_be_repeated(on_both: Running, store_url: str) -> None:
    a, b = publish(on_both, FLOOD, FLOOD_AGAIN)
    fold(on_both, [a, b])
    who = [str(on_both.owner.tenant_id), str(on_both.owner.user_id)]
    url = on_both.parts.settings.store_url()
    killed = forked.run("-c", KILLED_BEFORE_COMMIT, url, *who, str(a), env=os.environ)
    assert (killed.returncode, killed.stdout.strip()) == (-signal.SIGKILL, f"[{a}, {b}]"), killed.stderr
    client = on_both.program()
    assert entries(client) == [[a, b]]
    assert client.get(f"/api/deduplicate/groups/{a}").json()["undone"] is None
    assert client("DELETE", f"/api/deduplicate/groups/{a}").status == 200
    assert entries(client) == [[b], [a]]


def test_the_terminal_shows_what_was_undone_and_by_whom(headwater: Running) -> None:  # C5
    a, b = publish(headwater, FLOOD, FLOOD_AGAIN)
    fold(headwater, [a, b])
    environ = {**os.environ, "HEADWATER_DATABASE_URL": headwater.parts.settings.store_url()}

    def run(*words: object) -> str:
        return forked.run("-m", "headwater", "dedup", *map(str, words), env=environ, check=True).stdout

    assert "2 posts are separate now, and stay so." in run("undo", b)
    for named in (a, b):
        assert "Undone by owner" in run("show", named)
    assert "A person has separated them" in run("explain", a, b)


def test_the_migration_keeps_what_was_undone_and_its_record(empty_url: str) -> None:
    db = Database(empty_url)
    migrate.upgrade(db, "0017")

    def of_before(conn: Connection) -> None:
        for statement in (
            "INSERT INTO tenants (id, name, created_at) VALUES (1, 'default', {now})",
            "INSERT INTO users (id, tenant_id, name, role, created_at) VALUES (1, 1, 'owner', 'owner', {now})",
            "INSERT INTO sources (id, kind, address, host, created_at, next_check_at)"
            " VALUES (1, 'rss', 'https://a.example/', 'a.example', {now}, {now})",
            "INSERT INTO subscriptions (tenant_id, user_id, source_id, created_at) VALUES (1, 1, 1, {now})",
            *(
                f"INSERT INTO posts (id, source_id, source_post_id, text_norm_hash, title, content, created_at,"
                f" fetched_at, valid_from) VALUES ({n}, 1, '{n}', '{n}', 'title {n}', '', {{now}}, {{now}}, {{now}})"
                for n in (1, 2)
            ),
            "INSERT INTO story_decisions (id, decided_at, action, story_id, post_id, rule, score, why)"
            " VALUES (1, {now}, 'joined', 1, 2, 'exact', 1.0, 'same text')",
            "INSERT INTO story_decisions (id, decided_at, action, story_id, post_id, user_id)"
            " VALUES (2, {now}, 'undone', 1, 1, 1)",
            "INSERT INTO posts_apart (post_id, parting_id, side) VALUES (1, 2, 1), (2, 2, 2)",
        ):
            now = "now()" if conn.dialect.name == "postgresql" else "1760000000000000"
            conn.execute(text(statement.format(now=now)))

    db.write_now(of_before)
    migrate.upgrade(db)
    reader = Reader(1, 1, "owner", "owner")
    parted = db.read_now(lambda conn: folded_record(conn, reader))
    assert parted == [(1, "first", ""), (2, "exact", "same text")]
    migrate.downgrade(db, "0017")
    assert db.read_now(lambda conn: conn.execute(text("SELECT count(*) FROM posts_apart")).scalar()) == 2
    migrate.upgrade(db)
    assert db.read_now(lambda conn: folded_record(conn, reader)) == parted
    db.close()


def folded_record(conn: Connection, reader: Reader) -> list[Any]:
    group = stories_of_a_reader.group(conn, reader, 1)
    assert group.parted is not None
    assert (group.parted.by, group.parted.for_everybody) == ("owner", True)
    return [(one.post_id, one.rule, one.why) for one in group.members]
