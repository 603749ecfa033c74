"""Servers and clients that are stopped after the test."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from fetch.raw_server import LOOPBACK, RawServer, Speaker
from headwater.fetch.client import Client


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Awaitable[RawServer]]]:
    """`await serve(bytes_or_speaker)` starts a server on loopback."""
    servers: list[RawServer] = []

    async def start(speak: Speaker | bytes, tls: ssl.SSLContext | None = None) -> RawServer:
        server = RawServer(speak)
        await server.start(tls)
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.stop()


@pytest.fixture
async def new_client() -> AsyncIterator[Callable[..., Client]]:
    """`new_client(...)` makes a client that may use loopback unless told otherwise."""
    clients: list[Client] = []

    def make(**options: Any) -> Client:
        defaults: dict[str, Any] = {"user_agent": "Headwater test", "guard": LOOPBACK, "timeout": 60.0}
        client = Client(**defaults | options)
        clients.append(client)
        return client

    yield make
    for client in clients:
        await client.close()
