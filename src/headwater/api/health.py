"""Whether Headwater lives (`/healthz`), can work (`/readyz`), is well (`/api/health`), and its numbers (`/metrics`)."""

from __future__ import annotations

import asyncio

import structlog
from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from headwater.app import health, instance
from headwater.app.health import Alive, FigureJson, HealthJson
from headwater.app.shapes import iso, shaped
from headwater.errors import StoreUnavailable
from headwater.http import state
from headwater.http.json_route import JsonRoute
from headwater.http.state import WithLive, WithMetrics, WithParts

log = structlog.get_logger(__name__)
router = APIRouter(tags=["health"], route_class=JsonRoute)


@router.get("/healthz", summary="Is the process alive?")
async def healthz() -> Alive:
    return {"status": "ok"}


@router.get("/readyz", summary="Can it work? The database answers and has the right schema")
async def readyz(parts: WithParts) -> Alive:
    try:
        await asyncio.to_thread(instance.check_schema, parts.db)
    except StoreUnavailable as error:
        # Anybody may ask this; what the driver says about the database is for the log.
        log.warning("not ready", code=error.code, detail=error.detail)
        raise type(error)() from error
    return {"status": "ok"}


@router.get("/api/health", summary="Is it well? Each figure with its limit")
async def show_health(parts: WithParts, live: WithLive) -> HealthJson:
    """Backlog and lag of the consumers, dead letters, freshness, from write to visible, sources in trouble."""
    figures = await state.figures(parts, live)
    return {
        "state": health.overall(figures),
        "checked_at": iso(parts.now()),
        "figures": [shaped(FigureJson, figure) for figure in figures],
    }


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def show_metrics(parts: WithParts, live: WithLive, metrics: WithMetrics) -> Response:
    """Open to this machine itself; from elsewhere, or through a proxy, it takes a token like everything else."""
    now = parts.now()
    numbers = await parts.db.read(health.numbers, parts.consumers, now, has_cursors=parts.follows_table)
    metrics.note_log(numbers.log, now)
    metrics.note_alerts(numbers.alerts)
    metrics.live_connections.set(live.count())
    return Response(metrics.text(numbers.sources_by_status, numbers.due), media_type=CONTENT_TYPE_LATEST)
