"""Webhooks: where a reader wants events to be sent, and a log of what was sent.

active      events are sent
paused      events are queued, and sent when it is resumed
gone        the receiver answered 410; nothing is queued
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.ids import uuid7
from headwater.model import Reader
from headwater.store.log.outbox import START, LoggedEvent
from headwater.store.people import deliveries
from headwater.store.sql import json_text, portable

PING = "ping"
FAILING_AFTER = 3  # failures in a row


class Webhook(NamedTuple):
    """A receiver and how it is doing. Empty `kinds`: it wants every kind. `waiting` is the length of its queue."""

    id: int
    address: str
    kinds: list[str]
    state: str
    created_at: datetime
    next_try_at: datetime | None
    failures: int
    failing_since: datetime | None
    last_error: str | None
    last_delivered_at: datetime | None
    waiting: int

    @property
    def status(self) -> str:
        """How it is doing, in a word: paused, gone, failing, retrying, ok or new."""
        if self.state != "active":
            return self.state
        if self.failures:
            return "failing" if self.failures >= FAILING_AFTER else "retrying"
        return "ok" if self.last_delivered_at else "new"


class ChangedWebhook(NamedTuple):
    """What to change about a webhook; None: nothing."""

    address: str | None = None
    kinds: Sequence[str] | None = None
    active: bool | None = None


class Delivery(NamedTuple):
    """An event for a webhook, with its attempts. `next_try_at` is set for the first one of the queue only."""

    id: int
    event_id: str
    kind: str
    state: str
    created_at: datetime
    attempts: int
    last_tried_at: datetime | None
    seconds: float | None
    http_status: int | None
    error: str | None
    settled_at: datetime | None
    next_try_at: datetime | None


_OWN = "tenant_id = ? AND user_id = ?"
_SELECT = f"""SELECT id, address, kinds, state, created_at, next_try_at, failures, failing_since, last_error,
    last_delivered_at, (SELECT COUNT(*) FROM webhook_deliveries d WHERE d.webhook_id = webhooks.id
        AND d.state = 'waiting') FROM webhooks WHERE {_OWN}"""
_insert = portable(
    """INSERT INTO webhooks (tenant_id, user_id, address, kinds, secret, created_at)
    VALUES (:tenant_id, :user_id, :address, :kinds, :secret, :now) RETURNING id"""
)
_list = portable(f"{_SELECT} ORDER BY id", row=Webhook)
_one = portable(f"{_SELECT} AND id = ?", row=Webhook)
_delete = portable(f"DELETE FROM webhooks WHERE {_OWN} AND id = ?")
_set_address = portable("UPDATE webhooks SET address = ? WHERE id = ?")
_set_kinds = portable("UPDATE webhooks SET kinds = ? WHERE id = ?")
_set_state = portable("UPDATE webhooks SET state = ? WHERE id = ?")
_reset_health = portable(
    """UPDATE webhooks SET failures = 0, slow = ?, failing_since = NULL, last_error = NULL WHERE id = ?"""
)
_make_due = portable(
    """UPDATE webhooks SET next_try_at = ? WHERE id = ? AND (lease_until IS NULL OR lease_until <= ?)
        AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = webhooks.id AND d.state = 'waiting')"""
)
_DELIVERY = """SELECT id, event_id, kind, state, created_at, attempts, last_tried_at, seconds, http_status, error,
    settled_at, CASE WHEN state = 'waiting' AND id = (SELECT MIN(f.id) FROM webhook_deliveries f
        WHERE f.webhook_id = d.webhook_id AND f.state = 'waiting')
        THEN (SELECT w.next_try_at FROM webhooks w WHERE w.id = d.webhook_id AND w.state = 'active') END
    FROM webhook_deliveries d"""
_log = portable(f"{_DELIVERY} WHERE webhook_id = ? AND id < ? ORDER BY id DESC LIMIT ?", row=Delivery)
_delivery = portable(f"{_DELIVERY} WHERE webhook_id = ? AND id = ?", row=Delivery)
_find_delivery = portable("SELECT id FROM webhook_deliveries WHERE webhook_id = ? AND event_id = ?")
_replay = portable(
    """UPDATE webhook_deliveries SET state = 'waiting', settled_at = NULL, attempts = 0, first_tried_at = NULL,
        error = NULL WHERE webhook_id = ? AND id = ? AND state <> 'waiting'"""
)
_PAST_EVERY_ID = 2**62


def add(conn: Connection, reader: Reader, *, address: str, kinds: Sequence[str], secret: bytes, now: datetime) -> int:
    """Adds a webhook, which gets events from now on. `secret` is encrypted. Returns its id."""
    webhook_id = _insert.value(
        conn,
        **reader.key,
        address=address,
        kinds=json_text(list(kinds)),
        secret=secret,
        now=now,
    )
    return int(webhook_id)


def of_reader(conn: Connection, reader: Reader) -> list[Webhook]:
    return _list.all(conn, reader.tenant_id, reader.user_id)


def one(conn: Connection, reader: Reader, webhook_id: int) -> Webhook | None:
    return _one.first(conn, reader.tenant_id, reader.user_id, webhook_id)


def remove(conn: Connection, reader: Reader, webhook_id: int) -> bool:
    """Removes a webhook with its queue and its log."""
    return _delete.once(conn, reader.tenant_id, reader.user_id, webhook_id) > 0


def change(conn: Connection, webhook: Webhook, now: datetime, wanted: ChangedWebhook) -> None:
    """Changes what is given. Resuming it, or giving it a new address, resets its failures."""
    if wanted.address is not None:
        _set_address.once(conn, wanted.address, webhook.id)
    if wanted.kinds is not None:
        _set_kinds.once(conn, json_text(list(wanted.kinds)), webhook.id)
    if wanted.active is not None:
        _set_state.once(conn, "active" if wanted.active else "paused", webhook.id)
    if wanted.address is not None or wanted.active:
        _reset_health.once(conn, False, webhook.id)
        _make_due.once(conn, now, webhook.id, now)


def ping(conn: Connection, reader: Reader, webhook: Webhook, now: datetime) -> int:
    """Adds a test event to the end of the queue, and makes the queue due now. Returns the id of the delivery."""
    data = json_text({"webhook_id": webhook.id})
    key = f"user:{reader.user_id}"
    event = LoggedEvent(START, uuid7(), PING, 1, key, reader.tenant_id, reader.user_id, None, now, data)
    deliveries.enqueue(conn, [(webhook.id, event)])
    _make_due.once(conn, now, webhook.id, now)
    return int(_find_delivery.value(conn, webhook.id, event.event_id))


def replay(conn: Connection, webhook: Webhook, delivery_id: int, now: datetime) -> bool:
    """Sends an event again, before all that wait, with the same id. Returns False if it waits or does not exist."""
    if not _replay.once(conn, webhook.id, delivery_id):
        return False
    _make_due.once(conn, now, webhook.id, now)
    return True


def log_of(conn: Connection, webhook: Webhook, *, before: int | None, limit: int) -> list[Delivery]:
    """Returns what was sent and what waits, the newest first."""
    return _log.all(conn, webhook.id, before or _PAST_EVERY_ID, limit)


def delivery(conn: Connection, webhook: Webhook, delivery_id: int) -> Delivery | None:
    return _delivery.first(conn, webhook.id, delivery_id)
