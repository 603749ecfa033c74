"""The client's life: answers as they come, turns, cancelling, closing, and nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import gzip
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime

import pytest
import uvloop

from fetch.raw_server import LOOPBACK, RawServer, answer, path_of
from headwater.errors import ConnectionFailed, FetchFailed, TimedOut
from headwater.fetch.body import unpacked
from headwater.fetch.client import Client
from headwater.fetch.failures import is_our_network
from headwater.model import Request, Response

Serve = Callable[..., Awaitable[RawServer]]
NewClient = Callable[..., Client]
Writer = asyncio.StreamWriter


async def echo(head: bytes, writer: Writer) -> None:
    writer.write(answer(body=path_of(head).encode()))


async def open_files() -> int:
    gc.collect()
    await asyncio.sleep(0.05)
    return len(os.listdir("/proc/self/fd"))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


async def test_an_answer_comes_as_it_was_sent(serve: Serve, new_client: NewClient) -> None:
    packed = gzip.compress(b"<rss/>")
    server = await serve(answer(body=packed, Content_Encoding="gzip", ETag='W/"ä"', X_Two="1"))
    received = datetime(2026, 1, 2, tzinfo=UTC)

    response = await new_client(clock=lambda: received).fetch(Request(server.url("/feed?x=1")))

    assert response.status == 200
    assert response.url == server.url("/feed?x=1")
    assert response.headers["etag"] == 'W/"ä"'
    assert response.body == packed
    assert response.received_at is received
    assert unpacked(response, 100) == b"<rss/>"


async def test_a_request_says_who_we_are_and_what_we_can_unpack(serve: Serve, new_client: NewClient) -> None:
    server = await serve(answer())
    await new_client(user_agent="Headwater/1 (+https://a.example)").fetch(Request(server.url(), (("X-Empty", ""),)))

    head = server.heads[0].decode()
    assert "User-Agent: Headwater/1 (+https://a.example)\r\n" in head
    assert "Accept-Encoding: gzip, deflate\r\n" in head  # H24
    assert "X-Empty:\r\n" in head


async def test_a_validator_goes_back_byte_for_byte(serve: Serve, new_client: NewClient) -> None:
    server = await serve(b'HTTP/1.1 200 OK\r\nETag: W/"\xe9\xff \xc3\xa9"\r\nContent-Length: 0\r\n\r\n')
    client = new_client()

    etag = (await client.fetch(Request(server.url()))).headers["etag"]
    await client.fetch(Request(server.url(), (("If-None-Match", etag),)))

    assert b'If-None-Match: W/"\xe9\xff \xc3\xa9"\r\n' in server.heads[1]


@pytest.mark.parametrize("status", [204, 304, 400, 401, 403, 404, 410, 418, 429, 500, 503])
async def test_a_status_is_an_answer_and_not_an_error(serve: Serve, new_client: NewClient, status: int) -> None:
    server = await serve(f"HTTP/1.1 {status} Whatever\r\nRetry-After: 7\r\n\r\n".encode())
    response = await new_client().fetch(Request(server.url()))
    assert (response.status, response.headers["retry-after"]) == (status, "7")


async def test_repeated_headers_are_joined_and_only_the_final_answer_counts(
    serve: Serve, new_client: NewClient
) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    server = await serve(early + b"HTTP/1.1 200 OK: fine\r\nVary: a\r\nvary: b\r\nX:\ty\r\nContent-Length: 0\r\n\r\n")
    response = await new_client().fetch(Request(server.url()))
    assert response.headers == {"vary": "a, b", "x": "y", "content-length": "0"}


async def test_an_unfinished_http_1_0_answer_is_read_to_its_end(serve: Serve, new_client: NewClient) -> None:
    server = await serve(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")
    assert (await new_client().fetch(Request(server.url()))).body == b"until the end"


async def test_a_body_is_posted_and_the_handle_forgets_it(serve: Serve, new_client: NewClient) -> None:
    bodies: list[bytes] = []

    async def speak(head: bytes, writer: Writer) -> None:
        bodies.append(head.split(b" ", 1)[0])
        writer.write(answer(body=b"" if head.startswith(b"HEAD") else b"ok"))
        if head.startswith(b"POST"):
            writer.close()

    server = await serve(speak)
    client = new_client()
    posted = Request(server.url(), (("Content-Type", "application/json"),), "POST", b"{}")
    for request in (Request(server.url()), posted, Request(server.url()), Request(server.url(), (), "HEAD")):
        assert (await client.fetch(request)).status == 200

    assert bodies == [b"GET", b"POST", b"GET", b"HEAD"]
    assert b"Content-Length: 2\r\n" in server.heads[1]
    assert b"Expect" not in server.heads[1]
    assert b"Content-Type" not in server.heads[2]


async def test_a_connection_is_used_again(serve: Serve, new_client: NewClient) -> None:
    server = await serve(echo)
    client = new_client()
    for number in range(20):
        assert (await client.fetch(Request(server.url(f"/{number}")))).body == f"/{number}".encode()
    assert server.connections == 1


async def test_cookies_are_not_kept(serve: Serve, new_client: NewClient) -> None:
    async def speak(head: bytes, writer: Writer) -> None:
        to = "/b" if path_of(head) == "/a" else ""
        writer.write(answer("302 Found" if to else "200 OK", Set_Cookie="a=1; Path=/", Location=to))

    server = await serve(speak)
    client = new_client()
    for _ in range(2):
        await client.fetch(Request(server.url("/a")))
    assert len(server.heads) == 4
    assert not any(b"cookie" in head.lower() for head in server.heads)


async def test_many_requests_at_once_get_their_own_answers(serve: Serve, new_client: NewClient) -> None:
    server = await serve(echo)
    client = new_client(max_connections=8, max_connections_per_host=8)

    answers = await asyncio.gather(*(client.fetch(Request(server.url(f"/{number}"))) for number in range(500)))

    assert [response.body for response in answers] == [f"/{number}".encode() for number in range(500)]
    assert server.connections <= 8


async def test_no_more_transfers_run_at_once_than_allowed(serve: Serve, new_client: NewClient) -> None:
    running = most = 0
    all_run = asyncio.Event()

    async def speak(head: bytes, writer: Writer) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            all_run.set()
        await all_run.wait()
        await asyncio.sleep(0.01)
        running -= 1
        writer.write(answer())

    server = await serve(speak)
    for limits in ({"max_connections": 3}, {"max_connections_per_host": 3}):
        most = 0
        all_run.clear()
        client = new_client(**limits)
        await asyncio.gather(*(client.fetch(Request(server.url())) for _ in range(12)))
        assert most == 3


async def test_a_slow_host_does_not_hold_the_places_of_others(serve: Serve, new_client: NewClient) -> None:
    release = asyncio.Event()

    async def slow(head: bytes, writer: Writer) -> None:
        await release.wait()
        writer.write(answer())

    stuck, quick = await serve(slow), await serve(echo)
    client = new_client(max_connections=4, max_connections_per_host=2)
    waiting = [asyncio.ensure_future(client.fetch(Request(stuck.url()))) for _ in range(50)]
    await until(lambda: len(stuck.heads) == 2)

    # Turns go by host name, whatever the port.
    answers = [await client.fetch(Request(quick.url("/q", host="localhost"))) for _ in range(5)]

    assert [response.body for response in answers] == [b"/q"] * 5
    assert len(stuck.heads) == 2
    release.set()
    assert len(await asyncio.gather(*waiting)) == 50


async def test_waiting_for_a_turn_does_not_use_up_the_deadline(serve: Serve, new_client: NewClient) -> None:
    async def speak(head: bytes, writer: Writer) -> None:
        await asyncio.sleep(0.5)
        writer.write(answer())

    server = await serve(speak)
    client = new_client(max_connections=1, timeout=3.0)
    answers = await asyncio.gather(*(client.fetch(Request(server.url())) for _ in range(7)))
    assert len(answers) == 7


async def test_cancelling_ends_the_transfer_at_once(serve: Serve, new_client: NewClient) -> None:
    async def speak(head: bytes, writer: Writer) -> None:
        await asyncio.sleep(60)

    silent, talking = await serve(speak), await serve(echo)
    client = new_client(max_connections=1)
    task = asyncio.ensure_future(client.fetch(Request(silent.url())))
    await until(lambda: len(silent.heads) == 1)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (await client.fetch(Request(talking.url("/next")))).body == b"/next"


async def test_cancelling_while_waiting_for_a_turn_gives_the_turn_to_the_next(
    serve: Serve, new_client: NewClient
) -> None:
    server = await serve(echo)
    client = new_client(max_connections=1)
    tasks = [asyncio.ensure_future(client.fetch(Request(server.url(f"/{number}")))) for number in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()

    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert [getattr(result, "body", None) for result in results[1::2]] == [f"/{n}".encode() for n in range(1, 20, 2)]
    assert all(isinstance(result, asyncio.CancelledError) for result in results[2::2])


async def test_closing_ends_everything_and_blames_no_source(serve: Serve, new_client: NewClient) -> None:
    async def speak(head: bytes, writer: Writer) -> None:
        await asyncio.sleep(60)

    server = await serve(speak)
    client = new_client(max_connections=2)
    tasks = [asyncio.ensure_future(client.fetch(Request(server.url()))) for _ in range(5)]
    await until(lambda: len(server.heads) == 2)

    await client.close()

    for result in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(result, FetchFailed)
        assert is_our_network(result)
    with pytest.raises(FetchFailed, match="stopping"):
        await client.fetch(Request(server.url()))
    await client.close()


async def test_closing_right_after_starting_is_quiet(serve: Serve, new_client: NewClient) -> None:
    server = await serve(echo)
    unhandled: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    for turns in range(6):
        client = new_client()
        tasks = [asyncio.ensure_future(client.fetch(Request(server.url()))) for _ in range(3)]
        for _ in range(turns):
            await asyncio.sleep(0)
        await client.close()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(result, Response) or "stopping" in str(result), result
        assert client._transfers is None
        assert client._idle == []
    gc.collect()  # a task or a handle that nobody closed complains now
    await asyncio.sleep(0)
    assert unhandled == []


async def test_a_thousand_requests_good_and_bad_leave_nothing_open(serve: Serve, new_client: NewClient) -> None:
    async def speak(head: bytes, writer: Writer) -> None:
        path = path_of(head)
        if path == "/good":
            writer.write(answer(body=b"x" * 1000))
        elif path == "/moved":
            writer.write(answer("302 Found", Location="/good"))
        elif path == "/cut":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            writer.close()
        else:
            await asyncio.sleep(0.5)
            writer.close()

    server = await serve(speak)
    before = await open_files()
    client = new_client(max_connections=16, max_connections_per_host=16)

    async def one(number: int) -> None:
        path = ("/good", "/moved", "/cut", "/refused", "/cancelled")[number % 5]
        request = Request("http://10.0.0.1/" if path == "/refused" else server.url(path))
        with suppress(FetchFailed, TimeoutError):
            await asyncio.wait_for(client.fetch(request), 0.3 if path == "/cancelled" else 20)

    await asyncio.gather(*(one(number) for number in range(1000)))
    await client.close()
    await until(lambda: server.open == 0)

    assert await open_files() <= before
    assert not client._idle


async def test_handles_are_reused_and_not_hoarded(serve: Serve, new_client: NewClient) -> None:
    server = await serve(echo)
    client = new_client(max_connections=4)
    await asyncio.gather(*(client.fetch(Request(server.url())) for _ in range(100)))
    assert len(client._idle) <= 4
    assert len(client._host_concurrency) == 0


def test_it_runs_on_uvloop_too() -> None:
    async def main() -> None:
        server = RawServer(echo)
        await server.start()
        client = Client(user_agent="t", guard=LOOPBACK, timeout=60)
        answers = await asyncio.gather(*(client.fetch(Request(server.url(f"/{n}"))) for n in range(100)))
        assert [response.body for response in answers] == [f"/{n}".encode() for n in range(100)]
        silent = RawServer(lambda head, writer: asyncio.sleep(60))
        await silent.start()
        with pytest.raises(TimedOut):
            await client.fetch(Request(silent.url()), timeout=0.3)
        await client.close()
        await server.stop()
        await silent.stop()

    uvloop.run(main())


async def test_a_proxy_that_is_not_there_is_our_own_trouble(serve: Serve, new_client: NewClient) -> None:
    gone = await serve(b"")
    await gone.stop()
    client = new_client(proxy=gone.url())
    with pytest.raises(ConnectionFailed, match="proxy") as caught:
        await client.fetch(Request("http://127.0.0.1/"))
    assert is_our_network(caught.value)
