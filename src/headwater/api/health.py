"""Whether Headwater lives (`/healthz`), can work (`/readyz`), and how it is doing in numbers (`/metrics`)."""

from __future__ import annotations

import asyncio
from typing import Literal

import structlog
from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from typing_extensions import TypedDict

from headwater.api.auth import WithParts
from headwater.api.metrics import Metrics
from headwater.errors import StoreUnavailable
from headwater.store import migrate, sources

log = structlog.get_logger(__name__)
router = APIRouter(tags=["health"])


class Alive(TypedDict):
    status: Literal["ok"]


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
    return Response(counted.text(by_status, due), media_type=CONTENT_TYPE_LATEST)
