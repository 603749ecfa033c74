"""What Headwater counts, for Prometheus. One registry per application, so that two in one process do not mix."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest


class Metrics:
    """Counters are fed where things happen; gauges are set from the store when somebody asks."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "headwater_requests",
            "Answered HTTP requests.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.visits = Counter("headwater_visits", "Visits of sources by outcome.", ["outcome"], registry=self.registry)
        self._sources = Gauge("headwater_sources", "Watched sources by status.", ["status"], registry=self.registry)
        self._due = Gauge("headwater_sources_due", "Sources that wait for a visit.", registry=self.registry)

    def text(self, sources_by_status: Mapping[str, int], due: int) -> bytes:
        self._sources.clear()
        for status, count in sources_by_status.items():
            self._sources.labels(status).set(count)
        self._due.set(due)
        return generate_latest(self.registry)
