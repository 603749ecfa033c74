"""A Headwater that answers on loopback, and a small client that shows every byte of the answers."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from fastapi.routing import APIRoute
from starlette.routing import Mount

from headwater import wire
from headwater.accounts import tokens
from headwater.app.account import login_link
from headwater.http.metrics import Metrics
from headwater.model import Post, Reader
from headwater.server import certificate_of, create_app, web_server
from headwater.settings import load
from headwater.wire import Parts
from support.posts import a_source, visited


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    cookies: list[str]

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    port: int
    headers: dict[str, str] = field(default_factory=dict)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Bytes are sent as they are, a mapping as JSON; header names are written with underscores."""
        sent = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read(), answer.headers.get_all("set-cookie") or [])
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self("POST", path, body, **headers)

    def patch(self, path: str, body: Any) -> Answer:
        return self("PATCH", path, body)


@dataclass
class Running:
    """A server with its parts: tests ask it over HTTP, and put posts into its store directly."""

    parts: Parts
    owner: Reader
    port: int
    metrics: Metrics

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def stranger(self) -> Client:
        return Client(self.port)

    def token(self) -> str:
        return self.parts.db.write_now(tokens.issue, self.owner, "api", "test", self.parts.now())

    def program(self) -> Client:
        """A client with an API token."""
        return Client(self.port, {"Authorization": f"Bearer {self.token()}"})

    def session(self) -> str:
        return self.parts.db.write_now(tokens.issue, self.owner, "session", "test", self.parts.now())

    def browser(self, session: str | None = None) -> Client:
        """A client with a session's cookie, and nothing that proves where its requests come from."""
        return Client(self.port, {"Cookie": f"headwater_session={session or self.session()}"})

    def login_link(self) -> str:
        """Path and query of a fresh login link."""
        return "/login" + self.parts.db.write_now(login_link, self.owner, "", self.parts.now()).partition("/login")[2]

    def source(self, address: str = "https://news.example/feed") -> int:
        return self.parts.db.write_now(a_source, self.owner, address, self.parts.now())

    def publish(self, source_id: int, *posts: Post, **visit: Any) -> list[int]:
        """Have a visit bring these posts; returns their ids."""
        saved = self.parts.db.write_now(lambda conn: visited(conn, source_id, list(posts), self.parts.now(), **visit))
        return [post.id for post in saved.posts]


@contextmanager
def running(
    store_url: str, now: Callable[[], datetime] = wire.utc_now, *, port: int = 0, **environ: str
) -> Iterator[Running]:
    parts = wire.open_parts(load({"HEADWATER_DATABASE_URL": store_url, **environ}))
    parts.now = now
    owner = wire.prepare_store(parts)
    with served(parts, port) as (port, metrics):
        yield Running(parts, owner, port, metrics)
    parts.close()


@contextmanager
def served(parts: Parts, port: int = 0) -> Iterator[tuple[int, Metrics]]:
    """The application on a port of its own, in a thread of its own."""
    listening = socket.create_server(("127.0.0.1", port))
    metrics = Metrics()
    server = web_server(create_app(parts, metrics), parts, certificate_of(parts))

    async def serve() -> None:
        await server.serve(sockets=[listening])
        await parts.close_shared()

    def run() -> None:
        with wire.new_runner() as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1], metrics
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def api_routes(headwater: Running) -> list[APIRoute]:
    """The routes of everything the application answers."""
    found = []
    for one in create_app(headwater.parts).routes:
        if isinstance(one, APIRoute):
            found.append(one)
        else:
            assert isinstance(one, Mount), one
    return found


def routes(headwater: Running) -> list[tuple[str, str]]:
    """Method and path of everything the application answers."""
    return [(method, route.path) for route in api_routes(headwater) for method in route.methods]
