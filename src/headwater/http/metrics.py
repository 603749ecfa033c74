"""Numbers for Prometheus: every metric and every alert about them, declared once.

Counters and histograms count as things happen in this process. Gauges are read from the store when somebody asks, so
each process of a cluster answers the same. The reference, the alert rules and the dashboard in `deploy/` are generated
from these declarations.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from headwater import __version__
from headwater.app.health import Numbers
from headwater.model import SavedVisit
from headwater.store.log.health import LogHealth

QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
SLOW = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 30.0, 60.0, 120.0)


class Metric(NamedTuple):
    """A metric, and how the dashboard shows it: as the `max` or `sum` of all processes, by a query, or not at all."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    shown: str = ""
    unit: str = "short"

    @property
    def query(self) -> str:
        """Returns the query by which the dashboard shows it."""
        if self.shown not in ("max", "sum"):
            return self.shown
        by = f" by ({', '.join(self.labels)}) " if self.labels else ""
        return f"{self.shown}{by}({self.name})"


class AlertRule(NamedTuple):
    """When somebody should be told. `advice` is what to do."""

    name: str
    query: str
    lasts: str
    severity: Literal["warning", "critical"]
    summary: str
    advice: str


METRICS = (
    Metric(
        "headwater_requests",
        "counter",
        "Answered HTTP requests.",
        ("method", "route", "status"),
        shown="sum by (status) (rate(headwater_requests_total[5m]))",
        unit="reqps",
    ),
    Metric(
        "headwater_request_seconds",
        "histogram",
        "How long requests took to answer.",
        ("route",),
        QUICK,
        shown="histogram_quantile(0.95, sum by (le) (rate(headwater_request_seconds_bucket[5m])))",
        unit="s",
    ),
    Metric(
        "headwater_visits",
        "counter",
        "Visits to sources, by outcome.",
        ("outcome",),
        shown="sum by (outcome) (rate(headwater_visits_total[5m]))",
    ),
    Metric(
        "headwater_visit_seconds",
        "histogram",
        "How long visits took, without waiting for a slot of the host.",
        (),
        SLOW,
        shown="histogram_quantile(0.95, sum by (le) (rate(headwater_visit_seconds_bucket[5m])))",
        unit="s",
    ),
    Metric(
        "headwater_posts",
        "counter",
        "Posts that visits found: new, changed, or already known.",
        ("change",),
        shown="sum by (change) (rate(headwater_posts_total[15m]))",
    ),
    Metric("headwater_sources", "gauge", "Watched sources by status.", ("status",), shown="max"),
    Metric("headwater_sources_due", "gauge", "Sources that wait for a visit.", shown="max"),
    Metric("headwater_outbox_backlog", "gauge", "Events that wait for a consumer, capped.", ("consumer",), shown="max"),
    Metric(
        "headwater_consumer_lag_seconds",
        "gauge",
        "Age of the oldest event that waits for a consumer.",
        ("consumer",),
        shown="max",
        unit="s",
    ),
    Metric(
        "headwater_partition_backlog",
        "gauge",
        "Events that wait for a consumer in a partition, capped. Partitions in which nothing waits are left out.",
        ("consumer", "partition"),
    ),
    Metric(
        "headwater_partition_lag_seconds",
        "gauge",
        "Age of the oldest event that waits for a consumer in a partition.",
        ("consumer", "partition"),
        unit="s",
    ),
    Metric("headwater_dead_letters", "gauge", "Events that a consumer gave up on, capped.", ("consumer",), shown="max"),
    Metric(
        "headwater_queue_depth",
        "gauge",
        "What waits in a queue of the store, capped: webhooks (deliveries), images, "
        "retries (events that failed in a consumer).",
        ("queue",),
        shown="max",
    ),
    Metric("headwater_oldest_event_seconds", "gauge", "Age of the oldest event that is kept.", unit="s"),
    Metric(
        "headwater_replication_slot_bytes",
        "gauge",
        "Write-ahead log that PostgreSQL keeps for a replication slot.",
        ("slot",),
        shown="max",
        unit="bytes",
    ),
    Metric("headwater_alerts", "gauge", "1 while an alert is raised.", ("alert",)),
    Metric(
        "headwater_cache_lookups",
        "counter",
        "Lookups in the cache by kind and by what was found: fresh, stale, missing, or bypassed (it did not answer).",
        ("kind", "found"),
        shown="sum by (found) (rate(headwater_cache_lookups_total[5m]))",
    ),
    Metric("headwater_live_connections", "gauge", "Connections that follow the live updates.", shown="sum"),
    Metric(
        "headwater_build", "gauge", "Always 1. The labels describe this process.", ("version", "python", "database")
    ),
)
PROCESS = {
    "process_cpu_seconds_total": "CPU time of this process.",
    "process_resident_memory_bytes": "Memory of this process.",
    "process_open_fds": "Files and connections that this process has open.",
    "process_max_fds": "How many files and connections it may have open.",
    "process_start_time_seconds": "When it was started, in seconds since 1970.",
    "process_virtual_memory_bytes": "Address space of this process.",
}
RULES = (
    AlertRule(
        "HeadwaterDown",
        'up{job="headwater"} == 0',
        "2m",
        "critical",
        "Headwater does not answer",
        "Look at its log. `headwater doctor` on that machine says what is missing.",
    ),
    AlertRule(
        "HeadwaterConsumerLags",
        "max by (consumer) (headwater_consumer_lag_seconds) > 300",
        "5m",
        "critical",
        "The consumer {{ $labels.consumer }} is behind",
        "The page /health says why. Posts are still stored, and nothing is lost.",
    ),
    AlertRule(
        "HeadwaterDeadLetters",
        "max by (consumer) (headwater_dead_letters) > 0",
        "10m",
        "warning",
        "Events failed in {{ $labels.consumer }}",
        "`headwater dlq list` shows them. `headwater dlq replay` tries them again.",
    ),
    AlertRule(
        "HeadwaterNothingNew",
        'sum(increase(headwater_posts_total{change="new"}[6h])) == 0 and sum(headwater_sources) > 0',
        "1h",
        "warning",
        "No new post for six hours",
        "`headwater sources` shows how each source is doing.",
    ),
    AlertRule(
        "HeadwaterSourcesLate",
        "max(headwater_sources_due) > 100",
        "30m",
        "warning",
        "Sources wait for a visit",
        "Add workers, or raise HEADWATER_CHECK_INTERVAL_SECONDS.",
    ),
    AlertRule(
        "HeadwaterErrors",
        'sum(rate(headwater_requests_total{status=~"5.."}[5m])) > 0.1',
        "5m",
        "critical",
        "Requests fail",
        "The log shows each of them. `/readyz` says whether the database answers.",
    ),
    AlertRule(
        "HeadwaterSlotGrows",
        "max by (slot) (headwater_replication_slot_bytes) > 1073741824",
        "5m",
        "critical",
        "PostgreSQL keeps its log for the slot {{ $labels.slot }}",
        "`headwater kafka check` says what stopped. A forgotten slot fills the disk: drop it.",
    ),
    AlertRule(
        "HeadwaterFilesRunOut",
        'process_open_fds{job="headwater"} / process_max_fds{job="headwater"} > 0.8',
        "5m",
        "warning",
        "Headwater has nearly no file descriptors left",
        "Raise LimitNOFILE, or lower HEADWATER_MAX_CONNECTIONS.",
    ),
    AlertRule(
        "HeadwaterAlert",
        "max by (alert) (headwater_alerts) > 0",
        "1m",
        "warning",
        "Headwater raised {{ $labels.alert }}",
        "The page /crawling says what it is about.",
    ),
)


class Metrics:
    """What is counted. One registry per application, so that two in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._made: dict[str, Any] = {metric.name: self._make(metric) for metric in METRICS}
        self._lookups: dict[tuple[str, str], int] = {}
        ProcessCollector(registry=self.registry)

    def _make(self, metric: Metric) -> Counter | Gauge | Histogram:
        given = (metric.name, metric.meaning, metric.labels)
        if metric.kind == "histogram":
            return Histogram(*given, buckets=metric.buckets, registry=self.registry)
        return (Counter if metric.kind == "counter" else Gauge)(*given, registry=self.registry)

    def note_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._made["headwater_requests"].labels(method, route, str(status)).inc()
        self._made["headwater_request_seconds"].labels(route).observe(seconds)

    def note_visit(self, saved: SavedVisit) -> None:
        self._made["headwater_visits"].labels(saved.visit.outcome).inc()
        if saved.visit.outcome == "deferred":
            return
        self._made["headwater_visit_seconds"].observe(saved.visit.seconds)
        if saved.accepted:
            for change, stored in (("new", "new"), ("changed", "updated"), ("known", "same")):
                self._made["headwater_posts"].labels(change).inc(saved.count(stored))

    def note_lookups(self, lookups: Mapping[tuple[str, str], int]) -> None:
        """Takes over how often this process looked into the cache, by kind and by what was found."""
        for labels, count in lookups.items():
            self._made["headwater_cache_lookups"].labels(*labels).inc(count - self._lookups.get(labels, 0))
        self._lookups = dict(lookups)

    def text(self, numbers: Numbers, now: datetime, *, live: int, database: str) -> bytes:
        """Returns everything as Prometheus reads it."""
        self._set("headwater_sources", numbers.sources_by_status.items())
        self._set("headwater_queue_depth", numbers.queues.items())
        self._set("headwater_alerts", ((one.name, one.cleared_at is None) for one in numbers.alerts))
        self._made["headwater_sources_due"].set(numbers.due)
        self._made["headwater_live_connections"].set(live)
        self._made["headwater_build"].labels(__version__, platform.python_version(), database).set(1)
        self._note_log(numbers.log, now)
        return generate_latest(self.registry)

    def _note_log(self, log: LogHealth, now: datetime) -> None:
        waited = {one.consumer: _age(one.oldest_at, now) for one in log.backlogs}
        self._set("headwater_outbox_backlog", ((one.consumer, one.events) for one in log.backlogs))
        self._set("headwater_consumer_lag_seconds", waited.items())
        self._set("headwater_dead_letters", ((one.consumer, log.dead.get(one.consumer, 0)) for one in log.backlogs))
        self._made["headwater_oldest_event_seconds"].set(_age(log.oldest_event_at, now))
        behind = [(backlog.consumer, one) for backlog in log.backlogs for one in backlog.partitions]
        self._set("headwater_partition_backlog", (((name, one.partition), one.events) for name, one in behind))
        self._set(
            "headwater_partition_lag_seconds",
            (((name, one.partition), _age(one.oldest_at, now)) for name, one in behind),
        )
        self._set("headwater_replication_slot_bytes", ((slot.name, slot.bytes) for slot in log.slots))

    def _set(self, name: str, values: Iterable[tuple[str | tuple[object, ...], float]]) -> None:
        """Sets a gauge by its label or labels. What is not there any more is not answered any more."""
        gauge = self._made[name]
        gauge.clear()
        for label, value in values:
            gauge.labels(*(label if isinstance(label, tuple) else (label,))).set(value)


def _age(since: datetime | None, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds()) if since else 0.0


def rules_file() -> dict[str, Any]:
    """Returns the alert rules as Prometheus reads them."""
    rules = [
        {
            "alert": rule.name,
            "expr": rule.query,
            "for": rule.lasts,
            "labels": {"severity": rule.severity},
            "annotations": {"summary": rule.summary, "description": rule.advice},
        }
        for rule in RULES
    ]
    return {"groups": [{"name": "headwater", "rules": rules}]}


def dashboard() -> dict[str, Any]:
    """Returns a dashboard for Grafana: a panel for each metric that has a query."""
    shown = [metric for metric in METRICS if metric.shown]
    return {
        "title": "Headwater",
        "uid": "headwater",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}]
        },
        "panels": [_panel(place, metric) for place, metric in enumerate(shown)],
    }


def _panel(place: int, metric: Metric) -> dict[str, Any]:
    by = metric.query.partition("by (")[2].partition(")")[0]
    source = {"type": "prometheus", "uid": "${source}"}
    legend = f"{{{{{by}}}}}" if by and by != "le" else metric.name.removeprefix("headwater_")
    return {
        "id": place + 1,
        "type": "timeseries",
        "title": metric.meaning.rstrip("."),
        "gridPos": {"x": place % 2 * 12, "y": place // 2 * 8, "w": 12, "h": 8},
        "datasource": source,
        "fieldConfig": {"defaults": {"unit": metric.unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "datasource": source, "expr": metric.query, "legendFormat": legend}],
    }
