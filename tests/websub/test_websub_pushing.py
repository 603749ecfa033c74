"""What a push does: it becomes posts as a visit's page would, once, and never in the way of a visit."""

from __future__ import annotations

import asyncio
import gzip
import hmac
import http.client
import logging
import socket
from contextlib import ExitStack
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
import structlog

from headwater.api.websub import MOST_AT_ONCE
from headwater.crawl.record import record_push
from headwater.store.db import Database
from headwater.store.sources import hubs
from support.hub import Hub, call
from support.posts import a_post
from support.services import as_owner
from support.web import Answer, Web, rss
from websub.instance import Instance, instance


async def test_a_push_becomes_posts_with_their_events_and_the_next_poll_finds_nothing_new(headwater: Instance) -> None:
    source_id = await headwater.subscribed("first")
    document = headwater.publish("first", "second")
    assert (await headwater.push(document)).status == 202
    assert await headwater.titles() == ["first", "second"]
    assert await headwater.stored() == (2, 2)  # E1
    polled = await headwater.visit(source_id)
    assert (polled.visit.outcome, polled.count("new"), polled.count("same")) == ("ok", 0, 2)
    assert await headwater.stored() == (2, 2)


async def test_a_push_that_comes_twice_or_late_changes_nothing(headwater: Instance) -> None:  # H80
    source_id = await headwater.subscribed("first")
    document = headwater.publish("first", "second")
    await headwater.visit(source_id)
    for _ in range(3):
        assert (await headwater.push(document)).status == 202
    assert await headwater.stored() == (2, 2)
    one = await headwater.subscription()
    assert one.trust == 1
    assert one.last_push_at is not None


async def test_two_pushes_of_the_same_at_once_are_stored_once(headwater: Instance) -> None:  # H80
    await headwater.subscribed("first")
    document = headwater.publish(*(f"post {number}" for number in range(30)))
    answers = await asyncio.gather(*(headwater.push(document) for _ in range(4)))
    assert {answer.status for answer in answers} == {202}
    assert await headwater.stored() == (31, 31)


async def test_a_pushed_edit_is_a_new_version(headwater: Instance) -> None:
    await headwater.subscribed("first")
    await headwater.push(rss("first").replace("Text of first", "Corrected"))
    assert await headwater.stored() == (1, 2)


async def test_a_push_of_the_new_entry_alone_is_enough(headwater: Instance) -> None:
    await headwater.subscribed("first", "second")
    await headwater.push(rss("third"))
    assert await headwater.titles() == ["first", "second", "third"]


async def test_every_signature_that_hubs_use_is_understood(headwater: Instance) -> None:
    await headwater.subscribed()
    for method in ("sha1", "sha256", "sha384", "sha512"):
        await headwater.push(rss(method), method=method)
    body = rss("github").encode()
    signature = hmac.digest(headwater.hub.asked[0]["hub.secret"].encode(), body, "sha256").hex()
    await headwater.push(body, method="", X_Hub_Signature_256=f"sha256={signature.upper()}")
    assert await headwater.titles() == ["github", "sha1", "sha256", "sha384", "sha512"]


async def test_a_push_without_the_right_signature_is_answered_and_ignored(headwater: Instance) -> None:  # H64
    await headwater.subscribed("first")
    body = rss("forged")
    secret = headwater.hub.asked[0]["hub.secret"].encode()
    right = hmac.digest(secret, body.encode(), "sha256").hex()
    wrong: list[dict[str, str]] = [
        {"method": ""},
        {"secret": "another secret"},
        {"secret": ""},
        {"X_Hub_Signature": ""},
        {"X_Hub_Signature": "sha256="},
        {"X_Hub_Signature": f"none={right}"},
        {"X_Hub_Signature": f"sha1={right}"},
        {"X_Hub_Signature": right},
        {"X_Hub_Signature": "sha256=é"},
        {"X_Hub_Signature": f"md5={hmac.digest(secret, body.encode(), 'md5').hex()}"},
        {"X_Hub_Signature_256": "sha256=00"},
        {"X_Hub_Signature": f"sha256={hmac.digest(secret, body.encode() + b' ', 'sha256').hex()}"},
    ]
    for how in wrong:
        assert (await headwater.push(body, **how)).status == 202, how
    assert await headwater.titles() == ["first"]
    one = await headwater.subscription()
    assert (one.trust, one.last_push_at) == (1, None)


async def test_a_stranger_without_the_id_finds_nothing(headwater: Instance) -> None:  # H68, H74
    await headwater.subscribed("first")
    known = headwater.hub.callback()
    for path in ("", "x", "x" * 32, "../api/stream", "%00" * 20, known[-32:] + "/", known[-31:], "x" * 5000):
        for method in ("GET", "POST"):
            body = b"x" if method == "POST" else None
            answer = await asyncio.to_thread(call, method, f"{headwater.url}/websub/{path}", body)
            assert answer.status == 404, path
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert (await asyncio.to_thread(call, method, known)).status == 405
    assert (await asyncio.to_thread(call, "GET", f"{headwater.url}/api/stream")).status == 401


async def test_a_confirmed_challenge_is_never_a_page(headwater: Instance) -> None:  # H60
    await headwater.subscribed("first")

    def ask() -> tuple[bytes, dict[str, str]]:
        parts = urlsplit(headwater.hub.callback())
        connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        script = "%3Cscript%3Ealert(1)%3C/script%3E"
        query = f"hub.mode=subscribe&hub.topic={headwater.feed}&hub.challenge={script}"
        connection.request("GET", f"{parts.path}?{query}", headers={"Accept": "text/html"})
        answer = connection.getresponse()
        found = answer.read(), {name.lower(): value for name, value in answer.getheaders()}
        connection.close()
        return found

    body, headers = await asyncio.to_thread(ask)
    assert body == b"<script>alert(1)</script>"
    assert headers["content-type"].startswith("text/plain")
    assert headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in headers["content-security-policy"]


async def test_pushed_html_is_as_clean_as_fetched_html(headwater: Instance) -> None:  # H55, H60
    await headwater.subscribed()
    hostile = "&lt;img src=x onerror=alert(1)&gt;&lt;script&gt;alert(2)&lt;/script&gt;hello"
    await headwater.push(rss("first").replace("Text of first", hostile).replace("<title>first", f"<title>{hostile}"))
    assert await headwater.titles() == ["hello"]


async def test_a_compressed_push_is_read_and_a_bomb_is_not(store_url: str, hub: Hub, world: Web) -> None:  # H24
    async with instance(store_url, hub, world, HEADWATER_FETCH_MAX_BYTES="1000000") as headwater:
        await headwater.subscribed("first")
        await headwater.push(gzip.compress(rss("second").encode()), Content_Encoding="gzip")
        assert await headwater.titles() == ["first", "second"]
        bomb = gzip.compress(rss("third").encode() + b" " * 50_000_000)
        assert (await headwater.push(bomb, Content_Encoding="gzip")).status == 202
        assert await headwater.titles() == ["first", "second"]


async def test_a_push_that_is_too_large_is_cut_off(store_url: str, hub: Hub, world: Web) -> None:  # H23
    async with instance(store_url, hub, world, HEADWATER_FETCH_MAX_BYTES="2000") as headwater:
        await headwater.subscribed("first")
        large = b"x" * 2001

        def chunked() -> int:
            parts = urlsplit(headwater.hub.callback())
            connection = http.client.HTTPConnection(parts.netloc, timeout=30)
            connection.request("POST", parts.path, iter([large, large]), encode_chunked=True)
            status = connection.getresponse().status
            connection.close()
            return status

        assert (await headwater.push(large)).status == 413
        assert await asyncio.to_thread(chunked) == 413
        assert (await headwater.push(rss("second").encode())).status == 202


def half_a_push(callback: str) -> socket.socket:
    """A connection on which the rest of a push never comes."""
    parts = urlsplit(callback)
    head = f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: 9\r\n\r\nhalf"
    connection = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=60)
    connection.sendall(head.encode())
    return connection


async def test_a_push_that_does_not_end_is_given_up(store_url: str, hub: Hub, world: Web) -> None:  # H22
    async with instance(store_url, hub, world, HEADWATER_FETCH_SECONDS="4") as headwater:
        await headwater.subscribed("first")
        with half_a_push(headwater.hub.callback()) as slow:
            assert (await asyncio.to_thread(slow.recv, 100)).startswith(b"HTTP/1.1 408")


async def test_too_many_pushes_at_once_are_asked_to_come_again(headwater: Instance) -> None:
    await headwater.subscribed("first")
    with ExitStack() as slow:
        for _ in range(MOST_AT_ONCE):
            slow.enter_context(half_a_push(headwater.hub.callback()))
        while (await headwater.push(rss("second"))).status != 503:
            slow.enter_context(half_a_push(headwater.hub.callback()))  # a whole one had taken the place of a half
    while (await headwater.push(rss("third"))).status != 202:
        await asyncio.sleep(0.01)
    assert "third" in await headwater.titles()


async def test_a_push_changes_neither_validators_nor_schedule_and_moves_the_watermark_forward(
    headwater: Instance,
) -> None:
    await headwater.subscribed("first", "second")
    before = await headwater.source()
    await headwater.push(rss("third"))  # older than the second
    assert await headwater.source() == before
    await headwater.push(rss("first", "second", "third", "fourth"))
    after = await headwater.source()
    assert after.last_seen_post_id == "https://news.example/fourth"
    kept = {"last_seen_post_id": before.last_seen_post_id, "last_seen_created_at": before.last_seen_created_at}
    assert {**after._asdict(), **kept} == before._asdict()


async def test_a_push_during_a_visit_disturbs_neither(headwater: Instance) -> None:
    source_id = await headwater.subscribed("first")
    due = await headwater.claim(source_id)
    leased = await headwater.source()
    document = headwater.publish("first", "second", "third")
    await headwater.push(document)
    assert await headwater.titles() == ["first", "second", "third"]
    assert await headwater.source() == leased
    headwater.crawler.start([due])
    await headwater.crawler.settle()
    assert headwater.saved[-1].accepted
    assert headwater.saved[-1].count("new") == 0
    assert (await headwater.source()).last_seen_post_id == "https://news.example/third"
    assert await headwater.stored() == (3, 3)


async def test_a_source_that_was_never_visited_or_is_not_followed_takes_no_push(headwater: Instance) -> None:
    source_id = await headwater.follow()
    db: Database = headwater.parts.db
    assert await db.write(record_push, source_id, [a_post("1")], headwater.parts.now()) is None
    assert await db.write(record_push, source_id + 1, [a_post("1")], headwater.parts.now()) is None
    assert await headwater.stored() == (0, 0)


async def test_pushes_make_polling_rarer_and_a_poll_that_finds_more_makes_it_more_frequent(headwater: Instance) -> None:
    source_id = await headwater.subscribed()
    names: list[str] = []
    for number in range(10):
        names.append(f"post {number}")
        await headwater.push(headwater.publish(*names))
    assert (await headwater.subscription()).trust == 8
    polled = await headwater.visit(source_id)
    wait = polled.visit.next_check_at - headwater.parts.now()
    interval = timedelta(seconds=headwater.parts.settings.check_interval_seconds)
    assert interval * 7.9 < wait < interval * 9
    trusts = []
    for missed in range(4):
        headwater.publish(*names, f"missed {missed}")
        await headwater.visit(source_id)
        await headwater.ask_hubs()
        trusts.append((await headwater.subscription()).trust)
    assert trusts == [4, 2, 1, 1]
    polled = await headwater.visit(source_id)
    assert polled.visit.next_check_at - headwater.parts.now() < interval * 1.2
    await headwater.push(rss("pushed again"))
    assert (await headwater.subscription()).trust == 2


async def test_a_push_that_cannot_be_read_has_its_source_visited_but_not_without_end(headwater: Instance) -> None:
    await headwater.subscribed("first")
    headwater.ahead += timedelta(minutes=6)
    for body in ("", "<html><body>Sign in</body></html>", "\0\1\2"):
        assert (await headwater.push(body)).status == 202
    due = await headwater.source()
    assert due.next_check_at <= headwater.parts.now()
    await headwater.visit(due.id)
    await headwater.push("nonsense")
    assert (await headwater.source()).next_check_at > headwater.parts.now()


async def test_a_process_that_only_serves_has_the_source_visited_by_one_that_reads(headwater: Instance) -> None:
    source_id = await headwater.subscribed("first")
    headwater.ahead += timedelta(minutes=6)
    parsers, headwater.parts.parsers = headwater.parts.parsers, None
    await headwater.push(headwater.publish("first", "second"))
    headwater.parts.parsers = parsers
    assert await headwater.titles() == ["first"]
    assert (await headwater.source()).next_check_at <= headwater.parts.now()
    await headwater.visit(source_id)
    assert await headwater.titles() == ["first", "second"]


async def test_bringing_a_visit_forward_leaves_a_visit_under_way_alone(headwater: Instance) -> None:
    source_id = await headwater.subscribed("first")
    headwater.ahead += timedelta(minutes=6)
    await headwater.claim(source_id)
    assert not await headwater.parts.db.write(hubs.bring_forward, source_id, headwater.parts.now())


async def test_neither_id_nor_secret_is_in_a_log(headwater: Instance, caplog: pytest.LogCaptureFixture) -> None:  # H67
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as logged:
        await headwater.subscribed("first")
        await headwater.push("nonsense")
        await headwater.push(rss("forged"), secret="wrong")
        await headwater.said(headwater.hub.callback(), mode="subscribe", topic="https://other.example/")
    said = str(logged) + caplog.text
    assert "push.ignored" in said
    for secret in (headwater.hub.callback().rpartition("/")[2], headwater.hub.asked[0]["hub.secret"]):
        assert secret not in said


async def test_while_the_database_cannot_be_used_a_hub_is_asked_to_come_again(headwater: Instance) -> None:  # H90
    await headwater.subscribed("first")
    with as_owner(headwater.parts.db) as db:
        await db.write(lambda conn: conn.exec_driver_sql("ALTER TABLE hub_subscriptions RENAME TO gone"))
        answer = await headwater.push(rss("second"))
        await db.write(lambda conn: conn.exec_driver_sql("ALTER TABLE gone RENAME TO hub_subscriptions"))
    assert answer.status == 503
    assert b"hub_subscriptions" not in answer.body
    headwater.world.pages["/feed"] = Answer(rss("first", "second"))
    assert (await headwater.push(rss("second"))).status == 202
