"""What must not be told: passwords, tokens, and where the database is (H16, H67)."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from sqlalchemy import event

from api.running import Client, Running, running
from headwater.urls import without_secrets
from support.ports import free_port, wait_until_open
from support.processes import wait_until
from support.services import fresh_postgres_database, service_url
from support.web import ALLOW_LOOPBACK, Answer, Web

HEADWATER = [sys.executable, "-m", "headwater"]
ROOT = Path(__file__).resolve().parents[2]


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}


@pytest.mark.parametrize("accept", ["*/*", "text/html"])
def test_strangers_are_not_told_where_the_database_is(postgres_schema: str, accept: str) -> None:
    with fresh_postgres_database(service_url("postgres"), postgres_schema) as url, running(url) as headwater:
        program = headwater.program()
        engine = headwater.parts.db.engine
        event.listen(engine, "do_connect", lambda *given: given[3].update(host="127.0.0.1", port=1))
        engine.dispose()
        login = headwater.stranger.get("/login?token=hw_login_x", Accept=accept)
        for answer in (program.get("/api/stream", Accept=accept), login):
            assert answer.status == 503
            assert answer.headers["retry-after"]
            for told in ("127.0.0.1", "port 1", "refused", "connection"):
                assert told not in answer.text


def test_behind_https_browsers_stay_with_https(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'headwater.db'}"
    with running(url, HEADWATER_PUBLIC_URL="https://news.example") as headwater:
        for path in ("/login", "/api/stream", "/static/headwater.css", "/healthz"):
            answer = headwater.stranger.get(path, Host="news.example")
            assert answer.headers["strict-transport-security"] == "max-age=31536000"
    with running(url) as headwater:
        assert "strict-transport-security" not in headwater.stranger.get("/login").headers


REFUSED = [
    "https://name:hunter2@[news.example/feed",
    "ftp://name:hunter2@news.example/feed",
    "https://name:hunter2@news.example:port/feed",
    "https://name:hunter2/more@news.example/feed",
    "https://name:hunter2@@news.example/feed",
    "https://name:hunter2@/feed",
]


@pytest.mark.parametrize("address", REFUSED)
def test_a_refused_address_is_not_repeated_with_its_password(headwater: Running, address: str) -> None:  # H16
    opml = f'<opml version="2.0"><body><outline type="rss" xmlUrl="{address}"/></body></opml>'.encode()
    answer = headwater.program().post("/api/opml", opml, Content_Type="text/x-opml")
    assert len(answer.json()["refused"]) == 1, answer.text
    assert "hunter2" not in answer.text
    assert "hunter2" not in headwater.program().post("/api/sources", {"address": address}).text


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("https://a.example/feed?token=abc&page=2", "https://a.example/feed?token=…&page=2"),
        ("https://a.example/feed?f=12&sid=abc", "https://a.example/feed?f=12&sid=…"),
        ("https://a.example/f?x=a1b2c3d4e5f6a7b8c9", "https://a.example/f?x=…"),
        ("https://me:pw@a.example/ and http://b.example/?key=1", "https://…@a.example/ and http://b.example/?key=…"),
        ("https://a.example/@me/feed?category=science", "https://a.example/@me/feed?category=science"),
        ("no address?token=abc", "no address?token=abc"),
    ],
)
def test_tokens_in_addresses_are_left_out_and_the_rest_stays(words: str, shown: str) -> None:
    assert without_secrets(words) == shown


def test_a_token_in_the_address_of_a_feed_is_not_logged(tmp_path: Path, world: Web) -> None:  # H67
    world.pages["/private"] = Answer("gone", status=500)
    environ = {**clean(), **ALLOW_LOOPBACK, "HEADWATER_DATA_DIR": str(tmp_path / "data")}
    port, log = free_port(), tmp_path / "log"
    subprocess.run([*HEADWATER, "db", "upgrade"], env=environ, check=True, capture_output=True)
    made = subprocess.run([*HEADWATER, "token"], env=environ, check=True, capture_output=True, text=True)
    program = Client(port, {"Authorization": f"Bearer {made.stdout.strip()}"})
    with log.open("wb") as errors:
        line = [*HEADWATER, "up", "--port", str(port)]
        process = subprocess.Popen(line, env=environ, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            wait_until_open(port)
            address = world.url("/private?feed_token=hunter2secret")
            assert program.post("/api/sources", {"address": address}).status == 202
            wait_until(lambda: b"/private" in log.read_bytes())
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    assert b"feed_token" in log.read_bytes()
    assert b"hunter2secret" not in log.read_bytes()


def test_the_login_link_goes_to_a_terminal_and_nowhere_else(tmp_path: Path) -> None:  # H67
    environ = {**clean(), "HEADWATER_DATA_DIR": str(tmp_path / "data")}
    line = [*HEADWATER, "up", "--no-crawl", "--port", str(free_port())]
    with subprocess.Popen(line, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as piped:
        assert piped.stdout is not None
        said = "".join(iter(piped.stdout.readline, "Ctrl-C stops it.\n"))
        piped.send_signal(signal.SIGTERM)
        said += piped.communicate()[0]
    assert "token=" not in said
    assert "`headwater login`" in said
    terminal, other_end = pty.openpty()
    shown = subprocess.Popen(line, env=environ, stdout=other_end, stderr=subprocess.DEVNULL)
    os.close(other_end)
    text = b""
    while b"Ctrl-C stops it." not in text:
        text += os.read(terminal, 4096)
    shown.send_signal(signal.SIGTERM)
    shown.wait()
    os.close(terminal)
    assert re.search(rb"http://\S+/login\?token=\S+", text)


def test_every_dependency_has_a_lower_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    assert [one for one in wanted if ">=" not in one] == []
