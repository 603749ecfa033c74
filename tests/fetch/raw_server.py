"""A server that says exactly what a test tells it to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress

from headwater.fetch.guard import AddressGuard, parse_allow

LOOPBACK = AddressGuard(parse_allow("127.0.0.0/8"))
PUBLIC_ONLY = AddressGuard()

Speaker = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


class RawServer:
    """Reads heads of requests and answers with raw bytes, or lets `speak` write whatever it likes."""

    def __init__(self, speak: Speaker | bytes) -> None:
        self._speak = speak
        self.heads: list[bytes] = []
        self.open = 0
        self.connections = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=tls)
        self.port: int = self._server.sockets[0].getsockname()[1]

    def url(self, path: str = "/", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.open += 1
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
                await self._talk(reader, writer)
        finally:
            self.open -= 1
            self._tasks.discard(task)
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            if isinstance(self._speak, bytes):
                writer.write(self._speak)
                await writer.drain()
                return
            await self._speak(head, writer)
            await writer.drain()


def answer(status: str = "200 OK", body: bytes = b"", **headers: str) -> bytes:
    """A correct answer on a connection that stays open."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def path_of(head: bytes) -> str:
    return head.split(b" ", 2)[1].decode()


async def drip(writer: asyncio.StreamWriter, piece: bytes) -> None:
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.02)


async def dripping_head(head: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD)
    await drip(writer, b"X-More: 1\r\n")


async def dripping_body(head: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(CHUNKED)
    await drip(writer, b"1\r\n<\r\n")
