"""A name and password in an address: used, sealed, never shown (H16)."""

from __future__ import annotations

from base64 import b64encode

from sqlalchemy import select

from headwater.accounts.vault import Vault
from headwater.cli.crawl import visit_now
from headwater.follow.add import follow
from headwater.model import Reader
from headwater.store import sources
from headwater.store.tables import event_outbox
from headwater.store.tables import sources as sources_table
from headwater.wire import Parts
from support.web import Answer, Asked, Web, rss


async def test_a_password_in_an_address_is_used_and_kept_sealed(parts: Parts, owner: Reader, world: Web) -> None:  # H16
    wanted = "Basic " + b64encode(b"me:p@ss word").decode()

    def feed(asked: Asked) -> Answer:
        return Answer(rss("secret news")) if asked.headers.get("authorization") == wanted else Answer(status=401)

    world.pages["/feed"] = feed
    address = world.url("/feed").replace("http://", "http://me:p%40ss%20word@")
    added = await parts.db.write(follow, owner, address, parts.now(), seal=parts.vault.seal)
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
    added = await parts.db.write(follow, owner, address, parts.now(), seal=Vault("another key").seal)
    reports: list[dict[str, object]] = []
    await visit_now(parts, [added.source_id], reports.append)
    assert "HEADWATER_SECRET_KEY" in str(reports[0]["error"])
    assert world.asked == []
