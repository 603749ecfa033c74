"""How Headwater is doing: figures with their limits, numbers for Prometheus, and the last minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal, NamedTuple

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app import log
from headwater.app.shapes import Example, Time
from headwater.events import health
from headwater.events.delivery import Consumer
from headwater.events.health import Figure, Observed
from headwater.events.health import overall as overall
from headwater.model import Reader
from headwater.store import sources
from headwater.store.log import health as log_health
from headwater.store.log.dead_letters import DeadLetter
from headwater.store.log.health import LogHealth
from headwater.store.visits import metrics
from headwater.store.visits.metrics import Alert


class Numbers(NamedTuple):
    """What Prometheus gets from the store."""

    log: LogHealth
    sources_by_status: Mapping[str, int]
    due: int
    alerts: list[Alert]


class Activity(NamedTuple):
    """The last minutes: events in each, visits by outcome; and the dead letters, for those who may see them."""

    events: list[int]
    visits: dict[str, int]
    letters: list[DeadLetter]


def examine(
    conn: Connection,
    consumers: Sequence[Consumer],
    now: datetime,
    *,
    delays: Sequence[float],
    kept_for: timedelta,
    has_cursors: bool,
) -> list[Figure]:
    """Judges how Headwater is doing. `delays` are seconds from write to visible, as listeners of this process saw."""
    found = numbers(conn, consumers, now, has_cursors=has_cursors)
    seen = Observed(found.log, delays, found.sources_by_status, found.due, kept_for)
    return health.judge(seen, consumers, now)


def numbers(conn: Connection, consumers: Sequence[Consumer], now: datetime, *, has_cursors: bool) -> Numbers:
    """Counts what is in the store. Consumers of Kafka have no cursors: Kafka knows how far they are."""
    followers = [consumer.name for consumer in consumers] if has_cursors else []
    return Numbers(
        log_health.examine(conn, followers),
        sources.counts_by_status(conn),
        sources.count_due(conn, now),
        metrics.all_alerts(conn),
    )


def activity(conn: Connection, reader: Reader, now: datetime, *, minutes: int, letters: int) -> Activity:
    return Activity(
        log_health.events_by_minute(conn, now, minutes),
        log_health.visits_by_outcome(conn, now - timedelta(minutes=minutes)),
        log.list_dead_letters(conn, limit=letters) if log.is_operator(reader) else [],
    )


State = Literal["ok", "warning", "bad", "unknown"]


class Alive(TypedDict):
    status: Annotated[Literal["ok"], Example("ok")]


class FigureJson(TypedDict):
    """One figure: its value, what it should stay below, and what to do when it does not."""

    name: Annotated[str, Example("consumer_lag")]
    consumer: Annotated[str | None, Example("search", "whose figure it is, where each consumer has one")]
    value: Annotated[float | None, Example(0.4, "null: not known; `advice` says why")]
    limit: Annotated[float | None, Example(6.0)]
    unit: Annotated[str, Example("seconds")]
    state: Annotated[State, Example("ok")]
    advice: Annotated[str, Example("")]


class HealthJson(TypedDict):
    """How Headwater is doing. `state` is that of the worst figure."""

    state: Annotated[State, Example("ok")]
    checked_at: Annotated[Time, Example("2026-01-07T09:30:00Z")]
    figures: list[FigureJson]
