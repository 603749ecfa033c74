"""Webhooks: adding, changing and removing them, what was sent to them, a ping, and sending an event again.

`consumers/webhooks.py` says which events they get; `work/webhooks.py` sends.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, NamedTuple

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater import urls
from headwater.app.shapes import Example, Time
from headwater.consumers.webhooks import BY_NAME as BY_NAME
from headwater.consumers.webhooks import KINDS as KINDS
from headwater.consumers.webhooks import new_secret
from headwater.errors import AlreadyThere, BadAddress, BadInput, NotFound, NotPossibleNow
from headwater.model import Reader
from headwater.store.people import audit, webhooks
from headwater.store.people.webhooks import ChangedWebhook, Delivery, Webhook

MOST_WEBHOOKS = 50
Seal = Callable[[str], bytes]


class Created(NamedTuple):
    """A new webhook and its secret, which is kept sealed and can be shown only now."""

    webhook: Webhook
    secret: str


class Queued(NamedTuple):
    """A delivery that waits to be sent."""

    webhook: Webhook
    delivery: Delivery


def add(conn: Connection, reader: Reader, address: str, kinds: Sequence[str], seal: Seal, now: datetime) -> Created:
    """Sends events to an address from now on; no kinds means every kind."""
    address, kinds = usable_address(address), known_kinds(kinds)
    if len(webhooks.of_reader(conn, reader)) >= MOST_WEBHOOKS:
        raise NotPossibleNow(f"You have {MOST_WEBHOOKS} webhooks, which is the most. Remove one first.")
    secret = new_secret()
    made = webhooks.add(conn, reader, address=address, kinds=kinds, secret=seal(secret), now=now)
    audit.record(conn, reader, "webhook.add", made, urls.host_of(urls.split(address)))
    return Created(find(conn, reader, made), secret)


def find(conn: Connection, reader: Reader, webhook_id: int) -> Webhook:
    webhook = webhooks.one(conn, reader, webhook_id)
    if webhook is None:
        raise NotFound(f"You have no webhook {webhook_id}.")
    return webhook


def every(conn: Connection, reader: Reader) -> list[Webhook]:
    """Returns all webhooks of a reader."""
    return webhooks.of_reader(conn, reader)


def log_of(
    conn: Connection, reader: Reader, webhook_id: int, *, before: int | None = None, limit: int
) -> tuple[Webhook, list[Delivery]]:
    """Returns a webhook with what was sent to it and what waits, the newest first."""
    webhook = find(conn, reader, webhook_id)
    return webhook, webhooks.log_of(conn, webhook, before=before, limit=limit)


def change(conn: Connection, reader: Reader, webhook_id: int, now: datetime, wanted: ChangedWebhook) -> Webhook:
    """Changes a webhook. Only what is given changes."""
    if wanted.address is not None:
        wanted = wanted._replace(address=usable_address(wanted.address))
    if wanted.kinds is not None:
        wanted = wanted._replace(kinds=known_kinds(wanted.kinds))
    webhooks.change(conn, find(conn, reader, webhook_id), now, wanted)
    audit.record(conn, reader, "webhook.change", webhook_id)
    return find(conn, reader, webhook_id)


def remove(conn: Connection, reader: Reader, webhook_id: int) -> None:
    find(conn, reader, webhook_id)
    webhooks.remove(conn, reader, webhook_id)
    audit.record(conn, reader, "webhook.remove", webhook_id)


def ping(conn: Connection, reader: Reader, webhook_id: int, now: datetime) -> Queued:
    """Queues a delivery of kind `ping` at the end, and has the queue tried at once."""
    webhook = find(conn, reader, webhook_id)
    if webhook.state != "active":
        raise NotPossibleNow(f"This webhook is {webhook.state}. Resume it first.")
    queued = Queued(webhook, _delivery(conn, webhook, webhooks.ping(conn, reader, webhook, now)))
    audit.record(conn, reader, "webhook.ping", webhook_id)
    return queued


def replay(conn: Connection, reader: Reader, webhook_id: int, delivery_id: int, now: datetime) -> Queued:
    """Queues an event again, under the same id and before everything that waits."""
    webhook = find(conn, reader, webhook_id)
    delivery = _delivery(conn, webhook, delivery_id)
    if not webhooks.replay(conn, webhook, delivery.id, now):
        raise AlreadyThere("This delivery is already waiting to be sent.")
    audit.record(conn, reader, "webhook.replay", webhook_id, f"delivery {delivery_id}")
    return Queued(webhook, _delivery(conn, webhook, delivery_id))


def usable_address(address: str) -> str:
    """Returns the canonical address. Whether it may be connected to is decided when something is sent to it."""
    canonical, credential = urls.without_credential(urls.canonical(urls.with_scheme(address)))
    if credential:
        raise BadAddress("An address with a password cannot be used. The signature shows the receiver who sends.")
    return canonical


def known_kinds(kinds: Sequence[str]) -> list[str]:
    """Returns the kinds, each once, in the order of the catalogue."""
    for kind in kinds:
        if kind not in BY_NAME:
            close = difflib.get_close_matches(kind, BY_NAME, n=1)
            hint = f"Did you mean {close[0]}?" if close else f"There are {', '.join(BY_NAME)}."
            raise BadInput(f"{kind[:100]!r} is not a kind of event that can be sent. {hint}")
    return [kind for kind in BY_NAME if kind in kinds]


def _delivery(conn: Connection, webhook: Webhook, delivery_id: int) -> Delivery:
    delivery = webhooks.delivery(conn, webhook, delivery_id)
    if delivery is None:
        raise NotFound(f"The webhook {webhook.id} has no delivery {delivery_id}.")
    return delivery


class WebhookJson(TypedDict):
    """Where events are sent to, and how that goes."""

    id: Annotated[int, Example(3)]
    address: Annotated[str, Example("https://example.org/hook")]
    kinds: Annotated[list[str], Example(["post.stored"], "the kinds it gets; empty: every kind")]
    status: Annotated[str, Example("ok", "new, ok, retrying, failing, paused or gone")]
    created_at: Annotated[Time, Example("2026-01-05T08:00:00Z")]
    waiting: Annotated[int, Example(0, "how many events wait to be sent")]
    next_try_at: Annotated[Time | None, Example(None)]
    failures: Annotated[int, Example(0, "failed attempts in a row")]
    failing_since: Annotated[Time | None, Example(None)]
    last_error: Annotated[str | None, Example(None)]
    last_delivered_at: Annotated[Time | None, Example("2026-01-07T09:30:02Z")]


class CreatedWebhookJson(WebhookJson):
    """A new webhook with its secret, which is shown only here."""

    secret: Annotated[str, Example("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "what messages are signed with; keep it")]


class WebhooksJson(TypedDict):
    """All your webhooks."""

    items: list[WebhookJson]


class DeliveryJson(TypedDict):
    """An event on its way to a webhook."""

    id: Annotated[int, Example(912)]
    webhook_id: Annotated[int, Example(3)]
    event_id: Annotated[
        str,
        Example("019b97a0-5d2c-7c1e-9f0a-3b8d1c2e4f60", "the `webhook-id` it is sent with, the same each time"),
    ]
    kind: Annotated[str, Example("post.stored")]
    state: Annotated[str, Example("delivered", "waiting, delivered or failed")]
    created_at: Annotated[Time, Example("2026-01-07T09:30:01Z")]
    attempts: Annotated[int, Example(1)]
    last_tried_at: Annotated[Time | None, Example("2026-01-07T09:30:02Z")]
    seconds: Annotated[float | None, Example(0.08, "how long the last attempt took")]
    http_status: Annotated[int | None, Example(204)]
    error: Annotated[str | None, Example(None)]
    settled_at: Annotated[Time | None, Example("2026-01-07T09:30:02Z")]
    next_try_at: Annotated[Time | None, Example(None, "of the first that waits; the others follow it in order")]
