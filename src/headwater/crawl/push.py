"""Stores what a hub pushed as posts, as if a visit had found them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import structlog
from sqlalchemy import Connection

from headwater.crawl.record import events_of
from headwater.errors import SourceFailure
from headwater.model import Post, Response, SavedVisit, SourceState
from headwater.parse.pool import Parsers
from headwater.store.db import Database
from headwater.store.log import outbox
from headwater.store.sources import hubs
from headwater.store.sources.hubs import HubSubscription

log = structlog.get_logger(__name__)


async def receive(
    db: Database, parsers: Parsers | None, one: HubSubscription, pushed: Response, now: Callable[[], datetime]
) -> SavedVisit | None:
    """Stores what was pushed. If this process cannot parse it, the source is visited instead."""
    source = one.source
    if parsers is not None:
        try:
            page = await parsers.read(source, SourceState(), pushed)
        except SourceFailure as error:
            log.warning("push.unreadable", source=source.address, code=error.code, error=error.detail)
        else:
            return await db.write(record_push, source.id, page.posts, now())
    await db.write(hubs.bring_forward, source.id, now())
    return None


def record_push(conn: Connection, source_id: int, posts: list[Post], now: datetime) -> SavedVisit | None:
    """Writes posts, their events and the trust they earn, in one transaction."""
    saved = hubs.save_push(conn, source_id, posts, now)
    if saved is not None:
        outbox.append(conn, events_of(saved), now)
        hubs.record_push(conn, source_id, saved.count("new") + saved.count("edited"), now)
    return saved
