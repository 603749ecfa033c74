"""What routes get from the application: its parts, its live updates, its metrics."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Request

from headwater.app import health, log
from headwater.events.health import Figure, judge_store
from headwater.events.live import Live
from headwater.http.metrics import Metrics
from headwater.wire import Parts


def parts_of(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


def live_of(request: Request) -> Live:
    live: Live = request.app.state.live
    return live


def metrics_of(request: Request) -> Metrics:
    metrics: Metrics = request.app.state.metrics
    return metrics


WithParts = Annotated[Parts, Depends(parts_of)]
WithLive = Annotated[Live, Depends(live_of)]
WithMetrics = Annotated[Metrics, Depends(metrics_of)]


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
