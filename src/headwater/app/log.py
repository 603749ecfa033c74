"""The event log: dead letters, replaying a part of it, following it live, deleting old events, and the log on Kafka."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import orjson
from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater import ids
from headwater.app.shapes import Example, Time, iso_or_none
from headwater.errors import AlreadyThere, BadInput, BadSetting, LogUnavailable, NotFound
from headwater.events import catalogue, replay
from headwater.events.delivery import Consumer
from headwater.events.health import Figure, judge_connector
from headwater.events.live import EventFilter, Listener, Live, ResumeToken, is_expired, read_resume_token
from headwater.events.replay import Replayed
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.log import dead_letters, inbox, outbox, trace
from headwater.store.log.dead_letters import DeadLetter
from headwater.store.log.outbox import Window
from headwater.store.log.trace import TracedDelivery, TracedEvent, TracedHandling, TracedVisit
from headwater.store.people import audit, deliveries
from headwater.urls import without_secrets

if TYPE_CHECKING:
    from headwater.events.kafka.connector import Cluster, KafkaFinding


MOST_TRACED = 1000  # events of one trace
LetterState = Literal["retrying", "waiting", "dead", "replayed", "skipped"]


class Joined(NamedTuple):
    """A listener, and what it has seen before. `is_lost`: what came after that is not kept any more."""

    listener: Listener
    seen: ResumeToken | None
    is_lost: bool


def list_dead_letters(
    conn: Connection, state: str = "dead", *, before: int | None = None, limit: int
) -> list[DeadLetter]:
    """Returns dead letters in this state, the newest first."""
    return dead_letters.page(conn, state, before=before, limit=limit)


def dead_letter(conn: Connection, letter_id: int) -> DeadLetter:
    found = dead_letters.find(conn, letter_id)
    if found is None:
        raise NotFound(f"There is no dead letter {letter_id}.")
    return found


def replay_dead_letter(conn: Connection, consumers: Sequence[Consumer], letter_id: int, now: datetime) -> DeadLetter:
    """Gives the event its effect, once. If it fails again, it stays a dead letter and its error says why."""
    replay.replay_dead_letter(conn, consumers, letter_id, now)
    return dead_letter(conn, letter_id)


def skip_dead_letter(conn: Connection, consumers: Sequence[Consumer], letter_id: int, now: datetime) -> DeadLetter:
    """Settles a dead letter without an effect. What waits behind it goes on."""
    replay.skip_dead_letter(conn, consumers, letter_id, now)
    return dead_letter(conn, letter_id)


def chosen_dead_letters(
    conn: Connection,
    consumers: Sequence[Consumer],
    consumer: str | None = None,
    kind: str | None = None,
    event_id: str | None = None,
) -> list[int]:
    """Returns the ids of all dead letters, or of those of a consumer, a kind or an event, the oldest first."""
    if consumer is not None:
        replay.consumer_named(consumer, consumers)
    if event_id is None:
        return replay.dead_letter_ids(conn, consumer, kind)
    found = [
        letter
        for letter in dead_letters.of_event(conn, event_id)
        if consumer in (None, letter.consumer) and kind in (None, letter.event.kind)
    ]
    if not found:
        raise NotFound(f"No consumer has the event {event_id} as a dead letter. `headwater dlq list` lists them.")
    if not any(letter.state == "dead" for letter in found):
        raise AlreadyThere(f"The event {event_id} is no longer dead; it is {found[0].state}.")
    return [letter.id for letter in found if letter.state == "dead"]


async def replay_dead_letters(
    db: Database,
    consumers: Sequence[Consumer],
    now: Callable[[], datetime],
    *,
    consumer: str | None = None,
    kind: str | None = None,
    event_id: str | None = None,
) -> ReplayAll:
    """Replays all dead letters, or those of a consumer, a kind or an event, each in a transaction of its own."""
    replayed = failed = 0
    for letter_id in await db.read(chosen_dead_letters, consumers, consumer, kind, event_id):
        try:
            error = await db.write(replay.replay_dead_letter, consumers, letter_id, now())
        except AlreadyThere:  # somebody else is replaying it
            continue
        replayed += error is None
        failed += error is not None
    return {"replayed": replayed, "failed": failed}


def try_dead_letter(conn: Connection, consumers: Sequence[Consumer], letter_id: int, now: datetime) -> str | None:
    """Replays a dead letter. Returns what went wrong, or None."""
    return replay.replay_dead_letter(conn, consumers, letter_id, now)


def replay_window(
    db: Database,
    consumers: Sequence[Consumer],
    window: Window,
    now: Callable[[], datetime],
    *,
    consumer: str | None = None,
    dry_run: bool = False,
    has_cursors: bool = True,
) -> list[Replayed]:
    """Delivers events of the window again to the consumers, or to one, in which they had no effect yet.

    A window without kinds means every kind that these consumers take.
    """
    chosen = [replay.consumer_named(consumer, consumers)] if consumer else list(consumers)
    known = frozenset[str]().union(*(one.kinds for one in chosen))
    if unknown := window.kinds - known:
        raise BadInput(
            f"None of these consumers takes {', '.join(sorted(unknown))}. They take: {', '.join(sorted(known))}."
        )
    window = window._replace(kinds=window.kinds or known)
    return [replay.replay_window(db, one, window, now, dry_run=dry_run, has_cursors=has_cursors) for one in chosen]


def rebuild_consumer(db: Database, consumers: Sequence[Consumer], name: str, now: Callable[[], datetime]) -> int:
    """Empties a consumer and lets it read the whole log again. Returns how many events it read."""
    consumer = replay.consumer_named(name, consumers)
    db.write_now(replay.rebuild, consumer, now())
    return sum(replay.catch_up(db, consumer, now))


async def forget_old(db: Database, now: datetime, kept_for: timedelta, *, has_cursors: bool) -> int:
    """Deletes events, and the record of their effects, that are older than the replay window and that nobody needs."""
    before = now - kept_for
    forgotten = 0
    while batch := await db.write(outbox.forget_before, before, followed=has_cursors):
        forgotten += batch
    await db.write(inbox.forget_before, before - timedelta(days=1))
    await db.write(dead_letters.forget_before, before)
    await db.write(deliveries.forget_before, before, now)
    return forgotten


def resume_token(text: str | None) -> ResumeToken | None:
    """Reads the id of the last event that somebody has seen."""
    return read_resume_token(text) if text else None


def audience(reader: Reader, kinds: str | None) -> EventFilter:
    """Returns who listens, and to which kinds. `kinds` are names with commas between them; None: all."""
    return EventFilter(reader, _known(kinds) if kinds else None)


async def listen(live: Live, who: EventFilter, seen: ResumeToken | None, now: datetime, kept_for: timedelta) -> Joined:
    """Starts listening, after the last event that was seen if what came after it is still kept."""
    is_lost = seen is not None and (is_expired(seen, now, kept_for) or seen.position > await live.end_of_log())
    return Joined(await live.join(who, None if is_lost else seen), seen, is_lost)


def _known(given: str) -> frozenset[str]:
    wanted = frozenset(kind.strip() for kind in given.split(","))
    if unknown := wanted - set(catalogue.BY_NAME):
        known = ", ".join(catalogue.BY_NAME)
        raise BadInput(f"kinds: there is no {', '.join(sorted(unknown))[:200]}. There are: {known}.")
    return wanted


def kafka_cluster(db: Database, brokers: str | None, connect_url: str) -> Cluster:
    """Returns where Kafka is. Raises BadSetting if it cannot be used with these settings."""
    try:
        from headwater.events.kafka.connector import Cluster
    except ImportError as error:
        raise BadSetting("Kafka's client is not installed: pip install 'headwater[kafka]'") from error
    if db.is_sqlite:
        raise BadSetting("Kafka needs PostgreSQL: set HEADWATER_DATABASE_URL to postgresql://…")
    if not brokers:
        raise BadSetting("Set HEADWATER_KAFKA_BOOTSTRAP_SERVERS to Kafka's address, such as kafka.example:9092.")
    return Cluster(brokers, connect_url)


async def examine_connector(db: Database, connect_url: str) -> Figure:
    """Judges the connector that brings our events to Kafka by what Kafka Connect says about it."""
    from headwater.events.kafka import connector

    try:
        state = await asyncio.to_thread(connector.connector_state, connect_url, db.engine.url.database or "")
    except LogUnavailable as error:
        return judge_connector(None, error.detail)
    return judge_connector(state)


async def set_up_kafka(cluster: Cluster, db: Database, database_url: str, retention: timedelta) -> Sequence[str]:
    """Makes the topics, the publication and the connector that are missing. Returns what was done, a line each."""
    from headwater.events.kafka import connector

    await db.write(audit.record, None, "kafka.set_up")
    return await connector.set_up(cluster, db, database_url, retention)


async def check_kafka(cluster: Cluster, db: Database, database_url: str, retention: timedelta) -> list[KafkaFinding]:
    """Checks each part of the way from the database to Kafka."""
    from headwater.events.kafka import connector

    return await connector.check(cluster, db, database_url, retention)


def find_trace(conn: Connection, consumers: Sequence[Consumer], wanted: str) -> TraceJson:
    """Returns what a visit or a request caused, in the order of time. `wanted` is its trace, or one of its events."""
    trace_id = _trace_named(conn, wanted.strip().lower())
    visits = trace.visits(conn, trace_id)
    events = trace.events(conn, trace_id, MOST_TRACED)
    if not visits and not events:
        raise NotFound(f"There is nothing of the trace {trace_id}. Events and visits are kept for some days only.")
    event_ids = [event.event_id for event in events]
    steps = [
        *(_visit_step(one) for one in visits),
        *(_event_step(one) for one in events),
        *(_handling_step(one) for one in trace.handled(conn, [one.name for one in consumers], event_ids)),
        *(_delivery_step(one) for one in trace.deliveries(conn, event_ids)),
    ]
    steps.sort(key=lambda step: step["at"] or "9")
    return {"trace_id": trace_id, "is_whole": len(events) < MOST_TRACED, "steps": steps}


def _trace_named(conn: Connection, wanted: str) -> str:
    if re.fullmatch("[0-9a-f]{32}", wanted):
        return wanted
    if re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", wanted):
        found = trace.trace_of(conn, wanted)
        if found is None:
            raise NotFound(f"There is no event {wanted} that has a trace.")
        return ids.trace_id(found)
    parent = ids.parse_trace(wanted)
    if parent is None:
        raise BadInput(f"{wanted[:80]} is no trace. Give its 32 digits, a traceparent, or the id of an event.")
    return ids.trace_id(parent)


def _visit_step(one: TracedVisit) -> TraceStepJson:
    answered = f", HTTP {one.http_status}" if one.http_status else ""
    said = f"{one.outcome}{answered}, {one.new} new, {one.updated} updated"
    detail = f"{said}: {one.error}" if one.error else said
    return _step("visit", one.started_at, one.address, detail, milliseconds=one.seconds * 1000)


def _event_step(one: TracedEvent) -> TraceStepJson:
    payload = orjson.loads(one.payload)
    about = " ".join(str(payload[name]) for name in ("post_id", "title") if payload.get(name))
    return _step("event", one.created_at, one.kind, about or one.key, event_id=one.event_id)


def _handling_step(one: TracedHandling) -> TraceStepJson:
    detail = f"{one.state}: {one.error}" if one.error else one.state
    return _step("consumer", one.at, one.consumer, detail, event_id=one.event_id, milliseconds=one.milliseconds)


def _delivery_step(one: TracedDelivery) -> TraceStepJson:
    answered = f", HTTP {one.http_status}" if one.http_status else ""
    said = f"{one.state}{answered} after {one.attempts} attempts" if one.attempts else one.state
    detail = f"{said}: {one.error}" if one.error else said
    taken = one.seconds * 1000 if one.seconds is not None else None
    at = one.last_tried_at or one.created_at
    return _step("webhook", at, without_secrets(one.address), detail, event_id=one.event_id, milliseconds=taken)


def _step(
    step: TraceStepName,
    at: datetime | None,
    name: str,
    detail: str,
    *,
    event_id: str | None = None,
    milliseconds: float | None = None,
) -> TraceStepJson:
    return {
        "at": iso_or_none(at),
        "step": step,
        "name": name,
        "detail": detail,
        "event_id": event_id,
        "milliseconds": None if milliseconds is None else round(milliseconds, 3),
    }


TraceStepName = Literal["visit", "event", "consumer", "webhook"]


class TraceStepJson(TypedDict):
    """One step of a trace."""

    at: Annotated[Time | None, Example("2026-01-07T09:30:01Z", "when it happened; null: an older version did not say")]
    step: Annotated[TraceStepName, Example("event")]
    name: Annotated[str, Example("post.stored", "the source, kind of event, consumer or address")]
    detail: Annotated[str, Example("4711 Where rivers begin")]
    event_id: Annotated[str | None, Example("019b9a3c-7f00-7c3e-9d5e-1a2b3c4d5e6f", "the event it is about")]
    milliseconds: Annotated[float | None, Example(None, "how long it took")]


class TraceJson(TypedDict):
    """What a visit or a request caused, in the order of time."""

    trace_id: Annotated[str, Example("019b9a3c7f007c3e9d5e1a2b3c4d5e6f")]
    is_whole: Annotated[bool, Example(True, "false: it has more events than are shown")]
    steps: list[TraceStepJson]


class DeadLetterJson(TypedDict):
    """An event that failed in a consumer, how often, and why."""

    id: Annotated[int, Example(3)]
    consumer: Annotated[str, Example("search")]
    state: Annotated[LetterState, Example("dead")]
    resolved: Annotated[bool, Example(False, "whether it was replayed or skipped", of=lambda one: one.is_resolved)]
    event_id: Annotated[str, Example("019b9a3c-7f00-7c3e-9d5e-1a2b3c4d5e6f", of="event.event_id")]
    kind: Annotated[str, Example("post.stored", of="event.kind")]
    key: Annotated[str, Example("source:12", of="event.key")]
    data: Annotated[
        dict[str, Any],
        Example({"post_id": 4711, "source_id": 12}, of=lambda letter: orjson.loads(letter.event.data)),
    ]
    created_at: Annotated[Time, Example("2026-01-07T09:30:01Z", of="event.created_at")]
    attempts: Annotated[int, Example(3)]
    error: Annotated[str | None, Example("UnreadableEvent: the event is no post.stored")]
    first_failed_at: Annotated[Time | None, Example("2026-01-07T09:30:02Z")]
    last_failed_at: Annotated[Time | None, Example("2026-01-07T09:30:08Z")]
    next_try_at: Annotated[Time | None, Example(None)]
    settled_at: Annotated[Time | None, Example(None)]


class ReplayAll(TypedDict):
    replayed: Annotated[int, Example(12)]
    failed: Annotated[int, Example(0)]
