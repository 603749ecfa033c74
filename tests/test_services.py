"""`scripts/services`, `scripts/venv` and the rule about skipped tests, as a developer and a CI machine meet them."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from support.checkout import Checkout
from support.services import service_url

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    there = Checkout(tmp_path / "a checkout")
    yield there
    there.services("clean")


def postgres_answers(url: str) -> bool:
    with psycopg.connect(url) as server:
        return server.execute("SELECT 1").fetchone() == (1,)


def redis_answers(url: str) -> bool:
    with redis.Redis.from_url(url) as server:
        return bool(server.ping())


def test_up_starts_postgres_once_and_again_after_it_was_killed(checkout: Checkout) -> None:
    service_url("postgres")
    checkout.services("up", "postgres")
    first = checkout.urls()["HEADWATER_TEST_POSTGRES_URL"]
    assert postgres_answers(first)

    checkout.services("up", "postgres")
    assert checkout.urls()["HEADWATER_TEST_POSTGRES_URL"] == first

    os.kill(checkout.process("postgres"), signal.SIGKILL)
    checkout.services("up", "postgres")
    assert postgres_answers(checkout.urls()["HEADWATER_TEST_POSTGRES_URL"])


def test_postgres_whose_data_were_spoilt_starts_with_new_ones(checkout: Checkout) -> None:
    service_url("postgres")
    checkout.services("up", "postgres")
    checkout.services("down")
    (checkout.folder() / "postgres" / "data" / "global" / "pg_control").write_bytes(b"")

    checkout.services("up", "postgres")
    assert postgres_answers(checkout.urls()["HEADWATER_TEST_POSTGRES_URL"])


def connect_answers(url: str) -> bool:
    with urllib.request.urlopen(f"{url}/connectors") as answer:
        return answer.read() == b"[]"


def test_kafka_whose_data_were_spoilt_starts_with_new_ones_and_connect_after_it(checkout: Checkout) -> None:
    if "HEADWATER_TEST_CONNECT" not in os.environ:
        pytest.skip("no connect: HEADWATER_TEST_CONNECT is not set (scripts/services up connect)")
    checkout.services("up", "connect")
    connect = checkout.process("connect")
    assert connect_answers(checkout.urls()["HEADWATER_TEST_CONNECT"])
    os.kill(checkout.process("kafka"), signal.SIGKILL)
    (checkout.folder() / "kafka" / "data" / "meta.properties").write_text("nonsense")

    checkout.services("up", "connect")
    assert checkout.process("connect") != connect
    assert connect_answers(checkout.urls()["HEADWATER_TEST_CONNECT"])


def test_redis_is_private_to_those_who_know_its_password(checkout: Checkout) -> None:
    service_url("redis")
    checkout.services("up", "redis")
    url = checkout.urls()["HEADWATER_TEST_REDIS_URL"]
    assert redis_answers(url)
    with pytest.raises(redis.AuthenticationError):
        redis_answers("redis://" + url.partition("@")[2])


def test_down_leaves_a_process_alone_that_only_has_the_same_number(checkout: Checkout) -> None:
    service_url("redis")
    checkout.services("up", "redis")
    record = checkout.folder() / "redis.json"
    server = checkout.process("redis")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        text = record.read_text()
        record.write_text(text.replace(f'"pid": {server}', f'"pid": {stranger.pid}'))
        assert checkout.services("down") == ""
        assert stranger.poll() is None
        stranger.communicate(b"\n")
    record.write_text(text)
    assert checkout.services("down") == "redis: stopped\n"
    assert checkout.urls() == {}


def test_an_unknown_service_is_an_error_that_names_the_known_ones(checkout: Checkout) -> None:
    answer = subprocess.run([checkout.script, "up", "oracle"], capture_output=True, text=True)
    assert answer.returncode == 2
    assert (
        "no such name: oracle; there are postgres, postgres-2, postgres-3, postgres-4, redis, kafka, connect for up"
        in answer.stderr
    )


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module, run by somebody who may not install anything."""
    loader = SourceFileLoader("services", str(ROOT / "scripts" / "services"))
    spec = importlib.util.spec_from_loader("services", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "services", module)
    loader.exec_module(module)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    return module


def test_what_is_missing_is_said_in_one_line_where_it_cannot_be_installed(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    programs = [script.Program(name, f"{name}-package", lambda: None) for name in ("nginx", "chromium")]
    monkeypatch.setattr(script, "PROGRAMS", (*programs, script.Program("make", "make", lambda: Path("/usr/bin/make"))))
    monkeypatch.setattr(script, "SERVICES", {})
    monkeypatch.setattr(script, "LOCAL", tmp_path)
    script.install([])
    assert capsys.readouterr().out == ""
    script.up([])
    assert capsys.readouterr().out == (
        "Missing here: nginx, chromium. Tests that need them are skipped. "
        "To run all of them: apt install chromium-package nginx-package\n"
    )
    with pytest.raises(script.Unavailable, match="install the package nginx-package"):
        script.install(["nginx"])


def test_make_test_installs_whatever_a_test_can_need(script: Any) -> None:
    """CI calls `make test` and nothing else, so what it needs is what everybody gets."""
    assert {"venv", "compiler", "python-headers", "postgres", "redis", "kafka", "connect", "nginx", "chromium"} <= {
        program.name for program in script.PROGRAMS
    }
    assert "scripts/services install" in (ROOT / "Makefile").read_text()


def test_test_processes_have_a_postgres_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_TEST_POSTGRES_URL", "the first")
    monkeypatch.setenv("HEADWATER_TEST_POSTGRES_3_URL", "the third")
    monkeypatch.delenv("HEADWATER_TEST_POSTGRES_9_URL", raising=False)
    urls = {}
    for name in ("gw0", "gw2", "gw8"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", name)
        urls[name] = service_url("postgres")
    assert urls == {"gw0": "the first", "gw2": "the third", "gw8": "the first"}


def test_there_are_as_many_postgres_as_make_runs_test_processes(checkout: Checkout) -> None:
    servers = [line for line in checkout.services("status").splitlines() if line.startswith("postgres")]
    assert f"TEST_PROCESSES ?= {len(servers)}\n" in (ROOT / "Makefile").read_text()


SKIPPING = """
import pytest

def test_that_runs(): pass

@pytest.mark.skip(reason={reason!r})
def test_that_does_not(): pass
"""


@pytest.mark.parametrize(
    ("ci", "reason", "data", "processes", "passes"),
    [
        ("", "no server", "present", "0", True),
        ("true", "no server", "present", "0", False),
        ("true", "no server", "present", "2", False),
        ("true", "no measuring data: nothing there", "absent", "0", True),
        ("true", "no measuring data: nothing there", "present", "0", False),
    ],
)
def test_a_skip_fails_the_run_only_under_ci(
    tmp_path: Path, ci: str, reason: str, data: str, processes: str, passes: bool
) -> None:
    shutil.copytree(ROOT / "tests" / "support", tmp_path / "support")
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "api").mkdir()
    shutil.copy(ROOT / "tests" / "api" / "running.py", tmp_path / "api")
    (tmp_path / "present").mkdir()
    (tmp_path / "test_it.py").write_text(SKIPPING.format(reason=reason))
    environment = {**os.environ, "CI": ci, "HEADWATER_TEST_DATA": str(tmp_path / data)}
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", processes, "-p", "no:cacheprovider", tmp_path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (answer.returncode == 0) == passes, answer.stdout
    assert ("which CI does not allow" in answer.stdout) != passes
    assert "1 passed, 1 skipped" in answer.stdout.splitlines()[-1]


def test_a_first_installation_names_each_package_at_once() -> None:
    script = (ROOT / "scripts" / "venv").read_text()
    progress = re.search(r"^progress\(\) \{.*?^\}", script, re.MULTILINE | re.DOTALL)
    assert progress
    command = ["bash", "-c", f"{progress[0]}\nprogress"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as shown:
        assert shown.stdin
        assert shown.stdout
        for number, name in enumerate(("alembic", "fastapi"), 1):
            shown.stdin.write(f"Collecting {name} (from headwater)\n")
            assert shown.stdout.readline() == f"    {number}  {name}\n"  # while the installation goes on
        shown.stdin.write("Installing collected packages: alembic, fastapi\n")
        assert shown.stdout.readline() == "  putting them in place\n"
        shown.stdin.close()
