"""Servers that drip, flood, cut off or contradict themselves."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable

import pytest

from fetch.raw_server import CHUNKED, HEAD, RawServer, answer, dripping_body, dripping_head, path_of
from headwater.errors import AnswerBroken, AnswerTooLarge, ConnectionFailed, TimedOut
from headwater.fetch.client import Client
from headwater.model import Request

Serve = Callable[..., Awaitable[RawServer]]
NewClient = Callable[..., Client]
Writer = asyncio.StreamWriter


async def flood(writer: Writer, piece: bytes) -> None:
    while True:
        writer.write(piece)
        await writer.drain()


async def until_closed(server: RawServer) -> None:
    while server.open:
        await asyncio.sleep(0.01)


async def test_dripping_headers_end_at_the_total_deadline(serve: Serve, new_client: NewClient) -> None:
    # H21
    server = await serve(dripping_head)
    with pytest.raises(TimedOut, match=r"0\.3 s"):
        await new_client().fetch(Request(server.url()), timeout=0.3)
    await until_closed(server)


async def test_a_dripping_body_ends_at_the_total_deadline(serve: Serve, new_client: NewClient) -> None:
    # H22
    server = await serve(dripping_body)
    with pytest.raises(TimedOut):
        await new_client(timeout=0.3).fetch(Request(server.url()))
    await until_closed(server)


async def test_the_deadline_covers_all_redirects_together(serve: Serve, new_client: NewClient) -> None:
    # H15, H22
    async def speak(head: bytes, writer: Writer) -> None:
        await asyncio.sleep(0.15)
        writer.write(answer("302 Found", Location=path_of(head) + "x"))

    server = await serve(speak)
    with pytest.raises(TimedOut):
        await new_client(timeout=0.4).fetch(Request(server.url()))
    assert len(server.heads) < 5


async def test_a_server_that_never_speaks_ends_at_the_deadline(serve: Serve, new_client: NewClient) -> None:
    async def speak(head: bytes, writer: Writer) -> None:
        await asyncio.sleep(60)

    server = await serve(speak)
    with pytest.raises(TimedOut):
        await new_client(timeout=0.2).fetch(Request(server.url()))


@pytest.mark.parametrize("chunk", [b"1000\r\n" + b"x" * 4096 + b"\r\n", b"2\r\nxx\r\n" * 500], ids=["large", "tiny"])
async def test_an_endless_body_ends_at_the_byte_cap_and_is_not_hoarded(
    serve: Serve, new_client: NewClient, chunk: bytes
) -> None:
    # H23: large chunks, and tiny ones that would cost far more than their bytes if each were kept by itself.
    async def speak(head: bytes, writer: Writer) -> None:
        writer.write(CHUNKED)
        await flood(writer, chunk)

    server = await serve(speak)
    client = new_client(max_bytes=1_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(AnswerTooLarge, match="1,000,000 bytes"):
            await client.fetch(Request(server.url()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    await until_closed(server)
    assert peak < 4_000_000


async def test_an_endless_body_without_framing_ends_at_the_byte_cap(serve: Serve, new_client: NewClient) -> None:
    # H23
    async def speak(head: bytes, writer: Writer) -> None:
        writer.write(HEAD + b"\r\n")
        await flood(writer, b"x" * 4096)

    server = await serve(speak)
    with pytest.raises(AnswerTooLarge):
        await new_client().fetch(Request(server.url()), max_bytes=50_000)
    await until_closed(server)


async def test_an_announced_body_above_the_cap_is_not_read(serve: Serve, new_client: NewClient) -> None:
    # H23
    server = await serve(HEAD + b"Content-Length: 50001\r\n\r\n")
    with pytest.raises(AnswerTooLarge):
        await new_client().fetch(Request(server.url()), max_bytes=50_000)


async def test_a_body_of_exactly_the_cap_is_taken(serve: Serve, new_client: NewClient) -> None:
    server = await serve(answer(body=b"x" * 50_000))
    assert len((await new_client().fetch(Request(server.url()), max_bytes=50_000)).body) == 50_000


async def test_a_cap_of_one_request_does_not_stay_for_the_next(serve: Serve, new_client: NewClient) -> None:
    server = await serve(answer(body=b"x" * 50_000))
    client = new_client()
    assert (await client.fetch(Request(server.url()), max_bytes=60_000)).status == 200
    with pytest.raises(AnswerTooLarge):
        await client.fetch(Request(server.url()), max_bytes=40_000)
    assert (await client.fetch(Request(server.url()))).status == 200


@pytest.mark.parametrize(
    "cut",
    [
        HEAD + b"Content-Length: 10\r\n\r\nabc",  # H26
        CHUNKED + b"5\r\nabcde\r\n",
        CHUNKED + b"5\r\nab",
        CHUNKED + b"not a number\r\n",
    ],
)
async def test_a_body_that_is_cut_off_is_broken(serve: Serve, new_client: NewClient, cut: bytes) -> None:
    server = await serve(cut)
    with pytest.raises(AnswerBroken):
        await new_client().fetch(Request(server.url()))


@pytest.mark.parametrize(
    "lengths",
    [  # H27
        b"Content-Length: 3\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: 3\r\n",
        b"Content-Length: 3, 5\r\n",
        b"Content-Length: -3\r\n",
        b"Content-Length: 3x\r\n",
        b"Content-Length: 99999999999999999999999\r\n",
    ],
)
async def test_lengths_that_contradict_each_other_are_broken(
    serve: Serve, new_client: NewClient, lengths: bytes
) -> None:
    server = await serve(HEAD + lengths + b"\r\nabcde")
    with pytest.raises((AnswerBroken, AnswerTooLarge)):
        await new_client().fetch(Request(server.url()))


@pytest.mark.parametrize(
    "headers",
    [  # H36
        b"".join(b"X-%d: 1\r\n" % number for number in range(10_000)),
        b"".join(b"X-%d: 1\r\n" % number for number in range(600)),
        b"Set-Cookie: a=" + b"x" * 65_536 + b"\r\n",
        b"Set-Cookie: a=" + b"x" * 2_000_000 + b"\r\n",
    ],
    ids=["10,000 headers", "600 headers", "a cookie of 64 KB", "a cookie of 2 MB"],
)
async def test_headers_beyond_reason_are_a_bounded_error(serve: Serve, new_client: NewClient, headers: bytes) -> None:
    server = await serve(HEAD + headers + b"Content-Length: 2\r\n\r\nok")
    with pytest.raises(AnswerBroken):
        await new_client().fetch(Request(server.url()))


@pytest.mark.parametrize("line", [b"X: 1\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"x"])
async def test_endless_headers_are_a_bounded_error(serve: Serve, new_client: NewClient, line: bytes) -> None:
    # H36
    async def speak(head: bytes, writer: Writer) -> None:
        await flood(writer, (HEAD if line != b"HTTP/1.1 100 Continue\r\n\r\n" else b"") + line * 1000)

    server = await serve(speak)
    with pytest.raises(AnswerBroken):
        await new_client().fetch(Request(server.url()))


async def test_many_headers_within_reason_are_read(serve: Serve, new_client: NewClient) -> None:
    headers = b"".join(b"X-%d: %d\r\n" % (number, number) for number in range(200))
    server = await serve(HEAD + headers + b"Content-Length: 2\r\n\r\nok")
    assert (await new_client().fetch(Request(server.url()))).headers["x-199"] == "199"


@pytest.mark.parametrize("nonsense", [b"SSH-2.0-OpenSSH_9.6\r\n", b"\x00\x01\x02\r\n\r\n", b"HTTP/9.9 200 OK\r\n\r\n"])
async def test_an_answer_that_is_not_http_is_broken(serve: Serve, new_client: NewClient, nonsense: bytes) -> None:
    server = await serve(nonsense)
    with pytest.raises(AnswerBroken):
        await new_client().fetch(Request(server.url()))


async def test_a_server_that_hangs_up_is_a_failed_connection(serve: Serve, new_client: NewClient) -> None:
    server = await serve(b"")
    with pytest.raises(ConnectionFailed, match="closed the connection"):
        await new_client().fetch(Request(server.url()))


async def test_nobody_listening_is_a_failed_connection(serve: Serve, new_client: NewClient) -> None:
    server = await serve(b"")
    await server.stop()
    with pytest.raises(ConnectionFailed, match="refused the connection"):
        await new_client().fetch(Request(server.url()))
