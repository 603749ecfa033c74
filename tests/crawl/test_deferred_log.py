"""Visits that had to wait are logged by their number, not one by one."""

from __future__ import annotations

from structlog.testing import capture_logs

from headwater import server
from headwater.server import DeferredVisits


def test_thousands_of_visits_that_wait_are_one_line_with_a_count() -> None:
    deferred = DeferredVisits()
    with capture_logs() as logged:
        for _ in range(3714):
            deferred.count("its turn at www.reddit.com")
            deferred.log_if_due()
        deferred.count("busy.example asked for a pause")
        assert logged == []
        deferred.log()
        deferred.log()
    assert [(one["event"], one["waits_for"], one["count"]) for one in logged] == [
        ("visits.deferred", "its turn at www.reddit.com", 3714),
        ("visits.deferred", "busy.example asked for a pause", 1),
    ]
    assert server.DEFERRED_SECONDS >= 60
