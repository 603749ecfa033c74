"""What receivers get, over real connections: signed, in order, each on its own, and tried again."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Callable

import pytest

from headwater.app import webhooks as asked
from headwater.store.people import deliveries
from headwater.store.people.deliveries import GIVE_UP_AFTER
from headwater.store.people.webhooks import ChangedWebhook, Webhook
from webhooks.receiver import Got, Receiver
from webhooks.sending import Sending, opened


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A retry is due when the clock is turned, and not because the machine was slow for some seconds."""
    monkeypatch.setattr(deliveries, "RETRIES", (3600,))


def answered_with(answer: int | Callable[[Got], int], sending: Sending, receiver: Receiver) -> Webhook:
    """A webhook whose receiver answers like this."""
    receiver.answers["/hook"] = answer
    return sending.webhook(f"{receiver.url}/hook").webhook


def is_signed(got: Got, secret: str) -> bool:
    """As a receiver would check it, with nothing of ours."""
    key = base64.b64decode(secret.split("_", 1)[1])
    said = b".".join([got.headers["webhook-id"].encode(), got.headers["webhook-timestamp"].encode(), got.body])
    version, _, given = got.headers["webhook-signature"].partition(",")
    return version == "v1" and base64.b64decode(given) == hmac.new(key, said, hashlib.sha256).digest()


async def test_an_event_arrives_signed_as_a_cloud_event(sending: Sending, receiver: Receiver) -> None:
    # F2
    made = sending.webhook(f"{receiver.url}/hook")
    async with sending.running():
        sending.publish(1)
        await sending.until(lambda: sending.look(made.webhook).last_delivered_at)
    [got] = receiver.got
    assert is_signed(got, made.secret)
    assert not is_signed(got._replace(body=got.body + b" "), made.secret)
    assert got.kind == "source.retired"
    assert got.headers["content-type"] == "application/cloudevents+json"
    event = got.event()
    assert event["id"] == got.id == got.headers["ce-id"]
    assert event["type"] == got.headers["ce-type"] == "source.retired"
    assert event["source"] == "headwater"
    assert event["data"] == {"source_id": sending.source_id, "address": "https://news.example/1"}
    [delivery] = sending.log(made.webhook)
    assert (delivery.state, delivery.http_status, delivery.attempts, delivery.error) == ("delivered", 204, 1, None)
    assert sending.look(made.webhook).status == "ok"


async def test_events_arrive_in_order_one_at_a_time(sending: Sending, receiver: Receiver) -> None:
    made = sending.webhook(f"{receiver.url}/hook")
    async with sending.running():
        for start in range(0, 60, 10):
            sending.publish(*range(start, start + 10))
        await sending.until(lambda: len(receiver.got) == 60)
    assert receiver.numbers() == list(range(60))
    assert receiver.overlaps == []
    assert sending.look(made.webhook).waiting == 0


async def test_slow_and_failing_receivers_do_not_delay_the_others(sending: Sending, receiver: Receiver) -> None:
    # H96
    receiver.answers["/broken"] = 500
    released = asyncio.Event()
    loop = asyncio.get_running_loop()

    def dawdle(got: Got) -> int:
        asyncio.run_coroutine_threadsafe(released.wait(), loop).result(30)
        return 200

    receiver.answers["/slow"] = dawdle
    names = ("/slow", "/broken", "/hook")
    slow, broken, well = (sending.webhook(receiver.url + name).webhook for name in names)
    async with sending.running():
        sending.publish(*range(30))
        await sending.until(lambda: len(receiver.at("/hook")) == 30 and receiver.at("/slow"))
        await sending.until(lambda: sending.look(broken).failures)
        assert len(receiver.at("/slow")) == 1
        assert sending.look(broken).waiting == 30
        released.set()
        await sending.until(lambda: sending.look(slow).waiting == 0)
    troubled = sending.look(broken)
    assert troubled.status == "retrying"
    assert troubled.last_error == "The receiver did not take it. (HTTP 500)"
    assert troubled.next_try_at is not None
    assert sending.look(well).status == "ok"


async def test_a_receiver_that_comes_back_gets_everything_in_order(sending: Sending, receiver: Receiver) -> None:
    made = answered_with(503, sending, receiver)
    async with sending.running():
        sending.publish(1, 2, 3)
        for failures in range(1, 4):
            await sending.until(lambda failures=failures: sending.look(made).failures == failures)  # type: ignore[misc]
            sending.turn_clock(hours=2)
        failing = sending.look(made)
        assert failing.status == "failing"
        assert failing.failing_since is not None
        receiver.answers["/hook"] = 200
        sending.turn_clock(hours=2)
        await sending.until(lambda: sending.look(made).waiting == 0)
    assert sending.look(made).status == "ok"
    numbers = receiver.numbers()
    assert set(numbers[:-2]) == {1}
    assert numbers[-2:] == [2, 3]
    assert len({one.id for one in receiver.got}) == 3  # repeats carry the id of the first attempt


async def test_a_receiver_that_says_when_to_come_again_is_left_alone_until_then(
    sending: Sending, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "RETRIES", (5,))
    receiver.answers["/hook"], receiver.retry_after = 429, "1800"
    made = sending.webhook(f"{receiver.url}/hook").webhook
    async with sending.running():
        sending.publish(1)
        await sending.until(lambda: sending.look(made).failures == 1)
        receiver.answers["/hook"] = 200
        sending.turn_clock(minutes=25)
        await asyncio.sleep(2.5)  # it looks for what is due every second
        assert len(receiver.at("/hook")) == 1
        sending.turn_clock(minutes=6)
        await sending.until(lambda: sending.look(made).waiting == 0)
    assert len(receiver.at("/hook")) == 2


async def test_an_event_that_was_tried_for_a_day_is_given_up_and_can_be_replayed(
    sending: Sending, receiver: Receiver
) -> None:
    made = answered_with(lambda got: 500 if got.event()["data"]["address"].endswith("/1") else 200, sending, receiver)
    async with sending.running():
        sending.publish(1, 2, 3)
        await sending.until(lambda: sending.look(made).failures == 1)
        sending.turn_clock(seconds=GIVE_UP_AFTER.total_seconds())
        await sending.until(lambda: sending.look(made).waiting == 0)
        first, *others = sending.log(made)
        assert first.state == "failed"
        assert first.error == "The receiver did not take it. (HTTP 500)"
        assert [one.state for one in others] == ["delivered", "delivered"]
        receiver.answers["/hook"] = 200
        await sending.ask(asked.replay, made.id, first.id, sending.parts.now())
        await sending.until(lambda: sending.log(made)[0].state == "delivered")
    assert receiver.numbers() == [1, 1, 2, 3, 1]


async def test_for_a_receiver_that_is_dead_for_a_day_all_is_given_up_but_what_is_younger(
    sending: Sending, receiver: Receiver
) -> None:
    made = answered_with(500, sending, receiver)
    async with sending.running():
        sending.publish(*range(30))
        await sending.until(lambda: sending.look(made).failures == 1)
        sending.turn_clock(seconds=GIVE_UP_AFTER.total_seconds())
        sending.publish(30)
        await sending.until(lambda: sending.look(made).waiting == 1)
    states = [one.state for one in sending.log(made)]
    assert states == ["failed"] * 30 + ["waiting"]
    assert len(receiver.got) == 3, "the dead receiver is asked by its back-off, not once for each event"


async def test_a_receiver_that_is_gone_gets_nothing_more_until_it_is_resumed(
    sending: Sending, receiver: Receiver
) -> None:
    made = answered_with(410, sending, receiver)
    async with sending.running():
        sending.publish(1, 2)
        await sending.until(lambda: sending.look(made).status == "gone")
        assert [one.state for one in sending.log(made)] == ["failed", "failed"]
        receiver.answers["/hook"] = 200
        await sending.ask(asked.change, made.id, sending.parts.now(), ChangedWebhook(active=True))
        sending.publish(3)
        await sending.until(lambda: sending.look(made).status == "ok")
    assert receiver.numbers() == [1, 3]


async def test_a_paused_webhook_gathers_and_gets_everything_when_it_is_resumed(
    sending: Sending, receiver: Receiver
) -> None:
    made = sending.webhook(f"{receiver.url}/hook").webhook
    async with sending.running():
        await sending.ask(asked.change, made.id, sending.parts.now(), ChangedWebhook(active=False))
        sending.publish(1, 2)
        await sending.until(lambda: sending.look(made).waiting == 2)
        assert receiver.got == []
        await sending.ask(asked.change, made.id, sending.parts.now(), ChangedWebhook(active=True))
        await sending.until(lambda: sending.look(made).waiting == 0)
    assert receiver.numbers() == [1, 2]


async def test_a_redirect_is_a_failure_that_says_what_to_do(sending: Sending, receiver: Receiver) -> None:
    made = answered_with(307, sending, receiver)
    async with sending.running():
        sending.publish(1)
        await sending.until(lambda: sending.look(made).last_error)
    assert sending.look(made).last_error == (
        "The receiver redirects, which webhooks do not follow. Give its new address."
    )
    assert receiver.at("/elsewhere") == []


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_private_addresses_are_refused_and_that_is_said(environ: dict[str, str], receiver: Receiver) -> None:
    # H96, and the guard of the fetch: H49
    with opened({**environ, "HEADWATER_ALLOW_PRIVATE_NETWORKS": "false"}) as sending:
        made = sending.webhook(f"{receiver.url}/hook").webhook
        async with sending.running():
            sending.publish(1)
            await sending.until(lambda: sending.look(made).last_error)
        assert "loopback" in (sending.look(made).last_error or "")
    assert receiver.got == []


async def test_a_ping_is_a_delivery_like_any_other(sending: Sending, receiver: Receiver) -> None:
    made = sending.webhook(f"{receiver.url}/hook", "post.stored")
    async with sending.running():
        await sending.ask(asked.ping, made.webhook.id, sending.parts.now())
        await sending.until(lambda: receiver.got)
    [got] = receiver.got
    assert got.kind == "ping"
    assert is_signed(got, made.secret)
    assert json.loads(got.body)["data"] == {"webhook_id": made.webhook.id}


async def test_a_removed_webhook_gets_nothing_more(sending: Sending, receiver: Receiver) -> None:
    made = sending.webhook(f"{receiver.url}/hook").webhook
    other = sending.webhook(f"{receiver.url}/other").webhook
    receiver.answers["/hook"] = 500
    async with sending.running():
        sending.publish(1)
        await sending.until(lambda: sending.look(made).failures)
        await sending.ask(asked.remove, made.id)
        sending.publish(2)
        await sending.until(lambda: sending.look(other).waiting == 0 and len(receiver.at("/other")) == 2)
    assert len(receiver.at("/hook")) == 1
