"""What routes get from the application: its parts, its live updates, its metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Depends, Request
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from headwater.app import health
from headwater.events.health import Figure, judge_store
from headwater.events.live import Live
from headwater.store.log.health import LogHealth
from headwater.store.visits.metrics import Alert
from headwater.wire import Parts


class Metrics:
    """What Headwater counts, for Prometheus: counters as things happen, gauges from the store when somebody asks.

    One registry per application, so that two in one process do not mix.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "headwater_requests",
            "Answered HTTP requests.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.visits = Counter("headwater_visits", "Visits of sources by outcome.", ["outcome"], registry=self.registry)
        self._sources = self._gauge("headwater_sources", "Watched sources by status.", "status")
        self._due = self._gauge("headwater_sources_due", "Sources that wait for a visit.")
        self._backlog = self._gauge("headwater_outbox_backlog", "Events that wait for a consumer, capped.", "consumer")
        self._lag = self._gauge("headwater_consumer_lag_seconds", "Age of the oldest event that waits.", "consumer")
        self._dead = self._gauge("headwater_dead_letters", "Events that a consumer gave up on, capped.", "consumer")
        self._oldest = self._gauge("headwater_oldest_event_seconds", "Age of the oldest event that is kept.")
        self._slot = self._gauge("headwater_replication_slot_bytes", "Write-ahead log that is kept for Debezium.")
        self._alerts = self._gauge("headwater_alerts", "1 while an alert is raised.", "alert")
        self.live_connections = self._gauge("headwater_live_connections", "Connections that follow the live updates.")

    def text(self, sources_by_status: Mapping[str, int], due: int) -> bytes:
        self._sources.clear()
        for status, count in sources_by_status.items():
            self._sources.labels(status).set(count)
        self._due.set(due)
        return generate_latest(self.registry)

    def note_log(self, log: LogHealth, now: datetime) -> None:
        self._dead.clear()
        for backlog in log.backlogs:
            waited = (now - backlog.oldest_at).total_seconds() if backlog.oldest_at else 0.0
            self._backlog.labels(backlog.consumer).set(backlog.events)
            self._lag.labels(backlog.consumer).set(max(0.0, waited))
            self._dead.labels(backlog.consumer).set(log.dead.get(backlog.consumer, 0))
        age = (now - log.oldest_event_at).total_seconds() if log.oldest_event_at else 0.0
        self._oldest.set(max(0.0, age))
        self._slot.set(log.slot_bytes or 0)

    def note_alerts(self, found: Sequence[Alert]) -> None:
        for one in found:
            self._alerts.labels(one.name).set(one.cleared_at is None)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(name, meaning, labels, registry=self.registry)


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
    )
    return [judge_store([problem.detail for problem in problems]), *found]
