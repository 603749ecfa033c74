"""How Headwater is doing: figures, each with its limit, its state and advice. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, NamedTuple

from headwater.events.delivery import Consumer
from headwater.store.log.health import Backlog, LogHealth, PartitionBacklog
from headwater.store.log.replication import LogKeeper

MAX_BACKLOG = 100
MAX_LAG_SECONDS = 2.0
MAX_DEAD_SHARE = 0.001
MAX_VISIBLE_SECONDS = 3.0
MAX_SLOT_BYTES = 1024**3
LOST_SOON = ("unreserved", "lost")  # a slot whose log PostgreSQL is about to drop, or has dropped
MAX_FAILING_SHARE = 0.1
MIN_CACHE_HITS = 0.7
FEWEST_ANSWERS = 20  # for a share to be judged
MAX_FORECAST_AGE = timedelta(days=2)  # after the last day that it knows
MIN_HITS = 0.8
FEWEST_LOOKUPS = 1000
STALE_AFTER = timedelta(minutes=90)
BAD_BEYOND = 10  # times the limit: a value over the limit is a warning, one over ten times the limit is bad

State = Literal["ok", "warning", "bad", "unknown"]
_RANK: Mapping[State, int] = {"unknown": 0, "ok": 0, "warning": 1, "bad": 2}


class Figure(NamedTuple):
    """`value` should stay below `limit`; those of `cache_hit_rate` and `answers_unchanged` should reach it.

    `consumer` is set where each consumer has a figure of its own.

    `advice` says what to do, or why the value is unknown.
    """

    name: str
    value: float | None
    limit: float | None
    unit: str
    state: State
    advice: str = ""
    consumer: str | None = None


class Observed(NamedTuple):
    """What the figures are made of. `delays` are seconds from write to visible, as seen by this process's listeners.

    `answers` are those of feeds within the last hour, of which so many were `unchanged`; `cache_hits` is the share that
    should be. `forecast_knows` is the last day that the forecast knows. `lookups` are those in the cache within the
    last hour, of which this share were `hits`.
    """

    log: LogHealth
    delays: Sequence[float]
    sources_by_status: Mapping[str, int]
    due: int
    kept_for: timedelta
    on_kafka: bool = False
    answers: int = 0
    unchanged: int = 0
    cache_hits: float = MIN_CACHE_HITS
    forecast_knows: date | None = None
    lookups: int = 0
    hits: float | None = None


def judge(seen: Observed, consumers: Sequence[Consumer], now: datetime) -> list[Figure]:
    lingers = {consumer.name: consumer.linger for consumer in consumers}
    lags = [_lag(backlog, lingers.get(backlog.consumer, 0.0), now, _why_behind(seen)) for backlog in seen.log.backlogs]
    return [
        _backlog(seen, lingers, now),
        _longest(lags),
        *lags,
        *(_partition_lag(backlog, one, now) for backlog in seen.log.backlogs for one in backlog.partitions),
        *_dead(seen.log),
        _freshness(seen, now),
        _visible(seen.delays),
        *_sources(seen),
        *_log(seen, now),
        _cache_hits(seen),
        _unchanged(seen),
        _forecast(seen, now),
    ]


def _forecast(seen: Observed, now: datetime) -> Figure:
    """How old the last day is that the forecast knows. The day itself takes a day, and its figures come after it."""
    name, limit = "forecast_freshness_sec", MAX_FORECAST_AGE.total_seconds()
    if seen.forecast_knows is None:
        why = "There is no forecast. It needs figures of the market: HEADWATER_MARKET_URL or `headwater market import`."
        return Figure(name, None, limit, "seconds", "unknown", why)
    age = now - datetime.combine(seen.forecast_knows, time(), UTC) - timedelta(days=1)
    state: State = "warning" if age > MAX_FORECAST_AGE else "ok"
    advice = "" if state == "ok" else "No newer figures of the market came. Look at its source, or import a file."
    return Figure(name, round(max(age.total_seconds(), 0.0), 1), limit, "seconds", state, advice)


def judge_store(problems: Sequence[str]) -> Figure:
    """The store itself: whether its file is there and whole, and whether it was read and written without errors."""
    return Figure("store", len(problems), 1, "problems", "bad" if problems else "ok", " ".join(problems))


def judge_connector(state: str | None, why: str = "") -> Figure:
    """Debezium's connector, as Kafka Connect reports it. A paused one keeps its slot, but sends nothing.

    None: Kafka Connect does not say, and `why`. Then nobody knows, which is not well.
    """
    if state is None:
        return Figure("connector", None, None, "running", "warning", f"{why} Nobody knows whether events get to Kafka.")
    if state == "RUNNING":
        return Figure("connector", 1, None, "running", "ok")
    advice = f"Debezium's connector is {state}: no events get to Kafka. `headwater kafka check` says more."
    return Figure("connector", 0, None, "running", "bad", advice)


def overall(figures: Sequence[Figure]) -> State:
    worst: State = max((figure.state for figure in figures), key=_RANK.__getitem__, default="ok")
    return "ok" if worst == "unknown" else worst


def percentile(values: Sequence[float], share: float) -> float | None:
    """Returns the smallest value that is at least as large as this share of the values."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(share * 100) // 100) - 1)] if ordered else None


def _state(value: float, limit: float) -> State:
    if value < limit:
        return "ok"
    return "warning" if value < limit * BAD_BEYOND else "bad"


def _backlog(seen: Observed, lingers: Mapping[str, float], now: datetime) -> Figure:
    """The backlog of the slowest consumer. Events that gather while a consumer lingers on purpose are no problem."""
    slowest = max(seen.log.backlogs, key=lambda backlog: backlog.events, default=None)
    if slowest is None:
        return Figure("outbox_backlog", 0, MAX_BACKLOG, "events", "ok")
    state = _state(slowest.events, MAX_BACKLOG)
    if state != "ok" and _waited(slowest, now) < MAX_LAG_SECONDS + lingers.get(slowest.consumer, 0.0):
        state = "ok"
    advice = f"{slowest.consumer} is behind. {_why_behind(seen)}"
    return Figure("outbox_backlog", slowest.events, MAX_BACKLOG, "events", state, advice if state != "ok" else "")


def _why_behind(seen: Observed) -> str:
    if seen.on_kafka and not seen.log.slot_read:
        return "No events get from PostgreSQL to Kafka: is its connector paused? `headwater kafka check` says more."
    if seen.on_kafka:
        return "Is a Headwater running that follows Kafka? `headwater kafka check` examines the way there."
    return "Is a Headwater running that follows the log?"


def _longest(lags: Sequence[Figure]) -> Figure:
    """The longest lag of all consumers. It has the name under which others ask for it, whatever the log is."""
    name = "kafka_consumer_lag"
    slowest = max(lags, key=lambda lag: (_RANK[lag.state], lag.value or 0.0), default=None)
    if slowest is None:
        return Figure(name, None, MAX_LAG_SECONDS, "seconds", "unknown", "Nothing follows the log.")
    return slowest._replace(name=name, consumer=None)


def _lag(backlog: Backlog, linger: float, now: datetime, why: str) -> Figure:
    waited, limit = _waited(backlog, now), MAX_LAG_SECONDS + linger
    state = _state(waited, limit)
    advice = "" if state == "ok" else f"{why} Its own log says what went wrong."
    return Figure("consumer_lag", round(waited, 3), limit, "seconds", state, advice, backlog.consumer)


def _partition_lag(backlog: Backlog, one: PartitionBacklog, now: datetime) -> Figure:
    """How far a consumer is behind in one partition. What that means is said once, for the whole consumer."""
    waited = max(0.0, (now - one.oldest_at).total_seconds()) if one.oldest_at else 0.0
    name = f"{backlog.consumer}/{one.partition}"
    return Figure("partition_lag", round(waited, 3), None, "seconds", "ok", f"{one.events} events wait.", name)


def _waited(backlog: Backlog, now: datetime) -> float:
    return max(0.0, (now - backlog.oldest_at).total_seconds()) if backlog.oldest_at else 0.0


def _dead(log: LogHealth) -> Iterator[Figure]:
    dead = sum(log.dead.values())
    share = dead / max(log.events, dead, 1)
    state: State = "ok" if not dead else "warning" if share < MAX_DEAD_SHARE else "bad"
    advice = "" if not dead else "`headwater dlq list` shows them. Replay them when the cause is fixed, or skip them."
    yield Figure("dlq_count", dead, None, "letters", state, advice)
    yield Figure("dlq_share", round(share, 6), MAX_DEAD_SHARE, "share", state)


def _freshness(seen: Observed, now: datetime) -> Figure:
    limit = STALE_AFTER.total_seconds()
    name, unit = "freshness", "seconds"
    last = max(filter(None, (seen.log.last_visit_at, seen.log.last_post_at)), default=None)
    if last is None:
        return Figure(name, None, limit, unit, "unknown", "Nothing has been visited yet.")
    age = max(0.0, (now - last).total_seconds())
    if not sum(seen.sources_by_status.values()):
        return Figure(name, round(age), limit, unit, "ok")
    state: State = "ok" if age < limit else "bad"
    advice = (
        ""
        if state == "ok"
        else "No visit has succeeded for a long time. Is a Headwater crawling, and is the network up?"
    )
    return Figure(name, round(age), limit, unit, state, advice)


def _visible(delays: Sequence[float]) -> Figure:
    found = percentile(delays, 0.95)
    name = "write_to_visible_p95"
    if found is None:
        why = "Measured only while somebody follows the live updates of this process."
        return Figure(name, None, MAX_VISIBLE_SECONDS, "seconds", "unknown", why)
    state = _state(found, MAX_VISIBLE_SECONDS)
    advice = "" if state == "ok" else "The database or this machine is slow, or a long transaction holds the log back."
    return Figure(name, round(found, 4), MAX_VISIBLE_SECONDS, "seconds", state, advice)


def _cache_hits(seen: Observed) -> Figure:
    """The share of what was looked for in the cache and was there."""
    name = "cache_hit_rate"
    if seen.hits is None:
        why = "Nothing that is cached was asked for within the last hour."
        return Figure(name, None, MIN_HITS, "share", "unknown", why)
    state: State = "warning" if seen.hits < MIN_HITS and seen.lookups >= FEWEST_LOOKUPS else "ok"
    advice = "" if state == "ok" else "Pages are computed more often than they should be. Does Redis answer in time?"
    return Figure(name, round(seen.hits, 4), MIN_HITS, "share", state, advice)


def _unchanged(seen: Observed) -> Figure:
    """The share of answers that were what we already had, so that nothing had to be parsed."""
    name, limit = "answers_unchanged", seen.cache_hits
    if not seen.answers:
        why = "No feed that is followed for an hour or more has answered within the last hour."
        return Figure(name, None, limit, "share", "unknown", why)
    rate = seen.unchanged / seen.answers
    state: State = "warning" if rate < limit and seen.answers >= FEWEST_ANSWERS else "ok"
    advice = "" if state == "ok" else "Feeds send everything each time. Do servers ignore our conditional requests?"
    return Figure(name, round(rate, 4), limit, "share", state, advice)


def _sources(seen: Observed) -> Iterator[Figure]:
    total = max(1, sum(seen.sources_by_status.values()))
    for status in ("failing", "blocked"):
        count = seen.sources_by_status.get(status, 0)
        state: State = "ok" if count / total < MAX_FAILING_SHARE else "warning"
        advice = "" if state == "ok" else "The sources page says what is wrong with each."
        yield Figure(f"sources_{status}", count, None, "sources", state, advice)
    late: State = "ok" if seen.due < max(MAX_BACKLOG, total / 2) else "warning"
    advice = (
        ""
        if late == "ok"
        else "Sources are due faster than they are visited. Raise HEADWATER_MAX_CONCURRENCY, or start another process."
    )
    yield Figure("sources_due", seen.due, None, "sources", late, advice)


def _kept_log(log: LogHealth) -> Figure:
    """The slot for which PostgreSQL keeps most. Each of them fills the disk if nobody reads it, ours or not.

    One of ours whose log is about to be dropped, or is dropped, comes first.
    """
    most = max(log.slots, key=lambda slot: (_loses_log(slot), slot.bytes))
    state: State = "bad" if _loses_log(most) else _state(most.bytes, MAX_SLOT_BYTES)
    if state == "ok":
        return Figure("slot_bytes", most.bytes, MAX_SLOT_BYTES, "bytes", state)
    reader = "Its reader is too slow" if most.active else "Nobody reads it"
    advice = f"PostgreSQL keeps its log for the slot {most.name} until the disk is full. {reader}: restart or drop it."
    if most.status == "lost":
        advice = f"PostgreSQL has dropped the log of the slot {most.name}. Drop the slot, and restart its connector."
    elif most.left is not None:
        advice = f"PostgreSQL drops the log of the slot {most.name} after {max(0, most.left):,} more bytes. {reader}."
    return Figure("slot_bytes", most.bytes, MAX_SLOT_BYTES, "bytes", state, advice)


def _loses_log(slot: LogKeeper) -> bool:
    return slot.ours and slot.status in LOST_SOON


def _log(seen: Observed, now: datetime) -> Iterator[Figure]:
    log, limit = seen.log, (seen.kept_for + timedelta(days=1)).total_seconds()
    age = (now - log.oldest_event_at).total_seconds() if log.oldest_event_at else 0.0
    state: State = "ok" if age < limit else "warning"
    advice = (
        "" if state == "ok" else "Events are kept until every consumer has passed them. One of the consumers is stuck."
    )
    yield Figure("oldest_event", round(max(0.0, age)), limit, "seconds", state, advice)
    if log.slots:
        yield _kept_log(log)
    if seen.on_kafka:
        state = "ok" if log.slot_read else "bad"
        yield Figure(
            "slot_read", float(log.slot_read), None, "readers", state, "" if log.slot_read else _why_behind(seen)
        )
