"""A client of server-sent events that shows each message as it came."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from api.running import Client, Running
from headwater.store.log import outbox
from support.processes import wait_until

POSTS = "/api/live?kinds=post.stored"


class Told(NamedTuple):
    """One message: what a browser would make of it."""

    id: str
    event: str
    data: Any


class Ear:
    """A connection to `/api/live`. `last_id` is what it would resume with."""

    def __init__(self, client: Client, path: str = POSTS, *, small_buffer: bool = False, **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
        if small_buffer:
            self._connection.sock = slow_socket(client.port)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("GET", path, headers={**client.headers, **sent})
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self.headers = self._answer.headers
        self.last_id = ""
        self.comments: list[str] = []

    def blocks(self) -> Iterator[dict[str, str]]:
        """Each block of lines, until the server ends it."""
        block: dict[str, str] = {}
        while line := self._answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(":")
            if line == "\n":
                self.last_id = block.get("id", self.last_id)
                yield block
                block = {}
            elif name:
                block[name] = value.removeprefix(" ")
            else:
                self.comments.append(value.strip())

    def ready(self) -> Ear:
        """Wait until the server has said where we begin."""
        next(block for block in self.blocks() if "id" in block)
        return self

    def hear(self, count: int = 1) -> list[Told]:
        """The next messages."""
        found: list[Told] = []
        for block in self.blocks():
            if "data" in block:
                found.append(Told(block["id"], block["event"], json.loads(block["data"])))
            if len(found) == count:
                return found
        raise AssertionError(f"the stream ended after {found}")

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


def slow_socket(port: int) -> socket.socket:
    """One that has little room for what nobody has read yet."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(60)
    made.connect(("127.0.0.1", port))
    return made


@contextmanager
def listening(
    client: Client, path: str = POSTS, *, ready: bool = True, small_buffer: bool = False, **headers: str
) -> Iterator[Ear]:
    ear = Ear(client, path, small_buffer=small_buffer, **headers)
    assert ear.status == 200
    try:
        yield ear.ready() if ready else ear
    finally:
        ear.close()


def settle(headwater: Running) -> None:
    """Wait until what was written can be seen: on PostgreSQL, older transactions of the whole server hide it."""

    def is_settled(conn: Connection) -> bool:
        last = conn.execute(text("SELECT max(id) FROM event_outbox")).scalar()
        return last is None or outbox.end(conn).id >= last

    wait_until(lambda: headwater.parts.db.read_now(is_settled))


def titles(told: list[Told]) -> list[str]:
    return [one.data["data"]["title"] for one in told]
