"""Which events wait for which webhooks, who may send them, and what is written down."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from headwater.app import webhooks as asked
from headwater.consumers.webhooks import CONSUMER
from headwater.follow.add import follow, unfollow
from headwater.ids import uuid7
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.log import outbox
from headwater.store.people import deliveries, webhooks
from headwater.store.people.deliveries import (
    BATCH,
    GIVE_UP_AFTER,
    LONGEST_WAIT,
    RETRIES,
    DeliveryClaim,
    DeliveryOutcome,
)
from headwater.store.people.webhooks import ChangedWebhook, Webhook
from support.log import an_event, consume_all
from support.posts import NOON, a_post, a_source, visited
from webhooks.sending import a_reader

LEASE = timedelta(seconds=60)
LATER = NOON + timedelta(minutes=1)
HOOK = "https://receiver.example/hook"


def a_webhook(conn: Connection, reader: Reader, *kinds: str, now: datetime = NOON) -> Webhook:
    return asked.add(conn, reader, HOOK, kinds, str.encode, now).webhook


def waiting(db: Database, webhook: Webhook) -> list[str]:
    log = db.read_now(webhooks.log_of, webhook, before=None, limit=1000)
    return [one.kind for one in log[::-1] if one.state == "waiting"]


def claim(db: Database, now: datetime = NOON, **options: Any) -> list[DeliveryClaim]:
    given = {"lease": uuid7(), "lease_for": LEASE, "well": 100, "troubled": 100, **options}
    return db.write_now(deliveries.claim_due, now=now, **given)


def queued(db: Database, owner: Reader, *numbers: int) -> Webhook:
    """A webhook for which these events wait."""
    webhook = db.write_now(a_webhook, owner)
    source = db.write_now(a_source, owner)
    db.write_now(lambda conn: outbox.append(conn, [an_event(number, source) for number in numbers], LATER))
    consume_all(db, CONSUMER, LATER)
    return webhook


def outcome(
    one: DeliveryClaim, place: int = 0, error: str | None = None, now: datetime = NOON, **fields: Any
) -> DeliveryOutcome:
    return DeliveryOutcome(one.waiting[place], now, 0.1, 500 if error else 200, error)._replace(**fields)


def record(db: Database, one: DeliveryClaim, *outcomes: DeliveryOutcome, now: datetime = NOON) -> bool:
    return db.write_now(deliveries.record, one, list(outcomes), now, 0.0)


def test_a_webhook_gets_what_its_reader_may_see_and_nothing_of_other_tenants(db: Database, owner: Reader) -> None:
    stranger = db.write_now(a_reader, "stranger")
    ours, theirs = db.write_now(a_webhook, owner), db.write_now(a_webhook, stranger)
    shared = db.write_now(a_source, owner, "https://shared.example/feed", LATER)
    db.write_now(a_source, stranger, "https://shared.example/feed", LATER)
    own = db.write_now(a_source, stranger, "https://theirs.example/feed", LATER)
    for source in (shared, own):
        db.write_now(lambda conn, source=source: visited(conn, source, [a_post(f"of {source}")], LATER))  # type: ignore[misc]
    consume_all(db, CONSUMER, LATER)
    assert sorted(waiting(db, ours)) == ["post.stored", "source.added", "subscription.added"]
    expected = ["post.stored"] * 2 + ["source.added"] * 2 + ["subscription.added"] * 2
    assert sorted(waiting(db, theirs)) == expected


def test_a_source_that_is_no_longer_followed_is_silent(db: Database, owner: Reader) -> None:
    source = db.write_now(a_source, owner)
    webhook = db.write_now(a_webhook, owner, "post.stored", now=LATER)
    db.write_now(unfollow, owner, source, LATER)
    db.write_now(lambda conn: visited(conn, source, [a_post("1")], LATER))
    consume_all(db, CONSUMER, LATER)
    assert waiting(db, webhook) == []


def test_only_the_kinds_it_wants_since_it_was_added(db: Database, owner: Reader) -> None:
    source = db.write_now(a_source, owner)
    webhook = db.write_now(a_webhook, owner, "post.changed", "source.added", now=LATER)
    db.write_now(lambda conn: visited(conn, source, [a_post("1")], LATER))
    db.write_now(lambda conn: visited(conn, source, [a_post("1", "changed")], LATER + timedelta(hours=1)))
    consume_all(db, CONSUMER, LATER)
    assert waiting(db, webhook) == ["post.changed"], "the source was added before the webhook was"


def test_an_event_that_is_brought_again_waits_once(db: Database, owner: Reader) -> None:
    # E3
    webhook = queued(db, owner, 1, 2)
    [events] = [one.waiting for one in claim(db, LATER)]
    before = len(waiting(db, webhook))
    for _ in range(3):
        db.write_now(CONSUMER.handle, [one.event for one in events])
    assert len(waiting(db, webhook)) == before


def test_a_queue_is_claimed_by_one_until_its_lease_is_over(db: Database, owner: Reader) -> None:
    # H84
    queued(db, owner, 1)
    [first] = claim(db, LATER)
    assert claim(db, LATER) == []
    assert claim(db, LATER + LEASE - timedelta(seconds=1)) == []
    [second] = claim(db, LATER + LEASE)
    assert [one.delivery_id for one in second.waiting] == [one.delivery_id for one in first.waiting]


def test_whoever_lost_the_lease_writes_nothing(db: Database, owner: Reader) -> None:
    # H85
    webhook = queued(db, owner, 1)
    [late] = claim(db, LATER)
    [fresh] = claim(db, LATER + LEASE)
    before = len(waiting(db, webhook))
    assert not record(db, late, outcome(late), now=LATER + LEASE)
    assert len(waiting(db, webhook)) == before
    assert record(db, fresh, outcome(fresh), now=LATER + LEASE)
    assert len(waiting(db, webhook)) == before - 1


def test_an_event_that_comes_while_the_queue_is_sent_is_not_forgotten(db: Database, owner: Reader) -> None:
    webhook = queued(db, owner, 1)
    source = db.write_now(a_source, owner)
    [one] = claim(db, LATER)
    db.write_now(lambda conn: outbox.append(conn, [an_event(2, source)], LATER))
    consume_all(db, CONSUMER, LATER)
    record(db, one, *(outcome(one, place, now=LATER) for place in range(len(one.waiting))), now=LATER)
    assert len(waiting(db, webhook)) == 1
    [again] = claim(db, LATER)
    record(db, again, outcome(again, now=LATER), now=LATER)
    assert claim(db, LATER + GIVE_UP_AFTER) == []
    assert db.read_now(deliveries.next_due) is None


def test_long_queues_go_out_in_pieces(db: Database, owner: Reader) -> None:
    queued(db, owner, *range(BATCH * 2))
    [one] = claim(db, LATER)
    assert len(one.waiting) == BATCH
    record(db, one, *(outcome(one, place, now=LATER) for place in range(BATCH)), now=LATER)
    [after] = claim(db, LATER)
    assert after.waiting[0].delivery_id > one.waiting[-1].delivery_id


def test_receivers_in_trouble_have_places_of_their_own(db: Database, owner: Reader) -> None:
    # H96
    queued(db, owner, 1)
    other = db.write_now(a_webhook, owner)
    db.write_now(asked.ping, owner, other.id, LATER)
    [troubled] = [one for one in claim(db, LATER) if one.webhook_id != other.id]
    record(db, troubled, outcome(troubled, error="no", now=LATER), now=LATER)
    much_later = LATER + timedelta(hours=1)
    assert [one.webhook_id for one in claim(db, much_later, troubled=0)] == [other.id]
    [found] = claim(db, much_later + LEASE, well=0)
    assert found.webhook_id == troubled.webhook_id
    record(db, found, outcome(found, seconds=5.0, now=much_later), now=much_later + LEASE)
    assert claim(db, much_later + LEASE * 3, well=100, troubled=0)[0].webhook_id == other.id
    assert claim(db, much_later + LEASE * 3)[0].webhook_id == found.webhook_id, "it took five seconds"


@pytest.mark.parametrize(("failures", "seconds"), [*enumerate(RETRIES, 1), (6, 3600), (1000, 3600)])
def test_a_receiver_is_left_alone_for_longer_the_longer_it_fails(failures: int, seconds: int) -> None:
    assert deliveries.retry_after(failures, 0.0) == timedelta(seconds=seconds)
    assert deliveries.retry_after(failures, 1.0) == timedelta(seconds=seconds * 1.2)
    assert deliveries.retry_after(failures, 1.0) < LONGEST_WAIT


@pytest.mark.parametrize(("asked_for", "minutes"), [(20, 20), (0.05, 0.1), (24 * 60, 60)])
def test_a_receiver_can_ask_to_be_left_alone_for_up_to_an_hour(
    db: Database, owner: Reader, asked_for: float, minutes: float
) -> None:
    queued(db, owner, 1)
    [one] = claim(db, LATER)
    pause = timedelta(minutes=asked_for)
    record(db, one, outcome(one, error="busy", now=LATER, pause=pause), now=LATER)
    again = LATER + timedelta(minutes=minutes)
    assert claim(db, again - timedelta(seconds=2)) == []
    assert len(claim(db, again)) == 1


def test_a_test_or_a_replay_tries_a_failing_receiver_at_once(db: Database, owner: Reader) -> None:
    webhook = queued(db, owner, 1)
    [one] = claim(db, LATER)
    record(db, one, outcome(one, error="no", now=LATER), now=LATER)
    assert claim(db, LATER) == []
    db.write_now(asked.ping, owner, webhook.id, LATER)
    [again] = claim(db, LATER)
    assert again.waiting[-1].event.kind == "ping"
    assert again.waiting[0].delivery_id == one.waiting[0].delivery_id


def test_a_clock_that_went_back_does_not_silence_a_webhook(db: Database, owner: Reader) -> None:
    # H93
    queued(db, owner, 1)
    claim(db, LATER + timedelta(days=1))
    assert claim(db, LATER) == []
    assert db.write_now(deliveries.heal_clock, LATER) == 1
    assert len(claim(db, LATER)) == 1


def test_what_is_settled_is_forgotten_and_what_waits_too_long_is_given_up(db: Database, owner: Reader) -> None:
    webhook = queued(db, owner, 1)
    db.write_now(asked.change, owner, webhook.id, LATER, ChangedWebhook(active=False))
    week = timedelta(days=7)
    db.write_now(deliveries.forget_before, LATER + timedelta(seconds=1), LATER + week)
    log = db.read_now(webhooks.log_of, webhook, before=None, limit=10)
    assert {(one.state, one.error) for one in log} == {("failed", "It waited for longer than events are kept.")}
    db.write_now(deliveries.forget_before, LATER + week + timedelta(seconds=1), LATER + week * 2)
    assert db.read_now(webhooks.log_of, webhook, before=None, limit=10) == []


def test_a_person_may_not_touch_the_webhooks_of_another(db: Database, owner: Reader) -> None:
    stranger = db.write_now(a_reader, "stranger")
    webhook = db.write_now(a_webhook, owner)
    assert db.read_now(webhooks.one, stranger, webhook.id) is None
    assert db.read_now(webhooks.of_reader, stranger) == []
    assert not db.write_now(webhooks.remove, stranger, webhook.id)


def test_the_loops_questions_have_their_index(db: Database, owner: Reader) -> None:
    db.write_now(follow, owner, "https://news.example/feed", NOON)
    queries = {
        "SELECT MIN(next_try_at) FROM webhooks WHERE state = 'active'": "ix_webhooks_due",
        "SELECT id FROM webhook_deliveries WHERE webhook_id = 1 AND state = 'waiting' ORDER BY id LIMIT 20": (
            "ix_webhook_deliveries_"
        ),
        "SELECT id FROM webhook_deliveries WHERE webhook_id = 1 AND id < 99 ORDER BY id DESC LIMIT 20": (
            "ix_webhook_deliveries_log"
        ),
        "SELECT id FROM webhooks WHERE user_id = 1": "ix_webhooks_user",
    }
    for query, index in queries.items():
        assert index in db.read_now(plan, query), query


def plan(conn: Connection, query: str) -> str:
    if conn.dialect.name == "postgresql":
        conn.execute(text("SET LOCAL enable_seqscan = off"))
        return "\n".join(conn.execute(text(f"EXPLAIN {query}")).scalars())
    return "\n".join(str(row) for row in conn.execute(text(f"EXPLAIN QUERY PLAN {query}")))
