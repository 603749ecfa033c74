"""A web server for benchmarks. It answers from memory in its own process, so that only the client is measured."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

Answer = Callable[[str, bytes], bytes]  # to a path and the head of its request


class Answering(asyncio.Protocol):
    """One connection of a client that keeps it open."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        while end:
            wanted = _content_length(head)
            if len(rest) < wanted:
                return
            self._transport.write(self._answer(head.split(b" ", 2)[1].decode(), head))
            self._received = rest[wanted:]
            head, end, rest = self._received.partition(b"\r\n\r\n")


def written(status: str, body: bytes, *headers: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", "")).encode() + body


async def listening(answer: Answer) -> tuple[asyncio.Server, str]:
    """Starts a server; returns it and its address."""
    server = await asyncio.get_running_loop().create_server(lambda: Answering(answer), "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@contextmanager
def serving(make: Callable[[], Answer]) -> Iterator[str]:
    """Yields the address of a server whose process calls `make` for the answering function."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, make), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send(None)
        process.join()


def _serve(pipe: Connection, make: Callable[[], Answer]) -> None:
    asyncio.run(_until_told(pipe, make()))


async def _until_told(pipe: Connection, answer: Answer) -> None:
    server, url = await listening(answer)
    pipe.send(url)
    await asyncio.to_thread(pipe.recv)
    server.close()


def _content_length(head: bytes) -> int:
    lines = [line.lower() for line in head.split(b"\r\n")]
    return next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
