"""What routes get from the application: its parts, its live updates, its metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from headwater.app import health, log
from headwater.events.health import Figure, judge_store
from headwater.events.live import Live
from headwater.http.metrics import Metrics
from headwater.wire import Parts

T = TypeVar("T")


def parts_of(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


def live_of(request: Request) -> Live:
    live: Live = request.app.state.live
    return live


def metrics_of(request: Request) -> Metrics:
    metrics: Metrics = request.app.state.metrics
    return metrics


def at_once(read: Callable[[Request], T]) -> Callable[[Request], Awaitable[T]]:
    """Returns this function as a dependency that FastAPI calls at once. It has a thread call what is not `async`, which
    takes longer than all of these together."""

    async def dependency(request: Request) -> T:
        return read(request)

    return dependency


WithParts = Annotated[Parts, Depends(at_once(parts_of))]
WithLive = Annotated[Live, Depends(at_once(live_of))]
WithMetrics = Annotated[Metrics, Depends(at_once(metrics_of))]


async def figures(parts: Parts, live: Live) -> list[Figure]:
    """Returns how this instance is doing."""
    problems = parts.db.condition.problems()
    found = await parts.db.read(
        health.examine,
        parts.consumers,
        parts.now(),
        delays=list(live.delays),
        kept_for=timedelta(days=parts.settings.event_history_days),
        has_cursors=parts.follows_table,
        cache_hits=parts.settings.monitor_cache_hit_threshold,
        cache=await parts.cache.hit_rate(),
    )
    store = judge_store([problem.detail for problem in problems])
    if parts.follows_table:
        return [store, *found]
    return [store, await log.examine_connector(parts.db, parts.settings.kafka_connect_url), *found]
