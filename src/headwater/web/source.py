"""The page of one source: how it is doing, how much it publishes, and its past visits."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import Response

from headwater.api import sources as api
from headwater.api.checkpoints import clear_checkpoint as clear
from headwater.app import refresh
from headwater.http.auth import Asking, WithParts
from headwater.http.inputs import Id
from headwater.store import sources
from headwater.store.sources import PastVisit, hubs, listings, pool
from headwater.store.sources.listings import Listing
from headwater.store.sources.pool import SourceTier
from headwater.store.visits import checkpoints
from headwater.store.visits.checkpoints import CheckpointRow
from headwater.web.health import CHART_WIDTH, bars
from headwater.web.view import go, show

DAYS = 30
SPARK_HEIGHT = 24
BEST = 10  # of a cached listing that are shown

router = APIRouter()


class ShownVisit(NamedTuple):
    """All that the page needs beside the source, read in one transaction."""

    past: list[PastVisit]
    posts: int
    pushed_since: datetime | None
    place: SourceTier
    days: list[tuple[datetime, int]]
    listing: Listing | None
    progress: CheckpointRow | None


@router.get("/sources/{source_id}")
async def source_page(request: Request, parts: WithParts, reader: Asking, source_id: Id) -> Response:
    source = await refresh.watched(parts, reader, source_id)
    found = await parts.db.read(_gather, source_id, parts.now())
    return show(
        request,
        "source.html",
        source=source,
        visits=found.past,
        posts=found.posts,
        pushed_since=found.pushed_since,
        place=found.place,
        spark=bars([(f"{day:%d %b}", count) for day, count in found.days], height=SPARK_HEIGHT),
        spark_total=sum(count for _, count in found.days),
        days=DAYS,
        chart=(CHART_WIDTH, SPARK_HEIGHT),
        listing=found.listing,
        best=_best(found.listing),
        progress=found.progress,
        section="sources",
    )


@router.post("/sources/{source_id}/checkpoint/clear")
async def clear_checkpoint(parts: WithParts, reader: Asking, source_id: Id) -> Response:
    await clear(parts, reader, source_id)
    return go(f"/sources/{source_id}")


def _gather(conn: Connection, source_id: int, now: datetime) -> ShownVisit:
    return ShownVisit(
        sources.past_visits(conn, source_id, api.PAST_VISITS),
        sources.count_posts(conn, source_id),
        hubs.active_since(conn, source_id, now),
        pool.tier_of(conn, source_id),
        pool.posts_by_day(conn, source_id, now, DAYS),
        listings.of_source(conn, source_id, now),
        checkpoints.of_source(conn, source_id),
    )


def _best(listing: Listing | None) -> list[dict[str, object]]:
    return listing.posts[:BEST] if listing else []
