"""`headwater up` as a newcomer runs it: says where to go, crawls, and stops cleanly."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.ports import free_port, wait_until_open
from support.web import Answer, Web, rss


@contextmanager
def running(environ: dict[str, str], *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A Headwater with pages and crawl loop: the process and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "headwater", "up", *words],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    while "Ctrl-C stops it." not in said:
        line = process.stdout.readline()
        assert line, f"headwater ended: {said}"
        said += line
    home = re.findall(r"http://\S+", said)[0]
    try:
        wait_until_open(urlsplit(home).port or 0)
        yield process, home
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def asked(address: str, method: str, path: str, token: str, body: Any = None) -> tuple[int, bytes]:
    host = address.removeprefix("http://").split("/")[0]
    connection = HTTPConnection(host, timeout=60)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def ask(address: str, method: str, path: str, token: str, body: Any = None) -> tuple[int, Any]:
    status, content = asked(address, method, path, token, body)
    return status, json.loads(content) if content else None


def text_of(address: str, path: str, token: str) -> str:
    return asked(address, "GET", path, token)[1].decode()


def until(condition: Callable[[], Any], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)
    return found


@pytest.fixture
def port(environ: dict[str, str], world: Web) -> str:
    environ["HEADWATER_PORT"] = str(free_port())
    return environ["HEADWATER_PORT"]


def test_an_address_added_over_http_is_answered_at_once_and_read_behind_it(
    environ: dict[str, str], port: str, world: Web, headwater: Any
) -> None:  # D2
    world.pages["/feed"] = Answer(rss("first"), delay=0.5)
    with running(environ) as (process, link):
        token = headwater("token").out.strip()
        status, source = ask(link, "POST", "/api/sources", token, {"address": world.url("/feed")})
        assert (status, source["status"]) == (202, "new")
        items = until(lambda: ask(link, "GET", "/api/stream", token)[1]["items"])
        assert [item["title"] for item in items] == ["first"]
        found = until(lambda: ask(link, "GET", "/api/posts?q=first", token)[1]["items"])
        assert found[0]["title"] == "first"
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0


def test_other_commands_know_where_the_server_listens(
    environ: dict[str, str], port: str, world: Web, headwater: Any
) -> None:
    other = str(free_port())
    with running(environ, "--port", other, "--no-crawl") as (process, home):
        assert home.endswith(f":{other}")
        link = headwater("login").out.strip()
        assert link.startswith(f"{home}/login?token=")
        assert ask(home, "GET", link.removeprefix(home), "")[0] == 303
        assert headwater("people", "login", "owner").out.strip().startswith(f"{home}/login?token=")
        [found] = [one for one in headwater("doctor", "--json").lines if one["what"] == "port"]
        assert (found["ok"], found["detail"]) == (True, f"this Headwater is running at 127.0.0.1:{other}")
        process.kill()  # what it has noted is still there
        process.wait()
        assert headwater("login").out.startswith(f"http://127.0.0.1:{port}/")
        [found] = [one for one in headwater("doctor", "--json").lines if one["what"] == "port"]
        assert found["detail"] == f"127.0.0.1:{port} is free"


def test_metrics_count_visits_by_their_outcome(
    environ: dict[str, str], port: str, world: Web, headwater: Any
) -> None:  # A8
    world.pages["/feed"] = Answer(rss("first"))
    world.pages["/broken"] = Answer(status=500)
    with running(environ) as (_, link):
        token = headwater("token").out.strip()
        assert "headwater_visits_total{" not in text_of(link, "/metrics", token)
        for path in ("/feed", "/broken"):
            ask(link, "POST", "/api/sources", token, {"address": world.url(path)})
        counted = until(lambda: text if 'outcome="failed"' in (text := text_of(link, "/metrics", token)) else None)
        until(lambda: 'headwater_visits_total{outcome="ok"} 1.0' in text_of(link, "/metrics", token))
        assert 'headwater_visits_total{outcome="failed"} 1.0' in counted


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_lets_visits_finish_and_gives_the_others_back(
    environ: dict[str, str], port: str, world: Web, headwater: Any, number: int
) -> None:  # H97
    environ["HEADWATER_SHUTDOWN_SECONDS"] = "5"
    world.pages["/quick"] = Answer(rss("quick"), delay=0.4)
    world.pages["/endless"] = Answer(rss("endless"), delay=20)
    with running(environ) as (process, link):
        token = headwater("token").out.strip()
        for path in ("/quick", "/endless"):
            ask(link, "POST", "/api/sources", token, {"address": world.url(path)})
        until(lambda: len(world.asked) == 2)
        process.send_signal(number)
        assert process.wait(120) == 0
        assert process.stdout is not None
        assert "Stopped." in process.stdout.read()
    rows = {row["address"].removeprefix(world.address): row for row in headwater("sources", "--json").lines}
    assert rows["/quick"]["status"] == "ok"
    assert (rows["/endless"]["status"], rows["/endless"]["checking"]) == ("new", False)


def test_a_taken_port_is_said_at_once(environ: dict[str, str], world: Web, headwater: Any) -> None:
    taken = world.address.rpartition(":")[2]
    ran = headwater("up", "--port", taken)
    assert ran.code == 2
    assert f"127.0.0.1:{taken}" in ran.err
    assert "--port" in ran.err
