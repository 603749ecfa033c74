"""A store with two tenants who follow overlapping sources, and the same store without the second tenant.

A function that is called for the first tenant must
not be able to tell the two stores apart.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Select, Table, delete, select, update

from headwater.accounts import tokens
from headwater.app import stories, webhooks
from headwater.app.fleet import miners, telemetry, treasury
from headwater.app.fleet.miners import NewMiner
from headwater.app.fleet.treasury import NewTrade, WantedCorrection
from headwater.consumers.mentions import note_owned
from headwater.follow.add import follow
from headwater.ids import uuid7
from headwater.model import Decision, Image, Reader
from headwater.store import images
from headwater.store import stories as story_store
from headwater.store.fleet.portfolios import Owner
from headwater.store.fleet.telemetry import MachineReading
from headwater.store.images import PostImages
from headwater.store.people import accounts
from headwater.store.posts import search, stream
from headwater.store.posts.stream import Marks
from headwater.store.row_security import of_everybody
from headwater.store.sources import schedule
from headwater.store.stories import runs
from headwater.store.tables import api_tokens, event_outbox, metadata, sources, tenants, webhook_deliveries
from headwater.store.tables import images as image_table
from support.posts import NOON, a_post, visited
from support.tenants import another_tenant
from tenants.contract import Ids

SHARED = "https://shared.example/feed"


def fill(conn: Connection) -> tuple[Reader, Reader, Ids, Ids]:
    """Makes two tenants. Returns both readers, and what the first one and only the second one may see."""
    ours, theirs = accounts.make_owner(conn, NOON), another_tenant(conn)
    shared = follow(conn, ours, SHARED, NOON).source_id
    visited(conn, shared, [a_post("both", "Title that both may see")])
    # SQLite gives the last id of some tables again: what is ours comes last, or the stores would differ in it.
    their_entries, our_entries = _entries(conn, theirs), _entries(conn, ours)
    own = _life(conn, ours, "ours", our_entries)
    follow(conn, theirs, SHARED, NOON)
    other = _life(conn, theirs, "theirs", their_entries)
    _fold(conn, [own.post_id, other.post_id])  # one story of which each sees one post
    return ours, theirs, own, other


def _entries(conn: Connection, reader: Reader) -> tuple[int, int]:
    """A token and an invitation. Returns their ids."""
    tokens.issue(conn, reader, "api", reader.name, NOON)
    token_id = conn.execute(select(api_tokens.c.id).where(api_tokens.c.user_id == reader.user_id)).scalar_one()
    until, secret = NOON + timedelta(days=1), reader.name.encode()
    guest = f"guest@{reader.name}.example"
    invited = accounts.invite(conn, reader, email=guest, role="member", token_hash=secret, now=NOON, expires_at=until)
    return token_id, invited


def _life(conn: Connection, reader: Reader, name: str, entries: tuple[int, int]) -> Ids:
    """Everything that a reader can have, at a source of the reader's own."""
    address = f"https://{name}.example/feed"
    source_id = follow(conn, reader, address, NOON, folder=name).source_id
    picture = f"https://{name}.example/picture.png"
    posts = [a_post(name, f"Title of {name}"), a_post(f"{name} 2"), a_post(f"{name} 3", thread=name)]
    [post, more, _] = visited(conn, source_id, posts).posts
    search.index(conn, [post.id, more.id])
    images.record(conn, [PostImages(source_id, post.id, (Image(picture, name),))], NOON)
    content_hash = sha256(name.encode()).hexdigest()
    saved = {"state": "saved", "content_hash": content_hash, "path": f"{name}.png", "type": "png", "size": 1}
    conn.execute(update(image_table).where(image_table.c.url == picture).values(saved))
    stream.mark_posts(conn, reader, [more.id], NOON, Marks(read=True, starred=True))
    stories.choose_folding(conn, reader, "stories", 0.1)
    webhook_id = webhooks.add(conn, reader, f"https://{name}.example/hook", [], str.encode, NOON).webhook.id
    webhooks.ping(conn, reader, webhook_id, NOON)
    delivery_id = conn.execute(
        select(webhook_deliveries.c.id).where(webhook_deliveries.c.webhook_id == webhook_id)
    ).scalar_one()
    conn.execute(update(webhook_deliveries).values(state="failed", settled_at=NOON))
    task_id, fold_task_id = uuid7(), uuid7()
    schedule.begin_task(conn, source_id, task_id, NOON)
    runs.begin(conn, reader, fold_task_id, [more.id], NOON, timedelta(hours=1))
    runs.finish(conn, fold_task_id, "completed", NOON, result={})
    accounts.link_identity(conn, reader, "https://issuer.example", name, NOON)
    [identity] = accounts.identities(conn, reader)
    return Ids(
        reader.user_id,
        *entries,
        source_id,
        post.id,
        webhook_id,
        delivery_id,
        *_desk(conn, reader),
        task_id,
        fold_task_id,
        content_hash,
        identity.id,
        address,
    )


def _desk(conn: Connection, reader: Reader) -> tuple[int, int]:
    """A mining operator's machines and coins. Returns the ids of the machines and of a trade."""
    miners.ship_models(conn)
    price = Decimal("0.06")
    mine = miners.add(conn, reader, NewMiner(model="Antminer S21", quantity=3, electricity_usd_per_kwh=price), NOON)
    bought = NewTrade(side="buy", btc=Decimal("0.5"), usd=Decimal(30_000))
    trade = treasury.trade(conn, reader, bought, f"trade of {reader.user_id}", NOON)
    twice = treasury.trade(conn, reader, bought, f"the same of {reader.user_id}", NOON)
    treasury.correct(conn, reader, twice.id, WantedCorrection(), f"correction of {reader.user_id}", NOON)
    note_owned(conn, [Owner(reader.tenant_id, reader.user_id)])
    telemetry.take(conn, reader, [MachineReading(mine.id, NOON, 600.0, 10_000.0)], timedelta(days=35), NOON)
    return mine.id, trade.id


def _fold(conn: Connection, post_ids: list[int]) -> None:
    first = post_ids[0]
    story_store.save(
        conn, [Decision(one, first, first, "first" if one == first else "exact", 1.0, "") for one in post_ids], NOON
    )


def forget_tenant(conn: Connection, tenant_id: int, ids: Ids) -> None:
    """Makes the store of one tenant alone: what only the other one has was never there."""
    conn.execute(delete(tenants).where(tenants.c.id == tenant_id))
    conn.execute(delete(event_outbox).where(event_outbox.c.tenant_id == tenant_id))
    for table in ("miner_telemetry", "telemetry_hours", "telemetry_days", "telemetry_heard"):
        readings = metadata.tables[table]  # they have no foreign key
        conn.execute(delete(readings).where(readings.c.tenant_id == tenant_id))
    conn.execute(delete(image_table).where(image_table.c.content_hash == ids.content_hash))
    conn.execute(delete(sources).where(sources.c.id == ids.source_id))


def contents(conn: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, without the numbers of the transactions that wrote them."""
    with of_everybody(conn):
        return {table.name: [tuple(row) for row in conn.execute(_select(table))] for table in metadata.sorted_tables}


def _select(table: Table) -> Select[Any]:
    return select(*(column for column in table.c if column.name not in ("xid", "changed")))
