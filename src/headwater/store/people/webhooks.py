"""Webhooks: where a reader wants events to be sent, and what became of them.

active      events are sent
paused      events gather, and are sent when it is resumed
gone        the receiver said that it is no more (410); nothing is gathered
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.ids import uuid7
from headwater.model import Reader
from headwater.store.log.outbox import LoggedEvent, LogPosition
from headwater.store.people import deliveries
from headwater.store.sql import Prepared, json_text, json_value, moment, moment_or_none, portable

PING = "ping"
FAILING_AFTER = 3  # failures in a row; fewer are a passing trouble

_OWN = "tenant_id = ? AND user_id = ?"
_COLUMNS = f"""id, address, kinds, state, created_at, next_try_at, failures, failing_since, last_error,
    last_delivered_at, (SELECT COUNT(*) FROM webhook_deliveries d WHERE d.webhook_id = webhooks.id
        AND d.state = 'waiting') FROM webhooks WHERE {_OWN}"""
_insert = portable(
    """INSERT INTO webhooks (tenant_id, user_id, address, kinds, secret, created_at) VALUES (?, ?, ?, ?, ?, ?)
    RETURNING id"""
)
_list = portable(f"SELECT {_COLUMNS} ORDER BY id")
_one = portable(f"SELECT {_COLUMNS} AND id = ?")
_delete = portable(f"DELETE FROM webhooks WHERE {_OWN} AND id = ?")
_CHANGED = "UPDATE webhooks SET {} = ? WHERE id = ?"
_set_address = portable(_CHANGED.format("address"))
_set_kinds = portable(_CHANGED.format("kinds"))
_set_state = portable(_CHANGED.format("state"))
_begin_again = portable(
    """UPDATE webhooks SET failures = 0, slow = ?, failing_since = NULL, last_error = NULL WHERE id = ?"""
)
_hasten = portable(
    """UPDATE webhooks SET next_try_at = ? WHERE id = ? AND (lease_until IS NULL OR lease_until <= ?)
        AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = webhooks.id AND d.state = 'waiting')"""
)
_DELIVERY = """id, event_id, kind, state, created_at, attempts, last_tried_at, seconds, http_status, error, settled_at,
    CASE WHEN state = 'waiting' AND id = (SELECT MIN(f.id) FROM webhook_deliveries f
        WHERE f.webhook_id = d.webhook_id AND f.state = 'waiting')
        THEN (SELECT w.next_try_at FROM webhooks w WHERE w.id = d.webhook_id AND w.state = 'active') END
    FROM webhook_deliveries d"""
_log = portable(f"SELECT {_DELIVERY} WHERE webhook_id = ? AND id < ? ORDER BY id DESC LIMIT ?")
_delivery = portable(f"SELECT {_DELIVERY} WHERE webhook_id = ? AND id = ?")
_find_delivery = portable("SELECT id FROM webhook_deliveries WHERE webhook_id = ? AND event_id = ?")
_replay = portable(
    """UPDATE webhook_deliveries SET state = 'waiting', settled_at = NULL, attempts = 0, first_tried_at = NULL,
        error = NULL WHERE webhook_id = ? AND id = ? AND state <> 'waiting'"""
)
_PAST_EVERY_ID = 2**62


class Webhook(NamedTuple):
    """A receiver and how it is doing. `kinds` is empty: it wants every kind; `waiting` is its queue's length."""

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


class Delivery(NamedTuple):
    """An event on its way to a webhook. `next_try_at` is set for the first of the queue: the others follow it."""

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


def add(conn: Connection, reader: Reader, *, address: str, kinds: Sequence[str], secret: bytes, now: datetime) -> int:
    """`secret` is sealed. Events from now on are sent there."""
    rows = _insert.all(conn, reader.tenant_id, reader.user_id, address, json_text(list(kinds)), secret, now)
    return int(rows[0][0])


def of_reader(conn: Connection, reader: Reader) -> list[Webhook]:
    return [_webhook(row) for row in _list.all(conn, reader.tenant_id, reader.user_id)]


def one(conn: Connection, reader: Reader, webhook_id: int) -> Webhook | None:
    rows = _one.all(conn, reader.tenant_id, reader.user_id, webhook_id)
    return _webhook(rows[0]) if rows else None


def remove(conn: Connection, reader: Reader, webhook_id: int) -> bool:
    """Its queue and its record go with it."""
    return _delete.once(conn, reader.tenant_id, reader.user_id, webhook_id) > 0


def change(
    conn: Connection,
    webhook: Webhook,
    now: datetime,
    *,
    address: str | None = None,
    kinds: Sequence[str] | None = None,
    active: bool | None = None,
) -> None:
    """Only what is given changes. Whoever resumes it or gives it a new address begins with a clean record."""
    changes: list[tuple[Prepared, Any]] = []
    if address is not None:
        changes.append((_set_address, address))
    if kinds is not None:
        changes.append((_set_kinds, json_text(list(kinds))))
    if active is not None:
        changes.append((_set_state, "active" if active else "paused"))
    for statement, value in changes:
        statement.once(conn, value, webhook.id)
    if address is not None or active:
        _begin_again.once(conn, False, webhook.id)
        _hasten.once(conn, now, webhook.id, now)


def ping(conn: Connection, reader: Reader, webhook: Webhook, now: datetime) -> int:
    """Let a word of greeting wait at the end of the queue, and try the queue now; returns the delivery's id."""
    data = json_text({"webhook_id": webhook.id})
    key = f"user:{reader.user_id}"
    event = LoggedEvent(LogPosition(0, 0), uuid7(), PING, 1, key, reader.tenant_id, reader.user_id, None, now, data)
    deliveries.enqueue(conn, [(webhook.id, event)])
    _hasten.once(conn, now, webhook.id, now)
    return int(_find_delivery.all(conn, webhook.id, event.event_id)[0][0])


def replay(conn: Connection, webhook: Webhook, delivery_id: int, now: datetime) -> bool:
    """Send it again, before all that waits, under the same id; False: it waits already, or is not there."""
    if not _replay.once(conn, webhook.id, delivery_id):
        return False
    _hasten.once(conn, now, webhook.id, now)
    return True


def log_of(conn: Connection, webhook: Webhook, *, before: int | None, limit: int) -> list[Delivery]:
    """What was sent and what waits, the newest first."""
    return [_of_row(row) for row in _log.all(conn, webhook.id, before or _PAST_EVERY_ID, limit)]


def delivery(conn: Connection, webhook: Webhook, delivery_id: int) -> Delivery | None:
    rows = _delivery.all(conn, webhook.id, delivery_id)
    return _of_row(rows[0]) if rows else None


def _webhook(row: Sequence[Any]) -> Webhook:
    id, address, kinds, state, created_at, next_try_at, failures, since, error, delivered_at, waiting = row
    times = moment(created_at), moment_or_none(next_try_at)
    return Webhook(
        id, address, json_value(kinds), state, *times, failures, moment_or_none(since), error,
        moment_or_none(delivered_at), waiting,
    )  # fmt: skip


def _of_row(row: Sequence[Any]) -> Delivery:
    id, event_id, kind, state, created_at, attempts, tried_at, seconds, http_status, error, settled_at, next_at = row
    return Delivery(
        id, event_id, kind, state, moment(created_at), attempts, moment_or_none(tried_at), seconds, http_status, error,
        moment_or_none(settled_at), moment_or_none(next_at),
    )  # fmt: skip
