"""Stopping while the store cannot be written: it ends, and nothing is lost (H91, H97)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from headwater import wire
from headwater.follow.add import follow
from headwater.settings import load
from headwater.store import db as db_module
from headwater.store import sources
from headwater.store.sources import leases
from support.web import ALLOW_LOOPBACK, Answer, Web, rss


async def test_a_store_that_stays_locked_does_not_hold_up_a_stop(
    tmp_path: Path, world: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db_module, "BUSY_SECONDS", 0.1)
    environ = {**ALLOW_LOOPBACK, "HEADWATER_DATA_DIR": str(tmp_path), "HEADWATER_SHUTDOWN_SECONDS": "0.5"}
    parts = wire.open_parts(load(environ))
    owner = wire.prepare_store(parts)
    world.pages["/feed"] = Answer(rss("first"))
    added = await parts.db.write(follow, owner, world.url("/feed"), parts.now())
    pace = wire.pace(parts.settings)
    granted = await parts.db.write(
        leases.claim_due, now=parts.now(), lease="mine", lease_for=pace.lease_for, gap=pace.gap, limit=5
    )
    holder = sqlite3.connect(tmp_path / "headwater.db", isolation_level=None)
    async with wire.crawling(parts, lambda saved: None) as crawler:
        holder.execute("BEGIN IMMEDIATE")
        crawler.start(granted)
    holder.execute("ROLLBACK")
    holder.close()
    later = parts.now() + pace.lease_for
    source = await parts.db.read(sources.watched_one, owner, added.source_id, later)
    assert source is not None
    assert (source.status, source.next_check_at <= later) == ("new", True), "its lease ran out and it is due again"
    parts.close()
