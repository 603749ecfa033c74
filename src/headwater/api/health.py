"""How Headwater is doing: `/healthz`, `/readyz`, `/api/health`, `/metrics`, `/api/crawl` and `/api/checkpoints`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import structlog
from fastapi import Query, Response
from prometheus_client import CONTENT_TYPE_LATEST

from headwater.app import crawling, health, instance
from headwater.app.crawling import CheckpointJson, CheckpointsJson, HourJson, HoursJson, StatisticsJson
from headwater.app.health import Alive, HealthJson
from headwater.app.shapes import shaped
from headwater.errors import StoreUnavailable
from headwater.http import state
from headwater.http.auth import CurrentReader, needs
from headwater.http.routes import Id, api_router, route
from headwater.http.state import WithLive, WithMetrics, WithParts

MOST_HOURS = 31 * 24
log = structlog.get_logger(__name__)
router = api_router("health", prefix="")
crawl_router = api_router("crawling")

Hours = Annotated[int, Query(ge=1, le=MOST_HOURS, description="how many hours back, the present one included")]


@router.get("/healthz", summary="Is the process alive?")
async def healthz() -> Alive:
    """It answers for as long as the process runs, and needs neither token nor database."""
    return {"status": "ok"}


@router.get("/readyz", summary="Can it work? The database answers, is whole, and has the right schema")
async def readyz(parts: WithParts) -> Alive:
    """503 while the database does not answer or has the wrong schema. It needs no token."""
    try:
        await asyncio.to_thread(instance.check_store, parts.db)
    except StoreUnavailable as error:
        # Anybody may ask this; what the driver says about the database is for the log.
        log.warning("not ready", code=error.code, detail=error.detail)
        raise type(error)() from error
    return {"status": "ok"}


@router.get("/api/health", **route("Is it well? Each figure with its limit", "health:read"))
async def show_health(parts: WithParts, live: WithLive) -> HealthJson:
    """Backlog and lag of the consumers, dead letters, freshness, time from write to visible, and failing sources."""
    return health.health_json(await state.figures(parts, live), parts.now())


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": "headwater_sources_due 2.0"}}}
    },
    dependencies=[needs("health:read")],
)
async def show_metrics(parts: WithParts, live: WithLive, metrics: WithMetrics) -> Response:
    """It always needs a token. Prometheus sends it with `authorization: credentials_file`."""
    now = parts.now()
    numbers = await parts.db.read(health.numbers, parts.consumers, now, has_cursors=parts.follows_table)
    metrics.note_lookups(parts.cache.lookups)
    text = metrics.text(numbers, now, live=live.count(), database=parts.db.engine.dialect.name)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


@crawl_router.get("/crawl/metrics", **route("How crawling went, hour by hour", "health:read"))
async def list_hours(parts: WithParts, reader: CurrentReader, hours: Hours = 48) -> HoursJson:
    """Counted every minute. The last hour is not complete."""
    found = await parts.db.read(crawling.by_hour, parts.now(), hours)
    return {"items": [shaped(HourJson, one) for one in found]}


@crawl_router.get("/checkpoints", **route("How far the crawls of lists got", "sources:read"))
async def list_checkpoints(parts: WithParts, reader: CurrentReader) -> CheckpointsJson:
    """For the boards, news sites and accounts you follow."""
    found = await parts.db.read(crawling.every_checkpoint, reader)
    return {"items": [shaped(CheckpointJson, one) for one in found]}


@crawl_router.get("/checkpoints/{source_id}", **route("How far the crawl of one list got", "sources:read"))
async def show_checkpoint(parts: WithParts, reader: CurrentReader, source_id: Id) -> CheckpointJson:
    """The next page, and what was done so far."""
    return shaped(CheckpointJson, await parts.db.read(crawling.checkpoint, reader, source_id, parts.now()))


@crawl_router.delete(
    "/checkpoints/{source_id}", status_code=204, **route("Forget how far the crawl of a list got", "sources:write")
)
async def clear_checkpoint(parts: WithParts, reader: CurrentReader, source_id: Id) -> None:
    """The next crawl goes through the whole list again. Stored items are not fetched again."""
    await parts.db.write(crawling.clear_checkpoint, reader, source_id, parts.now())


@crawl_router.get("/crawl/statistics", **route("What the lists you follow have brought", "sources:read"))
async def show_statistics(parts: WithParts, reader: CurrentReader) -> StatisticsJson:
    """Threads, articles and images that were read or failed, board by board."""
    return shaped(StatisticsJson, await parts.db.read(crawling.statistics, reader))
