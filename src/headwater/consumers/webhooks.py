"""Webhooks: who gets which event, what is sent, and what the answer means. `work/webhooks.py` does the sending.

A webhook gets what its owner may see: events of the sources that the owner follows, and the owner's own events. A
message carries the event as a CloudEvent and is signed according to Standard Webhooks.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import Connection

from headwater.events import catalogue
from headwater.events.delivery import Consumer
from headwater.model import Request
from headwater.store.log.outbox import LoggedEvent
from headwater.store.people import deliveries
from headwater.store.people.deliveries import GONE, DeliveryClaim, WebhookFilter

# Only events about one source or one user can be sent: for others nothing says who may see them.
KINDS = tuple(
    kind for kind in catalogue.KINDS if kind.key == "user_id" or "source_id" in {field.name for field in kind.fields()}
)
BY_NAME = {kind.name: kind for kind in KINDS}
_SOURCE = "source:"

SECRET_PREFIX = "whsec_"
SECRET_BYTES = 32


def queue_for_webhooks(conn: Connection, events: list[LoggedEvent]) -> None:
    """Queues each event for the webhooks that want it and may see it."""
    followers = deliveries.followers(conn, sorted({source for event in events if (source := _source_of(event))}))
    owners = deliveries.owners(conn, sorted({event.user_id for event in events if event.user_id is not None}))

    def wishes(event: LoggedEvent) -> list[WebhookFilter]:
        if event.user_id is None or event.tenant_id is None:
            return followers.get(_source_of(event) or 0, [])
        return owners.get((event.tenant_id, event.user_id), [])

    def wanted() -> Iterator[tuple[int, LoggedEvent]]:
        for event in events:
            yield from ((wish.webhook_id, event) for wish in wishes(event) if wish.wants(event))

    deliveries.enqueue(conn, list(wanted()))


CONSUMER = Consumer("webhooks", frozenset(BY_NAME), queue_for_webhooks, is_quick=True)


def _source_of(event: LoggedEvent) -> int | None:
    """Returns the source that a shared event is about."""
    if event.user_id is not None:
        return None
    if event.key.startswith(_SOURCE):
        return int(event.key.removeprefix(_SOURCE))
    source_id: int = BY_NAME[event.kind].read(event).source_id
    return source_id


def request_of(claim: DeliveryClaim, event: LoggedEvent, secret: str, source: str, now: datetime) -> Request:
    """Returns what is sent. The message id is the event's id, so it stays the same in every attempt. Pure."""
    body = catalogue.cloudevent(event, source)
    timestamp = str(int(now.timestamp()))
    headers = {
        "Content-Type": catalogue.CLOUDEVENTS_TYPE,
        "Headwater-Event": event.kind,
        "webhook-id": event.event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signature(event.event_id, timestamp, body, secret),
        **catalogue.cloudevent_headers(event, source, "ce-"),
    }
    if event.traceparent:
        headers["traceparent"] = event.traceparent
    return Request(claim.address, tuple(headers.items()), "POST", body)


def refusal(status: int) -> str | None:
    """Returns why an answer with this status is a failure, or None if the receiver took the event. Pure."""
    if 200 <= status < 300:
        return None
    if status == GONE:
        return "The receiver says that it is gone for good. (HTTP 410)"
    if 300 <= status < 400:
        return f"The receiver redirects, which webhooks do not follow. Give its new address. (HTTP {status})"
    return f"The receiver did not take it. (HTTP {status})"


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signature(message_id: str, timestamp: str, body: bytes, secret: str) -> str:
    """Signs id, time and body with HMAC-SHA256, so that none of them can be replaced."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
