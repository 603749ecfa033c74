"""kill -9 between receiving a push and storing it: the next poll finds what it brought, once (H79)."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from headwater import wire
from headwater.follow.add import follow
from headwater.model import Reader
from headwater.settings import load
from headwater.store.posts import stream
from headwater.store.tables import event_outbox, hub_subscriptions
from headwater.wire import Parts
from support.hub import Hub, offering
from support.ports import free_port
from support.processes import kill, wait_until
from support.web import ALLOW_LOOPBACK, Answer, Web

PAUSE = 1.0
Start = Callable[[dict[str, str]], subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts `headwater up`, the web server and the crawl loop; what still runs at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def start_one(environ: dict[str, str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "headwater", "up"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(command, env={**os.environ, **environ}, text=True, **quiet))
        return started[-1]

    yield start_one
    for process in started:
        kill(process)


@contextmanager
def nobody_can_write(store_url: str) -> Iterator[None]:
    """Holds what every write needs, so that whoever has a push in hand keeps it there."""
    if store_url.startswith("sqlite"):
        held = sqlite3.connect(store_url.removeprefix("sqlite:///"), isolation_level=None)
        held.execute("BEGIN IMMEDIATE")
        yield
        held.execute("ROLLBACK")
        held.close()
        return
    with psycopg.connect(store_url) as held_too:
        held_too.execute("SELECT id FROM sources FOR UPDATE")
        yield
        held_too.rollback()


def titles(parts: Parts, owner: Reader) -> list[str]:
    return sorted(story.members[0].title for story in parts.db.read_now(stream.page, owner))


def state(parts: Parts) -> str | None:
    query = hub_subscriptions.select().with_only_columns(hub_subscriptions.c.state)
    return parts.db.read_now(lambda conn: conn.execute(query).scalar())


def test_a_push_that_a_killed_process_had_in_hand_is_found_by_the_next_poll(
    store_url: str, hub: Hub, world: Web, start: Start
) -> None:
    port = str(free_port())
    environ = {
        **ALLOW_LOOPBACK,
        "HEADWATER_DATABASE_URL": store_url,
        "HEADWATER_PORT": port,
        "HEADWATER_PUBLIC_URL": f"http://127.0.0.1:{port}",
    }
    world.pages["/feed"] = Answer(offering(hub.url, world.url("/feed"), "first"))
    parts = wire.open_parts(load(environ))
    owner = wire.prepare_store(parts)
    parts.db.write_now(follow, owner, world.url("/feed"), parts.now())
    # The chore comes at the start and then each minute: visited by the first process, subscribed by the second.
    process = start(environ)
    wait_until(lambda: titles(parts, owner) == ["first"])
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    process = start(environ)
    wait_until(lambda: state(parts) == "active")
    document = offering(hub.url, world.url("/feed"), "first", "second")
    world.pages["/feed"] = Answer(document)
    lost: list[str] = []

    def push() -> None:
        try:
            hub.push(document)
        except OSError as error:
            lost.append(type(error).__name__)

    with nobody_can_write(store_url):
        pushing = threading.Thread(target=push)
        pushing.start()
        pushing.join(PAUSE)
        kill(process)
        pushing.join()
    assert lost, "the push was answered before the process was killed"
    assert titles(parts, owner) == ["first"]
    process = start(environ)
    parts.db.write_now(lambda conn: conn.exec_driver_sql("UPDATE sources SET next_check_at = created_at"))
    wait_until(lambda: len(titles(parts, owner)) == 2)
    assert (hub.push(document)).status == 202
    kill(process)
    assert titles(parts, owner) == ["first", "second"]
    kinds = parts.db.read_now(lambda conn: conn.execute(event_outbox.select()).all())
    assert sum(row.kind == "post.stored" for row in kinds) == 2
    parts.close()
