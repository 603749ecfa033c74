"""What a dispatcher sends, on both databases: what is due, once for each due time, and never more than workers take."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from headwater.app import refresh
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.sources import leases
from headwater.work.cluster import BATCH, MOST_WAITING, SEND_AGAIN, Dispatcher, Message, SentHere
from headwater.work.periodic import DEFAULT, HIGH, REFRESH_FEED, REFRESH_FEEDS
from support.posts import NOON, a_source


@dataclass
class Queues:
    """A broker whose messages stay where they are."""

    messages: list[Message] = field(default_factory=list)

    def send(self, message: Message) -> None:
        self.messages.append(message)

    def waiting(self, queue: str) -> int:
        return Counter(message.queue for message in self.messages)[queue]


@dataclass
class Clock:
    at: datetime = NOON

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queues() -> Queues:
    return Queues()


@pytest.fixture
def dispatcher(db: Database, queues: Queues, clock: Clock) -> Dispatcher:
    return Dispatcher(db, queues, clock, SentHere(clock).first_to_send)


def add(db: Database, owner: Reader, count: int, first: int = 0) -> list[int]:
    return [
        db.write_now(a_source, owner, f"https://news.example/{number}", NOON) for number in range(first, first + count)
    ]


async def test_what_is_due_is_sent_in_batches_once(
    db: Database, owner: Reader, dispatcher: Dispatcher, queues: Queues, clock: Clock
) -> None:
    ids = add(db, owner, BATCH + 7)
    assert await dispatcher.look() == 2
    assert {(message.task, message.queue) for message in queues.messages} == {(REFRESH_FEEDS, DEFAULT)}
    sent = [id for message in queues.messages for id in message.arguments[0]]  # type: ignore[attr-defined]
    assert sorted(sent) == ids
    assert await dispatcher.look() == 0
    clock.at += SEND_AGAIN
    assert await dispatcher.look() == 2, "the messages may have been lost"


async def test_what_is_visited_is_not_sent(db: Database, owner: Reader, dispatcher: Dispatcher, clock: Clock) -> None:
    add(db, owner, 3)
    claim = {"now": NOON, "lease": "a lease", "lease_for": timedelta(minutes=3), "gap": timedelta(0), "limit": 10}
    assert len(db.write_now(leases.claim_due, **claim)) == 3  # type: ignore[arg-type]
    assert await dispatcher.look() == 0
    clock.at += timedelta(minutes=3)
    assert await dispatcher.look() == 1, "whoever visited them is gone"


async def test_what_a_person_asked_for_goes_to_the_high_queue_under_its_task(
    db: Database, owner: Reader, dispatcher: Dispatcher, queues: Queues
) -> None:  # D3
    ids = add(db, owner, 3)
    now = db.write_now(refresh.request_visit, owner, ids[0], NOON, at_once=True)
    when_due = db.write_now(refresh.request_visit, owner, ids[1], NOON, at_once=False)
    await dispatcher.look()
    assert queues.messages == [
        Message(REFRESH_FEED, (ids[0],), HIGH, now["task_id"]),
        Message(REFRESH_FEED, (ids[1],), DEFAULT, when_due["task_id"]),
        Message(REFRESH_FEEDS, ([ids[2]],), DEFAULT),
    ]


async def test_no_more_messages_wait_than_workers_need(
    db: Database, owner: Reader, dispatcher: Dispatcher, queues: Queues
) -> None:
    add(db, owner, 3)
    queues.messages = [Message(REFRESH_FEEDS, ([1],), DEFAULT)] * MOST_WAITING
    assert await dispatcher.look() == 0
    queues.messages = queues.messages[1:]
    assert await dispatcher.look() == 1
