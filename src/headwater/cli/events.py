"""Events: dead letters, delivering a part of the log again, the log on Kafka, and the webhooks that get events."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from headwater import wire
from headwater.app import log
from headwater.app.log import DeadLetterJson
from headwater.app.shapes import shaped
from headwater.cli.session import Json, ago, exit_if, json_line, json_lines, opened, say, say_findings, show_list, table
from headwater.errors import AlreadyThere, BadInput, NotFound
from headwater.events.replay import Replayed
from headwater.store.db import Database
from headwater.store.log.dead_letters import DeadLetter
from headwater.store.log.outbox import Window
from headwater.wire import Parts

if TYPE_CHECKING:
    from headwater.events.kafka.connector import Cluster


from headwater.app import webhooks
from headwater.app.webhooks import CreatedWebhookJson, DeliveryJson, Queued, WebhookJson
from headwater.store.people.webhooks import Webhook

OfConsumer = Annotated[str | None, typer.Option("--consumer", help="Only those of this consumer.")]
OfKind = Annotated[str | None, typer.Option("--kind", help="Only events of this kind.")]
LetterId = Annotated[int, typer.Argument(help="Id of a dead letter.")]
_LENGTH = re.compile(r"(\d{1,5}) ?(s|m|h|d)(?: ago)?")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

dead_letters = typer.Typer(help="Dead letters: events that a consumer could not handle.", no_args_is_help=True)
kafka = typer.Typer(help="The log on Kafka.", no_args_is_help=True)
DELIVERIES_SHOWN = 20

webhook_commands = typer.Typer(help="Webhooks: addresses that events are sent to.", no_args_is_help=True)

WebhookId = Annotated[int, typer.Argument(help="Id of a webhook; `headwater webhooks list` shows it.", min=1)]
DeliveryId = Annotated[int, typer.Argument(help="Id of a delivery; `headwater webhooks show` lists them.", min=1)]


def show_trace(
    trace: Annotated[str, typer.Argument(help="A trace, a traceparent, or the id of an event.")], as_json: Json = False
) -> None:
    """Show what a visit or request caused: events, what consumers did with them, and webhooks, with times."""
    with opened() as (parts, _):
        found = parts.db.read_now(log.find_trace, parts.consumers, trace)
    if as_json:
        json_line(found)
        return
    say(f"Trace {found['trace_id']}")
    rows = [(step["at"], step["step"], step["name"], step["detail"], step["milliseconds"]) for step in found["steps"]]
    table("", ("time", "step", "name", "what", "ms"), rows)
    if not found["is_whole"]:
        say(f"Only its first {log.MOST_TRACED} events are shown.")


@dead_letters.command("list")
def list_letters(
    state: Annotated[str, typer.Option(help="dead, retrying, waiting, replayed or skipped.")] = "dead",
    limit: Annotated[int, typer.Option(help="How many dead letters.", min=1, max=10_000)] = 50,
    as_json: Json = False,
) -> None:
    """List dead letters in a state, newest first."""
    with opened() as (parts, _):
        found, now = parts.db.read_now(log.list_dead_letters, state, limit=limit), parts.now()
    show_list(
        found, as_json, DeadLetterJson, ("id", "consumer", "kind", "key", "failed", "error"),
        lambda letter: _letter_row(letter, now), if_empty=f"No dead letter is {state}.",
    )  # fmt: skip


def _letter_row(letter: DeadLetter, now: datetime) -> tuple[object, ...]:
    event = letter.event
    return letter.id, letter.consumer, event.kind, event.key, ago(letter.last_failed_at, now), letter.error


@dead_letters.command("show")
def show_letter(letter_id: LetterId, as_json: Json = False) -> None:
    """Show one dead letter: the event, how often it was tried, and what went wrong."""
    with opened() as (parts, _):
        found = shaped(DeadLetterJson, parts.db.read_now(log.dead_letter, letter_id))
    if as_json:
        json_line(found)
    else:
        for name, value in found.items():
            say(f"{name:16} {'' if value is None else value}")


@dead_letters.command("replay")
def replay_letters(
    letter_ids: Annotated[list[int] | None, typer.Argument(help="Ids of dead letters to replay.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters.")] = False,
    consumer: OfConsumer = None,
    kind: OfKind = None,
    event_id: Annotated[str | None, typer.Option("--event-id", help="Only those of this event.")] = None,
    as_json: Json = False,
) -> None:
    """Deliver dead letters again. Each takes effect once. An event that fails again stays a dead letter."""
    if bool(letter_ids) == (everything or bool(consumer or kind or event_id)):
        raise BadInput("Name dead letters by their ids, or give --all, --consumer, --kind or --event-id.")
    with opened() as (parts, _):
        ids = letter_ids or parts.db.read_now(log.chosen_dead_letters, parts.consumers, consumer, kind, event_id)
        failed = sum(not _replay_one(parts, letter_id, as_json) for letter_id in ids)
    if not as_json:
        say(f"{len(ids) - failed} replayed, {failed} failed.")
    exit_if(failed)


def _replay_one(parts: Parts, letter_id: int, as_json: bool) -> bool:
    try:
        error = parts.db.write_now(log.try_dead_letter, parts.consumers, letter_id, parts.now())
    except (NotFound, AlreadyThere) as refused:
        error = refused.detail
    if as_json:
        json_line({"id": letter_id, "replayed": error is None, "error": error})
    elif error:
        say(f"{letter_id}: {error}")
    return error is None


@dead_letters.command("resolve")
def resolve_letter(letter_id: LetterId, as_json: Json = False) -> None:
    """Skip a dead letter. Its event has no effect, and the events that wait behind it go on."""
    with opened() as (parts, _):
        parts.db.write_now(log.skip_dead_letter, parts.consumers, letter_id, parts.now())
    json_line({"id": letter_id, "state": "skipped"}) if as_json else say(f"Dead letter {letter_id} is skipped.")


def replay_log(
    start: Annotated[
        str | None, typer.Option(help="Start of the window: an ISO 8601 time, or 2h for two hours ago.")
    ] = None,
    end: Annotated[str | None, typer.Option(help="End of the window. Default: now.")] = None,
    consumer: OfConsumer = None,
    kind: OfKind = None,
    key: Annotated[str | None, typer.Option(help="Only events of this key, such as source:12.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Empty the consumer and let it read the whole log again.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Deliver events again to consumers in which they have had no effect yet.

    Events that a consumer has not reached yet are left to it.
    """
    with opened() as (parts, _):
        if rebuild:
            if consumer is None or start or end or kind or key or dry_run:
                raise BadInput("--rebuild goes with --consumer and nothing else.")
            _rebuild(parts, consumer, as_json)
            return
        now = parts.now()
        if start is None:
            raise BadInput("Give the start: --start 2h, or --start 2026-01-07T09:00.")
        until = moment_in(end, now) if end else now
        window = Window(moment_in(start, now), until, frozenset({kind} if kind else ()), key or "")
        for done in log.replay_window(
            parts.db,
            parts.consumers,
            window,
            parts.now,
            consumer=consumer,
            dry_run=dry_run,
            has_cursors=parts.follows_table,
        ):
            json_line({**done._asdict(), "dry_run": dry_run}) if as_json else _say_replayed(done, dry_run)


def _say_replayed(done: Replayed, dry_run: bool) -> None:
    words = "would be delivered" if dry_run else "delivered"
    say(
        f"{done.consumer}: {done.found} found, {done.handled} handled before, {done.delivered} {words}, "
        f"{done.unreached} left to the running consumer."
    )


def _rebuild(parts: Parts, consumer: str, as_json: bool) -> None:
    events = log.rebuild_consumer(parts.db, parts.consumers, consumer, parts.now)
    done = {"consumer": consumer, "events": events}
    json_line(done) if as_json else say(f"{consumer} is rebuilt from {events} events.")


def moment_in(text: str, now: datetime) -> datetime:
    """Reads a time as people type it: ISO 8601 (UTC where no zone is given), or how long ago: 90s, 30m, 2h, 7d."""
    length = _LENGTH.fullmatch(text.strip())
    if length:
        return now - timedelta(**{_UNITS[length[2]]: int(length[1])})
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise BadInput(f"{text} is not a time. Write 2026-01-07T09:00, or 2h for two hours ago.") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@kafka.command("setup")
def set_up_kafka() -> None:
    """Make the topics, the publication and the connector, if they are missing. It is safe to run again."""
    with opened() as (parts, _), wire.opened_by_owner(parts) as (db, _):  # only the owner of a table can publish it
        cluster, _, url, retention = _kafka(parts)
        for line in asyncio.run(log.set_up_kafka(cluster, db, url, retention)):
            say(line)


@kafka.command("check")
def check_kafka(as_json: Json = False) -> None:
    """Check whether events get from the database to Kafka, and say what to do if they do not."""
    with opened() as (parts, _):
        findings = asyncio.run(log.check_kafka(*_kafka(parts)))
    say_findings(findings, as_json, bad="BAD")


def _kafka(parts: Parts) -> tuple[Cluster, Database, str, timedelta]:
    """Returns what the use cases of Kafka take: the cluster, the database as we and as Debezium reach it, retention."""
    settings = parts.settings
    cluster = log.kafka_cluster(parts.db, settings.kafka_bootstrap_servers, settings.kafka_connect_url)
    given = settings.kafka_database_url or settings.migration_database_url
    url = given.get_secret_value() if given else settings.store_url()
    return cluster, parts.db, url, timedelta(days=settings.event_history_days)


@webhook_commands.command("add")
def add_webhook(
    address: Annotated[str, typer.Argument(help="Address that events are sent to.")],
    kind: Annotated[
        list[str] | None, typer.Option(help="A kind of event to send. Can be repeated. Default: every kind.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Send events to an address from now on. Its secret is shown once."""
    with opened() as (parts, owner):
        made = parts.db.write_now(webhooks.add, owner, address, kind or [], parts.seal, parts.now())
    if as_json:
        json_line(shaped(CreatedWebhookJson, made.webhook, secret=made.secret))
    else:
        say(f"Webhook {made.webhook.id} gets {_kinds(made.webhook)}. Messages are signed with\n\n  {made.secret}\n")
        say("Keep this secret. It is not shown again.")


@webhook_commands.command("list")
def list_webhooks(as_json: Json = False) -> None:
    """List your webhooks and how they are doing."""
    with opened() as (parts, owner):
        found, now = parts.db.read_now(webhooks.every, owner), parts.now()
    show_list(
        found, as_json, WebhookJson, ("id", "state", "waiting", "last sent", "address", "error"),
        lambda one: (one.id, one.status, one.waiting, ago(one.last_delivered_at, now), one.address, one.last_error),
    )  # fmt: skip


@webhook_commands.command("show")
def show_webhook(webhook_id: WebhookId, as_json: Json = False) -> None:
    """Show a webhook and its deliveries, newest first."""
    with opened() as (parts, owner):
        webhook, deliveries = parts.db.read_now(webhooks.log_of, owner, webhook_id, limit=DELIVERIES_SHOWN)
        now = parts.now()
    if as_json:
        json_line(shaped(WebhookJson, webhook))
        json_lines(DeliveryJson, deliveries, webhook_id=webhook.id)
        return
    say(f"{webhook.address}: {webhook.status}, {webhook.waiting} waiting; it gets {_kinds(webhook)}.")
    if webhook.last_error:
        say(f"Failing since {ago(webhook.failing_since, now)}: {webhook.last_error}")
    rows = [
        (one.id, ago(one.created_at, now), one.kind, one.state, one.attempts, one.http_status, one.error)
        for one in deliveries
    ]
    table("", ("id", "event", "kind", "state", "attempts", "status", "error"), rows)


@webhook_commands.command("remove")
def remove_webhook(webhook_id: WebhookId, as_json: Json = False) -> None:
    """Remove a webhook with its queue and its record of deliveries."""
    with opened() as (parts, owner):
        parts.db.write_now(webhooks.remove, owner, webhook_id)
    json_line({"removed": webhook_id}) if as_json else say(f"Webhook {webhook_id} is removed.")


@webhook_commands.command("test")
def send_ping(webhook_id: WebhookId, as_json: Json = False) -> None:
    """Queue a ping for a webhook. A running Headwater sends it."""
    with opened() as (parts, owner):
        queued = parts.db.write_now(webhooks.ping, owner, webhook_id, parts.now())
    _say_queued(queued, as_json)


@webhook_commands.command("replay")
def replay_delivery(webhook_id: WebhookId, delivery_id: DeliveryId, as_json: Json = False) -> None:
    """Queue a delivery again, under the same id. A running Headwater sends it."""
    with opened() as (parts, owner):
        queued = parts.db.write_now(webhooks.replay, owner, webhook_id, delivery_id, parts.now())
    _say_queued(queued, as_json)


def _say_queued(queued: Queued, as_json: bool) -> None:
    webhook, delivery = queued
    if as_json:
        json_line(shaped(DeliveryJson, delivery, webhook_id=webhook.id))
    else:
        say(f"Delivery {delivery.id} waits for {webhook.address}. `headwater webhooks show {webhook.id}` shows more.")


def _kinds(webhook: Webhook) -> str:
    return ", ".join(webhook.kinds) or "every kind of event"
