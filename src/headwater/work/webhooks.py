"""Sends queued events to webhooks: in order and one at a time for each receiver, many receivers at once.

A sender that is killed leaves a lease that expires. What it had in hand is sent again, under the same id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog
from sqlalchemy import Connection

from headwater.consumers import webhooks
from headwater.errors import BadInput, SourceFailure, TooManyRedirects
from headwater.fetch.statuses import retry_after
from headwater.ids import uuid7
from headwater.model import Request, Response
from headwater.store.db import Database
from headwater.store.log.outbox import LoggedEvent
from headwater.store.people import deliveries
from headwater.store.people.deliveries import DeliveryClaim, DeliveryOutcome, WaitingDelivery
from headwater.waiting import WakeUpSignal
from headwater.work.leased import LeaseWorker

CONCURRENCY = 100  # receivers at once
TROUBLED_CONCURRENCY = 50  # of these, receivers that fail or are slow: the others never wait for them
ANSWER_SECONDS = 10.0
ANSWER_BYTES = 256 * 1024
LEASE = timedelta(seconds=60)
MARGIN = timedelta(seconds=20)  # the time a lease must have left to start another request
RECORD_AFTER = timedelta(seconds=1)  # a kill repeats at most what was sent in this time

log = structlog.get_logger()


class DeliveryTools(NamedTuple):
    """What sending needs. `source` is the name of this instance in the events it sends."""

    fetch: Callable[[Request], Awaitable[Response]]
    unseal: Callable[[bytes], str]
    source: str
    now: Callable[[], datetime]
    chance: Callable[[], float]


async def deliver(
    db: Database, tools: DeliveryTools, new_events: WakeUpSignal, patience: timedelta, stop: asyncio.Event
) -> None:
    """Sends until `stop` is set. Then requests in flight have `patience` to finish."""
    with new_events.listening() as woken:
        await LeaseWorker(db, Sender(db, tools, stop)).run(stop, patience, woken)


class Sender:
    """Claims the queues of webhooks and sends what is in them."""

    name = "webhooks"

    def __init__(self, db: Database, tools: DeliveryTools, stop: asyncio.Event) -> None:
        self._db, self._tools, self._stop = db, tools, stop

    async def claim(self, in_hand: Collection[DeliveryClaim]) -> list[DeliveryClaim]:
        room = CONCURRENCY - len(in_hand)
        now = self._tools.now()
        due_at = await self._db.read(deliveries.next_due) if room else None
        if due_at is None or due_at > now:
            return []
        for_troubled = min(room, TROUBLED_CONCURRENCY - sum(claim.troubled for claim in in_hand))
        return await self._db.write(
            deliveries.claim_due, now=now, lease=uuid7(), lease_for=LEASE, well=room, troubled=for_troubled
        )

    async def work(self, claim: DeliveryClaim) -> list[DeliveryOutcome]:
        """Sends the first events of a queue until one fails or the time is up."""
        now = self._tools.now
        outcomes: list[DeliveryOutcome] = []
        record_at = now() + RECORD_AFTER
        for waiting in claim.waiting:
            if self._stop.is_set() or now() > claim.until - MARGIN or (outcomes and now() > record_at):
                break
            outcomes.append(await self._attempt(claim, waiting))
            if outcomes[-1].error is not None:
                log.warning("webhook.failed", webhook=claim.webhook_id, error=outcomes[-1].error)
                break
        return outcomes

    def settle(self, conn: Connection, claim: DeliveryClaim, outcome: list[DeliveryOutcome]) -> bool:
        return deliveries.record(conn, claim, outcome, self._tools.now(), self._tools.chance())

    def label(self, claim: DeliveryClaim) -> str:
        return str(claim.webhook_id)

    async def _attempt(self, claim: DeliveryClaim, waiting: WaitingDelivery) -> DeliveryOutcome:
        loop = asyncio.get_running_loop()
        tried_at, began = self._tools.now(), loop.time()
        answer, error = await self._send(claim, waiting.event, tried_at)
        seconds = loop.time() - began
        if answer is None:
            return DeliveryOutcome(waiting, tried_at, seconds, None, error)
        return DeliveryOutcome(waiting, tried_at, seconds, answer.status, error, retry_after(answer))

    async def _send(
        self, claim: DeliveryClaim, event: LoggedEvent, now: datetime
    ) -> tuple[Response | None, str | None]:
        """Returns the answer, if there was one, and what went wrong, if anything did."""
        try:
            secret = self._tools.unseal(claim.secret)
        except SourceFailure as error:
            return None, f"The secret of the webhook cannot be read. {error.detail}"
        try:
            answer = await self._tools.fetch(webhooks.request_of(claim, event, secret, self._tools.source, now))
        except TooManyRedirects:
            return None, "The receiver redirects, which webhooks do not follow. Give its new address."
        except (SourceFailure, BadInput) as error:
            return None, error.detail
        return answer, webhooks.refusal(answer.status)
