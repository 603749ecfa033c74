"""The queues of webhooks: which events wait for which receiver, leases on the queues, and how sending went.

waiting     to be sent, after those before it
delivered   the receiver has accepted it
failed      given up; a person may replay it

A queue belongs to one webhook and is sent in order. A sender leases the whole queue, as sources are leased for a visit:
the token of the lease fences what is written at the end, and a lost lease is due again by itself. Writers lock the row
of the webhook before they read its queue, so that none misses what another adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.store.log.outbox import FACTS, LoggedEvent, event_values, logged
from headwater.store.sql import Prepared, insert_into, json_value, moment, moment_or_none, portable

BATCH = 20
RETRIES = (5, 30, 120, 600, 3600)  # seconds; the last one is repeated
JITTER = 0.2
GIVE_UP_AFTER = timedelta(hours=24)
LONGEST_PAUSE = timedelta(hours=1)  # that a receiver can ask for with Retry-After
LONGEST_WAIT = timedelta(hours=2)  # no retry is further away, unless the clock was set back
NO_TIME = timedelta(0)
SLOW_SECONDS = 2.0
GONE = 410
LONGEST_ERROR = 500


class WebhookFilter(NamedTuple):
    """Which events a webhook wants: of which kinds (none named: all), and since when."""

    webhook_id: int
    kinds: frozenset[str]
    since: datetime

    def wants(self, event: LoggedEvent) -> bool:
        return event.created_at >= self.since and (not self.kinds or event.kind in self.kinds)


class WaitingDelivery(NamedTuple):
    """An event that waits in a queue."""

    delivery_id: int
    first_tried_at: datetime | None
    event: LoggedEvent


class DeliveryClaim(NamedTuple):
    """The right to send the first events of a queue, until `until`. `secret` is encrypted."""

    webhook_id: int
    address: str
    secret: bytes
    lease: str
    until: datetime
    troubled: bool
    waiting: list[WaitingDelivery]


class DeliveryOutcome(NamedTuple):
    """How an attempt went. `error` is None if the receiver accepted it; `pause` is how long the receiver asked for."""

    waiting: WaitingDelivery
    tried_at: datetime
    seconds: float
    http_status: int | None
    error: str | None
    pause: timedelta | None = None


class ReceiverHealth(NamedTuple):
    failures: int
    slow: bool
    failing_since: datetime | None
    last_error: str | None


class _DueWebhook(NamedTuple):
    id: int
    address: str
    secret: bytes


_OF_EVENT = ", ".join(f"d.{name}" for name in FACTS.split(", "))
_followers = portable(
    """SELECT s.source_id, w.id, w.kinds, w.created_at FROM subscriptions s
    JOIN webhooks w ON w.user_id = s.user_id AND w.tenant_id = s.tenant_id
    WHERE s.source_id IN (?) AND w.state <> 'gone'"""
)
_owners = portable(
    "SELECT user_id, tenant_id, id, kinds, created_at FROM webhooks WHERE user_id IN (?) AND state <> 'gone'"
)
_lock = portable("SELECT id, tenant_id FROM webhooks WHERE id IN (?)", postgresql=" ORDER BY id FOR UPDATE")
_insert = portable(
    insert_into("webhook_deliveries", f"webhook_id, xid, log_id, {FACTS}, payload".split(", "))
    + " ON CONFLICT (webhook_id, event_id) DO NOTHING"
)
_make_due = portable("UPDATE webhooks SET next_try_at = ? WHERE id IN (?) AND next_try_at IS NULL")
_next_due = portable("SELECT MIN(next_try_at) FROM webhooks WHERE state = 'active'")
_select_due = portable(
    """SELECT id, address, secret FROM webhooks
    WHERE state = 'active' AND next_try_at <= ? AND (lease_until IS NULL OR lease_until <= ?)
        AND (failures > 0 OR slow) = ? ORDER BY next_try_at LIMIT ?""",
    postgresql=" FOR UPDATE SKIP LOCKED",
    row=_DueWebhook,
)
_lease = portable("UPDATE webhooks SET lease_owner = ?, lease_until = ?, next_try_at = ? WHERE id IN (?)")
_FIRST = """SELECT {columns} FROM webhook_deliveries o WHERE o.webhook_id = w.id AND o.state = 'waiting'
        ORDER BY o.id LIMIT :most"""
_WAITING = f"""SELECT d.webhook_id, d.id, d.first_tried_at, d.xid, d.log_id, {_OF_EVENT}, CAST(d.payload AS TEXT)
    FROM webhooks w JOIN {{first}} WHERE w.id IN (:ids) ORDER BY d.webhook_id, d.id"""
_waiting = Prepared(
    sqlite=_WAITING.format(first=f"webhook_deliveries d ON d.id IN ({_FIRST.format(columns='o.id')})"),
    postgresql=_WAITING.format(first=f"LATERAL ({_FIRST.format(columns='o.*')}) d ON TRUE"),
)
_held = portable(
    "SELECT failures, slow, failing_since, last_error FROM webhooks WHERE id = ? AND lease_owner = ?",
    postgresql=" FOR UPDATE",
    row=ReceiverHealth,
)
_record_attempt = portable(
    """UPDATE webhook_deliveries SET state = :state, settled_at = :settled_at, attempts = attempts + 1,
        last_tried_at = :tried_at, first_tried_at = COALESCE(first_tried_at, :tried_at), seconds = :seconds,
        http_status = :http_status, error = :error
    WHERE id = :id"""
)
_give_up = portable(
    """UPDATE webhook_deliveries SET state = 'failed', settled_at = ?, error = ?
    WHERE webhook_id = ? AND state = 'waiting' AND created_at <= ?"""
)
_release = portable(
    """UPDATE webhooks SET lease_owner = NULL, lease_until = NULL, failures = :failures, slow = :slow,
        failing_since = :failing_since, last_error = :last_error,
        last_delivered_at = COALESCE(:delivered_at, last_delivered_at),
        next_try_at = CASE WHEN EXISTS (SELECT 1 FROM webhook_deliveries d
            WHERE d.webhook_id = webhooks.id AND d.state = 'waiting') THEN :next_try_at END
    WHERE id = :id"""
)
_retire = portable("UPDATE webhooks SET state = 'gone' WHERE id = ?")
_heal_clock = portable(
    "UPDATE webhooks SET lease_owner = NULL, lease_until = NULL, next_try_at = ? WHERE next_try_at > ?"
)
_expire = portable(
    """UPDATE webhook_deliveries SET state = 'failed', settled_at = ?, error = ?
    WHERE state = 'waiting' AND created_at < ?"""
)
_forget = portable("DELETE FROM webhook_deliveries WHERE settled_at < ?")


def followers(conn: Connection, source_ids: Sequence[int]) -> dict[int, list[WebhookFilter]]:
    """Returns the webhooks of those who follow these sources, by source."""
    found: dict[int, list[WebhookFilter]] = {}
    for source_id, webhook_id, kinds, since in _followers.all(conn, list(source_ids)):
        found.setdefault(source_id, []).append(_filter(webhook_id, kinds, since))
    return found


def owners(conn: Connection, user_ids: Sequence[int]) -> dict[tuple[int, int], list[WebhookFilter]]:
    """Returns the webhooks of these users, by tenant and user."""
    found: dict[tuple[int, int], list[WebhookFilter]] = {}
    for user_id, tenant_id, webhook_id, kinds, since in _owners.all(conn, list(user_ids)):
        found.setdefault((tenant_id, user_id), []).append(_filter(webhook_id, kinds, since))
    return found


def enqueue(conn: Connection, wanted: Sequence[tuple[int, LoggedEvent]]) -> None:
    """Adds these events to the queues of these webhooks, in this order. An event is in a queue at most once.

    What waits in a queue belongs to the tenant of the webhook, whatever the event says.
    """
    if not wanted:
        return
    tenants = dict(_lock.all(conn, sorted({webhook_id for webhook_id, _ in wanted})))
    there = sorted(tenants)
    _insert.many(conn, [_new(one, event, tenants[one]) for one, event in wanted if one in tenants])
    _make_due.once(conn, min(event.created_at for _, event in wanted), there)


def next_due(conn: Connection) -> datetime | None:
    return moment_or_none(_next_due.value(conn))


def claim_due(
    conn: Connection, *, now: datetime, lease: str, lease_for: timedelta, well: int, troubled: int
) -> list[DeliveryClaim]:
    """Leases due queues: up to `well` of receivers that work, up to `troubled` of those that fail or are slow."""
    until = now + lease_for
    claims: list[DeliveryClaim] = []
    for is_troubled, limit in ((False, well), (True, troubled)):
        rows = _select_due.all(conn, now, now, is_troubled, limit)
        if not rows:
            continue
        ids = [row.id for row in rows]
        _lease.once(conn, lease, until, until, ids)
        first = _first(conn, ids)
        claims += [
            DeliveryClaim(row.id, row.address, row.secret, lease, until, is_troubled, first[row.id]) for row in rows
        ]
    for claim in claims:
        if not claim.waiting:
            record(conn, claim, [], now, 0.0)
    return [claim for claim in claims if claim.waiting]


def record(
    conn: Connection, claim: DeliveryClaim, outcomes: Sequence[DeliveryOutcome], now: datetime, chance: float
) -> bool:
    """Records how the attempts went, and releases the queue. Returns False, and writes nothing, if the lease was lost.

    Only the last attempt can be a failure: what comes after it waits.
    """
    health = _held.first(conn, claim.webhook_id, claim.lease)
    if health is None:
        return False
    next_try_at, delivered_at = now, None
    for outcome in outcomes:
        health = health_after(health, outcome)
        if outcome.error is None:
            _note_attempt(conn, outcome, "delivered", outcome.tried_at)
            delivered_at = outcome.tried_at
        else:
            next_try_at = _note_failure(conn, claim.webhook_id, outcome, health, now, chance)
    _release.once(conn, id=claim.webhook_id, **health._asdict(), delivered_at=delivered_at, next_try_at=next_try_at)
    return True


def health_after(health: ReceiverHealth, outcome: DeliveryOutcome) -> ReceiverHealth:
    """Returns the health of a receiver after one more attempt. Pure."""
    slow = outcome.seconds > SLOW_SECONDS
    if outcome.error is None:
        return ReceiverHealth(0, slow, None, None)
    since = health.failing_since or outcome.tried_at
    return ReceiverHealth(health.failures + 1, slow, since, outcome.error[:LONGEST_ERROR])


def retry_after(failures: int, chance: float) -> timedelta:
    """Returns how long to wait after so many failures in a row. Pure; `chance` is between 0 and 1."""
    seconds = RETRIES[min(failures, len(RETRIES)) - 1]
    return timedelta(seconds=seconds * (1 + JITTER * chance))


def heal_clock(conn: Connection, now: datetime) -> int:
    """Makes queues due now that are due far in the future, because the clock was set back. Returns how many."""
    return _heal_clock.once(conn, now, now + LONGEST_WAIT)


def forget_before(conn: Connection, before: datetime, now: datetime) -> int:
    """Deletes what was settled before this time. What has waited as long, in a paused queue, is given up first."""
    _expire.once(conn, now, "It waited for longer than events are kept.", before)
    return _forget.once(conn, before)


def _note_failure(
    conn: Connection, webhook_id: int, outcome: DeliveryOutcome, health: ReceiverHealth, now: datetime, chance: float
) -> datetime:
    """Keeps the event in the queue, or gives it up. Returns when to try the queue again."""
    assert outcome.error is not None
    if outcome.http_status == GONE:
        _note_attempt(conn, outcome, "failed", now)
        _give_up.once(conn, now, outcome.error, webhook_id, now)
        _retire.once(conn, webhook_id)
        return now
    long_ago = now - GIVE_UP_AFTER
    first_tried_at = outcome.waiting.first_tried_at
    if first_tried_at is not None and first_tried_at <= long_ago:
        _note_attempt(conn, outcome, "failed", now)
        return now  # the receiver may have failed because of this event: try the next one
    _note_attempt(conn, outcome, "waiting", None)
    if first_tried_at is None and health.failing_since is not None and health.failing_since <= long_ago:
        _give_up.once(conn, now, "The receiver has not worked for a day.", webhook_id, long_ago)
    return now + max(retry_after(health.failures, chance), min(outcome.pause or NO_TIME, LONGEST_PAUSE))


def _note_attempt(conn: Connection, outcome: DeliveryOutcome, state: str, settled_at: datetime | None) -> None:
    _record_attempt.once(
        conn,
        id=outcome.waiting.delivery_id,
        state=state,
        settled_at=settled_at,
        tried_at=outcome.tried_at,
        seconds=outcome.seconds,
        http_status=outcome.http_status,
        error=outcome.error[:LONGEST_ERROR] if outcome.error else None,
    )


def _first(conn: Connection, webhook_ids: Sequence[int]) -> dict[int, list[WaitingDelivery]]:
    """Returns the first events of these queues."""
    found: dict[int, list[WaitingDelivery]] = {webhook_id: [] for webhook_id in webhook_ids}
    for webhook_id, delivery_id, first_tried_at, *event in _waiting.all(conn, ids=list(webhook_ids), most=BATCH):
        found[webhook_id].append(WaitingDelivery(delivery_id, moment_or_none(first_tried_at), logged(event)))
    return found


def _new(webhook_id: int, event: LoggedEvent, tenant_id: int) -> dict[str, Any]:
    xid, log_id = event.position
    return event_values(event) | {"webhook_id": webhook_id, "tenant_id": tenant_id, "xid": xid, "log_id": log_id}


def _filter(webhook_id: int, kinds: Any, since: Any) -> WebhookFilter:
    return WebhookFilter(webhook_id, frozenset(json_value(kinds)), moment(since))
