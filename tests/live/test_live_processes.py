"""Live updates over the death of a server: whoever listened comes back to another one and misses nothing."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from api.running import Client
from headwater import wire
from headwater.accounts import tokens
from headwater.server import create_app, web_server
from headwater.settings import load
from live.listening import listening, titles
from support.ports import free_port, wait_until_open
from support.posts import a_post, a_source, visited


@contextmanager
def headwater_up(store_url: str, data: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`headwater up` as a process of its own, without crawling: the process and its port."""
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    environ = {**kept, "HEADWATER_DATABASE_URL": store_url, "HEADWATER_DATA_DIR": str(data)}
    environ["HEADWATER_SHUTDOWN_SECONDS"] = "1"
    command = [sys.executable, "-m", "headwater", "up", "--no-crawl", "--port", str(port)]
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert any(re.search("Ctrl-C stops it", line) for line in process.stdout), "it did not start"
            wait_until_open(port)
            yield process, port
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


def test_a_killed_server_costs_its_listeners_nothing(store_url: str, tmp_path: Path) -> None:
    # H79
    parts = wire.open_parts(load({"HEADWATER_DATABASE_URL": store_url}))
    owner, now = wire.prepare_store(parts), parts.now()
    token = {"Authorization": f"Bearer {parts.db.write_now(tokens.issue, owner, 'api', 'test', now)}"}
    source_id = parts.db.write_now(a_source, owner, now=now)

    def publish(*names: str) -> None:
        parts.db.write_now(visited, source_id, [a_post(name, name) for name in names], parts.now())

    with headwater_up(store_url, tmp_path / "one") as (process, port):
        with listening(Client(port, token)) as ear:
            publish("a", "b")
            heard = ear.hear(2)
            process.send_signal(signal.SIGKILL)
            last = ear.last_id
        publish("c", "d")
    with (
        headwater_up(store_url, tmp_path / "two") as (process, port),
        listening(Client(port, token), ready=False, Last_Event_ID=last) as ear,
    ):
        publish("e")
        heard += ear.hear(3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    parts.close()
    assert titles(heard) == ["a", "b", "c", "d", "e"]


async def test_closing_lets_every_listener_go_and_the_server_stops_at_once(store_url: str) -> None:
    # H97
    parts = wire.open_parts(load({"HEADWATER_DATABASE_URL": store_url}))
    owner = wire.prepare_store(parts)
    secret = parts.db.write_now(tokens.issue, owner, "api", "test", parts.now())
    app = create_app(parts)
    listener = socket.create_server(("127.0.0.1", 0))
    server = web_server(app, parts)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
    writer.write(f"GET /api/live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n".encode())
    await reader.readuntil(b"id: ")
    app.state.live.close()
    server.should_exit = True
    assert (await reader.read()).endswith(b"0\r\n\r\n"), "the answer was cut off instead of ended"
    await serving
    writer.close()
    listener.close()
    parts.close()
