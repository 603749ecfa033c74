"""Signals: stories that name a machine, maker, pool or coin of the reader's are marked, with the word that says so
(F5)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import select

from api.running import Client, Running
from fleet.naming import NAME_UNTIL_KILLED, POSTS, is_named
from fleet.taking_in import take_in
from headwater.accounts import tokens
from headwater.app import log
from headwater.app.fleet import signals
from headwater.app.instance import owner
from headwater.follow.add import follow
from headwater.model import Reader
from headwater.store.tables import mention_scans, owned_subjects, post_mentions
from headwater.wire import Parts
from support.posts import NOON, a_post, a_source, visited
from support.processes import killed_after
from support.tenants import another_tenant

FLEET = {"model": "Antminer S19 Pro", "quantity": 40, "pool": "F2Pool", "electricity_usd_per_kwh": "0.055"}
BOUGHT = {"side": "buy", "btc": "0.25", "usd": "17350.40", "traded_at": "2024-03-01T12:00:00Z"}
TITLES = {
    "machine": "Prices of the S19 Pro by Bitmain fall",
    "pool": "鱼池算力上升",
    "coin": "BTC reaches a high",
    "galaxy": "The Galaxy S19 Pro in a test",
    "rivers": "Where rivers begin",
}
FEED = "https://news.example/feed"


def client_of(headwater: Running, reader: Reader, *scopes: str) -> Client:
    chosen = frozenset(scopes) if scopes else None
    token = headwater.parts.db.write_now(tokens.issue, reader, "api", "t", headwater.parts.now(), scopes=chosen)
    return Client(headwater.port, {"Authorization": f"Bearer {token}"})


def publish(headwater: Running) -> dict[str, int]:
    """Publishes a post with each title, the first one last. Returns their ids."""
    posts = [
        a_post(name, title, created_at=NOON - timedelta(minutes=place), content="")
        for place, (name, title) in enumerate(TITLES.items())
    ]
    return dict(zip(TITLES, headwater.publish(headwater.source(FEED), *posts), strict=True))


def marked(client: Client, query: str = "") -> dict[str, list[tuple[str, str, str]]]:
    """The titles of the stream that are marked: kind, name and word of each signal."""
    found = client.get(f"/api/stream{query}").json()["items"]
    return {
        story["title"]: [(one["kind"], one["name"], one["word"]) for one in story["signals"]]
        for story in found
        if story["signals"]
    }


def stored(parts: Parts, table: Any) -> set[tuple[Any, ...]]:
    return parts.db.read_now(lambda conn: {tuple(row) for row in conn.execute(select(table))})


def test_stories_that_name_what_one_has_are_marked_and_say_why(on_both: Running) -> None:
    client = on_both.program()
    ids = publish(on_both)  # before anything is owned: earlier stories are matched, too
    take_in(on_both.parts)
    assert marked(client) == {}
    mine = client.post("/api/miners", FLEET).json()
    client.post("/api/treasury/trade", BOUGHT, Idempotency_Key="1")
    take_in(on_both.parts)
    assert marked(client) == {
        TITLES["machine"]: [("model", "Antminer S19 Pro", "S19 Pro"), ("maker", "Bitmain", "Bitmain")],
        TITLES["pool"]: [("pool", "F2Pool", "鱼池")],
        TITLES["coin"]: [("coin", "Bitcoin", "BTC")],
    }
    [first] = [one for one in client.get("/api/stream").json()["items"] if one["title"] == TITLES["machine"]]
    assert first["signals"][0]["why"] == "“S19 Pro”: you have 40 Antminer S19 Pro"
    assert (first["signals"][0]["machines"], first["signals"][0]["post_id"]) == (40, ids["machine"])

    on_both.publish(1, a_post("later", "Bitmain recalls the S19 Pro", content=""))
    take_in(on_both.parts)
    assert "Bitmain recalls the S19 Pro" in marked(client)
    client.patch(f"/api/miners/{mine['id']}", {"quantity": 41})
    take_in(on_both.parts)
    assert client.get("/api/stream").json()["items"][0]["signals"][0]["machines"] == 41

    assert client("DELETE", f"/api/miners/{mine['id']}").status == 204
    take_in(on_both.parts)
    assert set(marked(client)) == {TITLES["coin"]}
    assert {row[1] for row in stored(on_both.parts, post_mentions)} == {
        row[0] for row in stored(on_both.parts, mention_scans)
    }
    client.post("/api/miners", {**FLEET, "pool": ""})
    take_in(on_both.parts)
    assert set(marked(client)) == {TITLES["machine"], TITLES["coin"], "Bitmain recalls the S19 Pro"}


def test_the_stream_can_be_limited_to_signals_page_by_page(on_both: Running) -> None:
    client = on_both.program()
    client.post("/api/miners", FLEET)
    publish(on_both)
    take_in(on_both.parts)
    first = client.get("/api/stream?signals=true&limit=1").json()
    assert [one["title"] for one in first["items"]] == [TITLES["machine"]]
    second = client.get(f"/api/stream?signals=true&limit=1&cursor={first['next_cursor']}").json()
    assert ([one["title"] for one in second["items"]], second["next_cursor"]) == ([TITLES["pool"]], None)
    both = client.get("/api/stream?signals=true&q=bitmain").json()["items"]
    assert [one["title"] for one in both] == [TITLES["machine"]]
    assert client.get("/api/stream?signals=true&q=rivers").json()["items"] == []
    assert len(client.get("/api/posts?signals=true").json()["items"]) == 2
    assert client.get("/api/stream?signals=perhaps").status == 422


def test_what_somebody_else_has_is_theirs_alone(on_both: Running) -> None:
    db = on_both.parts.db
    publish(on_both)
    other = db.write_now(another_tenant)
    db.write_now(follow, other, FEED, NOON)
    theirs, mine = client_of(on_both, other), on_both.program()
    mine.post("/api/miners", FLEET)
    take_in(on_both.parts)
    assert marked(theirs) == {}
    assert theirs.get("/api/stream?signals=true").json()["items"] == []
    theirs.post("/api/miners", {**FLEET, "model": "Whatsminer M50", "pool": ""})
    take_in(on_both.parts)
    assert marked(theirs) == {}
    assert len(marked(mine)) == 2


def test_whoever_may_not_see_machines_is_not_told_what_stories_name(headwater: Running) -> None:
    headwater.program().post("/api/miners", FLEET)
    publish(headwater)
    take_in(headwater.parts)
    reads_only = client_of(headwater, headwater.owner, "posts:read")
    assert marked(reads_only) == {}
    refused = reads_only.get("/api/stream?signals=true")
    assert (refused.status, refused.json()["scope"]) == (403, "miners:read")


def test_an_edited_post_is_read_again(on_both: Running) -> None:
    client = on_both.program()
    client.post("/api/miners", FLEET)
    source_id = on_both.source(FEED)
    on_both.publish(source_id, a_post("one", "The S19 Pro of Bitmain", content=""))
    take_in(on_both.parts)
    assert set(marked(client)) == {"The S19 Pro of Bitmain"}
    on_both.publish(source_id, a_post("one", "The S21 of Samsung", content=""))
    take_in(on_both.parts)
    assert marked(client) == {}
    assert stored(on_both.parts, post_mentions) == set()


def test_a_pool_that_no_list_knows_is_found_by_the_name_it_was_given(on_both: Running) -> None:
    client = on_both.program()
    on_both.publish(on_both.source(FEED), a_post("creek", "Blue Creek pays out late", content=""))
    client.post("/api/miners", {**FLEET, "pool": "Blue Creek"})
    take_in(on_both.parts)
    assert marked(client) == {"Blue Creek pays out late": [("pool", "Blue Creek", "Blue Creek")]}


def test_delivered_again_and_rebuilt_it_is_the_same(on_both: Running) -> None:
    parts = on_both.parts
    client = on_both.program()
    client.post("/api/miners", FLEET)
    publish(on_both)
    take_in(parts)
    before = [stored(parts, table) for table in (owned_subjects, post_mentions)]
    assert all(before)
    log.rebuild_consumer(parts.db, parts.consumers, "mentions", parts.now)
    take_in(parts)
    assert [stored(parts, table) for table in (owned_subjects, post_mentions)] == before


def test_where_nobody_has_anything_nothing_is_stored(headwater: Running) -> None:
    publish(headwater)
    take_in(headwater.parts)
    assert not any(stored(headwater.parts, table) for table in (owned_subjects, post_mentions, mention_scans))


def test_killed_again_and_again_every_mention_is_noted_once(parts: Parts, environ: dict[str, str]) -> None:
    reader = owner(parts.db)
    source_id = parts.db.write_now(a_source, reader)
    half = [a_post(str(number), is_named(number), content="") for number in range(POSTS // 2)]
    parts.db.write_now(visited, source_id, half)
    for last in (3, 11, 12, 25, None):
        line = "done" if last is None else str(last)
        killed_after(environ, NAME_UNTIL_KILLED, "naming", line, ends=last is None)
    found = parts.db.read_now(signals.newest, reader, POSTS)
    wanted = {is_named(number) for number in range(POSTS) if "Bitmain" in is_named(number)}
    assert {one.post.title for one in found} == wanted
    rows = stored(parts, post_mentions)
    log.rebuild_consumer(parts.db, parts.consumers, "mentions", parts.now)
    take_in(parts)
    assert stored(parts, post_mentions) == rows
