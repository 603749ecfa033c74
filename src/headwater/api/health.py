"""Whether Headwater lives (`/healthz`), can work (`/readyz`), is well (`/api/health`), and its numbers (`/metrics`)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated, Literal

import structlog
from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import Field
from typing_extensions import TypedDict

from headwater.api.live import live_of
from headwater.app.shapes import Time, iso
from headwater.errors import StoreUnavailable
from headwater.events import health
from headwater.events.health import Figure, Observed
from headwater.events.live import Live
from headwater.http.auth import WithParts
from headwater.http.metrics import Metrics
from headwater.store import migrate, sources
from headwater.store.log import health as log_health
from headwater.store.visits import alerts
from headwater.wire import Parts

log = structlog.get_logger(__name__)
router = APIRouter(tags=["health"])


class Alive(TypedDict):
    status: Literal["ok"]


class FigureJson(TypedDict):
    """One figure: its value, what it should stay below, and what to do when it does not."""

    name: str
    consumer: Annotated[str | None, Field(description="whose figure it is, where each consumer has one")]
    value: Annotated[float | None, Field(description="null: not known; `advice` says why")]
    limit: float | None
    unit: str
    state: Literal["ok", "warning", "bad", "unknown"]
    advice: str


class HealthJson(TypedDict):
    """How Headwater is doing. `state` is that of the worst figure."""

    state: Literal["ok", "warning", "bad", "unknown"]
    checked_at: Time
    figures: list[FigureJson]


_FIGURE = {
    "name": "consumer_lag",
    "consumer": "search",
    "value": 0.4,
    "limit": 6.0,
    "unit": "seconds",
    "state": "ok",
    "advice": "",
}
EXAMPLES = {"HealthJson": {"state": "ok", "checked_at": "2026-01-07T09:30:00Z", "figures": [_FIGURE]}}


@router.get("/healthz", summary="Is the process alive?")
async def healthz() -> Alive:
    return {"status": "ok"}


@router.get("/readyz", summary="Can it work? The database answers and has the right schema")
async def readyz(parts: WithParts) -> Alive:
    try:
        await asyncio.to_thread(migrate.check, parts.db)
    except StoreUnavailable as error:
        # Anybody may ask this; what the driver says about the database is for the log.
        log.warning("not ready", code=error.code, detail=error.detail)
        raise type(error)() from error
    return {"status": "ok"}


@router.get("/api/health", summary="Is it well? Each figure with its limit")
async def show_health(parts: WithParts, request: Request) -> HealthJson:
    """Backlog and lag of the consumers, dead letters, freshness, from write to visible, sources in trouble."""
    figures = await examined(parts, live_of(request))
    return {
        "state": health.overall(figures),
        "checked_at": iso(parts.now()),
        "figures": [_figure_json(figure) for figure in figures],
    }


async def examined(parts: Parts, live: Live) -> list[Figure]:
    now = parts.now()
    seen = Observed(
        log=await parts.db.read(log_health.examine, _followers(parts)),
        delays=list(live.delays),
        sources_by_status=await parts.db.read(sources.counts_by_status),
        due=await parts.db.read(sources.count_due, now),
        kept_for=timedelta(days=parts.settings.event_history_days),
    )
    return health.judge(seen, parts.consumers, now)


def _followers(parts: Parts) -> list[str]:
    """Whose cursors tell how far they are. On Kafka that is for Kafka to tell."""
    return [consumer.name for consumer in parts.consumers] if parts.follows_table else []


def _figure_json(figure: Figure) -> FigureJson:
    return {
        "name": figure.name,
        "consumer": figure.consumer,
        "value": figure.value,
        "limit": figure.limit,
        "unit": figure.unit,
        "state": figure.state,
        "advice": figure.advice,
    }


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(parts: WithParts, request: Request) -> Response:
    """Open to this machine itself; from elsewhere, or through a proxy, it takes a token like everything else."""
    counted: Metrics = request.app.state.metrics
    by_status = await parts.db.read(sources.counts_by_status)
    due = await parts.db.read(sources.count_due, parts.now())
    log_state = await parts.db.read(log_health.examine, _followers(parts))
    counted.note_log(log_state, parts.now())
    counted.note_alerts(await parts.db.read(alerts.all_alerts))
    counted.live_connections.set(live_of(request).count())
    return Response(counted.text(by_status, due), media_type=CONTENT_TYPE_LATEST)
