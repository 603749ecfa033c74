"""How Headwater gets hubs to push: asking, confirming, renewing, being denied, leaving."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import Any

from sqlalchemy import select

from headwater import wire
from headwater.accounts import tokens
from headwater.follow.add import unfollow
from headwater.store import tables
from headwater.store.sources import hubs
from headwater.work import periodic
from support.hub import CHALLENGE, Hub, call, hub_on_loopback, offering
from support.web import Answer, Web, rss
from websub.instance import Instance, instance

DAY = timedelta(days=1)


async def test_where_a_feed_offers_a_hub_it_is_asked_to_push_and_its_question_is_answered(headwater: Instance) -> None:
    await headwater.subscribed("first")
    [asked] = headwater.hub.asked
    assert asked["hub.mode"] == "subscribe"
    assert asked["hub.topic"] == headwater.feed
    assert asked["hub.callback"].startswith(f"{headwater.url}/websub/")
    assert asked["hub.lease_seconds"] == str(10 * 86400)
    assert 32 <= len(asked["hub.secret"]) < 200
    stored = await headwater.parts.db.read(lambda conn: conn.execute(select(tables.hub_subscriptions)).one())
    assert asked["hub.secret"] not in map(str, stored)  # it is made from a key that is not in the database
    [(mode, answer)] = headwater.hub.verified
    assert (mode, answer.status, answer.body) == ("subscribe", 200, CHALLENGE.encode())
    one = await headwater.subscription()
    assert (one.state, one.trust, one.failures, one.last_error) == ("active", 1, 0, None)
    assert timedelta(days=9) < one.lease_until - headwater.parts.now() <= timedelta(days=10)


async def test_api_and_page_say_since_when_a_source_is_pushed(headwater: Instance) -> None:
    source_id = await headwater.subscribed("first")
    secret = await headwater.parts.db.write(tokens.issue, headwater.owner, "api", "test", headwater.parts.now())

    async def shown(path: str, accept: str) -> str:
        headers = {"Authorization": f"Bearer {secret}", "Accept": accept}
        return (await asyncio.to_thread(call, "GET", headwater.url + path, None, headers)).body.decode()

    since = (await headwater.subscription()).active_since.isoformat().replace("+00:00", "Z")
    assert f'"pushed_since":"{since}"' in await shown(f"/api/sources/{source_id}", "application/json")
    assert "by its hub" in await shown(f"/sources/{source_id}", "text/html")
    headwater.ahead += timedelta(days=11)
    assert '"pushed_since":null' in await shown(f"/api/sources/{source_id}", "application/json")
    assert "by its hub" not in await shown(f"/sources/{source_id}", "text/html")


async def test_an_instance_without_a_public_address_asks_no_hub(store_url: str, hub: Hub, world: Web) -> None:
    async with instance(store_url, hub, world, HEADWATER_PUBLIC_URL="") as private:
        private.publish("first")
        await private.visit(await private.follow())
        assert await private.ask_hubs() == 0
        noted = await private.subscription()
        assert hub.asked == []
        assert noted is not None
        assert noted.state == "requested", "noted, so that it is asked as soon as there is a public address"


async def test_a_feed_that_offers_no_hub_is_only_polled(headwater: Instance) -> None:
    headwater.world.pages["/feed"] = Answer(rss("first"))
    await headwater.visit(await headwater.follow())
    assert await headwater.ask_hubs() == 0
    assert await headwater.subscription() is None


async def test_the_topic_of_a_feed_that_does_not_name_itself_is_its_address(headwater: Instance) -> None:
    feed = offering(headwater.hub.url, "", "first").replace('<atom:link rel="self" href=""/>', "")
    headwater.world.pages["/feed"] = Answer(feed)
    await headwater.visit(await headwater.follow())
    await headwater.ask_hubs()
    assert headwater.hub.asked[0]["hub.topic"] == headwater.feed


async def test_several_processes_ask_a_hub_once(headwater: Instance) -> None:  # H84
    headwater.hub.verifies = False
    headwater.publish("first")
    await headwater.visit(await headwater.follow())
    assert [await headwater.ask_hubs() for _ in range(3)] == [1, 0, 0]
    assert len(headwater.hub.asked) == 1


async def test_what_we_did_not_ask_for_is_not_confirmed(headwater: Instance) -> None:
    headwater.hub.verifies = False
    headwater.publish("first")
    await headwater.visit(await headwater.follow())
    await headwater.ask_hubs()
    words = {"mode": "subscribe", "topic": headwater.feed, "challenge": "c", "lease_seconds": "600"}
    for wrong in (
        {"topic": "https://other.example/feed"},
        {"topic": ""},
        {"mode": "unsubscribe"},
        {"mode": "publish"},
        {"mode": ""},
        {"challenge": ""},
        {"challenge": "x" * 5000},  # H19
        {"challenge": "a\r\nSet-Cookie: b=c"},  # H18
    ):
        answer = await headwater.said(headwater.hub.callback(), **{**words, **wrong})
        assert answer.status == 404, wrong
        assert b"Set-Cookie" not in answer.body
    assert (await headwater.subscription()).state == "requested"


async def test_whatever_lease_a_hub_names_it_is_asked_again_in_time(headwater: Instance) -> None:
    await headwater.subscribed("first")
    for seconds in ("0", "-5", "soon", "9" * 9, "9" * 5000, ""):
        words = {"mode": "subscribe", "topic": headwater.feed, "challenge": "c", "lease_seconds": seconds}
        assert (await headwater.said(headwater.hub.callback(), **words)).body == b"c"
        one = await headwater.subscription()
        assert timedelta(minutes=4) < one.lease_until - headwater.parts.now() <= timedelta(days=30)
        assert headwater.parts.now() < one.next_try_at < one.lease_until


async def test_a_subscription_is_renewed_before_its_lease_is_over(headwater: Instance) -> None:
    headwater.hub.lease_seconds = 86400
    await headwater.subscribed("first")
    before = await headwater.subscription()
    assert await headwater.ask_hubs() == 0
    headwater.ahead += timedelta(hours=20)
    assert await headwater.ask_hubs() == 1
    after = await headwater.subscription()
    assert headwater.hub.asked[0]["hub.callback"] == headwater.hub.asked[1]["hub.callback"]
    assert after.lease_until - before.lease_until > timedelta(hours=19)
    assert (after.state, after.active_since) == ("active", before.active_since)


async def test_a_subscription_that_nobody_renewed_counts_no_more(headwater: Instance) -> None:
    source_id = await headwater.subscribed("first")
    await headwater.push(headwater.publish("first", "second"))
    assert (await headwater.claim(source_id)).push_trust == 2
    headwater.hub.verifies = False
    headwater.ahead += timedelta(days=11)
    assert (await headwater.claim(source_id)).push_trust == 1
    await headwater.ask_hubs()
    one = await headwater.subscription()
    assert (one.state, one.trust, one.active_since) == ("requested", 1, None)


async def test_a_denial_is_noticed_and_said(headwater: Instance) -> None:
    headwater.hub.denies = "Not <b>you</b>\x00\x1b again"
    headwater.publish("first")
    source_id = await headwater.follow()
    await headwater.visit(source_id)
    await headwater.ask_hubs()
    one = await headwater.subscription()
    assert (one.state, one.last_error) == ("denied", "Not you again")  # H60
    assert await headwater.ask_hubs() == 0
    headwater.ahead += DAY
    headwater.hub.denies = None
    await headwater.ask_hubs()
    assert (await headwater.subscription()).state == "active"


async def test_an_active_subscription_can_be_denied_later_and_polling_is_as_before(headwater: Instance) -> None:
    source_id = await headwater.subscribed("first")
    await headwater.push(headwater.publish("first", "second"))
    callback = headwater.hub.callback()
    assert (await headwater.said(callback, mode="denied", topic="https://other.example/")).status == 404
    assert (await headwater.said(callback, mode="denied", topic=headwater.feed)).status == 200
    assert (await headwater.subscription()).state == "denied"
    assert (await headwater.claim(source_id)).push_trust == 1


async def test_when_nobody_follows_a_source_its_hub_is_told_to_stop(headwater: Instance) -> None:
    source_id = await headwater.subscribed("first")
    callback = headwater.hub.callback()
    words = {"mode": "unsubscribe", "topic": headwater.feed, "challenge": "c"}
    assert (await headwater.said(callback, **words)).status == 404
    await headwater.parts.db.write(unfollow, headwater.owner, source_id, headwater.parts.now())
    assert await headwater.ask_hubs() == 1
    assert headwater.hub.asked[-1]["hub.mode"] == "unsubscribe"
    assert "hub.secret" not in headwater.hub.asked[-1]
    mode, answer = headwater.hub.verified[-1]
    assert (mode, answer.body) == ("unsubscribe", CHALLENGE.encode())
    assert await headwater.subscription() is None
    assert (await headwater.said(callback, **words)).status == 404


async def test_a_hub_that_does_not_let_go_is_forgotten_when_its_lease_is_over(headwater: Instance) -> None:
    source_id = await headwater.subscribed("first")
    headwater.hub.verifies = False
    await headwater.parts.db.write(unfollow, headwater.owner, source_id, headwater.parts.now())
    await headwater.ask_hubs()
    assert (await headwater.subscription()).state == "leaving"
    headwater.ahead += timedelta(days=11)
    await headwater.ask_hubs()
    assert await headwater.subscription() is None


async def test_who_follows_again_before_the_hub_let_go_is_subscribed_again(headwater: Instance) -> None:
    source_id = await headwater.subscribed("first")
    headwater.hub.verifies = False
    await headwater.parts.db.write(unfollow, headwater.owner, source_id, headwater.parts.now())
    await headwater.ask_hubs()
    await headwater.follow()
    headwater.hub.verifies = True
    headwater.ahead += DAY
    await headwater.ask_hubs()
    assert [form["hub.mode"] for form in headwater.hub.asked] == ["subscribe", "unsubscribe", "subscribe"]
    assert (await headwater.subscription()).state == "active"


async def test_a_hub_that_refuses_is_asked_again_ever_more_rarely(headwater: Instance) -> None:
    headwater.hub.status = 500
    headwater.publish("first")
    await headwater.visit(await headwater.follow())
    waits = []
    for _ in range(12):
        assert await headwater.ask_hubs() == 1
        one = await headwater.subscription()
        assert (one.state, one.last_error) == ("failed", "The hub refused. (HTTP 500)")
        waits.append(one.next_try_at - headwater.parts.now())
        headwater.ahead += waits[-1]
    assert all(wait <= later * 1.01 for wait, later in pairwise(waits))
    assert timedelta(hours=23) < waits[-1] <= DAY
    headwater.hub.status = 202
    await headwater.ask_hubs()
    assert (await headwater.subscription()).state == "active"


async def test_a_hub_at_a_forbidden_address_is_not_connected_to(headwater: Instance) -> None:
    source_id = await headwater.follow()
    for forbidden in ("http://169.254.169.254/hub", "http://10.0.0.1/hub", "http://127.0.0.1:22/hub"):  # H3, H2, H17
        headwater.publish("first", hub=forbidden)
        await headwater.visit(source_id)
        assert await headwater.ask_hubs() == 1
        one = await headwater.subscription()
        assert (one.hub, one.state) == (forbidden, "failed")
        assert "may not connect" in one.last_error


async def test_a_hub_that_sends_us_to_a_forbidden_address_is_not_followed(headwater: Instance) -> None:  # H11
    headwater.hub.status, headwater.hub.moved_to = 307, "http://169.254.169.254/latest/meta-data"
    headwater.publish("first")
    await headwater.visit(await headwater.follow())
    await headwater.ask_hubs()
    one = await headwater.subscription()
    assert one.state == "failed"
    assert "169.254.169.254" in one.last_error


async def test_what_is_no_address_is_no_hub(headwater: Instance) -> None:  # H12, H13, H18, H19
    source_id = await headwater.follow()
    for wrong in ("javascript:alert(1)", "file:///etc/passwd", "gopher://x/", r"http://a\b/", "http://" + "x" * 9000):
        headwater.publish("first", hub=wrong)
        await headwater.visit(source_id)
        assert await headwater.ask_hubs() == 0
    assert await headwater.subscription() is None


async def test_a_feed_that_changes_its_hub_gets_a_new_callback_and_the_old_one_is_closed(headwater: Instance) -> None:
    source_id = await headwater.subscribed("first")
    old = headwater.hub.callback()
    with hub_on_loopback() as other:
        headwater.publish("first", "second", hub=other.url)
        await headwater.visit(source_id)
        await headwater.ask_hubs()
        await asyncio.to_thread(other.settle)
        assert other.callback() != old
        assert other.asked[0]["hub.secret"] != headwater.hub.asked[0]["hub.secret"]
    assert (await headwater.subscription()).state == "active"
    assert (await headwater.push(headwater.publish("third"))).status == 404


async def test_asking_hubs_is_periodic_work(headwater: Instance) -> None:
    headwater.publish("first")
    await headwater.visit(await headwater.follow())
    job = periodic.named("ask-hubs")
    assert job is not None
    assert (await job.work(wire.periodic_tools(headwater.parts)), job.every) == (1, timedelta(minutes=1))


async def test_each_look_for_work_uses_an_index(headwater: Instance) -> None:
    def plans(conn: Any) -> str:
        explain = "EXPLAIN QUERY PLAN " if headwater.parts.db.is_sqlite else "EXPLAIN "
        if not headwater.parts.db.is_sqlite:
            conn.exec_driver_sql("SET LOCAL enable_seqscan = off")
        now = headwater.parts.now()
        found = ""
        for statement, given in (
            (hubs._select_due, (now, 9)),
            (hubs._leave, (now,)),
            (hubs._find, ("id",)),
        ):
            cursor = conn.connection.cursor()
            cursor.execute(explain + statement.sql(conn), given)
            found += str(cursor.fetchall())
        return found

    plan = await headwater.parts.db.write(plans)
    for index in ("ix_hub_subscriptions_next_try_at", "ix_sources_asleep", "callback_id"):
        assert index in plan
