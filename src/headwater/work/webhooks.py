"""Sends the events that wait for webhooks: each receiver's in order and one at a time, many receivers side by side.

Nothing is remembered here: queues, leases and retries are in the store. A process that is killed while it sends leaves
a lease that runs out, and what it had in hand is sent again under the same id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from headwater.consumers import webhooks
from headwater.errors import BadInput, HeadwaterError, SourceFailure, TooManyRedirects
from headwater.events.bell import Bell
from headwater.fetch.statuses import retry_after
from headwater.model import Request, Response
from headwater.store.db import Database
from headwater.store.log.outbox import LoggedEvent, uuid7
from headwater.store.people import deliveries
from headwater.store.people.deliveries import DeliveryClaim, DeliveryOutcome, WaitingDelivery
from headwater.work.waiting import TROUBLE_SECONDS, finish, wait

PLACES = 100  # receivers that are sent to at once
TROUBLED_PLACES = 50  # of these, for receivers that fail or are slow: the others never wait for them (H96)
ANSWER_SECONDS = 10.0
ANSWER_BYTES = 256 * 1024
LEASE = timedelta(seconds=60)
MARGIN = timedelta(seconds=20)  # what has to be left of a lease to begin another request
RECORD_AFTER = timedelta(seconds=1)  # so much may be sent again after a kill
LOOK_SECONDS = 1.0
SOON_SECONDS = 0.005  # after a ring: the consumer has to queue the event first

log = structlog.get_logger()


class DeliveryTools(NamedTuple):
    """What sending needs: `source` is how this instance names itself in events."""

    fetch: Callable[[Request], Awaitable[Response]]
    unseal: Callable[[bytes], str]
    source: str
    now: Callable[[], datetime]
    chance: Callable[[], float]


async def deliver(db: Database, tools: DeliveryTools, bell: Bell, patience: timedelta, stop: asyncio.Event) -> None:
    """Send until `stop` is set; then what is under way has `patience` to end. Trouble with the store is waited out."""
    sender = Sender(db, tools, stop)
    pause = LOOK_SECONDS
    with bell.listening() as rung:
        while not stop.is_set():
            try:
                started = await sender.start_due()
                pause = LOOK_SECONDS if started else min(pause * 2, LOOK_SECONDS)
            except HeadwaterError as error:
                log.warning("webhooks.wait", error=error.detail)
                pause = TROUBLE_SECONDS
            if await wait(pause, rung, sender.ended, stop=stop):
                pause = SOON_SECONDS
    await sender.end_within(patience)


class Sender:
    """The requests under way in this process."""

    def __init__(self, db: Database, tools: DeliveryTools, stop: asyncio.Event) -> None:
        self._db, self._tools, self._stop = db, tools, stop
        self._under_way: dict[asyncio.Task[None], bool] = {}  # whether it is a receiver in trouble
        self.ended = asyncio.Event()

    async def start_due(self) -> int:
        """Claim what is due, as far as there are places for it, and begin to send; returns how many receivers."""
        room = PLACES - len(self._under_way)
        now = self._tools.now()
        due_at = await self._db.read(deliveries.next_due) if room else None
        if due_at is None or due_at > now:
            return 0
        for_troubled = min(room, TROUBLED_PLACES - sum(self._under_way.values()))
        claims = await self._db.write(
            deliveries.claim_due, now=now, lease=uuid7(), lease_for=LEASE, well=room, troubled=for_troubled
        )
        for claim in claims:
            task = asyncio.create_task(self._work_off(claim))
            self._under_way[task] = claim.troubled
            task.add_done_callback(self._end)
        return len(claims)

    async def end_within(self, patience: timedelta) -> None:
        """What does not end in time is left to its lease."""
        await finish(self._under_way, patience)

    def _end(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        self.ended.set()
        if not task.cancelled() and (error := task.exception()):
            log.error("webhook.broken", exc_info=error)  # its lease runs out, and it is tried again (H98)

    async def _work_off(self, claim: DeliveryClaim) -> None:
        """Send the first events of a queue, until one fails or the time for it is over, and write down how it went."""
        now = self._tools.now
        outcomes: list[DeliveryOutcome] = []
        enough = now() + RECORD_AFTER
        for waiting in claim.waiting:
            if self._stop.is_set() or now() > claim.until - MARGIN or (outcomes and now() > enough):
                break
            outcomes.append(await self._attempt(claim, waiting))
            if outcomes[-1].error is not None:
                log.warning("webhook.failed", webhook=claim.webhook_id, error=outcomes[-1].error)
                break
        try:
            kept = await self._db.write(deliveries.record, claim, outcomes, now(), self._tools.chance())
        except HeadwaterError as error:
            log.warning("webhook.unrecorded", webhook=claim.webhook_id, error=error.detail)
            return
        if not kept:
            log.warning("webhook.refused", webhook=claim.webhook_id, reason="the lease was lost")

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
        """The answer, if one came, and what went wrong, or None."""
        try:
            secret = self._tools.unseal(claim.secret)
        except SourceFailure:
            return None, "The secret cannot be read with the present HEADWATER_SECRET_KEY. Add the webhook again."
        try:
            answer = await self._tools.fetch(webhooks.request_of(claim, event, secret, self._tools.source, now))
        except TooManyRedirects:
            return None, "The receiver redirects, which webhooks do not follow. Give its new address."
        except (SourceFailure, BadInput) as error:
            return None, error.detail
        return answer, webhooks.refusal(answer.status)
