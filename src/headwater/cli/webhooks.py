"""`headwater webhooks`: where events are sent to, and how that goes."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.app import webhooks
from headwater.app.shapes import shaped
from headwater.app.webhooks import CreatedWebhookJson, DeliveryJson, Queued, WebhookJson
from headwater.cli.session import Json, ago, json_line, json_lines, opened, say, table
from headwater.store.people.webhooks import Webhook

SHOWN = 20

app = typer.Typer(help="Where events are sent to, and how that goes.", no_args_is_help=True)

WebhookId = Annotated[int, typer.Argument(help="Id of a webhook; `headwater webhooks list` shows it.", min=1)]
DeliveryId = Annotated[int, typer.Argument(help="Id of a delivery; `headwater webhooks show` lists them.", min=1)]


@app.command("add")
def add(
    address: Annotated[str, typer.Argument(help="Where events are sent to.")],
    kind: Annotated[list[str] | None, typer.Option(help="A kind of event that it gets; none: every kind.")] = None,
    as_json: Json = False,
) -> None:
    """Send events to an address from now on. Its secret is shown once."""
    with opened() as (parts, owner):
        made = parts.db.write_now(webhooks.add, owner, address, kind or [], parts.seal, parts.now())
    if as_json:
        json_line(shaped(CreatedWebhookJson, made.webhook, secret=made.secret))
    else:
        say(f"Webhook {made.webhook.id} gets {_kinds(made.webhook)}. Messages are signed with\n\n  {made.secret}\n")
        say("Keep it: it is not shown again.")


@app.command("list")
def list_webhooks(as_json: Json = False) -> None:
    """List your webhooks, and how they are doing."""
    with opened() as (parts, owner):
        found, now = parts.db.read_now(webhooks.every, owner), parts.now()
    if as_json:
        json_lines(WebhookJson, found)
        return
    rows = [
        (one.id, one.status, one.waiting, ago(one.last_delivered_at, now), one.address, one.last_error) for one in found
    ]
    table("", ("id", "state", "waiting", "last sent", "address", "error"), rows)


@app.command("show")
def show(webhook_id: WebhookId, as_json: Json = False) -> None:
    """Show a webhook and what was sent to it, the newest first."""
    with opened() as (parts, owner):
        webhook, log = parts.db.read_now(webhooks.log_of, owner, webhook_id, limit=SHOWN)
        now = parts.now()
    if as_json:
        json_line(shaped(WebhookJson, webhook))
        json_lines(DeliveryJson, log, webhook_id=webhook.id)
        return
    say(f"{webhook.address}: {webhook.status}, {webhook.waiting} waiting; it gets {_kinds(webhook)}.")
    if webhook.last_error:
        say(f"Failing since {ago(webhook.failing_since, now)}: {webhook.last_error}")
    rows = [
        (one.id, ago(one.created_at, now), one.kind, one.state, one.attempts, one.http_status, one.error) for one in log
    ]
    table("", ("id", "event", "kind", "state", "attempts", "status", "error"), rows)


@app.command("remove")
def remove(webhook_id: WebhookId, as_json: Json = False) -> None:
    """Remove a webhook, what waits for it and the record of what was sent."""
    with opened() as (parts, owner):
        parts.db.write_now(webhooks.remove, owner, webhook_id)
    json_line({"removed": webhook_id}) if as_json else say(f"Webhook {webhook_id} is removed.")


@app.command("test")
def send_ping(webhook_id: WebhookId, as_json: Json = False) -> None:
    """Queue a ping for a webhook; a running Headwater sends it."""
    with opened() as (parts, owner):
        queued = parts.db.write_now(webhooks.ping, owner, webhook_id, parts.now())
    _say_queued(queued, as_json)


@app.command("replay")
def replay(webhook_id: WebhookId, delivery_id: DeliveryId, as_json: Json = False) -> None:
    """Send an event again, under the same id; a running Headwater sends it."""
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
