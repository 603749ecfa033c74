"""What one visit or request caused, as it can be found in the tables: the visit, its events, what consumers did with
them, and where they were sent.

A trace is the id in a `traceparent` (W3C Trace Context). The log has no index for it: an operator asks for a trace now
and then, and every event would have to be written into that index.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.sql import portable


class TracedVisit(NamedTuple):
    source_id: int
    address: str
    started_at: datetime
    seconds: float
    outcome: str
    http_status: int | None
    new: int
    updated: int
    error: str | None


class TracedEvent(NamedTuple):
    event_id: str
    kind: str
    key: str
    created_at: datetime
    payload: str


class TracedHandling(NamedTuple):
    """An event in a consumer. `state` is handled, or what became of its dead letter."""

    event_id: str
    consumer: str
    at: datetime | None
    milliseconds: float | None
    state: str
    error: str | None


class TracedDelivery(NamedTuple):
    event_id: str
    webhook_id: int
    address: str
    state: str
    attempts: int
    created_at: datetime
    last_tried_at: datetime | None
    seconds: float | None
    http_status: int | None
    error: str | None


_visits = portable(
    """SELECT c.source_id, s.address, c.started_at, c.seconds, c.outcome, c.http_status, c.new, c.updated, c.error
    FROM crawls c JOIN sources s ON s.id = c.source_id WHERE c.trace = ? ORDER BY c.id""",
    row=TracedVisit,
)
_events = portable(
    """SELECT event_id, kind, key, created_at, CAST(payload AS TEXT) FROM event_outbox
    WHERE traceparent >= ? AND traceparent < ? ORDER BY id LIMIT ?""",
    row=TracedEvent,
)
_trace_of = portable("SELECT traceparent FROM event_outbox WHERE event_id = ?")
_handled = portable(
    """SELECT event_id, consumer, consumed_at, milliseconds, 'handled', NULL FROM consumer_inbox
    WHERE consumer IN (?) AND event_id IN (?)""",
    row=TracedHandling,
)
_dead = portable(
    """SELECT event_id, consumer, COALESCE(settled_at, last_failed_at), NULL, state, error FROM event_dlq
    WHERE consumer IN (?) AND event_id IN (?)""",
    row=TracedHandling,
)
_deliveries = portable(
    """SELECT d.event_id, d.webhook_id, w.address, d.state, d.attempts, d.created_at, d.last_tried_at, d.seconds,
        d.http_status, d.error
    FROM webhooks w JOIN webhook_deliveries d ON d.webhook_id = w.id AND d.event_id IN (?) ORDER BY d.id""",
    row=TracedDelivery,
)


def trace_of(conn: Connection, event_id: str) -> str | None:
    """Returns the traceparent of an event, or None if there is none."""
    found: str | None = _trace_of.value(conn, event_id)
    return found


def visits(conn: Connection, trace_id: str) -> list[TracedVisit]:
    return _visits.all(conn, trace_id)


def events(conn: Connection, trace_id: str, limit: int) -> list[TracedEvent]:
    """Returns the events of a trace, the oldest first. `.` is the character after `-`."""
    return _events.all(conn, f"00-{trace_id}-", f"00-{trace_id}.", limit)


def handled(conn: Connection, consumers: Sequence[str], event_ids: Sequence[str]) -> list[TracedHandling]:
    """Returns what these consumers did with these events."""
    given = list(consumers), list(event_ids)
    return [*_handled.all(conn, *given), *_dead.all(conn, *given)] if all(given) else []


def deliveries(conn: Connection, event_ids: Sequence[str]) -> list[TracedDelivery]:
    return _deliveries.all(conn, list(event_ids)) if event_ids else []
