"""Visits on several machines: what a dispatcher sends through a broker, and what a worker does with it.

The schedule stays a column of the store. A message only says "look at these sources": whoever gets it claims them as
the crawl loop does, with a lease. So a message that is lost is sent again, one that comes twice finds nothing to do,
and any number of dispatchers and workers can run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

import structlog
from sqlalchemy import Connection

from headwater.crawl.crawler import Crawler
from headwater.errors import HeadwaterError
from headwater.ids import uuid7
from headwater.model import DueSource
from headwater.store.db import Database
from headwater.store.sources import leases, schedule
from headwater.store.sources.leases import SendableSource
from headwater.waiting import TROUBLE_SECONDS, wait
from headwater.work import crawl_loop
from headwater.work.crawl_loop import CrawlPace
from headwater.work.periodic import DEFAULT, HIGH, REFRESH_FEED, REFRESH_FEEDS

LOOK_SECONDS = 0.25
BATCH = 50  # sources in one message
MOST_SEEN = 2000  # due sources that one look considers
MOST_WAITING = 100  # messages in a queue: more are not sent, however many sources are due
SEND_AGAIN = timedelta(seconds=60)  # after which a message may have been lost
SHIFT_SECONDS = 20.0  # how long one task goes on claiming what is due
log = structlog.get_logger()


class Message(NamedTuple):
    """What a worker is sent: a task and its arguments, by a queue."""

    task: str
    arguments: tuple[object, ...]
    queue: str
    task_id: str | None = None


class Broker(Protocol):
    """What carries messages. It blocks, and raises ConnectionError while it cannot be reached."""

    def send(self, message: Message) -> None: ...

    def waiting(self, queue: str) -> int:
        """Returns how many messages are in a queue."""


FirstToSend = Callable[[Mapping[int, datetime], timedelta], Awaitable[set[int]]]


class SentHere:
    """Remembers what this process sent. For a dispatcher that cannot know what others have sent."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._sent: dict[int, tuple[datetime, datetime]] = {}  # for which due time, and when

    async def first_to_send(self, due: Mapping[int, datetime], kept: timedelta) -> set[int]:
        """Returns those of these sources that were not sent for this due time, and notes that they are sent now."""
        now = self._now()
        self._sent = {id: sent for id, sent in self._sent.items() if now - kept < sent[1] <= now}
        first = {id for id, at in due.items() if self._sent.get(id, (None,))[0] != at}
        self._sent.update({id: (due[id], now) for id in first})
        return first


class Dispatcher:
    """Sends what is due to workers. It remembers nothing: `first_to_send` knows what was sent a moment ago."""

    def __init__(self, db: Database, broker: Broker, now: Callable[[], datetime], first_to_send: FirstToSend) -> None:
        self._db, self._broker, self._now, self._first_to_send = db, broker, now, first_to_send

    async def run(self, stop: asyncio.Event) -> None:
        """Sends until `stop` is set. Logs that the store or the broker cannot be reached, and tries again."""
        while not stop.is_set():
            pause = LOOK_SECONDS
            try:
                await self.look()
            except (HeadwaterError, ConnectionError) as error:
                log.warning("dispatch.waits", error=str(getattr(error, "detail", error)))
                pause = TROUBLE_SECONDS
            except Exception:  # a bug must not stop the visits of everybody
                log.exception("dispatch.failed")
                pause = TROUBLE_SECONDS
            await wait(pause, stop=stop)

    async def look(self) -> int:
        """Sends once what is due and was not sent. Returns how many messages that were."""
        due = await self._db.read(leases.to_send, self._now(), MOST_SEEN)
        if not due:
            return 0
        room = {queue: MOST_WAITING - await asyncio.to_thread(self._broker.waiting, queue) for queue in (HIGH, DEFAULT)}
        due = _within(due, room)
        first = await self._first_to_send({one.id: one.next_check_at for one in due}, SEND_AGAIN)
        messages = messages_for([one for one in due if one.id in first])
        await asyncio.to_thread(self._send, messages)
        return len(messages)

    def _send(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._broker.send(message)


def _within(due: Sequence[SendableSource], room: Mapping[str, int]) -> list[SendableSource]:
    """Returns as many sources as there is room for messages. Pure."""
    asked = [one for one in due if one.asked_at][: max(0, room[HIGH])]
    alone = [one for one in due if not one.asked_at and one.task_id][: max(0, room[DEFAULT])]
    rest = [one for one in due if not one.asked_at and not one.task_id]
    return asked + alone + rest[: BATCH * max(0, room[DEFAULT] - len(alone))]


def messages_for(due: Sequence[SendableSource]) -> list[Message]:
    """Returns what to send. What has a task of its own goes alone, under its id; the rest in batches. Pure."""
    alone = [one for one in due if one.asked_at or one.task_id]
    rest = [one.id for one in due if not one.asked_at and not one.task_id]
    messages = [Message(REFRESH_FEED, (one.id,), HIGH if one.asked_at else DEFAULT, one.task_id) for one in alone]
    batches = [rest[start : start + BATCH] for start in range(0, len(rest), BATCH)]
    return messages + [Message(REFRESH_FEEDS, (batch,), DEFAULT) for batch in batches]


async def visit_due(
    db: Database,
    crawler: Crawler,
    pace: CrawlPace,
    now: Callable[[], datetime],
    ids: Sequence[int],
    task_id: str | None = None,
) -> int:
    """Visits those of these sources that are due. Returns how many; 0 if they are not due or visited by somebody else.

    The visit of a source that has no task gets this one, if one is given: then it is tried again as others are.

    One slow source must not keep a worker from its work. So it also visits whatever else is due meanwhile.
    """
    granted = await db.write(_claim, ids, task_id, now(), pace)
    if granted:
        crawler.start(granted)
        await _keep_visiting(db, crawler, pace, now)
    return len(granted)


def _claim(
    conn: Connection, ids: Sequence[int], task_id: str | None, now: datetime, pace: CrawlPace
) -> list[DueSource]:
    granted = leases.claim_named(
        conn, ids, now=now, lease=uuid7(), lease_for=pace.lease_for, gap=pace.gap, only_due=True
    )
    if task_id:
        for due in granted:
            schedule.begin_task(conn, due.source.id, task_id, now)
    return granted


async def _keep_visiting(db: Database, crawler: Crawler, pace: CrawlPace, now: Callable[[], datetime]) -> None:
    clock = asyncio.get_running_loop().time
    ends_at = clock() + SHIFT_SECONDS
    try:
        while crawler.in_hand and clock() < ends_at:
            pause = await crawl_loop.step(db, crawler, pace, now)
            await wait(min(pause, ends_at - clock()), crawler.changed)
    finally:
        await crawler.settle()
