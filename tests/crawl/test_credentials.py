"""A name and password in an address: used, sealed, never shown, and a part of what a source is (H16)."""

from __future__ import annotations

import asyncio
from base64 import b64encode

import pytest
from sqlalchemy import select

from api.running import Client, served
from headwater import wire
from headwater.accounts import tokens
from headwater.accounts.vault import Vault
from headwater.app.sources import follow_new, named
from headwater.cli.crawl import visit_now
from headwater.errors import AlreadyThere, BadInput
from headwater.follow.add import follow
from headwater.model import Reader
from headwater.store import migrate, sources
from headwater.store.tables import event_outbox
from headwater.store.tables import posts as posts_table
from headwater.store.tables import sources as sources_table
from headwater.wire import Parts
from support.services import as_owner
from support.web import Answer, Asked, Web, rss


async def test_a_password_in_an_address_is_used_and_kept_sealed(parts: Parts, owner: Reader, world: Web) -> None:  # H16
    wanted = "Basic " + b64encode(b"me:p@ss word").decode()

    def feed(asked: Asked) -> Answer:
        return Answer(rss("secret news")) if asked.headers.get("authorization") == wanted else Answer(status=401)

    world.pages["/feed"] = feed
    address = world.url("/feed").replace("http://", "http://me:p%40ss%20word@")
    added = await parts.db.write(follow, owner, address, parts.now(), seal=parts.vault.credential)
    reports: list[dict[str, object]] = []
    await visit_now(parts, [added.source_id], reports.append)
    assert (reports[0]["outcome"], reports[0]["new"]) == ("ok", 1)
    [source] = await parts.db.read(sources.watched, owner, parts.now())
    assert source.address == world.url("/feed")
    everything = await parts.db.read(
        lambda conn: str([conn.execute(select(table)).all() for table in (sources_table, event_outbox)])
    )
    assert "p@ss" not in everything
    assert "p%40ss" not in everything
    assert "p@ss" not in str(reports)


async def test_a_password_sealed_with_another_key_is_a_failure_that_says_so(
    parts: Parts, owner: Reader, world: Web
) -> None:
    address = world.url("/feed").replace("http://", "http://me:secret@")
    added = await parts.db.write(follow, owner, address, parts.now(), seal=Vault("another key").credential)
    reports: list[dict[str, object]] = []
    await visit_now(parts, [added.source_id], reports.append)
    assert "HEADWATER_SECRET_KEY" in str(reports[0]["error"])
    assert world.asked == []


def protected(world: Web) -> None:
    """A feed that shows each reader something else, and strangers nothing."""
    known = {"Basic " + b64encode(f"me:{word}".encode()).decode(): word for word in ("first", "second")}

    def feed(asked: Asked) -> Answer:
        word = known.get(asked.headers.get("authorization", ""))
        return Answer(rss(f"{word} news")) if word else Answer(status=401)

    world.pages["/feed"] = feed


async def test_another_password_is_another_source_and_the_bare_address_reads_neither(
    parts: Parts, world: Web
) -> None:  # H16, H68
    protected(world)
    bare = world.url("/feed")
    first, second = (bare.replace("http://", f"http://me:{word}@") for word in ("first", "second"))
    with served(parts) as (port, _):
        token = parts.db.write_now(tokens.issue, wire.prepare_store(parts), "api", "test", parts.now())
        client = Client(port, {"Authorization": f"Bearer {token}"})
        answers = [
            await asyncio.to_thread(client.post, "/api/sources", {"address": one}) for one in (first, bare, second)
        ]
        assert [answer.status for answer in answers] == [202, 202, 202]
        ids = [answer.json()["id"] for answer in answers]
        assert len(set(ids)) == 3
        assert {answer.json()["address"] for answer in answers} == {bare}
        assert [answer.json()["has_password"] for answer in answers] == [True, False, True]
        again = [
            await asyncio.to_thread(client.post, "/api/sources", {"address": one}) for one in (first, bare, second)
        ]
        assert [(answer.status, answer.json()["source_id"]) for answer in again] == [(409, id) for id in ids]
    await visit_now(parts, ids)
    titles = await parts.db.read(lambda conn: {row.source_id: row.title for row in conn.execute(select(posts_table))})
    assert titles == {ids[0]: "first news", ids[2]: "second news"}


async def test_an_error_leaves_the_password_of_a_source_as_it_is(
    parts: Parts, owner: Reader, world: Web
) -> None:  # H16
    protected(world)
    address = world.url("/feed").replace("http://", "http://me:first@")
    added = await parts.db.write(follow, owner, address, parts.now(), seal=parts.credential)
    with pytest.raises(AlreadyThere):
        await parts.db.write(follow_new, owner, address, parts.now(), seal=parts.credential)
    with pytest.raises(BadInput):
        await parts.db.write(
            follow, owner, address.replace("first", "second"), parts.now(), seal=parts.credential, kind="nothing"
        )
    [source] = await parts.db.read(sources.watched, owner, parts.now())
    reports: list[dict[str, object]] = []
    await visit_now(parts, [source.id], reports.append)
    assert (source.id, reports[0]["outcome"]) == (added.source_id, "ok")


async def test_several_sources_at_one_address_are_told_apart_by_their_ids(
    parts: Parts, owner: Reader, world: Web
) -> None:
    bare = world.url("/feed")
    first, second = (bare.replace("http://", f"http://me:{word}@") for word in ("first", "second"))
    ids = [
        (await parts.db.write(follow, owner, one, parts.now(), seal=parts.credential)).source_id
        for one in (first, second)
    ]
    with pytest.raises(BadInput, match=f"by its id: .*{min(ids)}") as error:
        await parts.db.read(named, owner, second)
    assert "second" not in error.value.detail
    unprotected = await parts.db.write(follow, owner, bare, parts.now())
    assert await parts.db.read(named, owner, bare) == unprotected.source_id
    assert await parts.db.read(named, owner, str(ids[1])) == ids[1]


def test_passwords_that_were_stored_before_are_recognised_after_the_upgrade(
    environ: dict[str, str], parts: Parts, owner: Reader
) -> None:
    address = "http://me:word@news.example/feed"
    added = parts.db.write_now(follow, owner, address, parts.now(), seal=parts.credential)
    with as_owner(parts.db) as db:
        migrate.downgrade(db, "0014")
        migrate.upgrade(db, app_role=parts.db.engine.url.username)
    wire.prepare_store(parts)
    again = parts.db.write_now(follow, owner, address, parts.now(), seal=parts.credential)
    assert (again.source_id, again.new_source, again.new_subscription) == (added.source_id, False, False)
    assert parts.db.write_now(follow, owner, "http://news.example/feed", parts.now()).new_source
