"""How Headwater is doing: figures with their limits, numbers for Prometheus, and the last minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal, NamedTuple

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.accounts.scopes import may
from headwater.app import log
from headwater.app.shapes import Example, Time, iso, shaped
from headwater.crawl import monitors
from headwater.events import health
from headwater.events.delivery import Consumer
from headwater.events.health import Figure, Observed
from headwater.events.health import overall as overall
from headwater.model import Reader
from headwater.store import sources
from headwater.store.fleet import forecasts
from headwater.store.log import health as log_health
from headwater.store.log.dead_letters import DeadLetter
from headwater.store.log.health import LogHealth
from headwater.store.row_security import of_everybody
from headwater.store.visits import metrics
from headwater.store.visits.metrics import Alert


class Numbers(NamedTuple):
    """What Prometheus gets from the store."""

    log: LogHealth
    sources_by_status: Mapping[str, int]
    due: int
    alerts: list[Alert]
    queues: Mapping[str, int]
    answers: int
    unchanged: int


class Activity(NamedTuple):
    """The last minutes: events in each, visits by outcome; and the dead letters, for those who may see them."""

    events: list[int]
    visits: dict[str, int]
    dead_letters: list[DeadLetter]


def examine(
    conn: Connection,
    consumers: Sequence[Consumer],
    now: datetime,
    *,
    delays: Sequence[float],
    kept_for: timedelta,
    has_cursors: bool,
    cache_hits: float = health.MIN_CACHE_HITS,
    cache: tuple[float | None, int] = (None, 0),
) -> list[Figure]:
    """Judges how Headwater is doing. `delays` are seconds from write to visible, as listeners of this process saw, and
    `cache` are the share of hits among lookups, and the lookups."""
    found, made = numbers(conn, consumers, now, has_cursors=has_cursors), forecasts.newest(conn)
    seen = Observed(
        log=found.log,
        delays=delays,
        sources_by_status=found.sources_by_status,
        due=found.due,
        kept_for=kept_for,
        on_kafka=not has_cursors,
        answers=found.answers,
        unchanged=found.unchanged,
        cache_hits=cache_hits,
        forecast_knows=made.made_on.date() if made else None,
        hits=cache[0],
        lookups=cache[1],
    )
    return health.judge(seen, consumers, now)


def numbers(conn: Connection, consumers: Sequence[Consumer], now: datetime, *, has_cursors: bool) -> Numbers:
    """Counts what is in the store. Consumers of Kafka have no cursors: their inbox says what had its effect."""
    followers = [consumer.name for consumer in consumers] if has_cursors else []
    on_kafka = None if has_cursors else {consumer.name: consumer.kinds for consumer in consumers}
    return Numbers(
        log_health.examine(conn, followers, on_kafka),
        sources.counts_by_status(conn),
        sources.count_due(conn, now),
        metrics.all_alerts(conn),
        log_health.queue_depths(conn),
        *monitors.recent_answers(conn, now),
    )


def activity(conn: Connection, reader: Reader, now: datetime, *, minutes: int, dead_letters: int) -> Activity:
    """Returns what the whole instance does, whoever asks; its dead letters only to operators."""
    with of_everybody(conn):
        return Activity(
            log_health.events_by_minute(conn, now, minutes),
            log_health.visits_by_outcome(conn, now - timedelta(minutes=minutes)),
            log.list_dead_letters(conn, limit=dead_letters) if may(reader, "log:read") else [],
        )


State = Literal["ok", "warning", "bad", "unknown"]


class Alive(TypedDict):
    status: Annotated[Literal["ok"], Example("ok")]


class FigureJson(TypedDict):
    """One figure: its value, what it should stay below, and what to do when it does not."""

    name: Annotated[str, Example("consumer_lag")]
    consumer: Annotated[str | None, Example("search", "whose figure it is, where each consumer has one")]
    value: Annotated[float | None, Example(0.4, "null: not known; `advice` says why")]
    limit: Annotated[float | None, Example(6.0, "what it should stay below; of shares of hits, what it should reach")]
    unit: Annotated[str, Example("seconds")]
    state: Annotated[State, Example("ok")]
    advice: Annotated[str, Example("")]


class HealthJson(TypedDict):
    """How Headwater is doing. `state` is that of the worst figure. The five values beside it are figures as well."""

    state: Annotated[State, Example("ok")]
    status: Annotated[State, Example("ok", "the same as `state`")]
    checked_at: Annotated[Time, Example("2026-01-07T09:30:00Z")]
    kafka_consumer_lag: Annotated[
        float | None, Example(0.4, "seconds that the oldest event waits for a consumer, on Kafka or on the table")
    ]
    outbox_backlog: Annotated[float | None, Example(3, "events that the slowest consumer has not handled")]
    dlq_count: Annotated[float | None, Example(0, "dead letters")]
    cache_hit_rate: Annotated[
        float | None, Example(0.81, "share of lookups in the cache that found something, within the last hour")
    ]
    forecast_freshness_sec: Annotated[
        float | None, Example(32400.0, "seconds since the end of the last day that the forecast knows")
    ]
    unknown: Annotated[
        dict[str, str],
        Example({"forecast_freshness_sec": "There is no forecast."}, "why a value is null, by its name"),
    ]
    figures: list[FigureJson]


NAMED = ("kafka_consumer_lag", "outbox_backlog", "dlq_count", "cache_hit_rate", "forecast_freshness_sec")


def health_json(figures: Sequence[Figure], now: datetime) -> HealthJson:
    """Returns all figures, those that others ask for by name also by their names."""
    named = {figure.name: figure for figure in figures if figure.name in NAMED}
    return {
        "state": overall(figures),
        "status": overall(figures),
        "checked_at": iso(now),
        "kafka_consumer_lag": named["kafka_consumer_lag"].value,
        "outbox_backlog": named["outbox_backlog"].value,
        "dlq_count": named["dlq_count"].value,
        "cache_hit_rate": named["cache_hit_rate"].value,
        "forecast_freshness_sec": named["forecast_freshness_sec"].value,
        "unknown": {name: figure.advice for name, figure in named.items() if figure.value is None},
        "figures": [shaped(FigureJson, figure) for figure in figures],
    }
